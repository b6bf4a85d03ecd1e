"""Python data, and bytes, as nodes: what tensors, index lists and assigned values are made of."""

from __future__ import annotations

import array
import functools
import struct
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from math import prod
from typing import TYPE_CHECKING, Any, TypeGuard

from pywebgpu import dtypes
from pywebgpu.composites import arithmetic
from pywebgpu.devices.base import Device, check_supported
from pywebgpu.dtypes import DType, Kind
from pywebgpu.errors import ShapeError
from pywebgpu.ir import graph
from pywebgpu.ir.graph import Node, Spec, thread_state
from pywebgpu.step_capture.free_number import FREE, FreeFloat, fixed
from pywebgpu.support.shapes import Shape
from pywebgpu.tensor.base import TensorBase
from pywebgpu.tensor.size import Size

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from pywebgpu.tensor.types import Array

DOUBLES = (dtypes.float64, dtypes.complex128)
_NUMBERS = frozenset((bool, int, float))
UNKNOWN = "can't convert np.ndarray of type numpy.{}. The supported types are: {}."
LOOKED_AT = 1 << 20  # whole numbers up to this many are looked through for their range


def from_bytes(data: Buffer, dtype: DType, shape: Sequence[int], device: Device) -> Node:
    """Little-endian bytes in row-major order. Raises ShapeError when the length does not fit.

    The range of whole numbers is noted, so that using them as row numbers needs no check on the device.
    """
    check_supported(dtype, device)
    count = prod(shape)
    view = memoryview(data).cast("B") if count else memoryview(b"")
    if view.nbytes != count * dtype.itemsize:
        raise ShapeError(
            f"frombytes: {dtype.name}{list(shape)} takes {count * dtype.itemsize} bytes, got {view.nbytes}"
        )
    spec = Spec(tuple(shape), dtype)
    node = graph.data(spec, device.upload(view, spec))
    if thread_state.observer is not None:
        thread_state.observer.note_upload(node.buffer, view)
    if dtype in (dtypes.int32, dtypes.int64) and 0 < count <= LOOKED_AT:
        values = array.array(dtype.code)
        values.frombytes(view)
        node.attrs = {"low": min(values), "high": max(values)}
    return node


def zeros(dtype: DType, shape: Sequence[int], device: Device) -> Node:
    """Zeros that have their buffer at once: a constant of the step, if one is captured."""
    spec = Spec(tuple(shape), dtype)
    if thread_state.observer is not None:
        return from_bytes(bytes(prod(shape) * dtype.itemsize), dtype, shape, device)
    return graph.data(spec, device.zeros(spec))


def from_data(data: Any, dtype: DType | None, device: Device) -> Node:
    """Numbers, or nested sequences of them; see tensor() in create.py."""
    if type(data) in FREE or (
        thread_state.observer is not None and type(data) is float
    ):  # Alike, so that audits agree.
        return arithmetic.number(data, dtype or dtypes.of_scalar(data))
    flat: list[Any] = []
    kinds: set[Any] = set()
    shape = flatten(data, flat, kinds, scalars=True)
    flat = [*map(fixed, flat)]
    found_dtype = dtype or _held(infer(kinds, nested=bool(shape and flat) and isinstance(flat[0], str)), device)
    return from_bytes(pack(flat, found_dtype), found_dtype, shape, device)


def from_array(data: Array, dtype: DType | None, device: Device) -> Node:
    """What has NumPy's array interface, in its own dtype.

    Where the device has no float64 it is converted here: to `dtype`, or to float32 where none is given.
    Raises: TypeError for a dtype that is not known here.
    """
    name = str(data.dtype)
    own, is_held = dtypes.BY_NAME.get(name), dtype in DOUBLES or device.holds_all
    if own in DOUBLES and not is_held and (dtype is None or dtype.part or not own.part):
        wanted = dtype or _held(own, device)
        name = "float32" if wanted is dtypes.bfloat16 else wanted.name
        import numpy as np

        with np.errstate(over="ignore"):
            data = data.astype(name)
    if name not in dtypes.BY_NAME:
        raise TypeError(UNKNOWN.format(name, ", ".join(dtypes.BY_NAME)))
    return from_bytes(data.tobytes(), dtypes.BY_NAME[name], data.shape, device)


def _held(dtype: DType, device: Device) -> DType:
    """The dtype that data of NumPy's takes where none is given. Says once that float64 becomes float32."""
    if dtype not in DOUBLES or device.holds_all:
        return dtype
    if not _told:
        _told.append(device.name)
        frame, level = sys._getframe(), 1
        while frame.f_back is not None and frame.f_globals["__name__"].startswith("pywebgpu."):
            frame, level = frame.f_back, level + 1
        warnings.warn(
            f"NumPy's float64 becomes float32 on device {device.name}, which has no float64: say dtype=torch.float32, "
            'or device="cpu", where float64 is exact (this is said once)',
            stacklevel=level,
        )
    return dtypes.float32 if dtype.part is None else dtypes.complex64


OF_ARRAYS = (
    "Creating a tensor from a list of numpy.ndarrays is extremely slow. Please consider converting the list to a "
    "single numpy.ndarray with numpy.array() before converting to a tensor."
)
_told: list[str] = []  # the device for which it was said


def is_array(data: object) -> TypeGuard[Array]:
    return hasattr(data, "__array_interface__") and not isinstance(data, TensorBase)


def is_data(data: object) -> bool:
    """Whether a legacy constructor takes this as elements: a torch.Size is the size of the new tensor."""
    return is_array(data) or not (hasattr(data, "__index__") or isinstance(data, Size))


def is_sequence(data: object) -> TypeGuard[Sequence[Any]]:
    return isinstance(data, Sequence | array.array) and not isinstance(data, str | bytes)


