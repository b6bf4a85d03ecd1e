"""Making tensors: from Python data, from bytes, filled, counted, like others."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from operator import index
from typing import TYPE_CHECKING, Any, TypeGuard, Unpack

from pywebgpu import devices, dtypes
from pywebgpu.composites import creation
from pywebgpu.dtypes import DType, Kind
from pywebgpu.errors import ShapeError
from pywebgpu.step_capture.free_number import number
from pywebgpu.support import numbers
from pywebgpu.support.shapes import Shape
from pywebgpu.tensor import factory_options, from_data, uninitialized
from pywebgpu.tensor.base import TensorBase
from pywebgpu.tensor.methods import named_by_numpy
from pywebgpu.tensor.tensor import Tensor

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from typing_extensions import Buffer

    from pywebgpu.devices.base import Device
    from pywebgpu.tensor.types import Made, Operand, Ranged, Sized, Sizes

# From data


def frombytes(data: Buffer, dtype: DType, shape: Sequence[int], device: factory_options.DeviceLike = None) -> Tensor:
    """A tensor of little-endian bytes in row-major order. Raises RuntimeError when the length does not fit."""
    opened = devices.open_device(device)
    result: Tensor = Tensor._new(from_data.from_bytes(data, dtype, shape, opened), opened)
    return result


def tensor(
    data: Any,
    *,
    dtype: DType | None = None,
    device: factory_options.DeviceLike = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A tensor with a copy of `data`: numbers, nested sequences, a tensor, or an array with the buffer protocol.

    Dtypes: bool, int64 or the default float, after the data. Raises ValueError for ragged sequences, TypeError for
    elements that are no numbers, RuntimeError for numbers that the dtype cannot hold.
    """
    dtype = dtypes.PYTHONS.get(dtype) or dtype
    if dtype is not None and not isinstance(dtype, DType):
        raise TypeError(f"tensor(): argument 'dtype' must be torch.dtype, not {type(dtype).__name__}")
    dtypes.check_held(dtype)
    result: Tensor
    if not isinstance(data, TensorBase) and hasattr(data, "_as_tensor"):  # A storage: its bytes are elements.
        data = data._as_tensor(dtype)
    if isinstance(data, TensorBase):
        result = data.detach().clone()
        result = result.to(device=device or data.device, dtype=dtype or data.dtype)
    else:
        opened = devices.open_for(dtype, device)
        if hasattr(data, "__dlpack__") and not from_data.is_array(data):
            data = import_module("pywebgpu.utils.dlpack").array_of(data)
        if from_data.is_array(data):
            result = Tensor._new(from_data.from_array(data, dtype, opened), opened)
            result = result if dtype is None else result.to(dtype)
        else:
            result = Tensor._new(from_data.from_data(data, dtype, opened), opened)
    return result._require_grad() if requires_grad else result


def as_tensor(data: Any, dtype: DType | None = None, device: factory_options.DeviceLike = None) -> Tensor:
    """The tensor itself where nothing changes; a tensor of an array's own memory, as from_numpy; else as tensor()."""
    if not isinstance(data, Tensor):
        opened = devices.open_for(dtype, device)
        if not _can_show(data, opened):
            return tensor(data, dtype=dtype, device=device)
        shown = _shown(data, opened)
        return shown if dtype is None else shown.to(dtypes.PYTHONS.get(dtype) or dtype)
    same = (dtype is None or dtype is data.dtype) and (device is None or devices.device(device) == data.device)
    result: Tensor = data if same else data.to(device=device or data.device, dtype=dtype or data.dtype)
    return result


def from_numpy(array: NDArray[Any]) -> Tensor:
    """A tensor of a NumPy array: on device cpu of the same memory, so that writes on either side are seen.

    Raises: TypeError for what is no array, or of a dtype that is not known here; ValueError for negative strides.
    """
    if not from_data.is_array(array):
        raise TypeError(f"expected np.ndarray (got {type(array).__name__})")
    device, source = devices.open_device(for_values()), array
    return _shown(source, device) if _can_show(source, device) else tensor(array, device=device.name)


