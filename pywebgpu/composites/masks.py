"""Choosing by a mask, and counting: masked writes, the positions where a mask holds, histograms, membership.

How many elements a mask holds is a number that only the host can turn into a shape: whoever calls `held` has read it.
"""

from math import isfinite, prod

from pywebgpu import dtypes
from pywebgpu.composites import arithmetic, bounds, index_writes, indexing, ordering, precision, reduce, searching
from pywebgpu.errors import DTypeError, ShapeError
from pywebgpu.ir.graph import Node, Spec
from pywebgpu.ops import indexing as ops
from pywebgpu.ops import movement, pointwise
from pywebgpu.step_capture.free_number import Number
from pywebgpu.support import shapes
from pywebgpu.support.shapes import Shape

TOO_FEW = "Number of elements of source < number of ones in mask"


def masked_fill(x: Node, mask: Node, value: Node | Number) -> Node:
    """value where the mask holds, else x; both broadcast. Raises: DTypeError unless the mask is bool."""
    if mask.spec.dtype is not dtypes.bool_:
        raise DTypeError(f"masked_fill only supports boolean masks, but got mask with dtype {mask.spec.dtype.name}")
    if isinstance(value, Node) and value.spec.shape:
        raise ShapeError(
            "masked_fill only supports a 0-dimensional value tensor, but got tensor with "
            f"{len(value.spec.shape)} dimension(s)."
        )
    is_complex = isinstance(value, complex) or (isinstance(value, Node) and value.spec.dtype.is_complex)
    if is_complex and not x.spec.dtype.is_complex:
        raise DTypeError(f"value cannot be converted to type {x.spec.dtype} without overflow")
    return arithmetic.where(mask, indexing.scalar(value, x), x)


def masked_scatter(x: Node, mask: Node, source: Node) -> Node:
    """Elements of source, in order, where the mask holds, else x. Raises: RangeError when source has too few."""
    if mask.spec.dtype is not dtypes.bool_:
        raise DTypeError(f"masked_scatter_ only supports boolean masks, but got mask with dtype {mask.spec.dtype.name}")
    index_writes.require_dtype("masked_scatter_", x, source)
    shape = shapes.broadcast(x.spec.shape, mask.spec.shape)
    mask = indexing.shaped(arithmetic.broadcast_to(mask, shape), (prod(shape),))
    size = prod(source.spec.shape)
    before = 1
    if size == 0:  # Any element that holds is one too many.
        source, size, before = pointwise.full(0, Spec((1,), source.spec.dtype)), 1, 0
    ends = counted(mask)
    own = pointwise.sub(ends, pointwise.full(before, ends.spec))
    positions = pointwise.where(mask, own, pointwise.full(0, ends.spec))
    positions = bounds.unknown(positions, size, TOO_FEW)
    taken = indexing.shaped(ops.take(indexing.shaped(source, (size, 1)), positions), shape)
    return pointwise.where(indexing.shaped(mask, shape), taken, arithmetic.broadcast_to(x, shape))


def counted(mask: Node) -> Node:
    """(n,) bool -> how many hold up to each element and with it, as int64."""
    return ops.scan(pointwise.cast(mask, dtype=dtypes.int64), mode="add")


def held(ends: Node, count: int) -> Node:
    """The positions of the `count` elements of a flat mask that hold, in order. ends: see counted."""
    return searching.searchsorted(ends, pointwise.iota(spec=Spec((count,), dtypes.int64), axis=0), right=True)


def coordinates(positions: Node, shape: Shape) -> list[Node]:
    """Flat positions in a tensor of `shape` -> one node of coordinates an axis."""
    out = []
    for n, step in zip(shape, shapes.strides(shape), strict=True):
        coordinate = positions if step == 1 else pointwise.floor_divide(positions, pointwise.full(step, positions.spec))
        out.append(
            coordinate
            if n * step >= prod(shape)
            else pointwise.remainder(coordinate, pointwise.full(n, positions.spec))
        )
    return out


