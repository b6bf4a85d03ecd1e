"""The same elements as another dtype, on another device, or in Python's hands."""

from __future__ import annotations

import array
import builtins
import struct
from collections.abc import Callable
from importlib import import_module
from math import prod
from typing import TYPE_CHECKING, Any, Self

from pywebgpu import devices, dtypes
from pywebgpu.composites import creation
from pywebgpu.devices.base import check_room, check_supported
from pywebgpu.dtypes import DType
from pywebgpu.ir.graph import Spec, thread_state
from pywebgpu.ops import pointwise
from pywebgpu.step_capture.free_number import Number, number
from pywebgpu.support import closed_types
from pywebgpu.tensor import from_data, history, layout, transfer, uninitialized
from pywebgpu.tensor.base import TensorBase
from pywebgpu.tensor.inplace import InplaceMethods
from pywebgpu.tensor.memory_format import same, suggested
from pywebgpu.tensor.methods import aliased, require_tensor
from pywebgpu.tensor.overlap import shows_same
from pywebgpu.tensor.size import as_tuple

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

    from pywebgpu.devices.base import Device
    from pywebgpu.tensor.factory_options import DeviceLike
    from pywebgpu.tensor.tensor import Tensor
    from pywebgpu.tensor.types import Sizes

LEGACY = {
    "FloatTensor": dtypes.float32, "DoubleTensor": dtypes.float64, "HalfTensor": dtypes.float16,
    "BFloat16Tensor": dtypes.bfloat16, "LongTensor": dtypes.int64, "IntTensor": dtypes.int32,
    "ShortTensor": dtypes.int16, "CharTensor": dtypes.int8, "ByteTensor": dtypes.uint8, "BoolTensor": dtypes.bool_,
    "UInt16Tensor": dtypes.uint16, "UInt32Tensor": dtypes.uint32, "UInt64Tensor": dtypes.uint64,
    "ComplexHalfTensor": dtypes.complex32, "ComplexFloatTensor": dtypes.complex64,
    "ComplexDoubleTensor": dtypes.complex128,
}  # fmt: skip


def _caster(dtype: DType) -> Callable[[ConversionMethods], Tensor]:
    def method(self: ConversionMethods, *, memory_format: object = None) -> Tensor:
        return self.to(dtype) if memory_format is None else self.to(dtype, memory_format=memory_format)

    method.__name__ = method.__qualname__ = dtype.name
    method.__doc__ = f"The elements as {dtype.name}."
    return method


