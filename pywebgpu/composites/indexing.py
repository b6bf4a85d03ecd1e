"""Reading and writing at computed rows: subscripts with index tensors, and torch's index_ functions.

Two ops carry all of it: `take` reads rows by number and `scatter` writes them. Here positions become row numbers; see
bounds.py for how they are checked. Single elements are in scattering.py, masks in masks.py.
"""

from collections.abc import Sequence
from math import prod

from pywebgpu import dtypes
from pywebgpu.composites import arithmetic, bounds
from pywebgpu.dtypes import Kind
from pywebgpu.errors import DTypeError, RangeError, ShapeError
from pywebgpu.ir.graph import Node, Spec
from pywebgpu.ops import indexing, movement, pointwise
from pywebgpu.step_capture.free_number import Number
from pywebgpu.support import shapes
from pywebgpu.support.shapes import Shape

REDUCTIONS = {"sum": "add", "mean": "add", "prod": "prod", "amax": "max", "amin": "min", "max": "max", "min": "min"}


# Subscripts with index tensors


def get(x: Node, axes: Sequence[int], indices: Sequence[Node], start_axis: int) -> Node:
    """x[..., index, ...] with index tensors on `axes`; their broadcast axes start at `start_axis` of the result."""
    if len(indices) == 1 and axes[0] == start_axis == 0 and 0 not in indices[0].spec.shape:  # Rows, as of a table.
        shape, lead = x.spec.shape, indices[0].spec.shape
        rows = bounds.checked(arithmetic.cast(indices[0], dtypes.int64), shape[0], 0)
        taken = indexing.take(shaped(x, (shape[0], prod(shape[1:]))), shaped(rows, (prod(lead),)))
        return shaped(taken, (*lead, *shape[1:]))
    positions, lead = _row_numbers(x.spec.shape, axes, indices)
    front, rest = fronted(x, axes)
    taken = indexing.take(front, positions)
    kept = tuple(x.spec.shape[axis] for axis in rest)
    return _moved_block(shaped(taken, (*lead, *kept)), 0, len(lead), start_axis)


def put(
    x: Node, axes: Sequence[int], indices: Sequence[Node], start_axis: int, value: Node, accumulate: bool = False
) -> Node:
    """x after x[..., index, ...] = value, or += value where positions that meet twice add up. See get.

    Raises: ShapeError when the value does not broadcast to what get would return.
    """
    positions, lead = _row_numbers(x.spec.shape, axes, indices)
    front, rest = fronted(x, axes)
    kept = tuple(x.spec.shape[axis] for axis in rest)
    target = (*kept[:start_axis], *lead, *kept[start_axis:])
    value_shape = value.spec.shape
    value = shaped(value, without_leading(value_shape, len(target)))
    if not fits(value.spec.shape, target):
        raise ShapeError(
            f"shape mismatch: value tensor of shape {list(value_shape)} cannot be broadcast to indexing result "
            f"of shape {list(target)}"
        )
    value = arithmetic.broadcast_to(value, target)
    source = shaped(_moved_block(value, start_axis, len(lead), 0), (prod(lead), prod(kept)))
    mode = "add" if accumulate else "set"
    written = shaped(
        indexing.scatter(front, positions, source, mode=mode), tuple(x.spec.shape[axis] for axis in (*axes, *rest))
    )
    order = (*axes, *rest)
    return permuted(written, tuple(order.index(axis) for axis in range(len(order))))


def without_leading(shape: Shape, rank: int) -> Shape:
    """A shape without the axes of size 1 in front that a tensor of `rank` has no axis for."""
    while len(shape) > rank and shape[0] == 1:
        shape = shape[1:]
    return shape


def fits(shape: Shape, target: Shape) -> bool:
    """Whether a value of `shape` broadcasts to `target`."""
    padded = (1,) * (len(target) - len(shape)) + shape
    return len(shape) <= len(target) and all(m in (1, n) for m, n in zip(padded, target, strict=True))


