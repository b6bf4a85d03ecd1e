"""Single elements written by number along an axis, or in the flattened tensor: scatter, put."""

from math import prod

from pywebgpu.composites import arithmetic, bounds, gathering, index_writes, indexing
from pywebgpu.composites.composite_op import composite
from pywebgpu.dtypes import Kind
from pywebgpu.errors import ShapeError
from pywebgpu.ir.graph import Node, Spec
from pywebgpu.ops import indexing as ops
from pywebgpu.ops import movement, pointwise
from pywebgpu.step_capture.free_number import Number
from pywebgpu.support import shapes
from pywebgpu.support.shapes import Shape


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
    """Every element of x index_writes.combined with those of source that go there, by sum, prod, mean, amax or amin.

    include_self: whether x's own element counts where another one goes.
    """
    axis = shapes.axis(dim, len(x.spec.shape))
    if reduce not in index_writes.REDUCTIONS:
        raise ShapeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    _require_index("scatter_reduce", x, axis, index, source)
    positions = indexing.shaped(
        gathering.flat_positions(x.spec.shape, axis, index, wrap=False), (prod(index.spec.shape),)
    )
    values = indexing.shaped(leading_part(source, index.spec.shape), (prod(index.spec.shape), 1))
    base = indexing.shaped(x, (prod(x.spec.shape), 1))
    return indexing.shaped(
        index_writes.combined(base, positions, values, reduce, include_self=include_self), x.spec.shape
    )


def _scattered(x: Node, dim: int, index: Node, source: Node, mode: str, name: str) -> Node:
    axis = shapes.axis(dim, len(x.spec.shape))
    _require_index(name, x, axis, index, source)
    positions = indexing.shaped(
        gathering.flat_positions(x.spec.shape, axis, index, wrap=False), (prod(index.spec.shape),)
    )
    values = indexing.shaped(leading_part(source, index.spec.shape), (prod(index.spec.shape), 1))
    out = ops.scatter(indexing.shaped(x, (prod(x.spec.shape), 1)), positions, values, mode=mode)
    return indexing.shaped(out, x.spec.shape)


def put_flat(x: Node, index: Node, source: Node, *, accumulate: bool = False) -> Node:
    """x after flattened x[index[i]] = source[i], or += with accumulate."""
    indexing.require_index("put_", index)
    index_writes.require_dtype("put_", x, source)
    size, count = prod(x.spec.shape), prod(index.spec.shape)
    if prod(source.spec.shape) != count:
        raise ShapeError(
            f"put_(): Expected source and index to have the same number of elements, but got source.numel() = "
            f"{prod(source.spec.shape)}, index.numel() = {count}"
        )
    positions = bounds.checked(indexing.shaped(index, (count,)), size, text=gathering.OUTSIDE)
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


def _require_index(name: str, x: Node, axis: int, index: Node, source: Node) -> None:
    """What all scatters ask of their inputs."""
    indexing.require_index(name, index)
    index_writes.require_dtype(name, x, source)
    gathering.require_rank(x, index, "self")
    if 0 in index.spec.shape:
        return
    gathering.require_rank(source, index, "src")
    gathering.require_smaller(x.spec.shape, index.spec.shape, axis, "Expected at dimension {} index {}")
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