class ConversionMethods(InplaceMethods):
    """Casts, moves between devices, reading, and tensors made after the model of this one."""

    __slots__ = ()

    def to(self, *args: Any, **options: Any) -> Tensor:
        """to(dtype), to(device), to(device, dtype), to(other); with copy=True always a copy."""
        device, dtype, copy = _target(*args, **options)
        if "memory_format" in options:
            plain = self.to(*args, **{name: value for name, value in options.items() if name != "memory_format"})
            return plain._formatted(options["memory_format"], is_new=plain is not self)
        moved: ConversionMethods = self
        if dtype is not None and dtype is not self.dtype:
            if device is None:
                check_supported(dtype, self._storage.device)
            if dtype.compute is not None or not self._storage.device.target.wgsl:
                moved = self._new(pointwise.cast(self._node, dtype=dtype), self._storage.device)
        if device is not None and device is not self._storage.device:
            moved = transfer.transfer(moved, device)
        if dtype is not None and dtype is not moved.dtype:  # A dtype that only the target has.
            check_supported(dtype, moved._storage.device)
            moved = self._new(pointwise.cast(moved._node, dtype=dtype), moved._storage.device)
        if moved is self:
            return self.clone() if copy else moved  # type: ignore[return-value]
        return same(moved, self) if self._path else moved  # type: ignore[return-value]

    def _formatted(self, memory_format: object, *, is_new: builtins.bool = False) -> Tensor:
        """The tensor itself where it counts as one of a memory format, else a copy. is_new: it lies in that order."""
        order = layout.order_of(memory_format, self.shape)
        is_right = not (is_new and self._path) and order == suggested(self)
        if memory_format is closed_types.preserve_format or is_right:
            return self  # type: ignore[return-value]
        return self.clone(memory_format=memory_format)

    float, double, half = _caster(dtypes.float32), _caster(dtypes.float64), _caster(dtypes.float16)
    bfloat16, bool = _caster(dtypes.bfloat16), _caster(dtypes.bool_)
    int, long, short = _caster(dtypes.int32), _caster(dtypes.int64), _caster(dtypes.int16)
    cfloat, cdouble = _caster(dtypes.complex64), _caster(dtypes.complex128)
    char, byte = _caster(dtypes.int8), _caster(dtypes.uint8)

    def type(self, dtype: object = None, non_blocking: builtins.bool = False) -> Tensor | str:
        """The dtype's name as "torch.FloatTensor", or a cast to a dtype or to such a name."""
        if dtype is None:
            prefix = "torch" if self._storage.device.is_host else f"torch.{self._storage.device.name}"
            return f"{prefix}.{self.dtype.title}Tensor"
        if isinstance(dtype, str):
            place, _, name = dtype.removeprefix("torch.").rpartition(".")
            if name not in LEGACY:
                raise ValueError(f"invalid type: {dtype!r}")
            return self.to(place or _host(), LEGACY[name])
        if isinstance(dtype, DType):
            return self.to(dtype)
        if not hasattr(dtype, "dtype"):
            raise TypeError(f"type(): argument 'dtype' must be a dtype, a type or a str, not {dtype!r}")
        kind: Any = dtype
        return self.to(kind.device or _host(), kind.dtype)

    def type_as(self, other: TensorBase) -> Tensor:
        """The same with the dtype and on the device of another."""
        require_tensor("type_as", "other", 1, other)
        return self.to(device=other.device, dtype=other.dtype)

    def cpu(self) -> Tensor:
        """The tensor on device cpu."""
        return self.to("cpu")

    async def cpu_async(self) -> Tensor:
        """As cpu, also where Python cannot wait."""
        device = devices.open_device("cpu")
        return self if self._storage.device is device else await transfer.transfer_async(self, device)  # type: ignore[return-value]

    def webgpu(self) -> Tensor:
        """The tensor on device webgpu."""
        return self.to("webgpu")

    def cuda(self, device: DeviceLike = None, non_blocking: builtins.bool = False) -> Tensor:
        """An error, since there is no CUDA here, but where a device was given its name: see as_torch."""
        if "cuda" in devices.adopted:
            return self.to("cuda")
        raise AssertionError(
            'Torch not compiled with CUDA enabled: use .to("webgpu"), or .to(torch.get_default_device())'
        )

    # Facts

    is_cuda = property(lambda self: self._storage.device.name == "cuda", doc="Whether its device is called cuda.")
    is_mps = property(lambda self: self._storage.device.name == "mps", doc="Whether its device is called mps.")
    is_sparse = is_quantized = is_xpu = is_nested = property(lambda self: False, doc="False.")
    is_meta = property(lambda self: not self._storage.device.has_values, doc="Whether it has no values.")
    is_cpu = property(lambda self: self._storage.device.is_host, doc="Whether it is on device cpu.")
    is_webgpu = property(lambda self: self._storage.device.name == "webgpu")
    itemsize = property(lambda self: self.dtype.itemsize, doc="Bytes of an element, as PyTorch counts them.")
    nbytes = property(lambda self: self.numel() * self.dtype.itemsize, doc="Bytes of all elements, counted so.")
    layout = property(lambda self: closed_types.strided, doc="torch.strided.")
    names = property(lambda self: (None,) * self.ndim)
    output_nr = property(lambda self: 0, doc="0.")

    def element_size(self) -> builtins.int:
        """Bytes of an element."""
        return self.dtype.itemsize

    def is_floating_point(self) -> builtins.bool:
        """Whether its dtype is a float's."""
        return self.dtype.is_floating_point

    def is_complex(self) -> builtins.bool:
        """Whether its elements are complex numbers."""
        return self.dtype.is_complex

    def is_inference(self) -> builtins.bool:
        """Whether it was made in inference mode."""
        return self._inference or self._history is history.of_inference

    def is_same_size(self, other: TensorBase) -> builtins.bool:
        """Whether another has this shape."""
        require_tensor("is_same_size", "other", 1, other)
        return tuple(self.shape) == tuple(other.shape)

    def is_nonzero(self) -> builtins.bool:
        """Whether the only element is not 0. Waits for the device."""
        return builtins.bool(self)

    def is_conj(self) -> builtins.bool:
        """Whether its elements are yet to be conjugated."""
        return False

    def is_neg(self) -> builtins.bool:
        """Whether its elements are yet to be negated: never."""
        return False

    def is_signed(self) -> builtins.bool:
        """Whether its dtype has negative numbers."""
        return self.dtype.is_signed

    def is_pinned(self) -> builtins.bool:
        """Whether it lies in pinned memory: never."""
        return False

    def pin_memory(self) -> Tensor:
        """The tensor itself: no memory is pinned."""
        return self  # type: ignore[return-value]

    def is_shared(self) -> builtins.bool:
        """Whether other processes see its memory: never."""
        return False

    def share_memory_(self) -> Self:
        """The tensor itself: threads share memory anyway."""
        return self

    def get_device(self) -> builtins.int:
        """The device's number, -1 for cpu."""
        device = self._storage.device
        return -1 if device.is_host or not device.has_values else self.device.index or 0

    @aliased
    def is_set_to(self, other: TensorBase) -> builtins.bool:
        """Whether both show the same elements of one memory in the same order."""
        return shows_same(self, other)

    @property
    def _cdata(self) -> builtins.int:
        """A number of its contents: it stays with them where two tensors are swapped."""
        return import_module("pywebgpu.utils.swapping").number(self)  # type: ignore[no-any-return]

    def _is_view(self) -> builtins.bool:
        return self._base is not None

    # Reading

    def item(self) -> Number:
        """The only element, as a Python number. Waits for the device."""
        self._check_single()
        number: Number | None = None
        if self._path and self._storage.device.is_host:
            number = import_module("pywebgpu.tensor.element_writes").read(self)
        return numbers(self._bytes(), self.dtype)[0] if number is None else number

    async def item_async(self) -> Number:
        """As item, also where Python cannot wait: in a browser without JSPI, or in a callback of JavaScript."""
        self._check_single()
        number: Number = numbers(await self._bytes_async(), self.dtype)[0]
        return number

    def tolist(self) -> Any:
        """The elements as nested lists. Waits for the device."""
        return nested(numbers(self._bytes(), self.dtype), tuple(self.shape))

    async def tolist_async(self) -> Any:
        """As tolist, also where Python cannot wait."""
        return nested(numbers(await self._bytes_async(), self.dtype), tuple(self.shape))

    def tobytes(self) -> bytes:
        """The elements as little-endian bytes of the dtype, in row-major order."""
        return self._bytes()

    async def tobytes_async(self) -> bytes:
        """As tobytes, also where Python cannot wait."""
        return await self._bytes_async()

    def numpy(self, *, force: builtins.bool = False) -> NDArray[Any]:
        """A NumPy array: on device cpu of the same memory, so that writes on either side are seen; else of a copy."""
        self._check_numpy(force)
        host_memory = import_module("pywebgpu.tensor.host_memory")
        array: NDArray[Any] = host_memory.array_of(self)
        host_memory.shown.add(self._storage)
        return array

    async def numpy_async(self, *, force: builtins.bool = False) -> NDArray[Any]:
        """As numpy, also where Python cannot wait."""
        self._check_numpy(force)
        return as_array(await self._bytes_async(), self.dtype, self.shape)

    def _check_single(self) -> None:
        if not self._storage.device.has_values:
            raise RuntimeError(import_module("pywebgpu.devices.meta").NO_NUMBER)
        if self.numel() != 1:
            raise RuntimeError(f"a Tensor with {self.numel()} elements cannot be converted to Scalar")

    def _check_numpy(self, force: builtins.bool) -> None:
        if self.requires_grad and not force and thread_state.grad:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
        if not self._storage.device.has_values and not force:
            raise TypeError(import_module("pywebgpu.devices.meta").NO_ARRAY)
        if self.dtype.family == "float8" or self.dtype in (dtypes.bfloat16, dtypes.complex32):
            raise TypeError(f"Got unsupported ScalarType {self.dtype.title}")

    def __array__(self, dtype: DTypeLike | None = None, copy: builtins.bool | None = None) -> NDArray[Any]:
        values = self.numpy()
        return values if dtype is None else values.astype(dtype)

    def __array_wrap__(
        self, array: NDArray[Any], context: object = None, return_scalar: builtins.bool = False
    ) -> Tensor:
        """A tensor of what NumPy computed of this one; of bools, as PyTorch has it, one of bytes."""
        held = array.astype("uint8") if array.dtype == "bool" else array
        return self._new(from_data.from_array(held, None, self._storage.device), self._storage.device)

    # After the model of this tensor

    def new_full(
        self, size: Sizes, fill_value: Number, *, dtype: DType | None = None, device: DeviceLike = None, **options: Any
    ) -> Tensor:
        """A tensor of one number, with this one's dtype and device unless others are given."""
        fill_value = number(fill_value, "new_full", "fill_value")
        opened = self._storage.device if device is None else devices.open_device(device)
        spec = Spec(as_tuple((size,)), dtype or self.dtype)
        check_supported(spec.dtype, opened)
        check_room(spec, opened)
        tensor = self._new(creation.full(fill_value, spec.shape, spec.dtype), opened)
        return tensor._require_grad() if options.get("requires_grad") else tensor

    def new_zeros(self, *size: Any, **options: Any) -> Tensor:
        """A tensor of zeros, with this dtype and device."""
        return self.new_full(as_tuple(size or options.pop("size")), 0, **options)

    def new_ones(self, *size: Any, **options: Any) -> Tensor:
        """A tensor of ones, with this dtype and device."""
        return self.new_full(as_tuple(size or options.pop("size")), 1, **options)

    def new_empty(self, *size: Any, **options: Any) -> Tensor:
        """A tensor of a shape, with this dtype and device."""
        value = uninitialized.value(options.get("dtype") or self.dtype)
        return self.new_full(as_tuple(size or options.pop("size")), value, **options)


