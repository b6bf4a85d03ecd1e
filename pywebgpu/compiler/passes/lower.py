"""Ops without a kernel of their own become ops that have one; reductions that are too long for one pass become two."""

from collections.abc import Sequence
from math import prod

from pywebgpu import dtypes
from pywebgpu.compiler.passes import split_products
from pywebgpu.composites import ordering, wide
from pywebgpu.ir import walk
from pywebgpu.ir.graph import Node, Op, Reduction, Spec
from pywebgpu.kernels.templates import Selection
from pywebgpu.ops import contraction, indexing, movement, pointwise, reduction
from pywebgpu.support.shapes import Shape

BLOCK = 256  # elements of a row that one workgroup orders
JOINED = 6  # parts that one kernel joins
LONG = 8192  # elements of a reduction from which it is worth a second pass
FEW = 64  # results below which one pass would leave most of a device idle
MORE = 4  # times both, as the channels of a batch of pictures have them
PARTS = 256  # partial results of a long reduction
LONGEST = 1 << 20  # elements of a reduction that no one walks alone: adapters may end loops after 65,535 rounds
UNEVEN = 1 << 16  # elements from which parts are worth a rest beside them, which is folded by itself
VECTOR = 4  # elements that are loaded at a time where parts begin at a multiple
TALL, WIDE, SHARES = 4096, 4096, 16  # the same of columns: elements, results at most, and partial results of each

# What is read below views, by its op and those of its inputs; its rows, and how much of k each has.
Passing = tuple[Op, tuple[Op, ...], Spec, int, int]


def lower(roots: tuple[Node, ...], nodes: Sequence[Node], selection: Selection) -> tuple[Node, ...]:
    """The same values from ops that kernels exist for."""
    roots = walk.rebuild(roots, nodes, _rule)
    nodes = walk.toposort(roots)
    if not any(_is_long(node) for node in nodes):
        return roots
    passing = _passing(nodes)
    return walk.rebuild(roots, nodes, lambda node: _split(node, passing) if _is_long(node) else node)


def _rule(node: Node) -> Node:
    known = wide.compared(node)
    if known is not None:
        return pointwise.full(known, node.spec)
    if node.op is indexing.argsort:
        return _argsort(node)
    if node.op is indexing.cat and len(node.inputs) > JOINED:
        return _cat(node)
    if node.op is contraction.matmul and not all(len(source.spec.shape) == 3 for source in node.inputs):
        return _matmul(node)
    return node


def _argsort(node: Node) -> Node:
    keys = ordering.sort_keys(node.inputs[0], node.attrs["descending"])
    return pointwise.cast(order(keys), dtype=dtypes.int64)


def order(keys: Node, block: int = BLOCK) -> Node:
    """The stable order of rows of uint32: blocks in order, then runs of twice the width, again and again."""
    positions = indexing.sort_block(keys, size=block)
    width = block
    while width < keys.spec.shape[-1]:
        positions = indexing.sort_merge(keys, positions, width=width)
        width *= 2
    return positions


def _cat(node: Node) -> Node:
    """Many parts are joined a few at a time: a kernel binds only so many buffers."""
    parts = list(node.inputs)
    if len(parts) < 2 * JOINED:  # Two kernels are enough.
        parts = [indexing.cat(*parts[:JOINED], **node.attrs), *parts[JOINED:]]
    while len(parts) > 1:
        parts = [
            indexing.cat(*parts[start : start + JOINED], **node.attrs) if len(parts) > start + 1 else parts[start]
            for start in range(0, len(parts), JOINED)
        ]
    return parts[0]


def _matmul(node: Node) -> Node:
    """(..., m, k) x (..., k, n) -> (batch, m, k) x (batch, k, n). Where b is one matrix, so are all rows of a."""
    a, b = node.inputs
    *lead, m, k = a.spec.shape
    batches, rows = (1, prod(lead) * m) if len(b.spec.shape) == 2 else (prod(lead), m)
    left = movement.reshape(a, shape=(batches, rows, k))
    right = movement.reshape(b, shape=(batches, *b.spec.shape[-2:]))
    return movement.reshape(contraction.matmul(left, right), shape=node.spec.shape)


def _passing(order: Sequence[Node]) -> set[Passing]:
    """What products bring to their kernels row by row, each row along k: a sum of such rows is made on the way."""
    rows_passing: set[Passing] = set()
    for node in order:
        if node.op is contraction.matmul and node.buffer is None and not split_products.is_endless(node):
            for operand, rows in zip(node.inputs, node.spec.shape[1:], strict=True):
                source = walk.base(operand)
                rows_passing.add((*_known(source), node.spec.shape[0] * rows, node.inputs[1].spec.shape[1]))
    return rows_passing


