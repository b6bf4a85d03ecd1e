"""Rows looked up by number, and numbers written as rows."""

from collections.abc import Sequence
from math import prod

from pywebgpu import dtypes
from pywebgpu.composites import arithmetic, bounds, joining, reduce
from pywebgpu.errors import REFUSALS, DTypeError, ShapeError
from pywebgpu.ir.graph import Custom, Node, RowsNode, Spec
from pywebgpu.ops import indexing, movement, pointwise


def embedding(index: Node, weight: Node, padding_idx: int | None = None) -> Node:
    """weight[index]: a row for each number; the row `padding_idx` gets no gradient.

    Shapes: index (...), weight (n, d) -> (..., d).
    Dtypes: index of whole numbers.
    Raises: ShapeError when weight has not two axes; DTypeError for another index; RangeError when a number is not in
    0..n-1: at once where it is known, else when a value is read.
    """
    if index.spec.dtype not in (dtypes.int32, dtypes.int64):
        raise DTypeError(
            f"Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got "
            f"{index.spec.dtype} instead (while checking arguments for embedding)"
        )
    if len(weight.spec.shape) != 2:
        raise ShapeError(f"'weight' must be 2-D, got {weight.spec.shape}")
    n, d = weight.spec.shape
    if padding_idx is not None:
        if not -n <= padding_idx < n:
            raise AssertionError("Padding_idx must be within num_embeddings")
        padding_idx %= n
    flat = movement.reshape(index, shape=(prod(index.spec.shape),))
    flat = bounds.checked(flat, n, wrap=False, text="index out of range in self: {index} of {size} rows")
    rows = indexing.take(weight, flat)
    if padding_idx is not None and rows.requires:
        column = movement.reshape(flat, shape=(*flat.spec.shape, 1))
        padding = arithmetic.broadcast_to(pointwise.eq(column, arithmetic.like(column, padding_idx)), rows.spec.shape)
        rows = pointwise.where(padding, reduce.stop_gradient(rows), rows)
    return movement.reshape(rows, shape=(*index.spec.shape, d))


def offsets(starts: Node, *, length: int) -> Node:
    """Where bags start in an input of some length: refused where they do not begin with 0, fall, or lie behind it."""
    (count,) = starts.spec.shape
    if not count:
        return starts
    before = movement.slice_(starts, starts=(0,), sizes=(count - 1,), steps=(1,))
    first = pointwise.full(0, Spec((1,), starts.spec.dtype))
    before = joining.cat([first, before]) if count > 1 else first
    number, zero = pointwise.iota(spec=starts.spec, axis=0), arithmetic.like(starts, 0)
    begins = pointwise.bitwise_or(pointwise.gt(number, zero), pointwise.eq(starts, zero))
    fits = pointwise.bitwise_and(pointwise.le(before, starts), pointwise.le(starts, arithmetic.like(starts, length)))
    return bounds.holding(starts, pointwise.bitwise_and(begins, fits), REFUSALS[7])


class _Rows:
    """The gradient of a table of which rows were looked up, known by them; of rows `padding_idx` there is none."""

    __slots__ = ("index", "padding_idx", "spec")

    def __init__(self, index: Node, spec: Spec, padding_idx: int | None) -> None:
        self.index, self.spec = index, spec
        self.padding_idx = None if padding_idx is None else padding_idx % spec.shape[0]

    def backward(self, grads: Sequence[Node | None]) -> tuple[Node | None]:
        (grad,) = grads
        if grad is None:
            return (None,)
        rows = movement.reshape(self.index, shape=(prod(self.index.spec.shape),))
        values = movement.reshape(grad, shape=(*rows.spec.shape, self.spec.shape[1]))
        if self.padding_idx is not None:
            column = movement.reshape(rows, shape=(*rows.spec.shape, 1))
            padding = pointwise.eq(column, arithmetic.like(column, self.padding_idx))
            padding = arithmetic.broadcast_to(padding, values.spec.shape)
            values = pointwise.where(padding, pointwise.full(0, values.spec), values)
        dense = indexing.scatter(pointwise.full(0.0, self.spec), rows, values, mode="add")
        return (RowsNode(dense, ((rows, values, self.padding_idx),)),)

    def release(self) -> bool:
        return True


_looked_up: Custom = Custom("EmbeddingBackward0")


def by_rows(index: Node, weight: Node, padding_idx: int | None = None) -> Node:
    """As embedding, with a gradient of `weight` that is known by its rows."""
    rows_read = embedding(index, reduce.stop_gradient(weight), padding_idx)
    return _looked_up(rows_read, weight, call=_Rows(index, weight.spec, padding_idx), index=0, outputs=1)


def one_hot(index: Node, num_classes: int) -> Node:
    """1 at index, 0 elsewhere, as int64. Shapes: index (...) -> (..., num_classes)."""
    if index.spec.dtype is not dtypes.int64:
        raise DTypeError(f"one_hot is only applicable to index tensor of type LongTensor, got {index.spec.dtype}")
    if num_classes < 1:
        raise ShapeError(f"num_classes should be positive, got {num_classes}")
    known = bounds.known_range(index)
    if known is not None and known.exact and not 0 <= known.low <= known.high < num_classes:
        raise ShapeError(f"Class values must be in 0..{num_classes - 1}, got {known.low}..{known.high}")
    index = bounds.checked(index, num_classes, wrap=False, text="Class value {index} must be smaller than {size}")
    shape = (*index.spec.shape, num_classes)
    column = movement.reshape(arithmetic.cast(index, dtypes.int64), shape=(*index.spec.shape, 1))
    positions = pointwise.iota(spec=Spec(shape, dtypes.int64), axis=len(shape) - 1)
    return arithmetic.cast(pointwise.eq(positions, arithmetic.broadcast_to(column, shape)), dtypes.int64)