def flatten(data: Any, flat: list[Any], kinds: set[Any], depth: int = 1, *, scalars: bool = False) -> Shape:
    """Appends the numbers of nested sequences to `flat`; returns the shape. Raises ValueError where it is ragged.

    kinds: takes their types, and the dtypes of arrays and tensors among them. scalars: tensors in a sequence stand for
    one number each, whatever their shape.
    """
    if (type(data) is list or type(data) is tuple) and _NUMBERS.issuperset(types := {*map(type, data)}):
        flat.extend(data)
        kinds.update(types)
        return (len(data),)
    if scalars and depth > 1 and isinstance(data, TensorBase):
        if prod(data.shape) != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        kinds.add(data.dtype)
        flat.append(data.item())  # type: ignore[attr-defined]
        return ()
    if isinstance(data, TensorBase) or is_array(data):
        kinds.add(dtypes.BY_NAME.get(str(data.dtype), float) if is_array(data) else data.dtype)
        shape = tuple(data.shape)
        if depth > 1 and shape and is_array(data):
            import_module("pywebgpu.tensor.host_memory").warn_once(OF_ARRAYS)
        flat.extend(_elements(data.tolist(), len(shape)))  # type: ignore[union-attr]
        return shape
    if not is_sequence(data):
        flat.append(data)
        kinds.add(type(data))
        return ()
    if not any(is_sequence(item) or hasattr(item, "tolist") for item in data):
        flat.extend(data)
        kinds.update(map(type, data))
        return (len(data),)
    inner: Shape | None = None
    for item in data:
        shape = flatten(item, flat, kinds, depth + 1, scalars=scalars)
        if inner is not None and shape != inner:
            if not shape or not inner:
                raise TypeError(f"expected sequences alone at dim {depth}, got a number, which is not a sequence")
            raise ValueError(f"expected sequence of length {inner[0]} at dim {depth} (got {shape[0]})")
        inner = shape
    return (len(data), *(inner or ()))


def _elements(nested: Any, rank: int) -> list[Any]:
    for _ in range(rank - 1):
        nested = [item for inner in nested for item in inner]
    return nested if rank else [nested]


def infer(kinds: set[Any], *, nested: bool) -> DType:
    """The dtype of numbers of these types: bool, int64, or the default float where there is a float, or nothing; with
    those of NumPy's numbers and of tensors, what holds all."""
    if not kinds:
        return dtypes.default()
    return functools.reduce(dtypes.promote, [_dtype_of(kind, nested=nested) for kind in kinds])


def _dtype_of(kind: type | DType, *, nested: bool) -> DType:
    if isinstance(kind, DType):
        return kind
    if kind is float or kind is FreeFloat:
        return dtypes.default()
    if kind is complex:
        return dtypes.to_complex(dtypes.default())
    if kind is bool:
        return dtypes.bool_
    if issubclass(kind, str):
        raise ValueError("too many dimensions 'str'") if nested else TypeError("new(): invalid data type 'str'")
    if not hasattr(kind, "__float__") and not hasattr(kind, "__index__"):
        raise RuntimeError(f"Could not infer dtype of {kind.__name__}")
    return dtypes.int64 if hasattr(kind, "__index__") else dtypes.default()


def pack(flat: list[Any], dtype: DType) -> bytes:
    """Numbers as little-endian bytes. Raises RuntimeError for one that the dtype cannot hold, TypeError for others."""
    count = len(flat)
    try:
        if dtype.part is not None:
            pairs = [part for value in map(complex, flat) for part in (value.real, value.imag)]
            return _floats(pairs, dtype.part.code)
        if dtype.kind is Kind.BOOL:
            return struct.pack(f"<{count}?", *map(bool, flat))
        if dtype.kind is Kind.INT:
            return struct.pack(f"<{count}{dtype.code}", *map(int, flat))
        values = list(map(float, flat))
    except (struct.error, OverflowError):
        if any(isinstance(value, int) and not -(2**63) <= value < 2**63 for value in flat):
            raise ValueError("Overflow when unpacking long long") from None
        if dtype.low == 0 and all(-dtype.high <= value <= dtype.high for value in flat):
            return struct.pack(f"<{count}{dtype.code}", *[int(value) % (int(dtype.high) + 1) for value in flat])
        raise RuntimeError(f"value cannot be converted to type {dtype.name} without overflow") from None
    except (TypeError, ValueError) as error:
        if dtype.kind is Kind.INT and any(value != value for value in flat):
            raise RuntimeError(f"value cannot be converted to type {dtype.name} without overflow: nan") from None
        raise TypeError(f"new(): invalid data for {dtype.name}: {error}") from None
    if dtype.family == "float8":
        return import_module("pywebgpu.support.float8").encode(values, dtype)  # type: ignore[no-any-return]
    if dtype is dtypes.bfloat16:
        words = struct.unpack(f"<{count}I", _floats(values, "f"))
        rounded = ((w + 0x7FFF + ((w >> 16) & 1)) >> 16 if w & 0x7FFFFFFF <= 0x7F800000 else 0x7FC0 for w in words)
        return array.array("H", [w & 0xFFFF for w in rounded]).tobytes()
    return _floats(values, dtype.code)


def _floats(values: list[float], code: str) -> bytes:
    """Rounded to the format; too large a number is an infinity."""
    try:
        return struct.pack(f"<{len(values)}{code}", *values)
    except OverflowError:
        return b"".join(_float(value, code) for value in values)


def _float(value: float, code: str) -> bytes:
    try:
        return struct.pack(f"<{code}", value)
    except OverflowError:
        return struct.pack(f"<{code}", float("inf") if value > 0 else float("-inf"))