def _host() -> str | None:
    """Where a type that names no device has its tensors: on the host, once a program of PyTorch asked for a device."""
    return devices.default_device() if devices.adopted else None


def _numbered() -> str:
    """The kind of device that a number alone means."""
    return "cuda" if "cuda" in devices.adopted else "webgpu"


def _target(*args: Any, **options: Any) -> tuple[Device | None, DType | None, bool]:
    """The arguments of `to` -> an opened device or None, a dtype or None, whether to copy."""
    device, dtype = options.pop("device", None), options.pop("dtype", None)
    dtype = dtypes.PYTHONS.get(dtype) or dtype
    copy = options.pop("copy", False)
    other = options.pop("other", None)
    for name in ("non_blocking", "memory_format"):
        options.pop(name, None)
    if options:
        raise TypeError(f"to() received an invalid keyword argument {next(iter(options))!r}")
    flags = []
    for arg in args:
        if isinstance(arg, TensorBase):
            other = arg
        elif isinstance(arg, DType):
            dtype = arg
        elif isinstance(arg, bool):
            flags.append(arg)
        elif isinstance(arg, type) and arg in dtypes.PYTHONS:
            dtype = dtypes.PYTHONS[arg]
        elif isinstance(arg, str | int | devices.device):
            device = devices.device(_numbered(), arg) if isinstance(arg, int) else arg
        elif arg is not None:
            raise TypeError(f"to() received an invalid combination of arguments: got a {type(arg).__name__}")
    dtypes.check_held(dtype)
    if len(flags) > 1:
        copy = flags[1]
    if other is not None:
        return other._storage.device, other.dtype, copy
    return None if device is None else devices.open_device(device), dtype, copy


