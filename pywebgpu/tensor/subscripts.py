"""Subscripts taken apart, read and assigned.

A subscript has a basic part (whole numbers, slices, None, an ellipsis), which is one slice and one reshape, and an
advanced part (index tensors, lists, masks), which reads or writes rows of that view. Rules and texts are torch's.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from operator import index as whole
from typing import TYPE_CHECKING, Any

from pywebgpu import dtypes
from pywebgpu.composites import arithmetic, bounds, index_writes, indexing, masks
from pywebgpu.devices.base import Device
from pywebgpu.errors import DTypeError, RangeError, ShapeError
from pywebgpu.ir.graph import Node, Spec, thread_state
from pywebgpu.ops import indexing as ops
from pywebgpu.ops import movement, pointwise
from pywebgpu.step_capture.free_number import NUMBERS
from pywebgpu.support import numbers, shapes
from pywebgpu.support.shapes import Shape, broadcast_all, strides
from pywebgpu.tensor import conversion, from_data, memory_format, overlap, transfer
from pywebgpu.tensor.apply import called
from pywebgpu.tensor.base import TensorBase
from pywebgpu.tensor.layout import strides_of
from pywebgpu.tensor.view import Path

if TYPE_CHECKING:
    from pywebgpu.tensor.tensor import Tensor
    from pywebgpu.tensor.types import Index, Operand, Part

BYTES = "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead."
LEGACY_LENGTH = 32  # torch reads a shorter list that holds sequences as a tuple


@dataclass(slots=True)
class Subscript:
    """A subscript taken apart.

    starts, sizes, steps: the slice of the tensor. shape: of the view that the basic part leaves.
    advanced: index tensors and masks by the axis of the view where they start.
    """

    starts: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    shape: list[int] = field(default_factory=list)
    advanced: dict[int, Node] = field(default_factory=dict)

    def keep(self, size: int) -> None:
        """A whole axis."""
        self.select(0, size, 1)
        self.shape.append(size)

    def select(self, start: int, size: int, step: int) -> None:
        self.starts.append(start)
        self.sizes.append(size)
        self.steps.append(step)


def select(x: TensorBase, key: Index) -> Tensor:
    """x[key]: a view where the subscript has a basic part alone, else a copy."""
    subscript = parse(x, key)
    view = _view(x, subscript)
    if not subscript.advanced:
        return view if view is not x else x._view(movement.reshape, shape=tuple(x.shape))  # type: ignore[return-value]
    positions = _positions(subscript, x._storage.device)
    selected = x._new(indexing.get(view._node, *positions), x._storage.device)
    if view._path:
        laid_out(selected, view, *positions)
    if not any(node.spec.shape for node in positions[1]):
        selected._selected = lambda part: view._assign(index_writes.put(view._node, *positions, part._node))
    return selected


def write(x: TensorBase, key: Index, value: Operand) -> None:
    """x[key] = value."""
    subscript = parse(x, key)
    view = _view(x, subscript)
    if not subscript.advanced:
        write_view(view, value)
        return
    node = _value(view, value, strict=True)
    mask = _only_mask(subscript)
    written = None if mask is None else _masked(view._node, *mask, node)
    if written is None:
        written = index_writes.put(view._node, *_positions(subscript, x._storage.device), node)
    view._assign(written)
    if view is x:
        called(x, "aten::index_put")


def with_values(x: TensorBase, indices: Sequence[Tensor | None], values: Operand, accumulate: bool) -> Tensor:
    """A copy of x in which the positions that `indices` name are `values`, or with accumulate have them added."""
    subscript = parse(x, tuple(indices))
    if not subscript.advanced:
        raise RangeError("index_put(): expected at least one index tensor")
    node = _value(x, values, strict=True)
    if accumulate and node.spec.dtype is dtypes.bool_:  # What is added is true or not: once is enough.
        this: Any = x
        increments = values.to(dtypes.int32) if isinstance(values, TensorBase) else int(values)  # type: ignore[attr-defined]
        counts: Tensor = this.to(dtypes.int32).index_put(indices, increments, True)
        return counts.ne(0)
    positions = _positions(subscript, x._storage.device)
    written = index_writes.put(_view(x, subscript)._node, *positions, node, accumulate=accumulate)
    result = x._new(indexing.shaped(written, tuple(x.shape)), x._storage.device)
    return called(memory_format.same(result, x) if x._path else result, "aten::index_put")


def parse(x: TensorBase, key: object) -> Subscript:
    """Takes a subscript of x apart. Raises RangeError, TypeError and ValueError as torch does."""
    items = [_item(x, item) for item in _items(key)]
    rank = x.ndim
    taken = sum(_axes_of(item) for item in items)
    if taken > rank:
        if rank == 0:
            raise RangeError(
                "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to "
                "convert a 0-dim tensor to a number"
            )
        raise RangeError(f"too many indices for tensor of dimension {rank}")
    if not any(item is Ellipsis for item in items):
        items.append(Ellipsis)
    subscript, shape, axis = Subscript(), tuple(x.shape), 0
    rest = rank - taken
    for item in items:
        if item is Ellipsis:
            for size in shape[axis : axis + rest]:
                subscript.keep(size)
            axis, rest = axis + rest, 0
        elif item is None:
            subscript.shape.append(1)
        elif isinstance(item, slice):
            _slice(subscript, item, shape[axis])
            axis += 1
        elif isinstance(item, int):
            subscript.select(shapes.row(item, axis, shape[axis]), 1, 1)
            axis += 1
        else:
            _advanced(subscript, item, shape, axis)
            axis += _axes_of(item)
    return subscript


def _items(key: object) -> list[Any]:
    if isinstance(key, tuple):
        return list(key)
    if isinstance(key, list) and len(key) < LEGACY_LENGTH:
        for item in key:
            if item is None or item is Ellipsis or isinstance(item, slice | TensorBase) or from_data.is_sequence(item):
                return list(key)
            if from_data.is_array(item) and item.ndim:
                return list(key)
    return [key]


def _item(x: TensorBase, item: object) -> Part:
    """One part of a subscript: an int, a slice, None, an ellipsis, or a node of bools or of int64."""
    if item is None or item is Ellipsis or isinstance(item, slice):
        return item
    if isinstance(item, bool):
        return pointwise.full(item, Spec((), dtypes.bool_))
    if isinstance(item, int):
        return item
    if isinstance(item, TensorBase):
        node = item._node if item._storage.device is x._storage.device else _brought(item, x._storage.device)
    elif from_data.is_array(item):
        if item.ndim == 0 and item.dtype.kind in "iu":
            return int(item)
        is_float = item.dtype.kind == "f"  # As torch: an array is data, of which whole numbers are made.
        node = from_data.from_array(item.astype("int64") if is_float else item, None, x._storage.device)
    elif from_data.is_sequence(item):
        node = _listed(item, x._storage.device)
    elif hasattr(item, "__index__"):
        return whole(item)
    elif isinstance(item, str):
        raise TypeError("new(): invalid data type 'str'")
    else:
        raise RangeError(
            "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices "
            f"(got {type(item).__name__})"
        )
    if node.spec.dtype is dtypes.uint8:  # As torch: a mask.
        warnings.warn(BYTES, stacklevel=5)
        return arithmetic.cast(node, dtypes.bool_)
    if not node.spec.shape and node.spec.dtype.kind is dtypes.Kind.INT:
        node = arithmetic.cast(node, dtypes.int64)  # A single number may be of any dtype.
    if node.spec.dtype not in (dtypes.int64, dtypes.int32, dtypes.bool_):
        raise RangeError("tensors used as indices must be long, int, byte or bool tensors")
    if not node.spec.shape and node.spec.dtype is not dtypes.bool_:
        known = bounds.known_range(node)
        if known is not None and known.low == known.high:
            return known.low
    return node


def _brought(item: TensorBase, device: Device) -> Node:
    """An index tensor of device cpu may be used anywhere."""
    if not item._storage.device.is_host:
        raise RuntimeError(
            f"indices should be either on cpu or on the same device as the indexed tensor ({device.name})"
        )
    node: Node = transfer.transfer(item, device)._node
    return node


def _listed(item: Sequence[Any], device: Device) -> Node:
    flat: list[Any] = []
    kinds: set[Any] = set()
    shape = from_data.flatten(item, flat, kinds)
    if flat and all(isinstance(value, bool) for value in flat):
        dtype = dtypes.bool_
        if len(shape) == 1:  # The positions are known here: no device is asked.
            return _rows([index for index, value in enumerate(flat) if value], len(item), device)
    else:
        from_data.infer(kinds, nested=True)
        flat, dtype = [int(value) for value in flat], dtypes.int64
    return from_data.from_bytes(from_data.pack(flat, dtype), dtype, shape, device)


def _rows(positions: list[int], size: int, device: Device) -> Node:
    """The positions of a list of bools, marked with the size that the indexed axis must have."""
    node = from_data.from_bytes(from_data.pack(positions, dtypes.int64), dtypes.int64, (len(positions),), device)
    node.attrs = {**node.attrs, "mask": size}
    return node


def _axes_of(item: Part) -> int:
    """How many axes of the tensor a part of a subscript takes."""
    if item is None or item is Ellipsis:
        return 0
    if isinstance(item, Node) and item.spec.dtype is dtypes.bool_:
        return len(item.spec.shape)
    return 1


def _slice(subscript: Subscript, item: slice, size: int) -> None:
    rows = shapes.rows(item, size)
    subscript.select(rows.start, len(rows), rows.step)
    subscript.shape.append(len(rows))


def _advanced(subscript: Subscript, item: Node, shape: Shape, axis: int) -> None:
    own = item.spec.shape
    axis_of_result = len(subscript.shape)
    subscript.advanced[axis_of_result] = item
    if item.spec.dtype is dtypes.bool_:
        if not own:  # A new axis, of size 1 or 0.
            subscript.shape.append(1)
            return
        for offset, n in enumerate(own):
            if n != shape[axis + offset]:
                _raise_mask(own, offset, shape, axis)
            subscript.keep(n)
        return
    expected = item.attrs.get("mask", shape[axis])
    if expected != shape[axis]:
        _raise_mask((expected,), 0, shape, axis)
    subscript.keep(shape[axis])


def _raise_mask(mask: Shape, offset: int, shape: Shape, axis: int) -> None:
    raise RangeError(
        f"The shape of the mask {list(mask)} at index {offset} does not match the shape of the indexed tensor "
        f"{list(shape)} at index {axis + offset}"
    )


def laid_out(
    selected: Tensor, view: TensorBase, axes: Sequence[int], indices: Sequence[Node], start_axis: int
) -> Tensor:
    """What was read at index tensors, in memory in the order of what it was read from."""
    lead = broadcast_all([node.spec.shape for node in indices])
    steps = [step for axis, step in enumerate(strides_of(view)[0]) if axis not in axes]
    read = (*steps[:start_axis], *(0 for _ in lead), *steps[start_axis:])
    rows = (*(0 for _ in steps[:start_axis]), *strides(lead), *(0 for _ in steps[start_axis:]))
    shape = tuple(selected.shape)
    return memory_format.laid_out(selected, memory_format.elementwise(shape, ((shape, read), (shape, rows))))


def _view(x: TensorBase, subscript: Subscript) -> TensorBase:
    """What the basic part leaves, sharing memory; x itself where that is everything."""
    sizes, shape = tuple(subscript.sizes), tuple(subscript.shape)
    steps: Path = ()
    if sizes != x._spec_node().spec.shape:
        cut = {"starts": tuple(subscript.starts), "sizes": sizes, "steps": tuple(subscript.steps)}
        steps = ((movement.slice_, cut),)
    if shape != sizes:
        steps = (*steps, (movement.reshape, {"shape": shape}))
    return x._views(steps) if steps else x


def _positions(subscript: Subscript, device: Device) -> tuple[list[int], list[Node], int]:
    """Axes of the view, an index node for each, and the axis of the result where what they broadcast to stands."""
    axes: list[int] = []
    indices: list[Node] = []
    for axis, item in subscript.advanced.items():
        parts = _nonzero(item, device) if item.spec.dtype is dtypes.bool_ else [item]
        axes.extend(range(axis, axis + len(parts)))
        indices.extend(parts)
    ranked = [axis for axis, index in zip(axes, indices, strict=True) if index.spec.shape]
    dropped = [axis for axis in axes if axis not in ranked]  # A tensor of shape () counts as a number.
    left = [axis for axis in range(len(subscript.shape)) if axis not in dropped]
    order = [left.index(axis) for axis in ranked]
    together = order == list(range(order[0], order[0] + len(order))) if order else False
    return axes, indices, order[0] if together else 0


def _nonzero(mask: Node, device: Device) -> list[Node]:
    """The coordinates where a mask holds. Reads their number from the device."""
    shape = mask.spec.shape
    if mask.op is pointwise.const and not shape:
        return [pointwise.full(0, Spec((int(mask.attrs["value"]),), dtypes.int64))]
    positions = nonzero_positions(indexing.shaped(mask, (prod(shape),)), device)
    return masks.coordinates(positions, shape) if shape else [positions]


def nonzero_positions(mask: Node, device: Device) -> Node:
    """The positions where a flat mask holds, in order. Reads their number from the device."""
    if mask.spec.shape == (0,):
        return pointwise.full(0, Spec((0,), dtypes.int64))
    ends = TensorBase._new(masks.counted(mask), device)
    return masks.held(ends._node, read_last(ends))


def read_last(ends: TensorBase) -> int:
    """The last of a vector of int64. Waits for the device."""
    node, n = ends._node, ends.shape[0]
    last = ends._new(movement.slice_(node, starts=(n - 1,), sizes=(1,), steps=(1,)), ends._storage.device)
    return int(conversion.numbers(last._bytes(), dtypes.int64)[0])


def _only_mask(subscript: Subscript) -> tuple[Node, int] | None:
    """The mask and its axis, where a mask with axes is the whole advanced part."""
    if len(subscript.advanced) != 1:
        return None
    ((axis, item),) = subscript.advanced.items()
    return (item, axis) if item.spec.dtype is dtypes.bool_ and item.spec.shape else None


def _masked(view: Node, mask: Node, axis: int, value: Node) -> Node | None:
    """The view after view[mask] = value, where value is the same for all chosen positions; None where it is not."""
    after = view.spec.shape[axis + len(mask.spec.shape) :]
    value_shape = value.spec.shape
    if len(value_shape) > len(after):
        split = len(value_shape) - len(after) - 1
        if value_shape[split] != 1:
            return None
        value = indexing.shaped(value, (*value_shape[:split], *(1 for _ in mask.spec.shape), *value_shape[split + 1 :]))
    chosen = indexing.shaped(mask, (*(1 for _ in range(axis)), *mask.spec.shape, *(1 for _ in after)))
    if not indexing.fits(value.spec.shape, view.spec.shape):
        return None
    value = arithmetic.broadcast_to(value, view.spec.shape)
    return pointwise.where(arithmetic.broadcast_to(chosen, view.spec.shape), value, view)


def write_view(view: TensorBase, value: object) -> None:
    """Makes `value` what a view shows."""
    if _is_same(view, value):
        view._check_writable()
    else:
        view._assign(_overwritten(view._node, _copied(_value(view, value), tuple(view.shape))))


def _value(view: TensorBase, value: object, *, strict: bool = False) -> Node:
    """The value as a node of the view's dtype; `strict` allows no other dtype of a tensor."""
    if isinstance(value, TensorBase):
        if not strict and prod(value.shape) == prod(view.shape):  # torch looks no further at what is grown.
            overlap.check(view, value)
        node = value._node
        if value._storage.device is not view._storage.device:
            node = transfer.transfer(value, view._storage.device)._node
        if strict and node.spec.dtype is not view.dtype:
            raise DTypeError(
                "Index put requires the source and destination dtypes match, got "
                f"{view.dtype.name} for the destination and {node.spec.dtype.name} for the source."
            )
        return pointwise.copy(node) if node.spec.dtype is view.dtype else arithmetic.cast(node, view.dtype)
    if hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
        value = value.item()
    kind: object = type(value)
    if not isinstance(value, NUMBERS):
        if kind is not complex:
            raise TypeError(f"can't assign a {type(value).__name__} to a torch.{view.dtype.name} tensor")
        return arithmetic.stored(value, view.dtype)  # type: ignore[arg-type]  # Number is what most dtypes hold.
    return arithmetic.stored(numbers.rounded(value, view.dtype), view.dtype)


