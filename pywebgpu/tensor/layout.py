"""Strides as torch reports them, and which reshapes are views. Only for telling: nothing is computed by strides
here.

A value lies in memory row by row. Where PyTorch's would lie in another order, as a result in channels_last, the first
of the views that lead to it is `laid_out`: it moves nothing, and says the strides.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any

from pywebgpu.ir.graph import Attrs, Movement, Node, Reinterpretation
from pywebgpu.ops import movement, reduction
from pywebgpu.support.closed_types import channels_last, channels_last_3d
from pywebgpu.support.shapes import Shape, strides

if TYPE_CHECKING:
    from pywebgpu.tensor.base import TensorBase


@dataclass(frozen=True, slots=True, eq=False)
class Layout(Movement):
    """The same value, told to have other strides: of chains of views alone, since it makes no node."""

    def __call__(self, x: Node, **attrs: Any) -> Node:
        return x


laid_out: Layout = Layout(
    "laid_out",
    infer=lambda x, strides: x,
    index=lambda coords, x, strides: (coords, ()),
    reference=lambda xp, a, strides: a,
    vjp=lambda g, out, x, strides: g,
)


def strides_of(tensor: "TensorBase") -> tuple[Shape, int]:
    """Strides and offset that torch would report: of the storage's row-major layout, through the views."""
    return through(tensor._storage.node.spec.shape, tensor._path)


def is_whole(path: Sequence[tuple[Movement, Attrs]]) -> bool:
    """Whether a chain of views shows a value as it is."""
    return not path or (len(path) == 1 and path[0][0] is laid_out)


def broadcast_fails(small: Shape, large: Shape) -> bool:
    """Whether a value of the one shape does not broadcast to the other, which has as many axes or more."""
    padded = (1,) * (len(large) - len(small)) + small
    return any(m not in (1, n) for m, n in zip(padded, large, strict=True))


def through(shape: Shape, path: Sequence[tuple[Movement, Attrs]]) -> tuple[Shape, int]:
    """Strides and offset after a chain of views of a row-major value."""
    steps, offset = strides(shape), 0
    pair: tuple[int, int] | None = None  # strides of two axes that a reshape made one, which has no stride
    for op, attrs in path:
        if op is movement.slice_ and pair is not None:  # A diagonal of theirs: see MovementMethods.diagonal.
            row, column = divmod(attrs["starts"][-1], attrs["steps"][-1] - 1)
            steps, offset = (*steps[:-1], sum(pair)), offset + row * pair[0] + column * pair[1]
            pair = None
        else:
            merges = op is movement.reshape and attrs["shape"] == (*shape[:-2], prod(shape[-2:]))
            pair = (steps[-2], steps[-1]) if merges and reshaped(shape, steps, attrs["shape"]) is None else None
            steps, offset = ((*steps[:-2], 0), offset) if pair is not None else _step(op, attrs, shape, steps, offset)
        shape = op.infer(shape, **attrs)
    return steps, offset


# PyTorch's formats in which channels are the last axis of memory: the axes from the largest step to the smallest.
FORMATS: dict[object, Shape] = {channels_last: (0, 2, 3, 1), channels_last_3d: (0, 2, 3, 4, 1)}
FORMATS_OF_RANK = {len(order): order for order in FORMATS.values()}


def order_of(memory_format: object, shape: Shape) -> tuple[int, ...] | None:
    """The axes in the order of their steps; None of a format that is row-major, or keeps what is there.

    Raises RuntimeError for a tensor of another rank than the format is of.
    """
    order = FORMATS.get(memory_format)
    if order is not None and len(order) != len(shape):
        name = str(memory_format).removeprefix("torch.")
        raise RuntimeError(f"required rank {len(order)} tensor to use {name} format")
    return order


def is_dense(shape: Shape, steps: Shape, order: Sequence[int]) -> bool:
    """Whether memory holds the elements without gaps, the axes in this order."""
    if 0 in shape:
        return True
    expected = 1
    for axis in reversed(order):
        if shape[axis] != 1:
            if steps[axis] != expected:
                return False
            expected *= shape[axis]
    return True


def by_stride(shape: Shape, steps: Shape) -> list[int]:
    """The axes, the one with the largest stride first, and of equal ones the longer."""
    return sorted(range(len(shape)), key=lambda axis: (-steps[axis], -shape[axis]))


def suggests(shape: Shape, steps: Shape, order: Sequence[int]) -> bool:
    """Whether a tensor counts as one of a format: its steps grow in that order, and in no other as well."""
    least = 0
    if not steps[1] or 0 in shape:
        return False
    for axis in reversed(order):
        if steps[axis] < least or (axis == 0 and least == steps[1]):
            return False
        least = steps[axis] * max(shape[axis], 1)
    return True


@lru_cache(4096)  # A loop asks the same in each of its rounds.
def is_view(shape: Shape, path: tuple[tuple[Any, ...], ...], new: Shape) -> bool:
    """Whether a reshape to `new` moves no memory. path: its ops, each with the names and values of its attributes."""
    views = [(op, dict(attrs)) for op, *attrs in path]
    steps, _ = through(shape, views)
    for op, attrs in views:
        shape = op.infer(shape, **attrs)
    return reshaped(shape, steps, new) is not None


def _step(op: Movement, attrs: Attrs, shape: Shape, steps: Shape, offset: int) -> tuple[Shape, int]:
    if isinstance(op, Reinterpretation):
        return op.strides(steps, offset)
    if op is laid_out:
        return attrs["strides"], offset
    if op is movement.permute:
        return tuple(steps[axis] for axis in attrs["order"]), offset
    if op is movement.slice_:
        offset += sum(start * step for start, step in zip(attrs["starts"], steps, strict=True))
        return tuple(a * b for a, b in zip(steps, attrs["steps"], strict=True)), offset
    if op is reduction.expand:
        return tuple(0 if m != n else s for m, n, s in zip(shape, attrs["shape"], steps, strict=True)), offset
    if op is movement.window:
        axis = attrs["axis"]
        return (
            (*steps[:axis], steps[axis] * attrs["step"], *steps[axis + 1 :], steps[axis] * attrs["dilation"]),
            offset,
        )
    if op is movement.reshape:
        strides_after = reshaped(shape, steps, attrs["shape"])
        return strides(attrs["shape"]) if strides_after is None else strides_after, offset
    return steps, offset


def reshaped(shape: Shape, steps: Shape, new: Shape) -> Shape | None:
    """Strides of the view of `new` shape, or None where memory would have to move."""
    if 0 in shape:
        return strides(new)
    axes = [(n, s) for n, s in zip(shape, steps, strict=True) if n != 1]
    groups: list[tuple[int, int]] = []  # merged axes: elements, stride of the innermost
    for n, s in axes:
        if groups and groups[-1][1] == n * s:
            groups[-1] = (groups[-1][0] * n, s)
        else:
            groups.append((n, s))
    out: list[int] = []
    remaining = list(reversed(groups))
    left, step = remaining.pop(0) if remaining else (1, 1)
    for n in reversed(new):
        if n == 1:
            out.append(step)
            continue
        if left == 1 and remaining:
            left, step = remaining.pop(0)
        if left % n:
            return None
        out.append(step)
        left, step = left // n, step * n
    return tuple(reversed(out)) if left == 1 else None