def _row_numbers(shape: Shape, axes: Sequence[int], indices: Sequence[Node]) -> tuple[Node, Shape]:
    """Index tensors on `axes` -> the number of the row that each element names, and their common shape."""
    lead: Shape = ()
    for index in indices:
        try:
            lead = shapes.broadcast(lead, index.spec.shape)
        except ShapeError:
            index_shapes = ", ".join(str(list(index.spec.shape)) for index in indices)
            raise RangeError(
                f"shape mismatch: indexing tensors could not be broadcast together with shapes {index_shapes}"
            ) from None
    total: Node | None = None
    step = 1
    for axis, index in zip(reversed(axes), reversed(indices), strict=True):
        part = arithmetic.cast(index, dtypes.int64)
        if 0 not in lead:
            part = bounds.checked(part, shape[axis], axis)
        part = arithmetic.broadcast_to(scaled(part, step), lead)
        total = part if total is None else pointwise.add(total, part)
        step *= shape[axis]
    assert total is not None
    return shaped(total, (prod(lead),)), lead


def fronted(x: Node, axes: Sequence[int]) -> tuple[Node, tuple[int, ...]]:
    """x as (elements of `axes`, elements of the others), and the others."""
    rest = tuple(axis for axis in range(len(x.spec.shape)) if axis not in axes)
    rows = prod(x.spec.shape[axis] for axis in axes)
    return shaped(permuted(x, (*axes, *rest)), (rows, prod(x.spec.shape[axis] for axis in rest))), rest


def _moved_block(x: Node, start: int, count: int, to: int) -> Node:
    """`count` axes from `start` on stand at `to` afterwards."""
    block = list(range(start, start + count))
    others = [axis for axis in range(len(x.spec.shape)) if axis not in block]
    return permuted(x, (*others[:to], *block, *others[to:]))


# Whole rows


def index_select(x: Node, dim: int, index: Node) -> Node:
    """Rows of `dim` by number. Shapes: index (m,) or (). Raises: DTypeError, RangeError."""
    axis = shapes.axis(dim, len(x.spec.shape))
    require_index("index_select", index)
    if len(index.spec.shape) > 1:
        raise RangeError("index_select(): Index is supposed to be a vector")
    if not x.spec.shape:
        if (count := prod(index.spec.shape)) != 1:
            raise ShapeError(f"index_select(): Index to scalar can have only 1 value, got {count} value(s)")
        return shaped(index_select(shaped(x, (1,)), 0, index), ())
    positions = bounds.checked(shaped(index, (prod(index.spec.shape),)), x.spec.shape[axis], axis, wrap=False,
                            text="index out of range in self: {index} is not in 0 ... {size} - 1")  # fmt: skip
    return get(x, (axis,), (positions,), axis)


