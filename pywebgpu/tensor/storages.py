"""torch.UntypedStorage, torch.TypedStorage and their older names: the memory of tensors, as bytes and as elements.

On device cpu what is written here is written to the tensors. Elsewhere it can be read, and says which tensors share it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, Self
from weakref import WeakKeyDictionary, WeakValueDictionary

from pywebgpu import devices, dtypes
from pywebgpu.dtypes import DType
from pywebgpu.support.shapes import strides
from pywebgpu.tensor import copies, create, host_memory
from pywebgpu.tensor.conversion import LEGACY as LEGACY_TENSORS
from pywebgpu.tensor.memory_format import all_of, in_memory
from pywebgpu.tensor.methods import named_by_numpy
from pywebgpu.tensor.tensor import Tensor

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pywebgpu.runtime import storage as memory
    from pywebgpu.tensor.base import TensorBase
    from pywebgpu.tensor.factory_options import DeviceLike

_known: WeakValueDictionary[int, UntypedStorage] = WeakValueDictionary()  # by the id of the memory
_sizes: WeakKeyDictionary[memory.Storage, int] = WeakKeyDictionary()  # what resize_ said


class UntypedStorage:
    """Bytes: all of a tensor's memory, or a part of it. UntypedStorage(3) has memory of its own, UntypedStorage([1, 2])
    these bytes."""

    __module__ = "torch.storage"
    is_sparse = is_sparse_csr = is_cuda = is_hpu = False
    filename = None

    _whole: Tensor  # shows the memory
    _part: slice

    def __init__(self, *data: Any, device: DeviceLike = None) -> None:
        items = data[0] if data and not hasattr(data[0], "__index__") else [0] * (int(data[0]) if data else 0)
        self._whole, self._part = create.tensor(items, dtype=dtypes.uint8, device=device or "cpu"), slice(None)

    @classmethod
    def _of(cls, tensor: TensorBase) -> UntypedStorage:
        """All memory of a tensor. As long as somebody has it, it is one object."""
        known = _known.get(id(tensor._storage))
        if known is None or known._whole._storage is not tensor._storage:
            known = _known[id(tensor._storage)] = cls.__new__(cls)
            known._whole, known._part = all_of(tensor), slice(None)
        return known

    @classmethod
    def _of_array(cls, array: NDArray[Any]) -> UntypedStorage:
        return cls._of(host_memory.tensor_of(array, host_memory.host()))

    @classmethod
    def from_file(cls, filename: str | os.PathLike[str], shared: bool = False, nbytes: int = 0) -> UntypedStorage:
        """The bytes of a file, read when they are needed. shared: what is written is written to the file."""
        import numpy as np

        mode: Any = "c" if not shared else "r+" if os.path.exists(filename) else "w+"
        return cls._of_array(np.memmap(filename, "uint8", mode, shape=(nbytes,) if nbytes else None))

    @classmethod
    def from_buffer(
        cls, buffer: Any, byte_order: str = "native", count: int = -1, offset: int = 0, *, dtype: DType = dtypes.uint8
    ) -> UntypedStorage:
        """A copy of the bytes of a buffer's elements."""
        return cls(list(_in_order(buffer, byte_order, count, offset, dtype)))

    # The memory

    def _array(self) -> NDArray[Any]:
        """The bytes in memory. Raises RuntimeError where they cannot be written to."""
        self._require_memory()
        if not host_memory.can_share(self._whole._storage.device) or not self._is_native():
            raise RuntimeError(f"memory of {self.device} cannot be written to by bytes: write to a tensor")
        array: NDArray[Any] = host_memory.array_of(in_memory(self._whole)).view("uint8")
        return array[self._part]

    def _is_native(self) -> bool:
        device: Any = self._whole._storage.device
        return bool(device.is_native(self._whole.dtype))

    def _as_tensor(self, dtype: DType | None) -> Tensor:
        """All of it as a vector of a dtype: of the same memory where it can be."""
        dtype = dtype or dtypes.uint8
        if dtype is self._whole.dtype and self._part == slice(None):
            return in_memory(self._whole).detach()
        device: Any = self._whole._storage.device
        n_bytes = self.nbytes() // dtype.itemsize * dtype.itemsize
        if host_memory.can_share(device) and device.is_native(dtype) and self._is_native():
            return host_memory.tensor_of(self._array()[:n_bytes].view(dtype.name), device)
        if not device.has_values:
            return create.empty(n_bytes // dtype.itemsize, dtype=dtype, device=self.device)
        return create.frombytes(self._bytes()[:n_bytes], dtype, (n_bytes // dtype.itemsize,), self.device)

    def _bytes(self) -> bytes:
        return in_memory(self._whole).tobytes()[self._part][: self.nbytes()]

    def data_ptr(self) -> Any:
        """Where it begins: an address on device cpu, 0 where there is no memory, else a name that is no address."""
        self._require_memory()
        begin = host_memory.address_of(self._whole._storage) if self.nbytes() else 0
        return begin + (self._part.start or 0) if begin else 0

    def nbytes(self) -> int:
        """How many bytes it has."""
        size = _sizes.get(self._whole._storage)
        if size is not None and self._part == slice(None):
            return size
        shape, dtype = self._whole._storage.node.spec
        return len(range(*self._part.indices(prod(shape) * dtype.itemsize)))

    size = __len__ = __sizeof__ = nbytes

    def resize_(self, size: int) -> Self:
        """Says how many bytes there are from now on. Tensors that show it keep what they have until `set_`."""
        self._require_memory()
        _sizes[self._whole._storage] = int(size)
        return self

    def resizable(self) -> bool:
        """Whether it may get another size: not where an array of NumPy's shows it."""
        return self._whole._storage not in host_memory.shown

    # Elements

    def _require_memory(self) -> None:
        """Raises RuntimeError of a tensor whose class computes it: only device meta has storages without memory."""
        if not self._whole._storage.device.has_storages:
            raise RuntimeError("Attempted to access the data pointer on an invalid python storage.")

    def _require_values(self) -> None:
        self._require_memory()
        if not self._whole._storage.device.has_values:
            raise NotImplementedError(f"Not available for '{self.device.type}' device type")

    def _share_fd_cpu_(self, *args: Any) -> Any:
        name = sys._getframe().f_code.co_name
        if not host_memory.can_share(self._whole._storage.device):
            raise RuntimeError(f"{name}: only available on CPU")
        raise NotImplementedError(f"{name}: other processes share no memory here")

    _share_filename_cpu_ = _share_fd_cpu_

    def _write_file(self, file: Any, is_real_file: bool = True, save_size: bool = True, element_size: int = 1) -> None:
        """Writes its bytes into a file, after how many elements there are, as eight bytes, if save_size."""
        self._require_memory()
        if not self._whole._storage.device.has_values:
            raise NotImplementedError("Cannot copy out of meta tensor; no data!")
        count = (self.nbytes() // element_size).to_bytes(8, "little") if save_size else b""
        file.write(count + self._bytes())

    def __getitem__(self, index: Any) -> Any:
        self._require_values()
        if not isinstance(index, slice):
            return self._bytes()[index]
        part = range(*self._part.indices(self._full()))[index]
        if part.step != 1:
            raise RuntimeError(f"Trying to slice with a step of {part.step}, but only a step of 1 is supported")
        part_of_storage = UntypedStorage.__new__(UntypedStorage)
        part_of_storage._whole, part_of_storage._part = self._whole, slice(part.start, part.stop)
        return part_of_storage

    def _full(self) -> int:
        shape, dtype = self._whole._storage.node.spec
        return prod(shape) * dtype.itemsize

    def __setitem__(self, index: int | slice, value: Any) -> None:
        self._array()[index] = value

    def __iter__(self) -> Iterator[int]:
        return iter(self._bytes())

    def tolist(self) -> list[int]:
        """The bytes as numbers."""
        return list(self._bytes())

    def fill_(self, value: int) -> Self:
        """One byte everywhere."""
        self._array()[...] = value
        return self

    def copy_(self, source: UntypedStorage, non_blocking: bool | None = None) -> Self:
        """The bytes of another one."""
        self._array()[...] = list(source._bytes())
        return self

    def clone(self) -> UntypedStorage:
        """One with memory of its own."""
        return self._of(create.frombytes(self._bytes(), dtypes.uint8, (self.nbytes(),), self.device))

    def to(self, device: DeviceLike, non_blocking: bool = False) -> UntypedStorage:
        """On a device; itself if it is there."""
        if devices.device(device or "cpu") == self.device:
            return self
        return self._of(self._as_tensor(None).to(device))

    def cpu(self) -> UntypedStorage:
        return self.to("cpu")

    def untyped(self) -> UntypedStorage:
        """Itself."""
        return self

    _untyped = untyped

    # Facts

    @property
    def device(self) -> devices.device:
        return self._whole.device

    @property
    def _cdata(self) -> int:
        return id(self._whole._storage)

    def element_size(self) -> int:
        return 1

    def get_device(self) -> int:
        return self._whole.get_device()

    def type(self, dtype: object = None, non_blocking: bool = False) -> str:
        return "torch.storage.UntypedStorage"

    def is_shared(self) -> bool:
        return False

    def is_pinned(self, device: object = None) -> bool:
        return False

    def share_memory_(self) -> Self:
        if not self._whole._storage.device.has_values:
            raise RuntimeError("share_memory_: only available on CPU")
        return self

    def pin_memory(self, device: object = None) -> Self:
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UntypedStorage) and (self._cdata, self._part) == (other._cdata, other._part)

    def __hash__(self) -> int:
        return hash(self._cdata)

    def __deepcopy__(self, memo: dict[Any, Any]) -> UntypedStorage:
        if id(self) not in memo:
            memo[id(self)] = self.clone()
        copied: UntypedStorage = memo[id(self)]
        return copied

    def __repr__(self) -> str:
        body = "..." if not self._whole._storage.device.has_values else "\n".join(f" {byte}" for byte in self) or " "
        return f"{body}\n[torch.storage.UntypedStorage(device={self.device}) of size {self.nbytes()}]"


def _in_order(buffer: Any, byte_order: str, count: int, offset: int, dtype: DType) -> bytes:
    """The bytes of a buffer's elements, in the order of this machine."""
    if byte_order not in ("big", "little", "native"):
        raise ValueError(f"invalid byte_order '{byte_order}' (expected 'big', 'little', or 'native')")
    held, size = bytes(memoryview(buffer).cast("B")), dtype.itemsize
    if not 0 <= offset <= len(held):
        raise ValueError(
            f"offset must be non-negative and no greater than buffer length ({len(held)}), but got {offset}"
        )
    held = held[offset:]
    if count < 0 and len(held) % size:
        raise ValueError(f"buffer size ({len(held)}) must be a multiple of element size ({size})")
    if count * size > len(held):
        raise ValueError(
            f"buffer has only {len(held) // size} elements after offset {offset}, but specified a size of {count}"
        )
    held = held if count < 0 else held[: count * size]
    if dtype is dtypes.bool_:
        return bytes(map(bool, held))
    if byte_order in ("native", sys.byteorder):
        return held
    size //= 2 if dtype.is_complex else 1
    return b"".join(held[start : start + size][::-1] for start in range(0, len(held), size))


class TypedStorage:
    """Elements of a dtype in memory. TypedStorage(3, dtype=...) has memory of its own, TypedStorage([1, 2]) these."""

    __module__ = "torch.storage"
    is_sparse = is_cuda = is_hpu = False

    def __init__(
        self,
        *data: Any,
        wrap_storage: UntypedStorage | None = None,
        dtype: DType | None = None,
        device: DeviceLike = None,
        _internal: bool = False,
    ) -> None:
        self.dtype = dtype or dtypes.default()
        if wrap_storage is None:
            items = data[0] if data and not hasattr(data[0], "__index__") else [0] * (int(data[0]) if data else 0)
            wrap_storage = UntypedStorage._of(create.tensor(items, dtype=self.dtype, device=device or "cpu"))
        self._untyped_storage = wrap_storage

    @classmethod
    def _of(cls, tensor: TensorBase) -> TypedStorage:
        return cls(wrap_storage=UntypedStorage._of(tensor), dtype=tensor.dtype)

    def _flat(self) -> Tensor:
        return self._untyped_storage._as_tensor(self.dtype)

    def _as_tensor(self, dtype: DType | None) -> Tensor:
        """As of an untyped one, whose dtype is to be said. Raises RuntimeError for another one."""
        if dtype not in (None, self.dtype):
            raise RuntimeError(
                f"Expected a Storage of type {dtype.title} or an UntypedStorage, but got {self.dtype.title}"
            )
        return self._flat()

    def untyped(self) -> UntypedStorage:
        """Its bytes."""
        return self._untyped_storage

    def nbytes(self) -> int:
        """How many bytes it has."""
        return self._untyped_storage.nbytes()

    def size(self) -> int:
        """How many elements it has."""
        return self.nbytes() // self.dtype.itemsize

    __len__ = _size = size

    def data_ptr(self) -> Any:
        """As of its bytes."""
        return self._untyped_storage.data_ptr()

    _data_ptr = data_ptr

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        self._untyped_storage._require_values()
        return self._flat()[index].item()

    def __setitem__(self, index: Any, value: Any) -> None:
        self._flat()[index] = value

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def tolist(self) -> list[Any]:
        """The elements as numbers. Raises NotImplementedError for memory without values."""
        if not self._untyped_storage._whole._storage.device.has_values:
            raise NotImplementedError(f"Not available for '{self.device.type}' device")
        numbers: list[Any] = self._flat().tolist()
        return numbers

    def fill_(self, value: float) -> Self:
        """One number everywhere."""
        self._flat().fill_(value)
        return self

    def copy_(self, source: TypedStorage, non_blocking: bool | None = None) -> Self:
        """The elements of another one."""
        self._flat().copy_(source._flat())
        return self

    def clone(self) -> TypedStorage:
        """One with memory of its own."""
        return self._of(self._flat().clone())

    def resizable(self) -> bool:
        return self._untyped_storage.resizable()

    def resize_(self, size: int) -> Self:
        """Says how many elements there are from now on."""
        self._untyped_storage.resize_(size * self.dtype.itemsize)
        return self

    def to(self, device: DeviceLike, non_blocking: bool = False) -> TypedStorage:
        return TypedStorage(wrap_storage=self._untyped_storage.to(device), dtype=self.dtype)

    def cpu(self) -> TypedStorage:
        return self.to("cpu")

    def _to(self, dtype: DType) -> TypedStorage:
        return self._of(self._flat().clone().to(dtype))

    def type(self, dtype: object = None, non_blocking: bool = False) -> Any:
        """The name of its type; or its elements as another."""
        if dtype is None:
            return f"torch.{self._kind()}"
        dtype_of_kind: Any = dtype if isinstance(dtype, DType) else getattr(dtype, "dtype", None)
        return self._to(dtype_of_kind or LEGACY_NAMES[str(dtype).rpartition(".")[2]])

    def _kind(self) -> str:
        return LEGACY[self.dtype].name

    pickle_storage_type = _kind

    @property
    def device(self) -> devices.device:
        return self._untyped_storage.device

    @property
    def _cdata(self) -> int:
        return self._untyped_storage._cdata

    filename = property(lambda self: self._untyped_storage.filename)

    def element_size(self) -> int:
        return self.dtype.itemsize

    _element_size = element_size

    def _write_file(self, *args: Any) -> None:
        self._untyped_storage._write_file(*args)

    def _share_fd_cpu_(self, *args: Any) -> Any:
        return self._untyped_storage._share_fd_cpu_(*args)

    _share_filename_cpu_ = _share_fd_cpu_

    def get_device(self) -> int:
        return self._untyped_storage.get_device()

    def is_shared(self) -> bool:
        return False

    def is_pinned(self, device: object = None) -> bool:
        return False

    def share_memory_(self) -> Self:
        self._untyped_storage.share_memory_()
        return self

    def __deepcopy__(self, memo: dict[Any, Any]) -> TypedStorage:
        return TypedStorage(wrap_storage=self._untyped_storage.__deepcopy__(memo), dtype=self.dtype)

    def __repr__(self) -> str:
        values = (
            "..."
            if not self._untyped_storage._whole._storage.device.has_values
            else "\n".join(f" {number}" for number in self)
        )
        facts = f"dtype={self.dtype}, device={self.device}"
        return f"{values}\n[torch.storage.TypedStorage({facts}) of size {self.size()}]"


def _casts(name: str, dtype: DType) -> None:
    def cast(self: TypedStorage) -> TypedStorage:
        return self._to(dtype)

    cast.__name__, cast.__doc__ = name, f"The elements as {dtype.name}, in memory of their own."
    setattr(TypedStorage, name, cast)


_CASTS = {
    "float": dtypes.float32, "double": dtypes.float64, "half": dtypes.float16, "bfloat16": dtypes.bfloat16,
    "long": dtypes.int64, "int": dtypes.int32, "short": dtypes.int16, "char": dtypes.int8, "byte": dtypes.uint8,
    "bool": dtypes.bool_, "complex_float": dtypes.complex64, "complex_double": dtypes.complex128,
}  # fmt: skip
for _name, _dtype in _CASTS.items():
    _casts(_name, _dtype)


@dataclass(frozen=True, slots=True)
class LegacyStorage:
    """torch.FloatStorage and its like: called with data or with a size."""

    name: str
    dtype: DType

    def __call__(self, *data: Any, wrap_storage: UntypedStorage | None = None) -> TypedStorage:
        return TypedStorage(*data, wrap_storage=wrap_storage, dtype=self.dtype)

    def from_buffer(self, buffer: Any, byte_order: str = "little", count: int = -1, offset: int = 0) -> TypedStorage:
        """A copy of a buffer's elements."""
        held = _in_order(buffer, byte_order, count, offset, self.dtype)
        shape = (len(held) // self.dtype.itemsize,)
        return TypedStorage._of(create.frombytes(bytes(held), self.dtype, shape, devices.device("cpu")))

    def __repr__(self) -> str:
        return f"<class 'torch.{self.name}'>"

    def __instancecheck__(self, instance: object) -> bool:
        return isinstance(instance, TypedStorage) and instance.dtype is self.dtype

    def __or__(self, other: object) -> object:
        return TypedStorage | other

    __ror__ = __or__


LEGACY = {
    dtype: LegacyStorage(name.replace("Tensor", "Storage"), dtype) for name, dtype in LEGACY_TENSORS.items()
} | {
    dtype: LegacyStorage(f"{dtype.title}Storage", dtype) for dtype in dtypes.ALL if dtype.family == "float8"
}  # fmt: skip
Storage = LEGACY[dtypes.float32]
LEGACY_NAMES = {kind.name: dtype for dtype, kind in LEGACY.items()}
FloatStorage, DoubleStorage, HalfStorage, BFloat16Storage, LongStorage, IntStorage, ShortStorage, CharStorage = (
    LEGACY[dtype]
    for dtype in (
        *(dtypes.float32, dtypes.float64, dtypes.float16, dtypes.bfloat16),
        *(dtypes.int64, dtypes.int32, dtypes.int16, dtypes.int8),
    )
)
ByteStorage, BoolStorage, ComplexFloatStorage, ComplexDoubleStorage = (
    LEGACY[dtype] for dtype in (dtypes.uint8, dtypes.bool_, dtypes.complex64, dtypes.complex128)
)


def data_ptr(tensor: Tensor) -> Any:
    """Where its first element is: on device cpu an address, which stays that of its memory; 0 where there is none.

    On other devices it says which memory it is, and is no address: it is refused as one, with a TypeError.
    """
    begin = host_memory.address_of(tensor._storage) if tensor.numel() else 0
    return begin + host_memory.distance(tensor) if begin else 0


def can_show(tensor: Tensor, dtype: DType) -> bool:
    """Whether a tensor of a dtype can show the memory of another one."""
    return tensor.dtype is dtype or host_memory.can_share(tensor._storage.device)


def untyped_storage(tensor: Tensor) -> UntypedStorage:
    """The bytes of the memory that a tensor shows."""
    return UntypedStorage._of(tensor)


def storage(tensor: Tensor) -> TypedStorage:
    """The elements of the memory that a tensor shows."""
    return TypedStorage._of(tensor)


def storage_type(tensor: Tensor) -> LegacyStorage:
    """The type of storages of a tensor's dtype: torch.FloatStorage."""
    return LEGACY[tensor.dtype]


@named_by_numpy
def set_(
    tensor: Tensor,
    source: Any = None,
    storage_offset: int = 0,
    size: Sequence[int] | None = None,
    stride: Sequence[int] | None = None,
) -> Tensor:
    """Has a tensor show the memory of another one, or of a storage, from an element on; without any, no memory.

    Raises: RuntimeError for memory of another dtype, or less than the size asks for.
    """
    tensor._check_writable()
    if source is None:
        source = create.empty(0, dtype=tensor.dtype, device=tensor.device)
    if not isinstance(source, Tensor) and not hasattr(source, "_as_tensor"):
        raise TypeError(f"set_() received an invalid combination of arguments: a {type(source).__name__} is no storage")
    kind = getattr(source, "dtype", tensor.dtype)
    if kind is not tensor.dtype and not isinstance(source, Tensor):
        raise RuntimeError(
            f"Expected a Storage of type {tensor.dtype.title.lower()} or an UntypedStorage, but got type {kind.title} "
            "for argument 1 'storage'"
        )
    if kind is not tensor.dtype:
        raise RuntimeError(
            f"Could not set tensor of type {kind.title.lower()} to a tensor of type {tensor.dtype.title.lower()}"
        )
    if isinstance(source, Tensor) and size is None:
        tensor.data = source
        return tensor
    flat = source if isinstance(source, Tensor) else source._as_tensor(tensor.dtype)
    shape = (flat.numel(),) if size is None else tuple(size)
    tensor.data = copies.strided(flat, shape, strides(shape) if stride is None else tuple(stride), storage_offset)
    return tensor
