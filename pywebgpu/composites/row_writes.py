"""Writing neighbouring rows at a place that the device knows: what a cache of keys and values does for each token.

Where a template matches it, only the written rows are touched, in the buffer of what is written to; elsewhere all of
that is computed anew.
"""

from pywebgpu import dtypes
from pywebgpu.composites import arithmetic, indexing
from pywebgpu.errors import ShapeError
from pywebgpu.ir.graph import Fused, Node, Spec
from pywebgpu.ops import pointwise


def write(base: Node, rows: Node, start: Node, *, axis: int) -> Node:
    """base with `rows` from position `start` on along an axis; rows that would lie outside are left out.

    Shapes: base (..., l, ...), rows (..., n, ...), start () -> that of base.  Dtypes: equal; start whole.
    Raises: ShapeError where other sizes than that of the axis differ, or rows has more of them.
    """
    sizes, own = base.spec.shape, rows.spec.shape
    if len(sizes) != len(own) or any(
        a != b for index, (a, b) in enumerate(zip(sizes, own, strict=True)) if index != axis
    ):
        raise ShapeError(f"write: rows {own} do not fit into {sizes} along axis {axis}")
    if own[axis] > sizes[axis]:
        raise ShapeError(f"write: {own[axis]} rows along axis {axis} of {sizes}")
    (out,) = write_rows(base, arithmetic.cast(rows, base.spec.dtype), arithmetic.cast(start, dtypes.int32), axis=axis)
    return out


def _fallback(base: Node, rows: Node, start: Node, axis: int) -> tuple[Node]:
    shape, count = base.spec.shape, rows.spec.shape[axis]
    line = Spec((shape[axis],), dtypes.int32)
    offsets = arithmetic.sub(pointwise.iota(spec=line, axis=0), start)
    inside = pointwise.bitwise_and(
        pointwise.ge(offsets, arithmetic.like(offsets, 0)), pointwise.lt(offsets, arithmetic.like(offsets, count))
    )
    if count > 1:
        numbers = pointwise.maximum(offsets, arithmetic.like(offsets, 0))
        numbers = pointwise.minimum(numbers, arithmetic.like(offsets, count - 1))
        rows = indexing.index_select(rows, axis, numbers)
    inside = indexing.shaped(inside, tuple(n if index == axis else 1 for index, n in enumerate(shape)))
    return (pointwise.where(arithmetic.broadcast_to(inside, shape), arithmetic.broadcast_to(rows, shape), base),)


write_rows: Fused = Fused("write_rows", infer=lambda base, rows, start, axis: (base,), fallback=_fallback)
