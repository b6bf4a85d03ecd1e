"""Ops without a kernel of their own become ops that have one; reductions that are too long for one pass become two."""

from math import prod

from pywebgpu import dtypes
from pywebgpu.compose import ordering
from pywebgpu.graph import walk
from pywebgpu.graph.ir import Node, Reduction
from pywebgpu.ops import indexing, movement, pointwise, reduction

BLOCK = 256  # elements of a row that one workgroup orders
MANY = 4096  # updates from which putting them in order first costs less than comparing each with each row
JOINED = 6  # parts that one kernel joins
LONG = 8192  # elements of a reduction from which it is worth a second pass
FEW = 64  # results below which one pass would leave most of a device idle
PARTS = 256  # partial results of a long reduction


def lower(roots: tuple[Node, ...]) -> tuple[Node, ...]:
    """The same values from ops that kernels exist for."""
    return walk.rebuild(roots, _rule)


def _rule(node: Node) -> Node:
    if node.op is indexing.argsort:
        return _argsort(node)
    if node.op is indexing.scatter and node.inputs[1].spec.shape[0] >= MANY:
        return _scatter(node)
    if node.op is indexing.cat and len(node.inputs) > JOINED:
        return _cat(node)
    if isinstance(node.op, Reduction) and node.op not in (reduction.argmax, reduction.argmin):
        return _split(node, node.op)
    return node


def _scatter(node: Node) -> Node:
    """Updates in the order of their rows: each row then finds its own by a search and not by looking at all."""
    base, index, source = node.inputs
    keys = pointwise.cast(index, dtype=dtypes.uint32)
    order = _order(keys)
    count = index.spec.shape[0]
    column = movement.reshape(keys, shape=(count, 1))
    numbers = movement.reshape(indexing.take(column, order), shape=(count,))
    return indexing.scatter_sorted(base, numbers, order, source, mode=node.attrs["mode"])


def _argsort(node: Node) -> Node:
    keys = ordering.sort_keys(node.inputs[0], node.attrs["descending"])
    return pointwise.cast(_order(keys), dtype=dtypes.int64)


def _order(keys: Node) -> Node:
    """Blocks in order, then runs of twice the width, again and again."""
    order = indexing.sort_block(keys, size=BLOCK)
    width = BLOCK
    while width < keys.spec.shape[-1]:
        order = indexing.sort_merge(keys, order, width=width)
        width *= 2
    return order


def _cat(node: Node) -> Node:
    """Many parts are joined a few at a time: a kernel binds only so many buffers."""
    parts = list(node.inputs)
    while len(parts) > 1:
        parts = [
            indexing.cat(*parts[at : at + JOINED], **node.attrs) if len(parts) > at + 1 else parts[at]
            for at in range(0, len(parts), JOINED)
        ]
    return parts[0]


def _split(node: Node, op: Reduction) -> Node:
    """(n,) -> (parts, n / parts) -> (parts,) -> (): the longest folded axis is cut where it divides evenly."""
    x, axes = node.inputs[0], node.attrs["axes"]
    shape = x.spec.shape
    length = prod(shape[axis] for axis in axes)
    if length < LONG or prod(node.spec.shape) >= FEW:
        return node
    axis = max(axes, key=lambda a: shape[a])
    n = shape[axis]
    parts = next((p for p in range(PARTS, 1, -1) if n % p == 0), 1)
    if parts < 8:
        return node
    cut = movement.reshape(x, shape=(*shape[:axis], parts, n // parts, *shape[axis + 1 :]))
    inner = tuple(a + (a > axis) for a in axes if a != axis)
    first = op(cut, axes=tuple(sorted((*inner, axis + 1))))
    merged = movement.reshape(first, shape=tuple(parts if a == axis else m for a, m in enumerate(node.spec.shape)))
    return op(merged, axes=(axis,))
