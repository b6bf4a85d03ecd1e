"""Single elements read and written by number along an axis, or in the flattened tensor: gather, scatter, take, put."""

from math import prod

from pywebgpu import dtypes
from pywebgpu.composites import arithmetic, bounds, indexing
from pywebgpu.composites.composite_op import composite
from pywebgpu.dtypes import Kind
from pywebgpu.errors import DTypeError, ShapeError
from pywebgpu.ir.graph import Node, Spec
from pywebgpu.ops import indexing as ops
from pywebgpu.ops import movement, pointwise
from pywebgpu.step_capture.free_number import Number
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
    _require_rank(x, index, "input")
    _require_smaller(x.spec.shape, index.spec.shape, axis, "Size does not match at dimension {}: expected index {}")
    return take_along(x, index, axis, wrap=False)


def take_along(x: Node, index: Node, dim: int, *, wrap: bool = True) -> Node:
    """As gather, for numbers that are known to fit or may be negative."""
    positions = _flat_positions(x.spec.shape, shapes.axis(dim, len(x.spec.shape)), index, wrap=wrap)
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


def scatter(x: Node, dim: int, index: Node, source: Node | Number, *, reduce: str | None = None) -> Node:
    """x after x[index[i][j]][j] = source[i][j] for dim 0. reduce: "add" or "multiply" instead of writing.

    Raises: ShapeError for index or source of other shapes, DTypeError for other dtypes, RangeError as gather.
    """
    if reduce not in (None, "add", "multiply"):
        raise ShapeError("reduce argument must be either add or multiply.")
    if not isinstance(source, Node):
        source = arithmetic.broadcast_to(indexing.scalar(source, x), index.spec.shape)
    return _scattered(x, dim, index, source, {None: "set", "add": "add", "multiply": "prod"}[reduce], "scatter")


def scatter_add(x: Node, dim: int, index: Node, source: Node) -> Node:
    """x after x[index[i][j]][j] += source[i][j] for dim 0; positions that meet add up in order."""
    return _scattered(x, dim, index, source, "add", "scatter_add")


def scatter_reduce(x: Node, dim: int, index: Node, source: Node, reduce: str, *, include_self: bool = True) -> Node:
    """Every element of x indexing.combined with those of source that go there, by sum, prod, mean, amax or amin.

    include_self: whether x's own element counts where another one goes.
    """
    axis = shapes.axis(dim, len(x.spec.shape))
    if reduce not in indexing.REDUCTIONS:
        raise ShapeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    _require_index("scatter_reduce", x, axis, index, source)
    positions = indexing.shaped(_flat_positions(x.spec.shape, axis, index, wrap=False), (prod(index.spec.shape),))
    values = indexing.shaped(leading_part(source, index.spec.shape), (prod(index.spec.shape), 1))
    base = indexing.shaped(x, (prod(x.spec.shape), 1))
    return indexing.shaped(indexing.combined(base, positions, values, reduce, include_self=include_self), x.spec.shape)


def _scattered(x: Node, dim: int, index: Node, source: Node, mode: str, name: str) -> Node:
    axis = shapes.axis(dim, len(x.spec.shape))
    _require_index(name, x, axis, index, source)
    positions = indexing.shaped(_flat_positions(x.spec.shape, axis, index, wrap=False), (prod(index.spec.shape),))
    values = indexing.shaped(leading_part(source, index.spec.shape), (prod(index.spec.shape), 1))
    out = ops.scatter(indexing.shaped(x, (prod(x.spec.shape), 1)), positions, values, mode=mode)
    return indexing.shaped(out, x.spec.shape)


def _flat_positions(shape: Shape, axis: int, index: Node, *, wrap: bool) -> Node:
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


# Flat positions


def take(x: Node, index: Node) -> Node:
    """Elements of the flattened x by number, in the shape of index."""
    indexing.require_index("take", index)
    size = prod(x.spec.shape)
    positions = bounds.checked(indexing.shaped(index, (prod(index.spec.shape),)), size, text=OUTSIDE)
    return indexing.shaped(ops.take(indexing.shaped(x, (size, 1)), positions), index.spec.shape)


def put_flat(x: Node, index: Node, source: Node, *, accumulate: bool = False) -> Node:
    """x after flattened x[index[i]] = source[i], or += with accumulate."""
    indexing.require_index("put_", index)
    indexing.require_dtype("put_", x, source)
    size, count = prod(x.spec.shape), prod(index.spec.shape)
    if prod(source.spec.shape) != count:
        raise ShapeError(
            f"put_(): Expected source and index to have the same number of elements, but got source.numel() = "
            f"{prod(source.spec.shape)}, index.numel() = {count}"
        )
    positions = bounds.checked(indexing.shaped(index, (count,)), size, text=OUTSIDE)
    mode = "add" if accumulate else "set"
    out = ops.scatter(indexing.shaped(x, (size, 1)), positions, indexing.shaped(source, (count, 1)), mode=mode)
    return indexing.shaped(out, x.spec.shape)


# Parts


def leading_part(x: Node, size: Shape) -> Node:
    """The first `size` elements of each axis."""
    if x.spec.shape == size:
        return x
    own, line = (shape or (1,) for shape in (x.spec.shape, size))  # Of no axes is as of one with one element.
    rank = len(line)
    part = movement.slice_(indexing.shaped(x, own), starts=(0,) * rank, sizes=line, steps=(1,) * rank)
    return indexing.shaped(part, size)


def _require_rank(x: Node, other: Node, what: str) -> None:
    if max(len(x.spec.shape), 1) != max(len(other.spec.shape), 1) and 0 not in other.spec.shape:
        raise ShapeError(f"Index tensor must have the same number of dimensions as {what} tensor")


def _require_smaller(shape: Shape, index: Shape, axis: int, text: str) -> None:
    for a, (n, m) in enumerate(zip(shape, index, strict=False)):
        if a != axis and m > n:
            rule = f" to be no larger than self {list(shape)} apart from dimension {axis}"
            raise ShapeError(text.format(a, list(index)) + rule)


def _require_index(name: str, x: Node, axis: int, index: Node, source: Node) -> None:
    """What all scatters ask of their inputs."""
    indexing.require_index(name, index)
    indexing.require_dtype(name, x, source)
    _require_rank(x, index, "self")
    if 0 in index.spec.shape:
        return
    _require_rank(source, index, "src")
    _require_smaller(x.spec.shape, index.spec.shape, axis, "Expected at dimension {} index {}")
    if any(m > n for m, n in zip(index.spec.shape, source.spec.shape, strict=False)):
        extents = f"index {list(index.spec.shape)}, src {list(source.spec.shape)}"
        raise ShapeError(f"Expected index to be no larger size than src, got {extents}")


def with_element(x: Node, value: Node, position: Node) -> Node:
    """x, in which element number `position`, of all in their order, is `value`, of any shape with one element."""
    return _with_float(x, value, position) if x.spec.dtype.kind is Kind.FLOAT else _with_element(x, value, position)


def _with_element(x: Node, value: Node, position: Node) -> Node:
    count = prod(x.spec.shape)
    here = pointwise.eq(pointwise.iota(spec=Spec((count,), position.spec.dtype), axis=0), position)
    written = pointwise.where(here, movement.reshape(value, shape=()), movement.reshape(x, shape=(count,)))
    return pointwise.copy(movement.reshape(written, shape=x.spec.shape))


_with_float = composite(_with_element)  # Of whole numbers it is known between which numbers they are.
