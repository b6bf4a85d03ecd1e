"""Single elements read by number along an axis, or in the flattened tensor: gather, take."""

from math import prod

from pywebgpu import dtypes
from pywebgpu.composites import arithmetic, bounds, indexing
from pywebgpu.errors import DTypeError, ShapeError
from pywebgpu.ir.graph import Node, Spec
from pywebgpu.ops import indexing as ops
from pywebgpu.ops import pointwise
from pywebgpu.support import shapes
from pywebgpu.support.shapes import Shape

OUTSIDE = "out of range: tried to access index {index} on a tensor of {size} elements."


def gather(x: Node, dim: int, index: Node) -> Node:
    """out[i][j] = x[index[i][j]][j] for dim 0. Shapes: index has x's rank and is no larger outside `dim`.

    Raises: ShapeError for other shapes, DTypeError for another index, RangeError for numbers not in 0..n-1.
    """
    axis = shapes.axis(dim, len(x.spec.shape))
    if index.spec.dtype is dtypes.uint8:
        index = arithmetic.cast(index, dtypes.int64)
    indexing.require_index("gather", index)
    require_rank(x, index, "input")
    require_smaller(x.spec.shape, index.spec.shape, axis, "Size does not match at dimension {}: expected index {}")
    return take_along(x, index, axis, wrap=False)


def take_along(x: Node, index: Node, dim: int, *, wrap: bool = True) -> Node:
    """As gather, for numbers that are known to fit or may be negative."""
    positions = flat_positions(x.spec.shape, shapes.axis(dim, len(x.spec.shape)), index, wrap=wrap)
    taken = ops.take(indexing.shaped(x, (prod(x.spec.shape), 1)), indexing.shaped(positions, (prod(index.spec.shape),)))
    return indexing.shaped(taken, index.spec.shape)


def take_along_dim(x: Node, index: Node, dim: int | None = None) -> Node:
    """As gather, after x and index broadcast together outside `dim`; None flattens both."""
    if index.spec.dtype is not dtypes.int64:
        raise DTypeError(f"torch.take_along_dim(): dtype of indices should be Long but got {index.spec.dtype.title}")
    if dim is None:
        x, index = indexing.shaped(x, (prod(x.spec.shape),)), indexing.shaped(index, (prod(index.spec.shape),))
        return gather(x, 0, index)
    rank = len(x.spec.shape)
    if rank != len(index.spec.shape):
        raise ShapeError(
            f"torch.take_along_dim(): input and indices should have the same number of dimensions, but got {rank} "
            f"dimensions for input, and {len(index.spec.shape)} dimensions for indices"
        )
    axis = shapes.axis(dim, rank)
    own, other = list(x.spec.shape), list(index.spec.shape)
    size, count = own[axis], other[axis]
    own[axis] = other[axis] = 1
    common = list(shapes.broadcast(tuple(own), tuple(other)))
    indexing.require_index("take_along_dim", index)
    x = arithmetic.broadcast_to(x, (*common[:axis], size, *common[axis + 1 :]))
    return take_along(x, arithmetic.broadcast_to(index, (*common[:axis], count, *common[axis + 1 :])), axis)


def flat_positions(shape: Shape, axis: int, index: Node, *, wrap: bool) -> Node:
    """Flat positions in a tensor of `shape`: the element's own coordinates, with index along `axis`."""
    if not shape:
        return bounds.checked(index, 1, wrap=wrap)
    steps, size = shapes.strides(shape), index.spec.shape
    total = indexing.scaled(bounds.checked(index, shape[axis], axis, wrap=wrap), steps[axis])
    for a, n in enumerate(size):
        if a != axis and n > 1:
            line = tuple(n if b == a else 1 for b in range(len(size)))
            part = indexing.scaled(pointwise.iota(spec=Spec(line, dtypes.int64), axis=a), steps[a])
            total = pointwise.add(total, arithmetic.broadcast_to(part, size))
    return total


def take(x: Node, index: Node) -> Node:
    """Elements of the flattened x by number, in the shape of index."""
    indexing.require_index("take", index)
    size = prod(x.spec.shape)
    positions = bounds.checked(indexing.shaped(index, (prod(index.spec.shape),)), size, text=OUTSIDE)
    return indexing.shaped(ops.take(indexing.shaped(x, (size, 1)), positions), index.spec.shape)


def require_rank(x: Node, other: Node, what: str) -> None:
    if max(len(x.spec.shape), 1) != max(len(other.spec.shape), 1) and 0 not in other.spec.shape:
        raise ShapeError(f"Index tensor must have the same number of dimensions as {what} tensor")


def require_smaller(shape: Shape, index: Shape, axis: int, text: str) -> None:
    for a, (n, m) in enumerate(zip(shape, index, strict=False)):
        if a != axis and m > n:
            rule = f" to be no larger than self {list(shape)} apart from dimension {axis}"
            raise ShapeError(text.format(a, list(index)) + rule)
