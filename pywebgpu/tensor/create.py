"""Making tensors: from Python data, from bytes, filled, counted."""

from __future__ import annotations

import array
import struct
from collections.abc import Sequence
from math import prod
from typing import Any

from pywebgpu import devices, dtypes
from pywebgpu.devices.base import check_supported
from pywebgpu.dtypes import DType, Kind
from pywebgpu.errors import ShapeError
from pywebgpu.graph import ir
from pywebgpu.graph.ir import Node, Spec
from pywebgpu.ops import pointwise
from pywebgpu.tensor.base import TensorBase
from pywebgpu.tensor.tensor import Tensor

DeviceLike = str | devices.device | None


def frombytes(data: Any, dtype: DType, shape: Sequence[int], device: DeviceLike = None) -> Tensor:
    """A tensor of little-endian bytes in row-major order. Raises RuntimeError when the length does not fit."""
    size = prod(shape) * dtype.itemsize
    view = memoryview(data).cast("B") if prod(shape) else memoryview(b"")
    if view.nbytes != size:
        raise ShapeError(f"frombytes: {dtype.name}{list(shape)} takes {size} bytes, got {view.nbytes}")
    opened = devices.open_device(device)
    spec = Spec(tuple(shape), dtype)
    node = ir.data(spec, opened.upload(view, spec))
    if dtype.kind is Kind.INT and 0 < prod(shape) <= 1 << 20:
        values = array.array(dtype.code)
        values.frombytes(view)
        node.attrs = {"low": min(values), "high": max(values)}
    result: Tensor = Tensor._new(node, opened)
    return result


def tensor(
    data: Any,
    *,
    dtype: DType | None = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A tensor with a copy of `data`: numbers, nested sequences, a tensor, or an array with the buffer protocol.

    Dtypes: bool, int64 or the default float, after the data. Raises ValueError for ragged sequences, TypeError for
    elements that are no numbers, RuntimeError for numbers that the dtype cannot hold.
    """
    if isinstance(data, TensorBase):
        made = data.detach().clone()
        made = made.to(device=device or data.device, dtype=dtype or data.dtype)
    elif hasattr(data, "__array_interface__"):
        made = _from_array(data, device)
        made = made if dtype is None else made.to(dtype)
    else:
        flat: list[Any] = []
        shape = _flatten(data, flat)
        made = frombytes(_pack(flat, dtype := dtype or _infer(flat)), dtype, shape, device)
    return made.requires_grad_() if requires_grad else made


def _flatten(data: Any, flat: list[Any]) -> tuple[int, ...]:
    """Appends the numbers of nested sequences to `flat`; returns the shape."""
    if isinstance(data, TensorBase):
        values = data.tolist()
        return _flatten(values, flat)
    if hasattr(data, "__array_interface__"):
        return _flatten(data.tolist(), flat)
    if not isinstance(data, list | tuple | range):
        flat.append(data)
        return ()
    inner: tuple[int, ...] | None = None
    for item in data:
        shape = _flatten(item, flat)
        if inner is not None and shape != inner:
            at = f"expected sequence of length {inner[0]}" if inner else "expected a number"
            raise ValueError(f"{at} at dim 1 (got {shape[0] if shape else 'a number'})")
        inner = shape
    return (len(data), *(inner or ()))


def _infer(flat: list[Any]) -> DType:
    kinds = {type(value) for value in flat}
    if not kinds or float in kinds:
        return dtypes.default()
    if kinds == {bool}:
        return dtypes.bool_
    for value in flat:
        if isinstance(value, bool | int):
            continue
        if not isinstance(value, int | float) and not hasattr(value, "__float__"):
            raise TypeError(f"new(): invalid data type '{type(value).__name__}'")
        if not hasattr(value, "__index__"):
            return dtypes.default()
    return dtypes.int64


def _pack(flat: list[Any], dtype: DType) -> bytes:
    check: Any = bool if dtype.kind is Kind.BOOL else (int if dtype.kind is Kind.INT else float)
    if dtype is dtypes.bfloat16:
        words = struct.unpack(f"<{len(flat)}I", struct.pack(f"<{len(flat)}f", *map(float, flat)))
        return array.array("H", [((w + 0x7FFF + ((w >> 16) & 1)) >> 16) & 0xFFFF for w in words]).tobytes()
    try:
        return struct.pack(f"<{len(flat)}{dtype.code}", *map(check, flat))
    except struct.error:
        raise RuntimeError(f"value cannot be converted to type {dtype.name} without overflow") from None
    except OverflowError:
        return struct.pack(f"<{len(flat)}{dtype.code}", *(_saturate(float(v), dtype) for v in flat))
    except (TypeError, ValueError) as error:
        raise TypeError(f"new(): invalid data for {dtype.name}: {error}") from None


def _saturate(value: float, dtype: DType) -> float:
    return value if dtype.low <= value <= dtype.high else (float("inf") if value > 0 else float("-inf"))


def _from_array(data: Any, device: DeviceLike) -> Tensor:
    name = str(data.dtype)
    if name not in dtypes.BY_NAME:
        raise TypeError(f"can't convert np.ndarray of type {name}. The supported types are: {', '.join(dtypes.BY_NAME)}.")
    dtype = dtypes.BY_NAME[name]
    return frombytes(data.tobytes(), dtype, data.shape, device)


def from_numpy(array: Any) -> Tensor:
    """A tensor with a copy of a NumPy array (torch shares the memory; a lazy library cannot)."""
    if not hasattr(array, "__array_interface__"):
        raise TypeError(f"expected np.ndarray (got {type(array).__name__})")
    return _from_array(array, None)


def filled(value: float, shape: tuple[int, ...], dtype: DType, device: DeviceLike, requires_grad: bool = False) -> Tensor:
    check_dtype(dtype, device)
    node = pointwise.full(value, Spec(shape, dtype))
    return _made(node, device, requires_grad)


def check_dtype(dtype: DType, device: DeviceLike) -> None:
    opened = devices.open_device(device)
    if opened.target.wgsl:
        check_supported(dtype, opened.name)


def _made(node: Node, device: DeviceLike, requires_grad: bool) -> Tensor:
    result: Tensor = Tensor._new(node, devices.open_device(device))
    return result.requires_grad_() if requires_grad else result


def sizes(args: Sequence[Any]) -> tuple[int, ...]:
    raw = args[0] if len(args) == 1 and not hasattr(args[0], "__index__") else args
    out = tuple(int(n) for n in raw)
    if any(n < 0 for n in out):
        raise ShapeError(f"Trying to create tensor with negative dimension {min(out)}: {list(out)}")
    return out


def zeros(
    *size: Any, dtype: DType | None = None, device: DeviceLike = None, requires_grad: bool = False
) -> Tensor:
    """A tensor of zeros."""
    return filled(0.0, sizes(size), dtype or dtypes.default(), device, requires_grad)


def ones(*size: Any, dtype: DType | None = None, device: DeviceLike = None, requires_grad: bool = False) -> Tensor:
    """A tensor of ones."""
    return filled(1.0, sizes(size), dtype or dtypes.default(), device, requires_grad)
