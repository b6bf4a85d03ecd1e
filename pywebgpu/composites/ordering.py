"""Putting rows in order: sort, top k.

Order is found by `indexing.argsort` along the last axis; values then come by their numbers, so that gradients flow.
"""

from pywebgpu import dtypes
from pywebgpu.composites import arithmetic, gathering, precision, reduce, slicing
from pywebgpu.dtypes import Kind
from pywebgpu.errors import ShapeError
from pywebgpu.ir.graph import Node, Spec
from pywebgpu.ops import indexing as ops
from pywebgpu.ops import movement, pointwise
from pywebgpu.support import shapes


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
    return slicing.swapped(
        ops.argsort(slicing.swapped(reduce.stop_gradient(x), axis), descending=bool(descending)), axis
    )


def sort(x: Node, dim: int = -1, descending: bool = False, stable: bool = False) -> tuple[Node, Node]:
    """x in order along `dim`, and where each element stood (int64). Always stable; NaN is the largest."""
    order = argsort(x, dim, descending)
    return gathering.take_along(x, order, dim), order


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
    order = slicing.part(argsort(x, axis, largest), axis, 0, k)
    return gathering.take_along(x, order, axis), order


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
    fresh = pointwise.ne(slicing.part(ordered, last, 1, n), slicing.part(ordered, last, 0, n - 1))
    first = pointwise.full(True, Spec((*shape[:-1], 1), dtypes.bool_))
    return ops.cat(first, fresh, axis=last)