# Counting


def bincount(x: Node, size: int, weights: Node | None = None) -> Node:
    """How often each of 0..size-1 occurs in x, or the sum of its weights. Shapes: x (n,), weights (n,) -> (size,)."""
    dtype = dtypes.int64 if weights is None else weights.spec.dtype
    n = x.spec.shape[0]
    source = pointwise.full(1, Spec((n, 1), dtype)) if weights is None else indexing.shaped(weights, (n, 1))
    zero = pointwise.full(0, Spec((size, 1), dtype))
    return indexing.shaped(ops.scatter(zero, arithmetic.cast(x, dtypes.int64), source, mode="add"), (size,))


def histc(x: Node, bins: int = 100, low: float = 0, high: float = 0) -> Node:
    """How many elements lie in each of `bins` equal parts of low..high; of x's own range where low equals high."""
    if bins <= 0:
        raise ShapeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")
    if not (isfinite(low) and isfinite(high)):
        raise ShapeError(f"torch.histc: range of [{low}, {high}] is not finite")
    if low > high:
        raise ShapeError("torch.histc: max must be larger than min")
    precision.require_floating("histogram", x)
    x = indexing.shaped(reduce.stop_gradient(x), (prod(x.spec.shape),))
    if x.spec.shape == (0,):
        return pointwise.full(0, Spec((bins,), x.spec.dtype))
    first, last = (arithmetic.stored(value, x.spec.dtype) for value in (low, high))
    if low == high:
        first, last = reduce.amin(x), reduce.amax(x)
        is_point = pointwise.eq(first, last)
        unit = arithmetic.like(first, 1)
        first, last = (
            pointwise.where(is_point, pointwise.sub(first, unit), first),
            pointwise.where(is_point, pointwise.add(last, unit), last),
        )
    inside = pointwise.bitwise_and(
        pointwise.ge(x, arithmetic.broadcast_to(first, x.spec.shape)),
        pointwise.le(x, arithmetic.broadcast_to(last, x.spec.shape)),
    )
    share = arithmetic.div(arithmetic.sub(x, first), pointwise.sub(last, first))
    position = pointwise.floor(pointwise.mul(share, arithmetic.like(share, bins)))
    position = pointwise.minimum(position, arithmetic.like(position, bins - 1))
    # One more bin takes what lies outside.
    position = pointwise.where(inside, position, arithmetic.like(position, bins))
    counts = bincount(pointwise.cast(position, dtype=dtypes.int64), bins + 1, pointwise.full(1, x.spec))
    return movement.slice_(counts, starts=(0,), sizes=(bins,), steps=(1,))


def isin(x: Node | Number, tests: Node | Number, *, invert: bool = False) -> Node:
    """Whether each element of x is one of `tests`."""
    dtype = arithmetic.result_type(x, tests)
    x, tests = (reduce.stop_gradient(arithmetic.node(part, dtype)) for part in (x, tests))
    flat = indexing.shaped(tests, (prod(tests.spec.shape),))
    n = flat.spec.shape[0]
    if n <= searching.FEW:
        shape = (*x.spec.shape, n)
        column = arithmetic.broadcast_to(indexing.shaped(x, (*x.spec.shape, 1)), shape)
        is_member = reduce.any(pointwise.eq(column, arithmetic.broadcast_to(flat, shape)), -1)
    else:
        ordered, _ = ordering.sort(flat)
        position = searching.searchsorted(ordered, x)
        position = indexing.shaped(pointwise.minimum(position, arithmetic.like(position, n - 1)), (prod(x.spec.shape),))
        nearest = indexing.shaped(ops.take(indexing.shaped(ordered, (n, 1)), position), x.spec.shape)
        is_member = pointwise.eq(nearest, x)
    return pointwise.bitwise_not(is_member) if invert else is_member
