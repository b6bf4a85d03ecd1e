"""Choosing by a mask, and counting: masked writes, the places where a mask holds, histograms, membership.

How many elements a mask holds is a number that only the host can turn into a shape: whoever calls `held` has read it.
"""

from math import prod

from pywebgpu import dtypes, shapes
from pywebgpu.compose import arithmetic, indexing
from pywebgpu.compose.arithmetic import Number
from pywebgpu.errors import DTypeError, ShapeError
from pywebgpu.graph.ir import Node, Spec
from pywebgpu.ops import indexing as ops
from pywebgpu.ops import movement, pointwise
from pywebgpu.shapes import Shape


def masked_fill(x: Node, mask: Node, value: Node | Number) -> Node:
    """value where the mask holds, else x; both broadcast. Raises: DTypeError unless the mask is bool."""
    if mask.spec.dtype is not dtypes.bool_:
        raise DTypeError(f"masked_fill only supports boolean masks, but got mask with dtype {mask.spec.dtype.name}")
    if isinstance(value, Node) and value.spec.shape:
        raise ShapeError(
            "masked_fill only supports a 0-dimensional value tensor, but got tensor with "
            f"{len(value.spec.shape)} dimension(s)."
        )
    return arithmetic.where(mask, indexing.scalar(value, x), x)


def masked_scatter(x: Node, mask: Node, source: Node) -> Node:
    """Elements of source, in order, where the mask holds, else x. Raises: RangeError when source has too few."""
    if mask.spec.dtype is not dtypes.bool_:
        raise DTypeError(f"masked_scatter_ only supports boolean masks, but got mask with dtype {mask.spec.dtype.name}")
    indexing.require_dtype("masked_scatter_", x, source)
    shape = shapes.broadcast(x.spec.shape, mask.spec.shape)
    mask = indexing.shaped(arithmetic.broadcast_to(mask, shape), (prod(shape),))
    size = prod(source.spec.shape)
    if size == 0:
        return arithmetic.broadcast_to(x, shape)
    rank = ranks(mask)
    places = pointwise.where(mask, rank, pointwise.full(0, rank.spec))
    taken = ops.take(indexing.shaped(source, (size, 1)), pointwise.index(places, size=size, wrap=False))
    return pointwise.where(
        indexing.shaped(mask, shape), indexing.shaped(taken, shape), arithmetic.broadcast_to(x, shape)
    )


def ranks(mask: Node) -> Node:
    """(n,) bool -> how many before each element hold, as int64."""
    ones = pointwise.cast(mask, dtype=dtypes.int64)
    return pointwise.sub(ops.scan(ones, mode="add"), ones)


def held(mask: Node, rank: Node, count: int) -> Node:
    """The places of the `count` elements of a flat mask that hold, in order. rank: see ranks."""
    n = mask.spec.shape[0]
    places = pointwise.iota(spec=Spec((n, 1), dtypes.int64), axis=0)
    goes_to = pointwise.where(mask, rank, pointwise.full(count, rank.spec))  # The others share a place at the end.
    rows = ops.scatter(pointwise.full(0, Spec((count + 1, 1), dtypes.int64)), goes_to, places, mode="set")
    return indexing.shaped(movement.slice_(rows, starts=(0, 0), sizes=(count, 1), steps=(1, 1)), (count,))


def coordinates(places: Node, shape: Shape) -> list[Node]:
    """Flat places in a tensor of `shape` -> one node of coordinates an axis."""
    out = []
    for n, step in zip(shape, shapes.strides(shape), strict=True):
        at = places if step == 1 else pointwise.floor_divide(places, pointwise.full(step, places.spec))
        out.append(at if n * step >= prod(shape) else pointwise.remainder(at, pointwise.full(n, places.spec)))
    return out
