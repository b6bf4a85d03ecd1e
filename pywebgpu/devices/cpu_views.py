"""Views of views as one view, on device cpu: where several in a row show the memory of one value, NumPy is asked once.

What they show together is a start and strides, if the value is row-major; whether it is, is asked at each call.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from pywebgpu.compiler.program import HostCall
from pywebgpu.ir.graph import Movement, Spec
from pywebgpu.ops import movement, packing, reduction, special
from pywebgpu.support.shapes import Shape

if TYPE_CHECKING:
    from numpy.typing import NDArray

Function = Callable[..., Any]


class View(NamedTuple):
    """Elements of the value of slot `base`, and the steps that lead from that to here."""

    base: int
    start: int
    strides: tuple[int, ...]
    shape: Shape
    steps: tuple[HostCall, ...]


def _unmade(*args: Any, **attrs: Any) -> NoReturn:
    raise AssertionError("strided: made for device cpu, of steps that are compiled")


strided: Movement = Movement("strided", infer=_unmade, index=_unmade, reference=_unmade, vjp=_unmade)


def merged(
    steps: list[HostCall], specs: Sequence[Spec], outputs: Sequence[int], constants: Collection[int]
) -> list[HostCall]:
    """The steps with one view for several in a row, and without those that lead back to the value itself."""
    views: dict[int, View] = {}
    for step in steps:
        source, slot = step.slots[0], step.slots[-1]
        rule = _RULES.get(step.op)
        if rule is None or source in constants or not prod(specs[source].shape) or not prod(specs[slot].shape):
            continue
        shape = specs[source].shape
        before = views.get(source) or View(source, 0, _row_major(shape), shape, ())
        fitted = rule(before, specs[slot].shape, **step.attrs)
        if fitted is not None:
            views[slot] = View(before.base, fitted[0], fitted[1], specs[slot].shape, (*before.steps, step))
    same = {slot: view.base for slot, view in views.items() if slot not in outputs and _is_whole(view, specs)}
    read, kept = set(outputs), []
    for step in reversed(steps):
        *sources, slot = step.slots
        view = views.get(slot)
        if view is not None and (slot not in read or slot in same):
            continue
        if view is not None and len(view.steps) > 1:
            kept.append(HostCall(strided, {"view": view}, (view.base, slot)))
        else:
            kept.append(HostCall(step.op, step.attrs, (*[same.get(source, source) for source in sources], slot)))
        read.update(kept[-1].slots[:-1])
    return kept[::-1]


def function(view: View, spec: Spec, chain: Sequence[Function]) -> Function:
    """What makes a view of the value. chain: what makes it step by step."""
    kind, ndarray = np.dtype(special.numpy_dtype(spec.dtype)), np.ndarray
    shape, start = view.shape, view.start * kind.itemsize
    strides = tuple([stride * kind.itemsize for stride in view.strides])

    def show(a: NDArray[Any]) -> NDArray[Any]:
        if a.flags.c_contiguous:
            return ndarray(shape, kind, a, start, strides)
        for each in chain:
            a = each(a)
        return a

    return show


def _row_major(shape: Shape) -> tuple[int, ...]:
    return tuple([prod(shape[axis + 1 :]) for axis in range(len(shape))])


def _is_whole(view: View, specs: Sequence[Spec]) -> bool:
    """Whether it is the value itself."""
    shape = specs[view.base].shape
    pairs = zip(view.shape, view.strides, _row_major(shape), strict=False)
    return (
        view.shape == shape and not view.start and all(n == 1 or n_of_shape == other for n, n_of_shape, other in pairs)
    )


# Where a view starts and its strides, from those of what it is a view of; None where it is none


Shown = tuple[int, tuple[int, ...]] | None


def _reshaped(view: View, to: Shape, shape: Shape) -> Shown:
    """Groups of axes that have as many elements before as afterwards; each must lie in one piece."""
    old = [pair for pair in zip(view.shape, view.strides, strict=True) if pair[0] != 1]
    strides, first = [0] * len(to), 0
    axis = 0
    while axis < len(to):
        if to[axis] == 1:
            axis += 1
            continue
        end, last = axis + 1, first + 1
        wanted, have = to[axis], old[first][0]
        while wanted != have:
            if wanted < have:
                wanted *= to[end]
                end += 1
            else:
                have *= old[last][0]
                last += 1
        if any(old[index][1] != old[index + 1][1] * old[index + 1][0] for index in range(first, last - 1)):
            return None
        stride = old[last - 1][1]
        for dim in reversed(range(axis, end)):
            strides[dim] = stride
            stride *= to[dim]
        axis, first = end, last
    return view.start, tuple(strides)


def _permuted(view: View, to: Shape, order: Shape) -> Shown:
    return view.start, tuple([view.strides[axis] for axis in order])


def _sliced(view: View, to: Shape, starts: Shape, sizes: Shape, steps: Shape) -> Shown:
    start = view.start + sum([first_index * stride for first_index, stride in zip(starts, view.strides, strict=True)])
    return start, tuple([step * stride for step, stride in zip(steps, view.strides, strict=True)])


def _piece(view: View, to: Shape, start: int, shape: Shape) -> Shown:
    (stride,) = view.strides
    return view.start + start * stride, tuple([stride * own for own in _row_major(to)])


def _expanded(view: View, to: Shape, shape: Shape) -> Shown:
    front = len(to) - len(view.shape)
    own = [0 if n == 1 else stride for n, stride in zip(view.shape, view.strides, strict=True)]
    return view.start, (*(0,) * front, *own)


def _window(view: View, to: Shape, axis: int, size: int, step: int, dilation: int) -> Shown:
    strides = [*view.strides, view.strides[axis] * dilation]
    strides[axis] *= step
    return view.start, tuple(strides)


def _flipped(view: View, to: Shape, axes: Shape) -> Shown:
    start = view.start + sum([(view.shape[axis] - 1) * view.strides[axis] for axis in axes])
    return start, tuple([-stride if axis in axes else stride for axis, stride in enumerate(view.strides)])


_RULES: dict[Any, Callable[..., Shown]] = {
    movement.reshape: _reshaped,
    movement.permute: _permuted,
    movement.slice_: _sliced,
    packing.piece: _piece,
    reduction.expand: _expanded,
    movement.window: _window,
    movement.flip: _flipped,
}
