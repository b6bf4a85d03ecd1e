"""Reading at computed rows: subscripts with index tensors, and index_select.

Two ops carry all of it: `take` reads rows by number and `scatter` writes them. Here positions become row numbers; see
bounds.py for how they are checked. Single elements are in scattering.py, masks in masks.py.
"""

from collections.abc import Sequence
from math import prod

from pywebgpu import dtypes
from pywebgpu.composites import arithmetic, bounds
from pywebgpu.errors import DTypeError, RangeError, ShapeError
from pywebgpu.ir.graph import Node
from pywebgpu.ops import indexing, movement, pointwise
from pywebgpu.step_capture.free_number import Number
from pywebgpu.support import shapes
from pywebgpu.support.shapes import Shape

# Subscripts with index tensors


def get(x: Node, axes: Sequence[int], indices: Sequence[Node], start_axis: int) -> Node:
    """x[..., index, ...] with index tensors on `axes`; their broadcast axes start at `start_axis` of the result."""
    if len(indices) == 1 and axes[0] == start_axis == 0 and 0 not in indices[0].spec.shape:  # Rows, as of a table.
        shape, lead = x.spec.shape, indices[0].spec.shape
        rows = bounds.checked(arithmetic.cast(indices[0], dtypes.int64), shape[0], 0)
        taken = indexing.take(shaped(x, (shape[0], prod(shape[1:]))), shaped(rows, (prod(lead),)))
        return shaped(taken, (*lead, *shape[1:]))
    positions, lead = row_numbers(x.spec.shape, axes, indices)
    front, rest = fronted(x, axes)
    taken = indexing.take(front, positions)
    kept = tuple(x.spec.shape[axis] for axis in rest)
    return moved_block(shaped(taken, (*lead, *kept)), 0, len(lead), start_axis)


def without_leading(shape: Shape, rank: int) -> Shape:
    """A shape without the axes of size 1 in front that a tensor of `rank` has no axis for."""
    while len(shape) > rank and shape[0] == 1:
        shape = shape[1:]
    return shape


def fits(shape: Shape, target: Shape) -> bool:
    """Whether a value of `shape` broadcasts to `target`."""
    padded = (1,) * (len(target) - len(shape)) + shape
    return len(shape) <= len(target) and all(m in (1, n) for m, n in zip(padded, target, strict=True))


def row_numbers(shape: Shape, axes: Sequence[int], indices: Sequence[Node]) -> tuple[Node, Shape]:
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


def moved_block(x: Node, start: int, count: int, to: int) -> Node:
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
