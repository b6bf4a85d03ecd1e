"""Putting rows in order: sort, top k, median, mode, and searching in what is ordered.

Order is found by `indexing.argsort` along the last axis; values then come by their numbers, so that gradients flow.
"""

from collections.abc import Callable
from functools import partial
from math import prod

from pywebgpu import dtypes
from pywebgpu.composites import arithmetic, precision, reduce, scan, scattering
from pywebgpu.dtypes import Kind
from pywebgpu.errors import DTypeError, RangeError, ShapeError
from pywebgpu.ir.graph import Node, Spec
from pywebgpu.ops import indexing as ops
from pywebgpu.ops import movement, pointwise, reduction
from pywebgpu.support import shapes

FEW = 128  # boundaries up to which counting the smaller ones beats halving


def sort_keys(x: Node, descending: bool) -> Node:
    """uint32 numbers in the order of x, for dtypes of at most 32 bits: NaN is the largest, -0 equals 0."""
    if x.spec.dtype.kind is Kind.FLOAT:
        word = pointwise.bitcast(arithmetic.cast(x, dtypes.float32), dtype=dtypes.uint32)
        sign = arithmetic.like(word, 0x80000000)
        is_negative = pointwise.gt(word, sign)
        keys = pointwise.where(is_negative, pointwise.bitwise_not(word), pointwise.bitwise_or(word, sign))
        keys = pointwise.where(pointwise.isnan(x), arithmetic.like(keys, 0xFFFFFFFF), keys)
    elif x.spec.dtype.is_signed:
        word = pointwise.cast(x, dtype=dtypes.int32)
        keys = pointwise.bitcast(word, dtype=dtypes.uint32)
        keys = pointwise.bitwise_xor(keys, arithmetic.like(keys, 0x80000000))
    else:
        keys = pointwise.cast(x, dtype=dtypes.uint32)
    return pointwise.bitwise_not(keys) if descending else keys


def argsort(x: Node, dim: int = -1, descending: bool = False, stable: bool = False) -> Node:
    """Where the elements of a sorted row stand in x, as int64. Always stable; NaN is the largest."""
    precision.require_order("sort", x)
    axis = shapes.axis(dim, len(x.spec.shape))
    if not x.spec.shape or 0 in x.spec.shape:
        return pointwise.full(0, Spec(x.spec.shape, dtypes.int64))
    return scan.swapped(ops.argsort(scan.swapped(reduce.stop_gradient(x), axis), descending=bool(descending)), axis)


def sort(x: Node, dim: int = -1, descending: bool = False, stable: bool = False) -> tuple[Node, Node]:
    """x in order along `dim`, and where each element stood (int64). Always stable; NaN is the largest."""
    order = argsort(x, dim, descending)
    return scattering.take_along(x, order, dim), order


