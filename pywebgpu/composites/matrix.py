"""What the position in a matrix decides: triangles, diagonals, blocks, repeated rows. No mask is ever stored."""

from math import prod

from pywebgpu import dtypes
from pywebgpu.composites import arithmetic, indexing, precision, reduce, scan, searching
from pywebgpu.errors import ShapeError
from pywebgpu.ir.graph import Node, Spec
from pywebgpu.ops import movement, pointwise
from pywebgpu.support import shapes
from pywebgpu.support.shapes import Shape

# Triangles


def tril(x: Node, diagonal: int = 0) -> Node:
    """x on and below a diagonal of its last two axes, 0 above. diagonal: how far above the main one."""
    return pointwise.where(_below("tril", x, diagonal), x, arithmetic.like(x, 0))


def triu(x: Node, diagonal: int = 0) -> Node:
    """x on and above a diagonal of its last two axes, 0 below. diagonal: how far above the main one."""
    return pointwise.where(_below("triu", x, diagonal - 1), arithmetic.like(x, 0), x)


def below(shape: Shape, diagonal: int) -> Node:
    """Whether a position of the last two axes lies on or below a diagonal."""
    rank, spec = len(shape), Spec(shape, dtypes.int32)
    rows, columns = pointwise.iota(spec=spec, axis=rank - 2), pointwise.iota(spec=spec, axis=rank - 1)
    return pointwise.le(columns, rows if diagonal == 0 else pointwise.add(rows, arithmetic.like(rows, diagonal)))


def _below(name: str, x: Node, diagonal: int) -> Node:
    if len(x.spec.shape) < 2:
        raise ShapeError(f"{name}: input tensor must have at least 2 dimensions")
    return below(x.spec.shape, diagonal)


# Diagonals


def diagonal(x: Node, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Node:
    """The elements (i, i + offset) of two axes, as a last axis."""
    rank = len(x.spec.shape)
    a, b = shapes.axis(dim1, rank), shapes.axis(dim2, rank)
    if a == b:
        raise ShapeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    rest = tuple(axis for axis in range(rank) if axis not in (a, b))
    rows, columns = x.spec.shape[a], x.spec.shape[b]
    lead = tuple(x.spec.shape[axis] for axis in rest)
    flat = indexing.shaped(indexing.permuted(x, (*rest, a, b)), (*lead, rows * columns))
    start, count = _line(rows, columns, offset)
    zeros, ones = (0,) * len(lead), (1,) * len(lead)
    return movement.slice_(flat, starts=(*zeros, start), sizes=(*lead, count), steps=(*ones, columns + 1))


def diag(x: Node, diagonal_: int = 0) -> Node:
    """(n,) -> a matrix with x on its diagonal; (n, m) -> its diagonal."""
    if len(x.spec.shape) == 1:
        return diag_embed(x, diagonal_)
    if len(x.spec.shape) != 2:
        raise ShapeError(f"diag(): Supports 1D or 2D tensors. Got {len(x.spec.shape)}D")
    return pointwise.copy(diagonal(x, diagonal_))


def diag_embed(x: Node, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Node:
    """The last axis of x on a diagonal of two new axes, 0 elsewhere."""
    if not x.spec.shape:
        raise ShapeError("diag_embed(): input tensor must have at least 1 dimension")
    *lead, count = x.spec.shape
    rank = len(lead) + 2
    a, b = shapes.axis(dim1, rank), shapes.axis(dim2, rank)
    if a == b:
        raise ShapeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    n = count + abs(offset)
    start, _ = _line(n, n, offset)
    zeros, ones = (0,) * len(lead), (1,) * len(lead)
    flat = movement.pad(x, shape=(*lead, n * n), starts=(*zeros, start), steps=(*ones, n + 1))
    matrices = indexing.shaped(flat, (*lead, n, n))
    others = iter(range(len(lead)))
    return indexing.permuted(
        matrices, tuple(rank - 2 if axis == a else rank - 1 if axis == b else next(others) for axis in range(rank))
    )


def diagflat(x: Node, offset: int = 0) -> Node:
    """A matrix with all elements of x on its diagonal."""
    return diag_embed(indexing.shaped(x, (prod(x.spec.shape),)), offset)


def trace(x: Node) -> Node:
    """The sum of a matrix's diagonal."""
    precision.refuse_bool("trace", x)
    if len(x.spec.shape) != 2:
        raise ShapeError(f"trace: expected a matrix, but got tensor with dim {len(x.spec.shape)}")
    return reduce.sum(diagonal(x))


def _line(rows: int, columns: int, offset: int) -> tuple[int, int]:
    """Where a diagonal of a flattened matrix starts, and how long it is."""
    count = min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns)
    start = offset if offset >= 0 else -offset * columns
    return min(start, rows * columns), max(count, 0)


# Repeated rows


def repeat_interleave(x: Node, repeats: int | Node, dim: int | None, total: int | None = None) -> Node:
    """Each row of `dim` (None: of the flattened x) `repeats` times in a row. total: the sum of `repeats`, if a node."""
    if dim is None:
        x, dim = indexing.shaped(x, (prod(x.spec.shape),)), 0
    axis = shapes.axis(dim, len(x.spec.shape))
    x = x if x.spec.shape else indexing.shaped(x, (1,))
    size = x.spec.shape[axis]
    if isinstance(repeats, Node):
        if prod(repeats.spec.shape) == 1:
            repeats = arithmetic.broadcast_to(indexing.shaped(repeats, (1,)), (size,))
        if repeats.spec.shape != (size,):
            raise ShapeError(
                f"repeats must have the same size as input along dim, but got repeats.size(0) = {repeats.spec.shape} "
                f"and input.size({axis}) = {size}"
            )
        assert total is not None
        return indexing.get(x, (axis,), (spread(repeats, total),), axis)
    if repeats < 0:
        raise ShapeError("Repeats must be non-negative")
    lead, rest = x.spec.shape[: axis + 1], x.spec.shape[axis + 1 :]
    grown = arithmetic.broadcast_to(indexing.shaped(x, (*lead, 1, *rest)), (*lead, repeats, *rest))
    return indexing.shaped(grown, (*lead[:-1], size * repeats, *rest))


def spread(repeats: Node, total: int) -> Node:
    """(2, 0, 1) -> 0, 0, 2: the number of each row as often as `repeats` says. total: their sum."""
    ends = scan.cumsum(arithmetic.cast(repeats, dtypes.int64), 0)
    positions = pointwise.iota(spec=Spec((total,), dtypes.int64), axis=0)
    return searching.searchsorted(ends, positions, right=True)