def _known(node: Node) -> tuple[Op, tuple[Op, ...], Spec]:
    """The same before and after the graph was rebuilt."""
    return node.op, tuple([source.op for source in node.inputs]), node.spec


def _is_long(node: Node) -> bool:
    """Whether a reduction has much to fold, and few results to do that with."""
    op = node.op
    if not isinstance(op, Reduction) or op in (reduction.argmax, reduction.argmin) or node.buffer is not None:
        return False
    length, count = prod(node.inputs[0].spec.shape[axis] for axis in node.attrs["axes"]), prod(node.spec.shape)
    few = length >= LONG and (count < FEW or (length >= MORE * LONG and count < MORE * FEW))
    return few or length > LONGEST or (length >= TALL and _are_columns(node))


def _are_columns(node: Node) -> bool:
    """Whether a reduction folds leading axes, to results that are not enough to keep a device busy."""
    axes = node.attrs["axes"]
    return axes == tuple(range(len(axes))) and FEW <= prod(node.spec.shape) < WIDE


def _split(node: Node, passing: set[Passing]) -> Node:
    """(n,) -> (parts, n / parts) -> (parts,) -> (): the longest folded axis is cut, evenly where that goes."""
    op, x, axes = node.op, node.inputs[0], node.attrs["axes"]
    assert isinstance(op, Reduction)
    source, shape = walk.base(x), x.spec.shape
    length = prod(shape[axis] for axis in axes)
    if op is reduction.sum_ and (*_known(source), prod(node.spec.shape), length) in passing:
        return node
    most = SHARES if _are_columns(node) and length <= LONGEST else PARTS
    axis = max(axes, key=lambda a: shape[a])
    parts = _parts(shape[axis], most)
    if not parts:
        x, axis = _with_joined_axes(x, axes)
        parts = _parts(x.spec.shape[axis], most)
    if parts:
        return op(_folded(op, x, axes, axis, parts), axes=(axis,))
    span = x.spec.shape[axis] // (most * VECTOR) * VECTOR
    if not span or length < UNEVEN:
        return node
    body, rest = _cut(x, axis, most * span)
    folds = indexing.cat(_folded(op, body, axes, axis, most), op(rest, axes=axes), axis=axis)
    return op(folds, axes=(axis,))


def _parts(n: int, most: int) -> int:
    """Into how many equal parts an axis is cut; 0 where they are not worth it."""
    return next((parts for parts in range(most, 7, -1) if n % parts == 0), 0)


def _with_joined_axes(x: Node, axes: Shape) -> tuple[Node, int]:
    """With the longest run of neighbours among the axes in the first of them, the others 1; and which that is."""
    shape = x.spec.shape
    starts = [axis for axis in axes if axis - 1 not in axes]
    ends = [axis + 1 for axis in axes if axis + 1 not in axes]
    first, end = max(zip(starts, ends, strict=True), key=lambda run: prod(shape[run[0] : run[1]]))
    joined = (*shape[:first], prod(shape[first:end]), *(1,) * (end - first - 1), *shape[end:])
    return movement.reshape(x, shape=joined), first


def _folded(op: Reduction, x: Node, axes: Shape, axis: int, parts: int) -> Node:
    """What is folded of each part of an axis, and of the other axes: (n,) -> (parts,)."""
    shape = x.spec.shape
    cut = movement.reshape(x, shape=(*shape[:axis], parts, shape[axis] // parts, *shape[axis + 1 :]))
    inner = [a + (a > axis) for a in axes if a != axis]
    folded = op(cut, axes=tuple(sorted((*inner, axis + 1))))
    return movement.reshape(
        folded, shape=tuple(parts if a == axis else 1 if a in axes else n for a, n in enumerate(shape))
    )


def _cut(x: Node, axis: int, size: int) -> tuple[Node, Node]:
    """Both sides of a cut through an axis."""
    shape = x.spec.shape

    def part(start: int, end: int) -> Node:
        starts = tuple(start if a == axis else 0 for a in range(len(shape)))
        sizes = tuple(end - start if a == axis else n for a, n in enumerate(shape))
        return movement.slice_(x, starts=starts, sizes=sizes, steps=(1,) * len(shape))

    return part(0, size), part(size, shape[axis])