def index_add(x: Node, dim: int, index: Node, source: Node, *, alpha: Number = 1) -> Node:
    """x after x[index[i]] += alpha * source[i] along `dim`, in order."""
    if alpha != 1:
        source = pointwise.mul(source, scalar(alpha, source))
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
    require_index("index_fill_", index)
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
        return shaped(index_fill(shaped(x, (1,)), 0, index, value), ())
    rows = shaped(index, (prod(index.spec.shape),))
    if not (isinstance(value, Node) and value.requires):
        return put(x, (axis,), (rows,), axis, scalar(value, x))
    # Of writes each would send a gradient, and two of one row are one.
    nowhere = pointwise.full(False, Spec(x.spec.shape, dtypes.bool_))
    mask = put(nowhere, (axis,), (rows,), axis, pointwise.scalar(True, dtypes.bool_))
    return arithmetic.where(mask, scalar(value, x), x)


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
    require_index(name, index)
    if len(index.spec.shape) > 1:
        raise RangeError(f"{name}(): Index is supposed to be a vector, but got dim: {len(index.spec.shape)}")
    count = prod(index.spec.shape)
    if not x.spec.shape:
        if source.spec.shape not in ((), (count,) if name == "index_copy_" else ()):
            raise RangeError(
                "source tensor shape must match self tensor shape, excluding the specified dimension. "
                f"Got self.shape = [] source.shape = {list(source.spec.shape)}"
            )
        line, values = shaped(x, (1,)), shaped(source, source.spec.shape or (1,))
        return shaped(_onto_rows(name, line, 0, index, values, how, include_self=include_self), ())
    require_dtype(name, x, source)
    if not source.spec.shape:
        if name != "index_copy_":
            raise RangeError(
                "source tensor shape must match self tensor shape, excluding the specified dimension. "
                f"Got self.shape = {list(x.spec.shape)} source.shape = []"
            )
        source = shaped(source, (1,) * len(x.spec.shape))
    _check_source(name, x.spec.shape, source.spec.shape, axis, count)
    if name == "index_copy_" and index.spec.dtype is not dtypes.int64:
        raise DTypeError(f"index_copy_(): Expected a long tensor for index, but got {index.spec.dtype.title}")
    positions = bounds.checked(shaped(index, (count,)), x.spec.shape[axis], axis, wrap=False)
    base, _ = fronted(x, (axis,))
    rows, _ = fronted(source, (axis,))
    if how in ("add", "set"):
        out = indexing.scatter(base, positions, rows, mode=how)
    else:
        out = combined(base, positions, rows, how, include_self=include_self)
    rest = tuple(n for a, n in enumerate(x.spec.shape) if a != axis)
    return _moved_block(shaped(out, (x.spec.shape[axis], *rest)), 0, 1, axis)


def combined(base: Node, positions: Node, source: Node, reduce: str, *, include_self: bool) -> Node:
    """Rows of `source` (m, d) folded into rows of `base` (n, d)."""
    mode, dtype = REDUCTIONS[reduce], base.spec.dtype
    if not include_self:
        start = source  # The largest of whole numbers is one of them: none has to stand for "no number yet".
        if mode in ("add", "prod") or dtype.kind is Kind.FLOAT:
            start = pointwise.full({"add": 0, "prod": 1, "max": float("-inf"), "min": float("inf")}[mode], source.spec)
        base = indexing.scatter(base, positions, start, mode="set")
    out = indexing.scatter(base, positions, source, mode=mode)
    if reduce != "mean":
        return out
    ones, zero = pointwise.full(1, source.spec), pointwise.full(int(include_self), base.spec)
    count = indexing.scatter(zero, positions, ones, mode="add")
    count = pointwise.maximum(count, pointwise.full(1, count.spec))
    return arithmetic.div(out, count, None if dtype.kind is Kind.FLOAT else "floor")


# Parts


def shaped(x: Node, shape: Shape) -> Node:
    return x if x.spec.shape == shape else movement.reshape(x, shape=shape)


def permuted(x: Node, order: tuple[int, ...]) -> Node:
    return x if order == tuple(range(len(order))) else movement.permute(x, order=order)


def scaled(x: Node, factor: int) -> Node:
    return x if factor == 1 else pointwise.mul(x, arithmetic.like(x, factor))


def scalar(value: Node | Number, like: Node) -> Node:
    """A number in the dtype of `like`; whole numbers lose a fraction. Raises: DTypeError where it does not fit."""
    dtype = like.spec.dtype
    if isinstance(value, Node):
        return arithmetic.cast(value, dtype)
    return arithmetic.stored(value, dtype)


def require_index(name: str, index: Node) -> None:
    if index.spec.dtype not in (dtypes.int32, dtypes.int64):
        raise DTypeError(f"{name}(): Expected dtype int32/int64 for index, got {index.spec.dtype}")


def require_dtype(name: str, x: Node, source: Node) -> None:
    if x.spec.dtype is not source.spec.dtype:
        raise DTypeError(
            f"{name}(): Expected self.dtype to be equal to src.dtype, got {x.spec.dtype} and {source.spec.dtype}"
        )
