"""Writing at computed rows: assignment to subscripts with index tensors; index_add, index_fill and the like."""

from collections.abc import Sequence
from math import prod

from pywebgpu import dtypes
from pywebgpu.composites import arithmetic, bounds, indexing, precision
from pywebgpu.dtypes import Kind
from pywebgpu.errors import DTypeError, RangeError, ShapeError
from pywebgpu.ir.graph import Node, Spec
from pywebgpu.ops import indexing as ops
from pywebgpu.ops import pointwise
from pywebgpu.step_capture.free_number import Number
from pywebgpu.support import shapes
from pywebgpu.support.shapes import Shape

REDUCTIONS = {"sum": "add", "mean": "add", "prod": "prod", "amax": "max", "amin": "min", "max": "max", "min": "min"}


def put(
    x: Node, axes: Sequence[int], indices: Sequence[Node], start_axis: int, value: Node, accumulate: bool = False
) -> Node:
    """x after x[..., index, ...] = value, or += value where positions that meet twice add up. See get.

    Raises: ShapeError when the value does not broadcast to what get would return.
    """
    positions, lead = indexing.row_numbers(x.spec.shape, axes, indices)
    front, rest = indexing.fronted(x, axes)
    kept = tuple(x.spec.shape[axis] for axis in rest)
    target = (*kept[:start_axis], *lead, *kept[start_axis:])
    value_shape = value.spec.shape
    value = indexing.shaped(value, indexing.without_leading(value_shape, len(target)))
    if not indexing.fits(value.spec.shape, target):
        raise ShapeError(
            f"shape mismatch: value tensor of shape {list(value_shape)} cannot be broadcast to indexing result "
            f"of shape {list(target)}"
        )
    value = arithmetic.broadcast_to(value, target)
    source = indexing.shaped(indexing.moved_block(value, start_axis, len(lead), 0), (prod(lead), prod(kept)))
    mode = "add" if accumulate else "set"
    written = indexing.shaped(
        ops.scatter(front, positions, source, mode=mode), tuple(x.spec.shape[axis] for axis in (*axes, *rest))
    )
    order = (*axes, *rest)
    return indexing.permuted(written, tuple(order.index(axis) for axis in range(len(order))))


def index_add(x: Node, dim: int, index: Node, source: Node, *, alpha: Number = 1) -> Node:
    """x after x[index[i]] += alpha * source[i] along `dim`, in order."""
    if alpha != 1:
        source = pointwise.mul(source, indexing.scalar(alpha, source))
    return _onto_rows("index_add_", x, dim, index, source, "add")


def index_copy(x: Node, dim: int, index: Node, source: Node) -> Node:
    """x after x[index[i]] = source[i] along `dim`; of equal numbers the last one stays."""
    return _onto_rows("index_copy_", x, dim, index, source, "set")


