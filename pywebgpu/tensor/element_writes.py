"""Numbers that Python reads and writes one by one, as in `x[i, j] = 1.0` and `x[i] += 1`. A node for each would take a
hundred times as long.

Where the value lies in an array of device cpu which nobody else needs, they go there. Others wait on the host until the
value is read, and are then written at once.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any

from pywebgpu import dtypes
from pywebgpu.composites import arithmetic, indexing, scattering
from pywebgpu.devices.base import Device
from pywebgpu.dtypes import Kind
from pywebgpu.ir.graph import Node, host, thread_state, used
from pywebgpu.ir.walk import overwrite
from pywebgpu.ops import indexing as ops
from pywebgpu.runtime import executor, state
from pywebgpu.runtime.storage import Storage
from pywebgpu.support.numbers import HELD
from pywebgpu.support.shapes import strides
from pywebgpu.tensor import from_data, history, view
from pywebgpu.tensor.base import TensorBase

if TYPE_CHECKING:
    from pywebgpu.tensor.tensor import Tensor

MOST = 1 << 14  # elements that wait
_DTYPES = frozenset((dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64, dtypes.uint8, dtypes.bool_))


class ElementWrites(dict[int, Any]):
    """The last number written to each element, by the element's own number. See Storage.elements."""

    __slots__ = ()

    def written(self, base: Node, device: Device) -> Node:
        """The value after the writes. base: the value before. As many as a power of two, so that Programs are few."""
        spec, count = base.spec, prod(base.spec.shape)
        if len(self) == 1 and count <= view.SMALL:
            ((position, value),) = self.items()
            return scattering.with_element(base, arithmetic.stored(value, spec.dtype), host(position, dtypes.int32))
        positions, values = [*self], [*self.values()]
        missing = (1 << (len(values) - 1).bit_length()) - len(values)
        positions += positions[-1:] * missing
        values += values[-1:] * missing
        rows, source = (
            from_data.from_bytes(from_data.pack(numbers, dtype), dtype, shape, device)
            for numbers, dtype, shape in (
                (positions, dtypes.int32, (len(values),)),
                (values, spec.dtype, (len(values), 1)),
            )
        )
        return indexing.shaped(ops.scatter(indexing.shaped(base, (count, 1)), rows, source, mode="set"), spec.shape)


def put(tensor: TensorBase, key: object, value: float) -> bool:
    """Writes a number of Python to the element that a subscript names. Whether that was possible here: to a tensor that
    shows all of its memory, and that no gradient concerns."""
    keys = (key,) if type(key) is int else key
    if type(keys) is not tuple or tensor._path or tensor._history is not None or tensor._base is not None:
        return False
    storage = tensor._storage
    if type(storage) is not Storage or storage.whole is not None or tensor._selected is not None or tensor._uncounted:
        return False
    node = storage._node
    shape, dtype = node.spec
    if len(keys) != len(shape):
        return False
    offset = 0
    for position, size, step in zip(keys, shape, strides(shape), strict=True):
        if type(position) is not int or not -size <= position < size:
            return False
        offset += (position if position >= 0 else position + size) * step
    low, high = HELD[dtype]
    if dtype not in _DTYPES or not low <= value <= high:
        return False
    if _is_watched():
        return False
    elements = storage.elements
    if elements is None:
        if node.requires or not storage.device.has_values:
            return False
        if (
            node.buffer is not None
            and hasattr(storage.device, "write_element")
            and _write(storage, offset, "set", value)
        ):
            return True
        overwrite(node)
        elements = storage.elements = ElementWrites()
        storage.wait()
    elements[offset] = value if dtype.kind is Kind.FLOAT else int(value)
    storage.count_write()
    if len(elements) >= MOST:
        storage.write_elements()
        executor.record(storage)
    return True


def change(tensor: TensorBase, name: str, value: float) -> bool:
    """`add`, `sub`, `mul` or `div`, by a number and in place, of the only element that a view shows. Whether that was
    possible here."""
    storage, base = tensor._storage, tensor._base
    if tensor._history is not None or tensor._uncounted or tensor._of_several is not None or _is_watched():
        return False
    if base is not None and (base._flag or base._selected is not None):
        return False
    if type(storage) is not Storage or storage.whole is not None:
        return False
    node = storage.node
    shape, dtype = node.spec
    low, high = HELD[dtype]
    fits = type(value) is int and name != "div" if dtype.kind is not Kind.FLOAT else True
    if node.requires or dtype not in _DTYPES or not fits or not low <= value <= high:
        return False
    number = view.element_number(shape, tensor._path)
    if number is None:
        return False
    if node.buffer is None:
        executor.submit(storage.device)
    return _write(storage, number, name, value)


def read(tensor: TensorBase) -> float | None:
    """The only element that a view of an array of device cpu shows; None where it is read as any value is."""
    storage = tensor._storage
    if storage.whole is not None or not hasattr(storage.device, "element"):
        return None
    shape, dtype = storage.node.spec
    number = view.element_number(shape, tensor._path) if dtype in _DTYPES else None
    if number is None:
        return None
    element: float = storage.device.element(executor.force(storage).buffer, number)
    return element


def _is_watched() -> bool:
    """Whether somebody is to hear of each write."""
    return bool(used.origins or used.inference or thread_state.observer is not None or history.kept is not None)


def _write(storage: Storage, number: int, name: str, value: float) -> bool:
    """Writes to an element of an array of device cpu. False where work that waits reads it, or somebody else has it."""
    device: Any = storage.device
    with state.default.lock:
        home = storage.home
        if (
            home is None
            or storage._node.buffer is not home
            or not home.may_be_written
            or not device.lies_in_order(home)
        ):
            return False
        for queue in state.default.queues.get(storage.device, ()):
            if any(waiting() is not None for waiting in queue.storages.values()):
                return False
        storage.renew(home)  # An interrupt that follows finds it written, with what was there.
        device.write_element(home, number, name, value)
    return True


# Python's functions of elements: on device cpu alone.


def apply_(input: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    """callable(x) for each element x, in place."""
    return _computed("apply_", callable, input)


def map_(input: Tensor, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
    """callable(x, y) for each element and that of another tensor, in place."""
    return _computed("map_", callable, input, tensor)


def map2_(input: Tensor, x: Tensor, y: Tensor, callable: Callable[[Any, Any, Any], Any]) -> Tensor:
    """callable(element, its x, its y), in place."""
    return _computed("map2_", callable, input, x, y)


def _computed(name: str, function: Callable[..., Any], input: Tensor, *others: Tensor) -> Tensor:
    if any(not tensor._storage.device.is_host for tensor in (input, *others)):
        raise TypeError(f"{name} is only implemented on CPU tensors")
    if any(tensor.requires_grad for tensor in (input, *others)):
        raise RuntimeError(f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}().")
    lists = [tensor.expand(input.shape).reshape(-1).tolist() for tensor in (input, *others)]
    values = input.new_tensor(list(map(function, *lists)))
    return input.copy_(values.reshape(input.shape))
