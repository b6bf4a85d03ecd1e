"""Memory that tensors of device cpu have in common with NumPy and other libraries, and addresses.

On other devices there is no memory of the host to share: arrays are copies, and an address is a name.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from pywebgpu import devices, dtypes
from pywebgpu.dtypes import DType
from pywebgpu.ir import observer
from pywebgpu.ir.graph import Spec, thread_state
from pywebgpu.ir.observer import share
from pywebgpu.runtime import fixed_memory
from pywebgpu.support import shapes
from pywebgpu.tensor import copies, from_data, layout, memory_format
from pywebgpu.tensor.base import TensorBase
from pywebgpu.tensor.layout import strides_of
from pywebgpu.tensor.tensor import Tensor
from pywebgpu.tensor.view import Path

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pywebgpu.devices.base import Device
    from pywebgpu.runtime.storage import Storage

READ_ONLY = (
    "The given NumPy array is not writable, and PyTorch does not support non-writable tensors. This means writing to "
    "this tensor will result in undefined behavior. You may want to copy the array to protect its data or make it "
    "writable before converting it to a tensor. This type of warning will be suppressed for the rest of this program."
)
BUFFER_READ_ONLY = READ_ONLY.replace("NumPy array", "buffer").replace("the array", "the buffer")
always_warns = share("warnings that come each time", [False])  # torch.set_warn_always
_warned: set[str] = set()


class DeviceAddress:
    """Says which memory of a device something is. It is equal to that of the same memory, and no address of the host:
    who uses it as one gets a TypeError."""

    __slots__ = ("name", "offset")

    def __init__(self, name: int, offset: int = 0) -> None:
        self.name, self.offset = name, offset

    def __add__(self, n_bytes: int) -> DeviceAddress:
        return DeviceAddress(self.name, self.offset + n_bytes)

    __radd__ = __add__

    def __sub__(self, other: int | DeviceAddress) -> Any:
        """As far as they are addresses of one memory, the bytes between them."""
        if isinstance(other, DeviceAddress):
            return (self.name << 40) + self.offset - (other.name << 40) - other.offset
        return self + -other

    def __mod__(self, alignment: int) -> int:
        return self.offset % alignment

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceAddress) and (self.name, self.offset) == (other.name, other.offset)

    def __lt__(self, other: DeviceAddress) -> bool:
        return (self.name, self.offset) < (other.name, other.offset)

    def __hash__(self) -> int:
        return hash((self.name, self.offset))

    def __bool__(self) -> bool:
        return True

    def __index__(self) -> int:
        raise TypeError("this memory is a device's, and has no address on the host: copy the tensor by .cpu() first")

    def __repr__(self) -> str:
        return f"<memory {self.name:#x} of a device, byte {self.offset}>"


shown: WeakSet[Storage] = WeakSet()  # of tensors that became arrays of NumPy's


def can_share(device: Device) -> bool:
    """Whether a device's values are NumPy's arrays."""
    return hasattr(device, "hold")


def address_of(storage: Storage) -> Any:
    """Where a storage's memory begins: an address of the host, 0 where there is none, or a name for a device's."""
    device = storage.device
    if not device.has_values or 0 in storage.node.spec.shape:
        return 0
    if can_share(device):
        observer.leave("it asks where a tensor lies in memory")
        return fixed_memory.address(storage)
    return DeviceAddress(id(storage))


def array_of(tensor: TensorBase) -> NDArray[Any]:
    """An array that shows a tensor's memory. Of a device without arrays, and of a view that NumPy has not, a copy."""
    import numpy as np

    storage = tensor._storage
    if not can_share(storage.device):
        return _copied(tensor)
    memory = fixed_memory.share(storage)
    array = memory
    for op, attrs in tensor._path:
        array = op.reference(np, array, **attrs)
        if array.size and not np.may_share_memory(array, memory):
            return _copied(tensor)
    return array


def viewed(tensor: Tensor, dtype: DType) -> Tensor | None:
    """The memory of a tensor of device cpu as another dtype, without history; None where there is none to show.

    A captured step takes a copy, which `keep_alike` is to be called with: where its values lie is another memory in
    each run.
    """
    if not _has_views(tensor, dtype):
        return None
    if thread_state.observer is not None:
        if tensor.is_contiguous() and tensor.dtype.itemsize == dtype.itemsize == 4:
            return None
        thread_state.observer.leave("it views memory as a dtype of another size, or with gaps")
    shown = tensor_of(_array_as(tensor, dtype), tensor._storage.device)
    return memory_format.same(shown, tensor) if dtype.itemsize == tensor.dtype.itemsize else shown


def keep_alike(copy: TensorBase, tensor: TensorBase) -> None:
    """Before one of both is written to in a captured step, and where both outlive it, `copy` shows the memory of
    `tensor`, as it would without the step."""
    if thread_state.observer is None or not _has_views(tensor, copy.dtype):
        return
    path, dtype = tensor._path, copy.dtype

    def show(copied: Any, source: Any) -> None:
        fixed_memory.show(copied, _array_as(Tensor._of(source, path), dtype))

    thread_state.observer.note_copy(copy._storage, tensor._storage, show)


