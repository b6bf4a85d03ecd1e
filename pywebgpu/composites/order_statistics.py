"""Elements by their rank in a row: the k-th smallest, the median, and the most frequent."""

from pywebgpu import dtypes
from pywebgpu.composites import arithmetic, gathering, ordering, precision, reduce, slicing
from pywebgpu.dtypes import Kind
from pywebgpu.errors import RangeError, ShapeError
from pywebgpu.ir.graph import Node, Spec
from pywebgpu.ops import indexing as ops
from pywebgpu.ops import movement, pointwise, reduction
from pywebgpu.support import shapes


def kthvalue(x: Node, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Node, Node]:
    """The k-th smallest element along `dim`, and where it stands."""
    precision.refuse_bool("kthvalue", x)
    axis = shapes.axis(dim, len(x.spec.shape))
    size = x.spec.shape[axis] if x.spec.shape else 1
    if not 1 <= k <= size:
        raise ShapeError(f"kthvalue(): selected number k out of range for dimension {axis}: k={k}, size {size}")
    if not x.spec.shape:
        return movement.alias(x), pointwise.full(0, Spec((), dtypes.int64))
    if 0 in x.spec.shape and not size:
        raise ShapeError(f"kthvalue(): Expected reduction dim {axis} to have non-zero size.")
    return _picked(x, slicing.part(ordering.argsort(x, axis), axis, k - 1, k), axis, keepdim)


def median(x: Node, dim: int = -1, keepdim: bool = False) -> tuple[Node, Node]:
    """The middle element along `dim`, of two the smaller one, and where it stands; NaN where the row has one."""
    return _middle("median", x, dim, keepdim, skip_nan=False)


def nanmedian(x: Node, dim: int = -1, keepdim: bool = False) -> tuple[Node, Node]:
    """The median of what is not NaN."""
    return _middle("nanmedian", x, dim, keepdim, skip_nan=True)


def mode(x: Node, dim: int = -1, keepdim: bool = False) -> tuple[Node, Node]:
    """The most frequent element along `dim`, of several the smallest, and where the last of its kind stands."""
    axis = shapes.axis(dim, len(x.spec.shape))
    if not x.spec.shape:
        return movement.alias(x), pointwise.full(0, Spec((), dtypes.int64))
    _require_some("mode", x, axis)
    rows = slicing.swapped(reduce.stop_gradient(x), axis)
    order = ops.argsort(rows, descending=False)
    last = len(rows.spec.shape) - 1
    starts, _ = ordering.runs(gathering.take_along(rows, order, last))
    length = pointwise.sub(pointwise.iota(spec=order.spec, axis=last), starts)
    # The first of the longest is the smallest value, at its run's last position.
    end = reduction.argmax(length, (last,))
    return _picked(x, slicing.swapped(gathering.take_along(order, end, last), axis), axis, keepdim)


def _picked(x: Node, index: Node, axis: int, keepdim: bool) -> tuple[Node, Node]:
    values = gathering.take_along(x, index, axis)
    return reduce.drop(values, (axis,), keepdim=keepdim), reduce.drop(index, (axis,), keepdim=keepdim)


def _require_some(name: str, x: Node, axis: int) -> None:
    if x.spec.shape[axis] == 0:
        shape = list(x.spec.shape)
        raise RangeError(f"{name}(): Expected reduction dim {axis} to have non-zero size, got shape {shape}.")


def _middle(name: str, x: Node, dim: int, keepdim: bool, *, skip_nan: bool) -> tuple[Node, Node]:
    axis = shapes.axis(dim, len(x.spec.shape))
    if not x.spec.shape:
        return movement.alias(x), pointwise.full(0, Spec((), dtypes.int64))
    _require_some(name, x, axis)
    n = x.spec.shape[axis]
    order = ordering.argsort(x, axis)
    if x.spec.dtype.kind is not Kind.FLOAT:
        return _picked(x, slicing.part(order, axis, (n - 1) // 2, (n - 1) // 2 + 1), axis, keepdim)
    valid = reduce.sum(pointwise.bitwise_not(pointwise.isnan(reduce.stop_gradient(x))), axis, keepdim=True)
    unit = arithmetic.like(valid, 1)
    last = pointwise.sub(valid, unit)
    half = pointwise.shift_right(pointwise.maximum(last, arithmetic.like(valid, 0)), unit)
    if not skip_nan:  # NaNs stand last, so the first of them follows the last number.
        half = pointwise.where(pointwise.eq(valid, arithmetic.like(valid, n)), half, valid)
    return _picked(x, gathering.take_along(order, half, axis), axis, keepdim)
