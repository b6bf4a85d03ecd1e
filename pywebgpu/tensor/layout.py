"""Strides as torch reports them, and which reshapes are views. Only for telling: nothing is computed by strides
here."""

from collections.abc import Sequence

from pywebgpu.graph.ir import Attrs, Movement
from pywebgpu.ops import movement, reduction
from pywebgpu.shapes import Shape, strides


def through(shape: Shape, path: Sequence[tuple[Movement, Attrs]]) -> tuple[Shape, int]:
    """Strides and offset after a chain of views of a row-major value."""
    steps, offset = strides(shape), 0
    for op, attrs in path:
        steps, offset = _step(op, attrs, shape, steps, offset)
        shape = op.infer(shape, **attrs)
    return steps, offset


def _step(op: Movement, attrs: Attrs, shape: Shape, steps: Shape, offset: int) -> tuple[Shape, int]:
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
        found = reshaped(shape, steps, attrs["shape"])
        return strides(attrs["shape"]) if found is None else found, offset
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