def _can_show(array: object, device: Device) -> TypeGuard[NDArray[Any]]:
    """Whether a tensor may have the memory of an array."""
    if not hasattr(device, "hold"):
        return False
    numpy: Any = sys.modules.get("numpy")
    return numpy is not None and isinstance(array, numpy.ndarray)


def _shown(array: NDArray[Any], device: Device) -> Tensor:
    shown: Tensor = import_module("pywebgpu.tensor.host_memory").tensor_of(array, device)
    return shown


def for_values() -> str | None:
    """Where values of the host go: to the default device, or to cpu where that has none."""
    return None if devices.open_device().has_values else "cpu"


def scalar_tensor(s: float, **options: Unpack[Made]) -> Tensor:
    """A number as a tensor of shape ()."""
    factory = factory_options.FactoryOptions("scalar_tensor", options)
    return factory.tensor(creation.full(s, (), factory.dtype))


# Filled


def filled(
    value: float, shape: Shape, dtype: DType, device: factory_options.DeviceLike, requires_grad: bool = False
) -> Tensor:
    factory = factory_options.FactoryOptions("full", {"device": device, "dtype": dtype, "requires_grad": requires_grad})
    return factory.tensor(creation.full(value, shape, factory.dtype))


def zeros(*sizes: int | Sequence[int], **options: Unpack[Sized]) -> Tensor:
    """A tensor of zeros."""
    shape = factory_options.size("zeros", sizes, options)
    factory = factory_options.FactoryOptions("zeros", options)
    return factory.tensor(creation.full(0, shape, factory.dtype))


def ones(*sizes: int | Sequence[int], **options: Unpack[Sized]) -> Tensor:
    """A tensor of ones."""
    shape = factory_options.size("ones", sizes, options)
    factory = factory_options.FactoryOptions("ones", options)
    return factory.tensor(creation.full(1, shape, factory.dtype))


def empty(*sizes: int | Sequence[int], **options: Unpack[Sized]) -> Tensor:
    """A tensor of zeros, or of what `uninitialized` says: nothing reads memory that was not written."""
    shape = factory_options.size("empty", sizes, options)
    factory = factory_options.FactoryOptions("empty", options)
    return factory.tensor(creation.full(uninitialized.value(factory.dtype), shape, factory.dtype))


def full(size: Sizes, fill_value: Operand, **options: Unpack[Made]) -> Tensor:
    """A tensor of one number; its dtype is the number's unless one is given."""
    value = number(fill_value, "full", "fill_value")
    if isinstance(size, int):
        raise TypeError(f"full(): argument 'size' (position 1) must be tuple of ints, not {type(size).__name__}")
    factory = factory_options.FactoryOptions("full", options, dtypes.of_scalar(value))
    return factory.tensor(creation.full(value, factory_options.sizes((size,), "full"), factory.dtype))


def eye(n: int, m: int | None = None, **options: Unpack[Made]) -> Tensor:
    """A matrix with ones on its diagonal."""
    if n < 0 or (m is not None and m < 0):
        raise ShapeError(f"n must be greater or equal to 0, got {n if n < 0 else m}")
    factory = factory_options.FactoryOptions("eye", options)
    return factory.tensor(creation.eye(n, n if m is None else m, factory.dtype))


# Counted


def arange(*range_: Operand, **options: Unpack[Ranged]) -> Tensor:
    """start, start + step, ... below end: arange(end), arange(start, end) or arange(start, end, step).

    Dtypes: int64 of whole numbers, else the default float.
    """
    target: Any = options.get("out")
    start, end, step = _range("arange", range_, options)
    has_float = any(isinstance(value, float) for value in (start, end, step))
    factory = factory_options.FactoryOptions("arange", options, dtypes.default() if has_float else dtypes.int64)
    if target is not None and target.dtype.kind is Kind.INT and isinstance(step, float) and 0 < abs(step) < 1:
        raise ValueError("step must be nonzero: a part of a whole number is none")
    return factory.tensor(creation.arange(start, end, step, factory.dtype))


