"""The gradients of composite ops, which are composite ops: made by one walk back through what the op is made of."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from pywebgpu.ir import composite, walk
from pywebgpu.ir.graph import DATA, NO_ATTRS, Composite, Node, RowsNode, is_view, thread_state
from pywebgpu.ops import movement, pointwise

Walk = Callable[[Node, Node, Sequence[Node]], Sequence[Node | None]]  # (root, its gradient, of what) -> gradients


class Rule:
    """The gradient of one input: an op of the gradient of the output, where it reads that, and of inputs.

    picks: the numbers of the inputs that it reads, in order; -1 is the gradient.
    """

    __slots__ = ("_picks", "op")

    def __init__(self, op: Composite, picks: Sequence[int]) -> None:
        self.op, self._picks = op, picks

    def __call__(self, grad: Node, out: Node, *inputs: Node) -> Node:
        values = (*inputs, grad)
        return self.op(*[values[position] for position in self._picks])


def formulas(op: Composite, gradients: Walk) -> tuple[tuple[int, Rule, tuple[int, ...]], ...]:
    """For each input that a gradient flows to: its number, its rule, and the numbers of the inputs read.

    The walk is made with gradient mode on, so that gradients of gradients find their way.
    """
    seed = Node(DATA, (), NO_ATTRS, op.spec, True)
    before = thread_state.grad, thread_state.decomposing
    thread_state.grad = thread_state.decomposing = True
    try:
        input_grads = gradients(op.output, seed, op.inputs)
    finally:
        thread_state.grad, thread_state.decomposing = before
    number = {source: position for position, source in enumerate(op.inputs)} | {seed: -1}
    rules = []
    for input_index, part in enumerate(input_grads):
        if part is not None:
            read = [node for node in walk.toposort([part]) if node in number]
            name = f"{op.name}_gradient"
            inner = Composite(name, f"{op.text} gradient {input_index}", tuple(read), part)
            picks = [number[node] for node in read]
            rules.append(
                (input_index, Rule(inner, picks), tuple(sorted(position for position in picks if position >= 0)))
            )
    return tuple(rules)


class Walks(list[Sequence[Node]]):
    """The nodes of each walk of gradients that is on its way, in any thread.

    number: of those that were no part of another.
    """

    number = -1

    @contextmanager
    def of(self, order: Sequence[Node]) -> Iterator[None]:
        """While one is on its way. order: its nodes, inputs before users."""
        if not self:
            self.number += 1
        self.append(order)
        try:
            yield
        finally:
            self.pop()


walks = Walks()


def decompose(order: Sequence[Node], gradients: Walk) -> bool:
    """Puts what pending composite ops are made of below their nodes, before they run without their gradients.

    What the gradients read is computed and kept then, and not computed once more; an op of whose values they read
    none stays. Returns whether there were any others.
    Not while gradients are computed, where a hook reads a value: the walk knows the nodes as they were.
    """
    if walks:
        return False
    expansions: composite.Made = {}
    for node in order:
        op = node.op
        if type(op) is Composite and not node.freed and node.buffer is None and node.inputs and repeats(op, gradients):
            node.inputs = (composite.decomposed(op, node.inputs, expansions),)
            node.op = movement.alias
    return bool(expansions)


def repeats(op: Composite, gradients: Walk) -> bool:
    """Whether a gradient would compute again what the op computes."""
    if op.repeats is None:
        if op.formulas is None:
            op.formulas = formulas(op, gradients)
        free = {*op.inputs}
        own = {node for node in walk.toposort([op.output]) if node not in free and not _is_free(node)}
        op.repeats = any(not own.isdisjoint(walk.toposort([rule.op.output])) for _, rule, _ in op.formulas)
    return bool(op.repeats)


def _is_free(node: Node) -> bool:
    return not node.inputs or is_view(node.op)


def summed(old: Node, part: Node) -> Node:
    """Both gradients of a value; by rows where both are."""
    total = pointwise.add(old, part)
    if type(old) is RowsNode and type(part) is RowsNode:
        return RowsNode(total, (*old.parts, *part.parts))
    return total