def numbers(data: bytes, dtype: DType) -> list[Any]:
    """Little-endian bytes of a dtype -> Python numbers."""
    if dtype is dtypes.float16:
        return list(struct.unpack(f"<{len(data) // 2}e", data))
    if dtype.family == "float8":
        return import_module("pywebgpu.support.float8").decode(data, dtype)  # type: ignore[no-any-return]
    if dtype is dtypes.bfloat16:
        words = array.array("I", [h << 16 for h in array.array("H", data)])
        return array.array("f", words.tobytes()).tolist()
    if dtype.part is not None:
        parts = numbers(data, dtype.part)
        return list(map(complex, parts[::2], parts[1::2]))
    if dtype is dtypes.bool_:
        return [b != 0 for b in data]
    return array.array(dtype.code, data).tolist()


def nested(flat: list[Any], shape: tuple[int, ...]) -> Any:
    """Numbers in row-major order -> lists of lists; a number where the shape is ()."""
    if not shape:
        return flat[0]
    for axis in range(len(shape) - 1, 0, -1):
        n, rows = shape[axis], prod(shape[:axis])
        flat = [flat[i * n : (i + 1) * n] for i in range(rows)]
    return flat


def as_array(data: bytes, dtype: DType, shape: tuple[int, ...]) -> NDArray[Any]:
    """Little-endian bytes -> a NumPy array that may be written."""
    import numpy as np

    return np.frombuffer(bytearray(data), dtype.name).reshape(shape)
