"""Composite ops become what they are made of; so do fused ops that nothing computes as they are, where they run.

Of one that a template claims, each output becomes a node of its own that reads what the op reads. So from here on a
node has one value, and that several are computed together is a matter of kernels.
"""

from collections.abc import Callable, Sequence

from pywebgpu.ir import composite, walk
from pywebgpu.ir.graph import OUTPUT, WHICH, Composite, Fused, Node, thread_state


def expand(roots: tuple[Node, ...], order: Sequence[Node], claims: Callable[[Node], bool]) -> tuple[Node, ...]:
    """The same values without Output nodes. claims: whether a template computes a node of a fused op."""
    while any(_is_fused(node) for node in order):
        roots = _expanded(roots, order, claims)
        order = walk.toposort(roots)  # What an op is made of may be fused as well.
    return roots


def _is_fused(node: Node) -> bool:
    op = node.op
    return isinstance(op, Fused | Composite) and not node.is_source and WHICH not in node.attrs


def _expanded(roots: tuple[Node, ...], order: Sequence[Node], claims: Callable[[Node], bool]) -> tuple[Node, ...]:
    new: dict[Node, Node] = {}
    outputs: dict[Node, tuple[Node, ...]] = {}
    made: composite.Made = {}
    was, thread_state.grad = thread_state.grad, False
    try:
        for node in order:
            fresh = node
            if not node.is_source:
                inputs = tuple([new[source] for source in node.inputs])
                if isinstance(node.op, Composite):
                    fresh = composite.decomposed(node.op, inputs, made)
                elif _is_fused(node):
                    outputs[node] = _values(node, inputs, claims)
                    fresh = outputs[node][0]
                elif node.op is OUTPUT:
                    fresh = outputs[node.inputs[0]][node.attrs["index"]]
                elif inputs != node.inputs:
                    fresh = Node(node.op, inputs, node.attrs, node.spec)
                if thread_state.origins is not None:
                    thread_state.origins.carry(node, fresh)
            new[node] = fresh
    finally:
        thread_state.grad = was
    return tuple([new[root] for root in roots])


def _values(node: Node, inputs: tuple[Node, ...], claims: Callable[[Node], bool]) -> tuple[Node, ...]:
    """Of a fused op, one node each."""
    op = node.op
    assert isinstance(op, Fused)
    if not claims(Node(op, inputs, node.attrs, node.spec)):
        return op.fallback(*inputs, **node.attrs)
    specs = op.infer(*[source.spec for source in inputs], **node.attrs)
    return tuple([Node(op, inputs, {**node.attrs, WHICH: at}, spec) for at, spec in enumerate(specs)])