def index_reduce(x: Node, dim: int, index: Node, source: Node, reduce: str, *, include_self: bool = True) -> Node:
    """Rows of source folded into rows of x by prod, mean, amax or amin."""
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise ShapeError(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.")
    return _onto_rows("index_reduce_", x, dim, index, source, reduce, include_self=include_self)


def index_fill(x: Node, dim: int, index: Node, value: Node | Number) -> Node:
    """x after x[index[i]] = value along `dim`."""
    axis = shapes.axis(dim, len(x.spec.shape))
    indexing.require_index("index_fill_", index)
    if isinstance(value, Node) and value.spec.shape:
        raise ShapeError(
            f"index_fill_ only supports a 0-dimensional value tensor, but got tensor with {len(value.spec.shape)} "
            "dimension(s)."
        )
    if index.spec.dtype is not dtypes.int64:
        raise RangeError("index_fill_(): Expected dtype int64 for index.")
    if len(index.spec.shape) > 1:
        raise ShapeError("index_fill_(): Index is supposed to be a vector")
    if not x.spec.shape:
        return indexing.shaped(index_fill(indexing.shaped(x, (1,)), 0, index, value), ())
    rows = indexing.shaped(index, (prod(index.spec.shape),))
    if not (isinstance(value, Node) and value.requires):
        return put(x, (axis,), (rows,), axis, indexing.scalar(value, x))
    # Of writes each would send a gradient, and two of one row are one.
    nowhere = pointwise.full(False, Spec(x.spec.shape, dtypes.bool_))
    mask = put(nowhere, (axis,), (rows,), axis, pointwise.scalar(True, dtypes.bool_))
    return arithmetic.where(mask, indexing.scalar(value, x), x)


def _check_source(name: str, shape: Shape, source: Shape, axis: int, count: int) -> None:
    if len(source) <= axis or source[axis] != count:
        raise RangeError(
            f"{name}(): Number of indices ({count}) should be equal to source.size(dim): for dim: {axis}, "
            f"source {list(source)}"
        )
    if source != (*shape[:axis], count, *shape[axis + 1 :]):
        raise RangeError(
            "source tensor shape must match self tensor shape, excluding the specified dimension. "
            f"Got self.shape = {list(shape)} source.shape = {list(source)}"
        )


def _onto_rows(name: str, x: Node, dim: int, index: Node, source: Node, how: str, *, include_self: bool = True) -> Node:
    axis = shapes.axis(dim, len(x.spec.shape))
    indexing.require_index(name, index)
    if len(index.spec.shape) > 1:
        raise RangeError(f"{name}(): Index is supposed to be a vector, but got dim: {len(index.spec.shape)}")
    count = prod(index.spec.shape)
    if not x.spec.shape:
        if source.spec.shape not in ((), (count,) if name == "index_copy_" else ()):
            raise RangeError(
                "source tensor shape must match self tensor shape, excluding the specified dimension. "
                f"Got self.shape = [] source.shape = {list(source.spec.shape)}"
            )
        line, values = indexing.shaped(x, (1,)), indexing.shaped(source, source.spec.shape or (1,))
        return indexing.shaped(_onto_rows(name, line, 0, index, values, how, include_self=include_self), ())
    require_dtype(name, x, source)
    if not source.spec.shape:
        if name != "index_copy_":
            raise RangeError(
                "source tensor shape must match self tensor shape, excluding the specified dimension. "
                f"Got self.shape = {list(x.spec.shape)} source.shape = []"
            )
        source = indexing.shaped(source, (1,) * len(x.spec.shape))
    _check_source(name, x.spec.shape, source.spec.shape, axis, count)
    if name == "index_copy_" and index.spec.dtype is not dtypes.int64:
        raise DTypeError(f"index_copy_(): Expected a long tensor for index, but got {index.spec.dtype.title}")
    positions = bounds.checked(indexing.shaped(index, (count,)), x.spec.shape[axis], axis, wrap=False)
    base, _ = indexing.fronted(x, (axis,))
    rows, _ = indexing.fronted(source, (axis,))
    if how in ("add", "set"):
        out = ops.scatter(base, positions, rows, mode=how)
    else:
        out = combined(base, positions, rows, how, include_self=include_self)
    rest = tuple(n for a, n in enumerate(x.spec.shape) if a != axis)
    return indexing.moved_block(indexing.shaped(out, (x.spec.shape[axis], *rest)), 0, 1, axis)


def combined(base: Node, positions: Node, source: Node, reduce: str, *, include_self: bool) -> Node:
    """Rows of `source` (m, d) folded into rows of `base` (n, d)."""
    mode, dtype = REDUCTIONS[reduce], base.spec.dtype
    if mode in ("max", "min"):
        precision.require_order(f"scatter_reduce_{reduce}", base)
    if not include_self:
        start = source  # The largest of whole numbers is one of them: none has to stand for "no number yet".
        if mode in ("add", "prod") or dtype.kind is Kind.FLOAT:
            start = pointwise.full({"add": 0, "prod": 1, "max": float("-inf"), "min": float("inf")}[mode], source.spec)
        base = ops.scatter(base, positions, start, mode="set")
    out = ops.scatter(base, positions, source, mode=mode)
    if reduce != "mean":
        return out
    real = dtype.part or dtype  # Complex sums are divided by real counts.
    ones = pointwise.full(1, Spec(source.spec.shape, real))
    zero = pointwise.full(int(include_self), Spec(base.spec.shape, real))
    count = ops.scatter(zero, positions, ones, mode="add")
    count = pointwise.maximum(count, pointwise.full(1, count.spec))
    return arithmetic.div(out, count, None if dtype.kind is Kind.FLOAT else "floor")


def require_dtype(name: str, x: Node, source: Node) -> None:
    if x.spec.dtype is not source.spec.dtype:
        raise DTypeError(
            f"{name}(): Expected self.dtype to be equal to src.dtype, got {x.spec.dtype} and {source.spec.dtype}"
        )
