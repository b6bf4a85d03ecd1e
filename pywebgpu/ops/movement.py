"""Ops which move elements and compute none: each is a map from output coordinates to input coordinates.

`index` returns the input's coordinates and the conditions of `pad`: triples folded into (expression, low, high) are
needed where an output element may lie outside the input. `fill` is what stands there.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from pywebgpu.errors import ShapeError
from pywebgpu.ir.graph import Movement, Node
from pywebgpu.ops import reduction
from pywebgpu.support.shapes import Shape
from pywebgpu.support.symbolic import Sym, constant, flatten, unflatten

if TYPE_CHECKING:
    from types import ModuleType

    from numpy.typing import NDArray

Coords = tuple[Sym, ...]
NO_BOUNDS: tuple[Any, ...] = ()


def _reshape_shape(x: Shape, shape: Shape) -> Shape:
    if prod(shape) != prod(x):
        raise ShapeError(f"reshape: {x} has {prod(x)} elements, {shape} has {prod(shape)}")
    return shape


reshape: Movement = Movement(
    "reshape",
    infer=_reshape_shape,
    index=lambda coords, x, shape: (unflatten(flatten(coords, shape), x), NO_BOUNDS),
    reference=lambda xp, a, shape: xp.reshape(a, shape),
    vjp=lambda g, out, x, shape: reshape(g, shape=x.spec.shape),
)

permute: Movement = Movement(
    "permute",
    infer=lambda x, order: tuple([x[axis] for axis in order]),
    index=lambda coords, x, order: (tuple(coords[order.index(axis)] for axis in range(len(order))), NO_BOUNDS),
    reference=lambda xp, a, order: xp.transpose(a, order),
    vjp=lambda g, out, x, order: permute(g, order=tuple([order.index(axis) for axis in range(len(order))])),
)


def _slice_vjp(g: Node, out: Node, x: Node, starts: Shape, sizes: Shape, steps: Shape) -> Node:
    return pad(g, shape=x.spec.shape, starts=starts, steps=steps)


slice_: Movement = Movement(
    "slice",  # sizes[a] elements of axis a, from starts[a] on, steps[a] apart
    infer=lambda x, starts, sizes, steps: sizes,
    index=lambda coords, x, starts, sizes, steps: (
        tuple(i * step + start for i, start, step in zip(coords, starts, steps, strict=True)),
        NO_BOUNDS,
    ),
    reference=lambda xp, a, starts, sizes, steps: a[slices(starts, sizes, steps)],
    vjp=_slice_vjp,
)


def slices(starts: Shape, sizes: Shape, steps: Shape) -> tuple[slice, ...]:
    return tuple(slice(s, s + (n - 1) * d + 1 if n else s, d) for s, n, d in zip(starts, sizes, steps, strict=True))


flip: Movement = Movement(
    "flip",
    infer=lambda x, axes: x,
    index=lambda coords, x, axes: (
        tuple(constant(x[a] - 1) - i if a in axes else i for a, i in enumerate(coords)),
        NO_BOUNDS,
    ),
    reference=lambda xp, a, axes: xp.flip(a, axes),
    vjp=lambda g, out, x, axes: flip(g, axes=axes),
)


def _pad_index(place: Coords, x: Shape, shape: Shape, starts: Shape, steps: Shape) -> tuple[Coords, tuple[Any, ...]]:
    coords: list[Sym] = []
    bounds: list[Any] = []
    for i, n, start, step in zip(place, x, starts, steps, strict=True):
        inner = i - start
        if inner.low < 0 or inner.high > (n - 1) * step:
            bounds.append((inner, 0, (n - 1) * step))
        if step > 1:
            bounds.append((inner + step * (-(inner.low // step)) if inner.low < 0 else inner, "multiple", step))
        coords.append(inner // step)
    return tuple(coords), tuple(bounds)


def _pad(
    xp: ModuleType, a: NDArray[Any], shape: Shape, starts: Shape, steps: Shape, value: float = 0.0
) -> NDArray[Any]:
    return padded(a, xp.empty(shape, a.dtype), shape, starts, steps, value)


def padded(
    a: NDArray[Any], out: NDArray[Any], shape: Shape, starts: Shape, steps: Shape, value: float = 0.0
) -> NDArray[Any]:
    """What `pad` means, written to `out`."""
    out.fill(value)
    out[slices(starts, a.shape, steps)] = a
    return out


def _pad_vjp(g: Node, out: Node, x: Node, shape: Shape, starts: Shape, steps: Shape, value: float = 0.0) -> Node:
    return slice_(g, starts=starts, sizes=x.spec.shape, steps=steps)


pad: Movement = Movement(
    "pad",  # the opposite of slice: x inside a larger shape, `value` elsewhere
    infer=lambda x, shape, starts, steps, value=0.0: shape,
    index=lambda coords, x, shape, starts, steps, value=0.0: _pad_index(coords, x, shape, starts, steps),
    reference=_pad,
    vjp=_pad_vjp,
)


# Windows: an axis of length L becomes `count` windows, and a new last axis walks inside each.


def _window_shape(x: Shape, axis: int, size: int, step: int, dilation: int) -> Shape:
    count = (x[axis] - dilation * (size - 1) - 1) // step + 1
    return (*x[:axis], count, *x[axis + 1 :], size)


def _window(xp: ModuleType, a: NDArray[Any], axis: int, size: int, step: int, dilation: int) -> NDArray[Any]:
    views = xp.lib.stride_tricks.sliding_window_view(a, dilation * (size - 1) + 1, axis=axis)
    return views[(slice(None),) * axis + (slice(None, None, step),)][..., ::dilation]


window: Movement = Movement(
    "window",
    infer=_window_shape,
    index=lambda coords, x, axis, size, step, dilation: (
        (*coords[:axis], coords[axis] * step + coords[-1] * dilation, *coords[axis + 1 : -1]),
        NO_BOUNDS,
    ),
    reference=_window,
    vjp=lambda g, out, x, axis, size, step, dilation: reshape(
        reduction.sum_(
            unwindow(g, axis=axis, length=x.spec.shape[axis], step=step, dilation=dilation), axes=(len(x.spec.shape),)
        ),
        shape=x.spec.shape,
    ),
)


def _unwindow_index(coords: Coords, x: Shape, axis: int, length: int, step: int, dilation: int) -> tuple[Coords, Any]:
    position = coords[axis] - coords[-1] * dilation
    bounds: list[Any] = []
    if position.low < 0 or position.high > (x[axis] - 1) * step:
        bounds.append((position, 0, (x[axis] - 1) * step))
    if step > 1:
        bounds.append((position + step * (-(position.low // step)), "multiple", step))
    return (*coords[:axis], position // step, *coords[axis + 1 :]), tuple(bounds)


def _unwindow(xp: ModuleType, a: NDArray[Any], axis: int, length: int, step: int, dilation: int) -> NDArray[Any]:
    out = xp.zeros((*a.shape[:axis], length, *a.shape[axis + 1 :]), a.dtype)
    lead = (slice(None),) * axis
    for k in range(a.shape[-1]):
        start = k * dilation
        out[(*lead, slice(start, start + (a.shape[axis] - 1) * step + 1, step), ..., k)] = a[..., k]
    return out


def _unwindow_vjp(g: Node, out: Node, x: Node, axis: int, length: int, step: int, dilation: int) -> Node:
    rank, size = len(x.spec.shape), x.spec.shape[-1]
    reach = (x.spec.shape[axis] - 1) * step + dilation * (size - 1) + 1
    if reach < length:  # Where no window comes from, none goes back.
        kept = (*g.spec.shape[:axis], reach, *g.spec.shape[axis + 1 :])
        g = slice_(g, starts=(0,) * len(kept), sizes=kept, steps=(1,) * len(kept))
    every = window(g, axis=axis, size=size, step=step, dilation=dilation)  # (..., k, k'): wanted is k == k'
    merged = reshape(every, shape=(*every.spec.shape[: rank - 1], size * size))
    full = merged.spec.shape
    return slice_(merged, starts=(0,) * rank, sizes=(*full[:-1], size), steps=(*(1,) * (rank - 1), size + 1))


unwindow: Movement = Movement(
    "unwindow",  # windows laid back where they came from, one layer an offset; summing the last axis adds overlaps
    infer=lambda x, axis, length, step, dilation: (*x[:axis], length, *x[axis + 1 :]),
    index=_unwindow_index,
    reference=_unwindow,
    vjp=_unwindow_vjp,
)

barrier: Movement = Movement(
    "barrier",  # the same value, never merged with an equal one: keeps a recomputation apart from the first computation
    infer=lambda x, token: x,
    index=lambda coords, x, token: (coords, NO_BOUNDS),
    reference=lambda xp, a, token: a,
    vjp=lambda g, out, x, token: g,
    is_barrier=True,
)

alias: Movement = Movement(
    "alias",  # the same value under another identity: detach, leaf tensors
    infer=lambda x: x,
    index=lambda coords, x: (coords, NO_BOUNDS),
    reference=lambda xp, a: a,
    vjp=lambda g, out, x: g,
)
