"""Running sums, products and extremes along one axis, and differences between neighbours.

The op runs along the last axis; here any axis is brought there and back.
"""

from pywebgpu import dtypes
from pywebgpu.composites import arithmetic, precision, reduce, slicing
from pywebgpu.dtypes import DType, Kind
from pywebgpu.errors import ShapeError
from pywebgpu.ir.graph import Node, Spec
from pywebgpu.ops import indexing, movement, pointwise
from pywebgpu.support.shapes import axis as axis_of


def cumsum(x: Node, dim: int, *, dtype: DType | None = None) -> Node:
    """out[i] = x[0] + ... + x[i] along `dim`; of whole numbers and bools in int64."""
    return _scan(x, dim, dtype, "add")


def cumprod(x: Node, dim: int, *, dtype: DType | None = None) -> Node:
    """out[i] = x[0] * ... * x[i] along `dim`; of whole numbers and bools in int64."""
    return _scan(x, dim, dtype, "prod")


def cummax(x: Node, dim: int) -> tuple[Node, Node]:
    """The largest of x[0] ... x[i] along `dim`, and where the last of them is (int64); the gradient goes there."""
    return _running_extreme(x, dim, "max")


def cummin(x: Node, dim: int) -> tuple[Node, Node]:
    """The smallest of x[0] ... x[i] along `dim`, and where the last of them is (int64); the gradient goes there."""
    return _running_extreme(x, dim, "min")


def logcumsumexp(x: Node, dim: int) -> Node:
    """out[i] = log(exp(x[0]) + ... + exp(x[i])) along `dim`, each sum shifted by its own largest term."""
    precision.require_floating("logcumsumexp", x)
    axis = axis_of(dim, len(x.spec.shape))
    if not x.spec.shape or 0 in x.spec.shape:
        return movement.alias(x)
    sums = indexing.scan(slicing.swapped(precision.upcast(x), axis), mode="logaddexp")
    return slicing.swapped(arithmetic.cast(sums, x.spec.dtype), axis)


def diff(x: Node, n: int = 1, dim: int = -1) -> Node:
    """x[i + 1] - x[i] along `dim`, n times."""
    if not x.spec.shape:
        raise ShapeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise ShapeError(f"order must be non-negative but got {n}")
    axis = axis_of(dim, len(x.spec.shape))
    for _ in range(n):
        size = x.spec.shape[axis]
        if size == 0:
            break
        later, earlier = slicing.part(x, axis, 1, size), slicing.part(x, axis, 0, size - 1)
        if x.spec.dtype is dtypes.bool_:
            x = pointwise.ne(later, earlier)
        else:
            x = pointwise.sub(later, earlier)
    return x


def trapezoid(y: Node, x: Node | None = None, *, dx: float = 1, dim: int = -1) -> Node:
    """The integral along `dim` of the straight lines between the points y, which lie dx apart or at x."""
    precision.refuse_bool("trapezoid", y)
    axis = axis_of(dim, len(y.spec.shape))
    size = y.spec.shape[axis]
    if not size:
        shape = tuple([n for axis_index, n in enumerate(y.spec.shape) if axis_index != axis])
        return pointwise.full(0, Spec(shape, y.spec.dtype))
    pairs = pointwise.add(slicing.part(y, axis, 1, size), slicing.part(y, axis, 0, size - 1))
    if x is None:
        return arithmetic.mul(reduce.sum(pairs, axis), dx / 2)
    if len(x.spec.shape) == 1:
        x = movement.reshape(x, shape=tuple(size if a == axis else 1 for a in range(len(y.spec.shape))))
    return arithmetic.mul(reduce.sum(arithmetic.mul(pairs, diff(x, dim=axis)), axis), 0.5)


def _scan(x: Node, dim: int, dtype: DType | None, mode: str) -> Node:
    axis = axis_of(dim, len(x.spec.shape))
    if dtype is None:
        dtype = x.spec.dtype if x.spec.dtype.kind is Kind.FLOAT else dtypes.int64
    if dtype is dtypes.bool_:
        raise NotImplementedError(f"a running {mode} in bools is not implemented: use dtype=torch.int64")
    x = arithmetic.cast(x, dtype)
    if not x.spec.shape or 0 in x.spec.shape:
        return movement.alias(x)
    return slicing.swapped(indexing.scan(slicing.swapped(x, axis), mode=mode), axis)


def _running_extreme(x: Node, dim: int, mode: str) -> tuple[Node, Node]:
    axis = axis_of(dim, len(x.spec.shape))
    if not x.spec.shape or 0 in x.spec.shape:
        return movement.alias(x), pointwise.full(0, Spec(x.spec.shape, dtypes.int64))
    rows = slicing.swapped(x, axis)
    fixed = reduce.stop_gradient(rows)
    best = indexing.scan(fixed, mode=mode)
    is_record = pointwise.eq(fixed, best)
    if x.spec.dtype.kind is Kind.FLOAT:
        is_record = pointwise.bitwise_or(is_record, pointwise.isnan(fixed))
    shape = rows.spec.shape
    last = len(shape) - 1
    position = pointwise.iota(spec=Spec(shape, dtypes.int64), axis=last)
    index = indexing.scan(pointwise.where(is_record, position, arithmetic.like(position, 0)), mode="max")
    if x.requires:
        best = take_along_rows(rows, index)
    return slicing.swapped(best, axis), slicing.swapped(index, axis)


def take_along_rows(x: Node, index: Node) -> Node:
    """out[..., i] = x[..., index[..., i]]; all leading axes are equal."""
    n = x.spec.shape[-1]
    count = 1
    for size in x.spec.shape[:-1]:
        count *= size
    picks = movement.reshape(index, shape=(count, index.spec.shape[-1]))
    first = arithmetic.mul(pointwise.iota(spec=picks.spec, axis=0), arithmetic.like(picks, n))
    flat = movement.reshape(pointwise.add(picks, first), shape=(count * index.spec.shape[-1],))
    taken = indexing.take(movement.reshape(x, shape=(count * n, 1)), flat)
    return movement.reshape(taken, shape=index.spec.shape)