def _copied(node: Node, shape: Shape) -> Node:
    """Broadcast to the shape of what it is written to."""
    source_shape = indexing.without_leading(node.spec.shape, len(shape))
    if len(source_shape) > len(shape):
        raise ShapeError(
            f"The number of elements in the target shape {list(shape)} is smaller than that of the value's shape "
            f"{list(node.spec.shape)}"
        )
    if not indexing.fits(source_shape, shape):
        padded = (1,) * (len(shape) - len(source_shape)) + source_shape
        axis, have, want = next(
            (a, m, n) for a, (m, n) in enumerate(zip(padded, shape, strict=False)) if m not in (1, n)
        )
        raise ShapeError(
            f"The expanded size of the tensor ({want}) must match the existing size ({have}) at non-singleton "
            f"dimension {axis}.  Target sizes: {list(shape)}.  Tensor sizes: {list(node.spec.shape)}"
        )
    return arithmetic.broadcast_to(indexing.shaped(node, source_shape), shape)


def _overwritten(before: Node, value: Node) -> Node:
    """The value; what the old one was made of gets a gradient of 0 and not none at all, as in torch."""
    if not (before.requires and value.requires and thread_state.grad):
        return value
    rank = len(before.spec.shape)
    return ops.write_slice(before, value, starts=(0,) * rank, steps=(1,) * rank)


def _is_same(view: TensorBase, value: object) -> bool:
    """Whether the value is the very memory that it would be written to, as after `x[i] += y`."""
    if not isinstance(value, TensorBase) or value._storage is not view._storage or value._history is not view._history:
        return False
    view._settle()
    own = view._path
    return value._path in (own, (*own, (movement.reshape, {"shape": tuple(view.shape)})))
