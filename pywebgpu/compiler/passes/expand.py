"""Composite ops become what they are made of; so do fused ops that nothing computes as they are, where they run.

Of one that a template matches, each output becomes a node of its own that reads what the op reads. So from here on a
node has one value, and that several are computed together is a matter of kernels.
"""

from collections.abc import Callable, Sequence

from pywebgpu.ir import composite, walk
from pywebgpu.ir.graph import OUTPUT, WHICH, Composite, Fused, FusedNode, Node, thread_state
from pywebgpu.kernels.templates import Selection


def expand(roots: tuple[Node, ...], order: Sequence[Node], selection: Selection) -> tuple[Node, ...]:
    """The same values without Output nodes."""
    return _expanded_whole(roots, order, selection.is_computed, _no)


def expand_for_host(roots: tuple[Node, ...], order: Sequence[Node], selection: Selection) -> tuple[Node, ...]:
    """The same for device cpu: a fused op that it computes by itself stays, with its Output nodes."""
    return _expanded_whole(roots, order, _no, _is_hosted)


def _is_hosted(node: Node) -> bool:
    op = node.op
    if not isinstance(op, Fused) or op.host is None:
        return False
    return op.hosted is None or node.spec.dtype in op.hosted


def _expanded_whole(
    roots: tuple[Node, ...], order: Sequence[Node], is_computed: Callable[[Node], bool], stays: Callable[[Node], bool]
) -> tuple[Node, ...]:
    while any(_is_fused(node) and not stays(node) for node in order):
        roots = _expanded(roots, order, is_computed, stays)
        order = walk.toposort(roots)  # What an op is made of may be fused as well.
    return roots


def _no(node: Node) -> bool:
    return False


def _is_fused(node: Node) -> bool:
    op = node.op
    return isinstance(op, Fused | Composite) and not node.is_source and WHICH not in node.attrs


def _expanded(
    roots: tuple[Node, ...], order: Sequence[Node], is_computed: Callable[[Node], bool], stays: Callable[[Node], bool]
) -> tuple[Node, ...]:
    new: dict[Node, Node] = {}
    outputs: dict[Node, tuple[Node, ...]] = {}
    expansions: composite.Made = {}
    was, thread_state.grad = thread_state.grad, False
    try:
        for node in order:
            fresh = node
            if not node.is_source:
                inputs = tuple([new[source] for source in node.inputs])
                if isinstance(node.op, Composite):
                    fresh = composite.decomposed(node.op, inputs, expansions)
                elif _is_fused(node) and stays(node):
                    assert isinstance(node, FusedNode)
                    fresh = fused = FusedNode(node.op, inputs, node.attrs, node.specs, False)  # type: ignore[arg-type]
                    outputs[node] = tuple([fused.output(index) for index in range(len(node.specs))])
                elif _is_fused(node):
                    outputs[node] = _values(node, inputs, is_computed)
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


def _values(node: Node, inputs: tuple[Node, ...], is_computed: Callable[[Node], bool]) -> tuple[Node, ...]:
    """Of a fused op, one node each."""
    op = node.op
    assert isinstance(op, Fused)
    if not is_computed(Node(op, inputs, node.attrs, node.spec)):
        return op.fallback(*inputs, **node.attrs)
    specs = op.infer(*[source.spec for source in inputs], **node.attrs)
    return tuple([Node(op, inputs, {**node.attrs, WHICH: index}, spec) for index, spec in enumerate(specs)])
