"""The reverse walk: gradients of nodes as nodes.

A node remembers its op and inputs, so the graph itself is the tape. The walk goes along nodes with `requires`, by a
stack. Gradient formulas are ops like any other: they only add nodes, fuse like forward code, and can be differentiated
again.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from pywebgpu.gradient import modes
from pywebgpu.graph import walk
from pywebgpu.graph.ir import DATA, NO_ATTRS, Custom, Movement, Node, Pointwise, Reduction, Structural, Vjp
from pywebgpu.ops import pointwise


class Anchor(Protocol):
    """What waits at a node for its gradient: hooks, a tensor that retains it, a leaf that accumulates it."""

    def arrive(self, grad: Node, *, accumulate: bool, create_graph: bool) -> Node:
        """Sees the whole gradient of the node; returns it, or what hooks made of it."""


class Call(Protocol):
    """One application of a user-written function: attrs["call"] of its Custom nodes."""

    def backward(self, grads: list[Node | None]) -> Sequence[Node | None]:
        """Gradients of the outputs -> gradients of the inputs 1.. of each Custom node."""

    def release(self) -> None:
        """Drops what was saved for backward, which will not be asked again."""


TWICE = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already been "
    "freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify "
    "retain_graph=True if you need to backward through the graph a second time or if you need to access saved tensors "
    "after calling backward."
)
MODIFIED = (
    "one of the variables needed for gradient computation has been modified by an inplace operation: {op} needs a "
    "{spec} whose tensor was written to afterwards. Hint: use an out-of-place operation, or .clone() before the write"
)


def gradients(
    roots: Sequence[Node],
    seeds: Sequence[Node],
    wanted: Sequence[Node] = (),
    *,
    accumulate: bool,
    create_graph: bool = False,
    retain_graph: bool = False,
    inside: bool = False,
) -> list[Node | None]:
    """d(roots)/d(w) for each w of `wanted`; leaves with an anchor receive theirs when `accumulate`.

    inside: the walk ends at the nodes of `wanted`, whose hooks do not run: for a part of a larger walk.

    Raises RuntimeError when the graph was freed, or a value that a formula needs was overwritten.
    """
    grads: dict[int, Node] = {}
    for root, seed in zip(roots, seeds, strict=True):
        _accumulate(grads, root, seed)
    asked = {id(w) for w in wanted}
    order = walk.history(roots, frozenset(asked) if inside else frozenset())
    outputs_left: dict[int, int] = {}
    collected: dict[int, list[Node | None]] = {}
    for node in order:
        if isinstance(node.op, Custom):
            key = id(node.attrs["call"])
            outputs_left[key] = outputs_left.get(key, 0) + 1
    results: dict[int, Node] = {}
    with modes.set_grad_enabled(create_graph):
        for node in reversed(order):
            grad = grads.pop(id(node), None)
            if inside and id(node) in asked:
                if grad is not None:
                    results[id(node)] = grad
                continue
            if grad is not None:
                if node.anchor is not None:
                    grad = node.anchor.arrive(grad, accumulate=accumulate, create_graph=create_graph)
                if id(node) in asked:
                    results[id(node)] = grad
            if isinstance(node.op, Custom):
                _custom(node, grad, grads, outputs_left, collected)
            elif grad is not None and node.inputs:
                _through(node, grad, grads)
            elif grad is not None and node.freed:
                raise RuntimeError(TWICE)
    if not retain_graph:
        for node in order:
            _let_go(node)
    return [results.get(id(w)) for w in wanted]


def _through(node: Node, grad: Node, grads: dict[int, Node]) -> None:
    inputs = node.inputs
    for which, source in enumerate(inputs):
        if not source.requires:
            continue
        rule = _rule(node, which)
        if rule is None:
            continue
        if node.freed and saved(node, which):
            raise RuntimeError(TWICE)
        _check_fresh(node, which)
        part = rule(grad, node, *inputs, **node.attrs)
        if part is not None:
            _accumulate(grads, source, part)


def _accumulate(grads: dict[int, Node], node: Node, part: Node) -> None:
    old = grads.get(id(node))
    grads[id(node)] = part if old is None else pointwise.add(old, part)


def _custom(
    node: Node,
    grad: Node | None,
    grads: dict[int, Node],
    outputs_left: dict[int, int],
    collected: dict[int, list[Node | None]],
) -> None:
    """Waits for all outputs of one call, then asks it for the gradients of its inputs."""
    if not node.inputs:
        raise RuntimeError(TWICE)
    call, key = node.attrs["call"], id(node.attrs["call"])
    found = collected.setdefault(key, [None] * node.attrs["outputs"])
    found[node.attrs["index"]] = grad
    outputs_left[key] -= 1
    if outputs_left[key] or all(g is None for g in found):
        return
    for source, part in zip(node.inputs[1:], call.backward(found), strict=True):
        if part is not None and source.requires:
            _accumulate(grads, source, part)


def _rule(node: Node, which: int) -> Vjp | None:
    match node.op:
        case Pointwise(vjp=rules):
            return rules[which]
        case Movement(vjp=rule) | Reduction(vjp=rule):
            return rule
        case Structural(vjp=rules):
            if isinstance(rules, tuple):
                return rules[which]
            varying: Callable[..., Node | None] = rules
            return lambda *args, **attrs: varying(which, *args, **attrs)
        case _:
            return None


# What a formula reads of its op's inputs and output: found once an op, by looking at the nodes that it makes.

_saved: dict[Any, tuple[int, ...]] = {}


def saved(node: Node, which: int) -> tuple[int, ...]:
    """Numbers of the inputs that the gradient of input `which` reads; -1 stands for the output."""
    key = (node.op, which, len(node.inputs), node.attrs.get("mode"))
    if key not in _saved:
        rule = _rule(node, which)
        assert rule is not None
        stand_ins = [Node(DATA, (), NO_ATTRS, source.spec) for source in (*node.inputs, node, node)]
        *inputs, out, seed = stand_ins
        with modes.no_grad():
            made = rule(seed, out, *inputs, **node.attrs)
        _saved[key] = _reads(made, inputs, out)
    return _saved[key]


def _reads(made: Node | None, inputs: Sequence[Node], out: Node) -> tuple[int, ...]:
    names = {id(source): i for i, source in enumerate(inputs)} | {id(out): -1}
    found: set[int] = set()
    seen: set[int] = set()
    stack = [] if made is None else [made]
    while stack:
        at = stack.pop()
        if id(at) in seen:
            continue
        seen.add(id(at))
        if id(at) in names:
            found.add(names[id(at)])
        else:
            stack.extend(at.inputs)
    return tuple(sorted(found))


def saved_nodes(roots: Sequence[Node]) -> list[Node]:
    """Every pending value that a later backward from `roots` would read."""
    found: dict[int, Node] = {}
    for node in walk.history(roots):
        if node.freed or not node.inputs:
            continue
        if isinstance(node.op, Custom):
            for value in getattr(node.attrs["call"], "saved", ()):
                found[id(value)] = value
            continue
        for which, source in enumerate(node.inputs):
            if source.requires and _rule(node, which) is not None:
                for i in saved(node, which):
                    value = node if i == -1 else node.inputs[i]
                    found[id(value)] = value
    return [node for node in found.values() if node.buffer is None and node.inputs]  # Constants are made again.


def _check_fresh(node: Node, which: int) -> None:
    if not node.stale and not any(source.stale or walk.base(source).stale for source in node.inputs):
        return
    for i in saved(node, which):
        value = node if i == -1 else node.inputs[i]
        if value.stale or walk.base(value).stale:
            raise RuntimeError(MODIFIED.format(op=node.op.name, spec=f"{value.spec.dtype} {list(value.spec.shape)}"))


def _let_go(node: Node) -> None:
    """Frees what the node saved. Nodes whose formulas read nothing keep their inputs, as in torch."""
    if not node.inputs or node.freed:
        return
    if isinstance(node.op, Custom) or any(
        source.requires and _rule(node, which) is not None and saved(node, which)
        for which, source in enumerate(node.inputs)
    ):
        node.freed = True
        if isinstance(node.op, Custom):
            node.attrs["call"].release()
        if node.buffer is not None:
            node.inputs = ()