def _has_views(tensor: TensorBase, dtype: DType) -> bool:
    device: Any = tensor._storage.device
    return can_share(device) and 0 not in tensor.shape and device.is_native(dtype) and device.is_native(tensor.dtype)


def _array_as(tensor: TensorBase, dtype: DType) -> NDArray[Any]:
    """An array that shows a tensor's memory as another dtype."""
    import numpy as np

    memory = fixed_memory.share(tensor._storage)
    if any(op is layout.laid_out for op, _ in tensor._path):  # Its strides are not those of the memory.
        array = array_of(tensor)
        is_row = array.dtype.itemsize == dtype.itemsize or array.strides[-1] == array.dtype.itemsize
        return (array if is_row else np.ascontiguousarray(array)).view(dtype.name)
    steps, start = strides_of(tensor)
    flat = memory.reshape(-1).view(tensor.dtype.name)[start:]
    n_bytes = [step * tensor.dtype.itemsize for step in steps]
    return np.lib.stride_tricks.as_strided(flat, tuple(tensor.shape), n_bytes).view(dtype.name)


def _copied(tensor: TensorBase) -> NDArray[Any]:
    import numpy as np

    return np.frombuffer(bytearray(tensor._bytes()), tensor.dtype.name).reshape(tensor.shape)


def tensor_of(array: NDArray[Any], device: Device) -> Tensor:
    """A tensor of device cpu that shows an array's memory. One that may not be written to is warned of, once.

    Raises: TypeError for a dtype that is not known here; ValueError for strides, or an order of bytes, of no tensor.
    """
    import numpy as np

    dtype = _dtype(array)
    if any(step % array.itemsize for step in array.strides):
        raise ValueError(
            "given numpy array strides not a multiple of the element byte size. Copy the numpy array to reallocate the "
            "memory."
        )
    if any(step < 0 for step in array.strides):
        raise ValueError(
            "At least one stride in the given numpy array is negative, and tensors with negative strides are not "
            "currently supported. (You can probably work around this by making a copy of your array  with "
            "array.copy().) "
        )
    if not array.dtype.isnative:
        raise ValueError(
            "given numpy array has byte order different from the native byte order. Conversion between byte orders is "
            "currently not supported."
        )
    if not array.flags.writeable:
        warn_once(READ_ONLY)
    plain = np.asarray(array)  # No class of a program's own.
    steps = tuple([step // array.itemsize for step in array.strides])
    if plain.flags.c_contiguous:
        row_major = not plain.size or steps == shapes.strides(plain.shape)
        path: Path = () if row_major else ((layout.laid_out, {"strides": steps}),)  # of axes of size 1
        return _new(fixed_memory.of_array(plain, Spec(plain.shape, dtype), device), path)
    span = 1 + sum([(n - 1) * step for n, step in zip(array.shape, steps, strict=True)])
    flat = np.lib.stride_tricks.as_strided(plain, (span,), (array.itemsize,))
    flat_tensor = _new(fixed_memory.of_array(flat, Spec((span,), dtype), device))
    path = copies.strided(flat_tensor, array.shape, steps, 0)._path
    is_known = layout.through((span,), path)[0] == steps  # Those of axes of size 1 are not.
    return _new(flat_tensor._storage, path if is_known else (*path, (layout.laid_out, {"strides": steps})))


def of_buffer(data: memoryview, dtype: DType, device: Device) -> Tensor:
    """A vector that shows a buffer's memory."""
    import numpy as np

    array = np.frombuffer(data, dtype.name)
    if not array.flags.writeable:
        warn_once(BUFFER_READ_ONLY)
    return _new(fixed_memory.of_array(array, Spec(array.shape, dtype), device))


def _new(storage: Storage, path: Path = ()) -> Tensor:
    """A tensor that was made, and is no view of another."""
    tensor: Tensor = Tensor._of(storage, path)
    tensor._history = None
    return tensor


def _dtype(array: NDArray[Any]) -> DType:
    dtype = dtypes.BY_NAME.get(array.dtype.newbyteorder("=").name)
    if dtype is None:
        raise TypeError(from_data.UNKNOWN.format(array.dtype, ", ".join(dtypes.BY_NAME)))
    return dtype


def warn_once(text: str) -> None:
    """Once in a program."""
    if always_warns[0] or text not in _warned:
        _warned.add(text)
        warnings.warn(text, stacklevel=_outside())


def _outside() -> int:
    """How many calls of this library stand between here and the program."""
    import sys

    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals["__name__"].startswith("pywebgpu."):
        frame, level = frame.f_back, level + 1
    return level


def distance(tensor: TensorBase) -> int:
    """Bytes from the begin of a tensor's memory to its first element."""
    tensor._settle()
    return strides_of(tensor)[1] * tensor.dtype.itemsize


def host() -> Device:
    """The device whose memory is the host's."""
    return devices.open_device("cpu")
