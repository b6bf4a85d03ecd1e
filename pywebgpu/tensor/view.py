"""A chain of views: followed from a storage's value to what a tensor shows, and taken back by a write."""

from __future__ import annotations

from math import prod

from pywebgpu.composites import scattering
from pywebgpu.dtypes import bool_, int32
from pywebgpu.ir import walk
from pywebgpu.ir.graph import HOST, Attrs, Movement, Node, Reduction, Reinterpretation, Spec, host
from pywebgpu.ops import indexing, movement, pointwise, reduction
from pywebgpu.support.shapes import Shape, strides
from pywebgpu.tensor import layout

SMALL = 1 << 12  # elements of a value of which one is written by looking at each

Path = tuple[tuple[Movement, Attrs], ...]
Steps = list[tuple[tuple[Movement, Attrs], Node]]
TWICE = (
    "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
    "Please clone() the tensor before performing the operation."
)


def through(node: Node, path: Path) -> Node:
    """What a chain of views shows of a value."""
    for op, attrs in path:
        node = op(node, **attrs)
    return node


def turns(path: Path) -> bool:
    """Whether memory may lie in another order than row by row: slices and reshapes leave that as it is."""
    return any(op is not movement.slice_ and op is not movement.reshape for op, _ in path)


def taken(node: Node, path: Path) -> Node:
    """The same where a view is taken: slices of data start at numbers of the host."""
    for op, attrs in path:
        if op is not movement.slice_ or node.requires:
            node = op(node, **attrs)
        elif node.buffer is not None or walk.base(node).buffer is not None:
            node = indexing.slice_of_data(node, **attrs)
        else:
            node = op(node, **attrs)
    return node


def shorter(path: Path, start: int) -> Path:
    """The same views, the last two as one if they are of one kind: a tensor may be turned for ever."""
    if len(path) < start + 2 or path[-1][0] is not path[-2][0]:
        return path
    (op, before), (_, last) = path[-2:]
    if op is movement.reshape:
        return (*path[:-2], (op, last))
    if op is movement.permute:
        order = tuple([before["order"][axis] for axis in last["order"]])
        return path[:-2] if order == tuple(range(len(order))) else (*path[:-2], (op, {"order": order}))
    return path


def written(base: Node, path: Path, value: Node) -> Node:
    """The value of `base` after what `path` shows of it became `value`: a node that is nobody's value yet.

    Raises RuntimeError where it shows an element twice.
    """
    if not path:
        return pointwise.copy(value) if value is base or is_shared(value) else value
    element = _element(base, path, value)
    if element is not None:
        return element
    chain = [base]
    for op, attrs in path[:-1]:
        chain.append(op(chain[-1], **attrs))
    steps = list(zip(reversed(path), reversed(chain), strict=True))
    if any(op in (reduction.expand, movement.window) for op, _ in path):
        value = _written_once(base, path, value, steps)
    else:
        for (op, attrs), before in steps:
            value = _back(op, attrs, before, value)
    return pointwise.copy(value) if value is base or is_shared(value) else value


def _element(base: Node, path: Path, value: Node) -> Node | None:
    """As written, where `path` shows one element of a small value: its number is one of the host, so that writes here
    and there share a Program. None where that is not so, or where a gradient flows."""
    shape, count = base.spec.shape, prod(base.spec.shape)
    if prod(value.spec.shape) != 1 or not 1 < count <= SMALL or base.requires or value.requires:
        return None
    if value.spec != Spec(value.spec.shape, base.spec.dtype) or base.spec.dtype.part is not None:
        return None
    number = element_number(shape, path)
    return None if number is None else scattering.with_element(base, value, host(number, int32))


def element_number(shape: Shape, path: Path) -> int | None:
    """The number, in row-major order, of the element of a value of `shape` that `path` shows first; None where it looks
    at elements otherwise than by their positions."""
    steps = []
    for op, attrs in path:
        if op not in (movement.slice_, movement.reshape, movement.permute, layout.laid_out):
            return None
        before, shape = shape, op.infer(shape, **attrs)
        steps.append((op, attrs, before, shape))
    offset = 0
    for op, attrs, before, after in reversed(steps):
        if op is movement.reshape or op is layout.laid_out:
            continue
        position = _position(offset, after) if offset else [0] * len(after)
        if op is movement.permute:
            order = attrs["order"]
            position = [position[order.index(axis)] for axis in range(len(order))]
        else:
            position = [s + i * d for s, i, d in zip(attrs["starts"], position, attrs["steps"], strict=True)]
        offset = sum([i * step for i, step in zip(position, strides(before), strict=True)])
    return offset


def _position(offset: int, shape: Shape) -> list[int]:
    """The coordinates of element number `offset`."""
    return [offset // step % n for step, n in zip(strides(shape), shape, strict=True)]


def _written_once(base: Node, path: Path, value: Node, steps: Steps) -> Node:
    """As written, where an axis was expanded, or cut into windows, and of each element one position is left."""
    if shows_twice(value.spec.shape, layout.through(base.spec.shape, path)[0]):
        raise RuntimeError(TWICE)
    shown = pointwise.full(True, Spec(value.spec.shape, bool_))
    for (op, attrs), before in steps:
        if op in (reduction.expand, movement.window):
            value = pointwise.where(shown, value, pointwise.full(0, value.spec))
            value, shown = (
                _joined(op, attrs, before.spec.shape, x, fold)
                for x, fold in ((value, reduction.sum_), (shown, reduction.max_))
            )
            value = pointwise.where(shown, value, before)
        else:
            shown = _back(op, attrs, pointwise.full(False, Spec(before.spec.shape, bool_)), shown)
            value = _back(op, attrs, before, value)
    return value


def _joined(op: Movement, attrs: Attrs, shape: Shape, shown: Node, fold: Reduction) -> Node:
    """What all positions that show an element of `shape` come to."""
    if op is reduction.expand:
        return fold(shown, tuple([a for a, (m, n) in enumerate(zip(shape, attrs["shape"], strict=True)) if m != n]))
    axis = attrs["axis"]
    back = movement.unwindow(shown, axis=axis, length=shape[axis], step=attrs["step"], dilation=attrs["dilation"])
    return movement.reshape(fold(back, (len(shape),)), shape=shape)


def shows_twice(shape: Shape, strides: Shape) -> bool:
    """Whether elements at these strides may be the same."""
    reach = 0
    for step, n in sorted(zip(strides, shape, strict=True)):
        if n > 1 and step <= reach:
            return True
        reach += step * (n - 1)
    return False


def is_shared(node: Node) -> bool:
    """Whether others have this node, or what it is a view of. A storage's is its own: a write marks it."""
    op = node.op
    return isinstance(op, Movement) or op is HOST or (op is pointwise.const and not node.spec.shape)


def _back(op: Movement, attrs: Attrs, before: Node, value: Node) -> Node:
    """The value of `before` after its view op(before) became `value`."""
    if op is layout.laid_out:
        return value
    if op is movement.reshape:
        return movement.reshape(value, shape=before.spec.shape)
    if isinstance(op, Reinterpretation):
        return op.back(value)
    if op is movement.permute:
        order = attrs["order"]
        return movement.permute(value, order=tuple(order.index(axis) for axis in range(len(order))))
    if op is movement.slice_:
        return indexing.write_slice(before, value, starts=attrs["starts"], steps=attrs["steps"])
    raise RuntimeError(TWICE)