def topk(x: Node, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> tuple[Node, Node]:
    """The k largest (or smallest) elements along `dim`, in order, and where they stand."""
    precision.refuse_bool("topk", x)
    axis = shapes.axis(dim, len(x.spec.shape))
    if not 0 <= k <= (x.spec.shape[axis] if x.spec.shape else 1):
        raise ShapeError(f"selected index k out of range: k={k}, shape {list(x.spec.shape)}, dim {axis}")
    if not x.spec.shape:
        x = movement.reshape(x, shape=(1,))
        return tuple(movement.reshape(part, shape=(k,) if k == 0 else ()) for part in topk(x, k))  # type: ignore[return-value]
    if k == 1 and largest and 0 not in x.spec.shape:
        values, position = reduce.max(x, axis, keepdim=True)
        return values, position
    order = scan.part(argsort(x, axis, largest), axis, 0, k)
    return scattering.take_along(x, order, axis), order


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
    return _picked(x, scan.part(argsort(x, axis), axis, k - 1, k), axis, keepdim)


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
    rows = scan.swapped(reduce.stop_gradient(x), axis)
    order = ops.argsort(rows, descending=False)
    last = len(rows.spec.shape) - 1
    starts, _ = runs(scattering.take_along(rows, order, last))
    length = pointwise.sub(pointwise.iota(spec=order.spec, axis=last), starts)
    # The first of the longest is the smallest value, at its run's last position.
    end = reduction.argmax(length, (last,))
    return _picked(x, scan.swapped(scattering.take_along(order, end, last), axis), axis, keepdim)


def runs(ordered: Node) -> tuple[Node, Node]:
    """For rows in which equal elements stand together: where each element's run starts, and whether it starts there."""
    last = len(ordered.spec.shape) - 1
    is_start = starts_run(ordered)
    positions = pointwise.iota(spec=Spec(ordered.spec.shape, dtypes.int64), axis=last)
    starts = ops.scan(pointwise.where(is_start, positions, arithmetic.like(positions, 0)), mode="max")
    return starts, is_start


def starts_run(ordered: Node) -> Node:
    """Whether an element differs from the one before it in its row; true for the first."""
    shape = ordered.spec.shape
    last, n = len(shape) - 1, shape[-1]
    fresh = pointwise.ne(scan.part(ordered, last, 1, n), scan.part(ordered, last, 0, n - 1))
    first = pointwise.full(True, Spec((*shape[:-1], 1), dtypes.bool_))
    return ops.cat(first, fresh, axis=last)


# Searching


def searchsorted(edges: Node, x: Node | float, right: bool = False, out_int32: bool = False) -> Node:
    """How many of the ascending `edges` lie below each x; with `right`, how many do not lie above it.

    Shapes: edges (n,) and x of any shape, or edges (..., n) and x (..., m) with equal leading axes.
    Raises: ShapeError for other shapes, DTypeError when both have axes and their dtypes differ.
    """
    if not isinstance(x, Node):
        x = arithmetic.number(x, arithmetic.result_type(edges, x))
    dtype = arithmetic.result_type(edges, x)
    precision.refuse_bool("searchsorted", edges)
    if edges.spec.shape == ():
        raise ShapeError("torch.searchsorted(): boundaries tensor should have positive dimension, but got 0 dimension")
    if x.spec.shape and x.spec.dtype is not edges.spec.dtype:
        raise DTypeError(
            "torch.searchsorted(): boundary tensor and input value tensor should have same dtype, but got boundary "
            f"tensor dtype {edges.spec.dtype} and input value tensor dtype {x.spec.dtype}"
        )
    if len(edges.spec.shape) > 1 and edges.spec.shape[:-1] != x.spec.shape[:-1]:
        raise ShapeError(
            "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries "
            "tensor and input value tensor must match, but we got boundaries tensor "
            f"{list(edges.spec.shape)} and input value tensor {list(x.spec.shape)}"
        )
    edges, x = (arithmetic.cast(reduce.stop_gradient(part), dtype) for part in (edges, x))
    passes: Callable[[Node, Node], Node] = pointwise.gt if right else pointwise.ge
    if dtype.kind is Kind.FLOAT:
        passes = partial(_passes_sorted, passes)
    count = _counted if edges.spec.shape[-1] <= FEW else _halved
    position = count(edges, x, passes)
    return arithmetic.cast(position, dtypes.int32) if out_int32 else position


def _passes_sorted(passes: Callable[[Node, Node], Node], edge: Node, x: Node) -> Node:
    """NaN stands behind all numbers, as `sort` has it."""
    is_last = pointwise.bitwise_and(pointwise.ne(edge, edge), pointwise.eq(x, x))
    return pointwise.bitwise_or(passes(edge, x), is_last)


def bucketize(x: Node | float, edges: Node, out_int32: bool = False, right: bool = False) -> Node:
    """As searchsorted, with one row of edges for all x."""
    if len(edges.spec.shape) != 1:
        raise ShapeError(f"boundaries tensor must be 1 dimension, but got dim({len(edges.spec.shape)})")
    return searchsorted(edges, x, right, out_int32)


def _counted(edges: Node, x: Node, passes: Callable[[Node, Node], Node]) -> Node:
    """Compares every x with every edge: one kernel, n comparisons an element."""
    n = edges.spec.shape[-1]
    shape = (*x.spec.shape, n)
    if n == 0:
        return pointwise.full(0, Spec(x.spec.shape, dtypes.int64))
    if len(edges.spec.shape) > 1:
        edges = movement.reshape(edges, shape=(*edges.spec.shape[:-1], 1, n))
    column = arithmetic.broadcast_to(movement.reshape(x, shape=(*x.spec.shape, 1)), shape)
    below = pointwise.bitwise_not(passes(arithmetic.broadcast_to(edges, shape), column))
    return reduce.sum(below, -1)


def _halved(edges: Node, x: Node, passes: Callable[[Node, Node], Node]) -> Node:
    """Halves the row of edges until one position is left: log2(n) lookups an element."""
    n = edges.spec.shape[-1]
    rows = movement.reshape(edges, shape=(prod(edges.spec.shape), 1))
    low = pointwise.full(0, Spec(x.spec.shape, dtypes.int64))
    high = arithmetic.like(low, n)
    unit = arithmetic.like(low, 1)
    first = _row_starts(edges, x)
    for _ in range(n.bit_length()):
        middle = pointwise.shift_right(pointwise.add(low, high), unit)
        is_open = pointwise.lt(low, high)
        position = pointwise.minimum(middle, arithmetic.like(low, n - 1))
        position = movement.reshape(
            position if first is None else pointwise.add(position, first), shape=(prod(x.spec.shape),)
        )
        edge = movement.reshape(ops.take(rows, position), shape=x.spec.shape)
        stop = passes(edge, x)
        goes_up = pointwise.bitwise_and(is_open, pointwise.bitwise_not(stop))
        goes_down = pointwise.bitwise_and(is_open, stop)
        low = pointwise.where(goes_up, pointwise.add(middle, unit), low)
        high = pointwise.where(goes_down, middle, high)
    return low


def _row_starts(edges: Node, x: Node) -> Node | None:
    """Where the edges of x's own row start in the flattened edges; None when there is one row."""
    lead = edges.spec.shape[:-1]
    if not lead:
        return None
    count = pointwise.iota(spec=Spec((prod(lead), 1), dtypes.int64), axis=0)
    starts = pointwise.mul(count, arithmetic.like(count, edges.spec.shape[-1]))
    return arithmetic.broadcast_to(movement.reshape(starts, shape=(*lead, 1)), x.spec.shape)


# Parts


def _picked(x: Node, index: Node, axis: int, keepdim: bool) -> tuple[Node, Node]:
    values = scattering.take_along(x, index, axis)
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
    order = argsort(x, axis)
    if x.spec.dtype.kind is not Kind.FLOAT:
        return _picked(x, scan.part(order, axis, (n - 1) // 2, (n - 1) // 2 + 1), axis, keepdim)
    valid = reduce.sum(pointwise.bitwise_not(pointwise.isnan(reduce.stop_gradient(x))), axis, keepdim=True)
    unit = arithmetic.like(valid, 1)
    last = pointwise.sub(valid, unit)
    half = pointwise.shift_right(pointwise.maximum(last, arithmetic.like(valid, 0)), unit)
    if not skip_nan:  # NaNs stand last, so the first of them follows the last number.
        half = pointwise.where(pointwise.eq(valid, arithmetic.like(valid, n)), half, valid)
    return _picked(x, scattering.take_along(order, half, axis), axis, keepdim)