def _range(name: str, args: Sequence[Any], options: Ranged) -> tuple[Any, Any, Any]:
    if len(args) > 3 or (not args and "end" not in options):
        raise TypeError(f"{name}() takes from 1 to 3 numbers, got {len(args)}")
    parts: dict[str, Any] = {"start": 0, "step": 1}
    names = ("start", "end", "step") if len(args) > 1 or "end" in options else ("end",)
    parts |= dict(zip(names, args, strict=False))
    parts |= {key: options.pop(key) for key in ("start", "end", "step") if key in options}
    bounds = [number(parts[key], name, key) for key in ("start", "end", "step")]
    return tuple(int(v) if isinstance(v, bool) else v for v in bounds)  # type: ignore[return-value]


def range(start: float = 0, end: float | None = None, step: float = 1, **options: Unpack[Made]) -> Tensor:
    """As arange with `end` included; old, kept for scripts that use it."""
    if end is None:
        start, end = 0, start
    factory = factory_options.FactoryOptions("range", options)
    count = int((end - start) / step) + 1
    return factory.tensor(creation.arange(start, start + (count - 0.5) * step, step, factory.dtype))


def linspace(start: Operand, end: Operand, steps: int, **options: Unpack[Made]) -> Tensor:
    """`steps` numbers from start to end, both included, at equal distances."""
    factory = factory_options.FactoryOptions("linspace", options)
    return factory.tensor(
        creation.linspace(
            number(start, "linspace", "start"), number(end, "linspace", "end"), index(steps), factory.dtype
        )
    )


def logspace(start: Operand, end: Operand, steps: int, base: float = 10.0, **options: Unpack[Made]) -> Tensor:
    """base to the power of linspace."""
    factory = factory_options.FactoryOptions("logspace", options)
    return factory.tensor(
        creation.logspace(
            number(start, "logspace", "start"), number(end, "logspace", "end"), index(steps), base, factory.dtype
        )
    )


def tril_indices(row: int, col: int, offset: int = 0, **options: Unpack[Made]) -> Tensor:
    """The coordinates (2, count) of the lower triangle of a matrix."""
    factory = factory_options.FactoryOptions("tril_indices", options, dtypes.int64)
    return factory.tensor(creation.triangle_indices(row, col, offset, factory.dtype, upper=False))


def triu_indices(row: int, col: int, offset: int = 0, **options: Unpack[Made]) -> Tensor:
    """The coordinates (2, count) of the upper triangle of a matrix."""
    factory = factory_options.FactoryOptions("triu_indices", options, dtypes.int64)
    return factory.tensor(creation.triangle_indices(row, col, offset, factory.dtype, upper=True))


# Like another tensor


@named_by_numpy
def zeros_like(input: Tensor, **options: Unpack[Made]) -> Tensor:
    """Zeros of another tensor's shape, dtype and device."""
    factory = factory_options.like("zeros_like", input, options)
    return factory.tensor(creation.full(0, tuple(input.shape), factory.dtype))


@named_by_numpy
def ones_like(input: Tensor, **options: Unpack[Made]) -> Tensor:
    """Ones of another tensor's shape, dtype and device."""
    factory = factory_options.like("ones_like", input, options)
    return factory.tensor(creation.full(1, tuple(input.shape), factory.dtype))


@named_by_numpy
def empty_like(input: Tensor, **options: Unpack[Made]) -> Tensor:
    """As `empty`, of another tensor's shape, dtype and device."""
    factory = factory_options.like("empty_like", input, options)
    return factory.tensor(creation.full(uninitialized.value(factory.dtype), tuple(input.shape), factory.dtype))


@named_by_numpy
def full_like(input: Tensor, fill_value: Operand, **options: Unpack[Made]) -> Tensor:
    """One number in another tensor's shape, dtype and device."""
    factory = factory_options.like("full_like", input, options)
    value = number(fill_value, "full_like", "fill_value")
    numbers.check(value, factory.dtype)
    return factory.tensor(creation.full(value, tuple(input.shape), factory.dtype))
