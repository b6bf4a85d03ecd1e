"""Python numbers as values of a dtype: which ones it holds, which wrap or become infinite, which are an error.

torch has two rules. In arithmetic a number becomes one of the dtype, whatever it takes: floats overflow to an infinity,
whole numbers wrap. What is stored (full, fill_, clamp, an assigned value) must fit, or it is an error.
"""

from __future__ import annotations

import struct
from importlib import import_module
from math import copysign, inf, isfinite
from typing import TYPE_CHECKING

from pywebgpu import dtypes
from pywebgpu.dtypes import DType, Kind
from pywebgpu.errors import DTypeError, IntegerOverflowError
from pywebgpu.step_capture.free_number import FREE, plain

if TYPE_CHECKING:
    from pywebgpu.step_capture.free_number import Number

WORD = -(2**31), 2**31 - 1  # what 32 bits hold
_NAMES = {"float32": "float", "float64": "double", "float16": "c10::Half", "bfloat16": "c10::BFloat16", "int32": "int"}
_FORMATS = {dtypes.float16: "e", dtypes.float32: "f"}


def _held(dtype: DType) -> tuple[float, float]:
    if dtype.kind is Kind.BOOL or dtype.part is not None:
        return inf, -inf
    if dtype.kind is Kind.FLOAT:
        return -dtype.high, dtype.high
    return WORD if dtype is dtypes.int64 else (dtype.low, dtype.high)


# From where to where numbers are what they are on every device, and so may change without a new Program.
HELD = {dtype: _held(dtype) for dtype in dtypes.ALL}


def check(value: Number, dtype: DType) -> None:
    """Raises DTypeError for a number that the dtype cannot hold, as torch does for what is stored."""
    check_size(value)
    kind: object = type(value)
    if kind is complex:
        if dtype.part is not None:
            return
        raise DTypeError(f"value cannot be converted to type {_NAMES.get(dtype.name, dtype.name)} without overflow")
    if dtype.kind is Kind.BOOL or (-dtype.high if dtype.kind is Kind.FLOAT else dtype.low) <= value <= dtype.high:
        return
    if dtype.kind is Kind.FLOAT:
        fits = value != value if dtype.family == "float8" and dtype is not dtypes.float8_e5m2 else not isfinite(value)
    else:
        fits = dtype.low == 0 and isinstance(value, int) and -dtype.high <= value < 0
    if not fits:
        name = f"c10::{dtype.title}" if dtype.family == "float8" else _NAMES.get(dtype.name, f"{dtype.name}_t")
        raise DTypeError(f"value cannot be converted to type {name} without overflow: {value}")


def check_size(value: Number) -> None:
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        raise IntegerOverflowError(f"int too big to convert: {value} takes more than 64 bits")


def element(value: Number, dtype: DType) -> Number:
    """What an element is that is set to a number. Raises: as `stored`."""
    check(value, dtype)
    if dtype.part is not None:
        return complex(value)  # type: ignore[return-value]  # Number is what most dtypes hold.
    if dtype.kind is Kind.FLOAT:
        return value if type(value) in FREE else finite(float(value), dtype)
    return bool(value) if dtype.kind is Kind.BOOL else wrapped(value, dtype)


def rounded(value: Number, dtype: DType) -> Number:
    """As torch.full takes a number: half floats have infinities where other dtypes have an error."""
    if dtype.itemsize <= 2 and dtype.kind is Kind.FLOAT and not dtype.low <= value <= dtype.high:
        check_size(value)
        return finite(float(value), dtype)
    return value


def number_of(value: Number, dtype: DType) -> Number:
    """The number of a half dtype that a Python number is rounded to; one that changes from run to run stays."""
    return value if type(value) in FREE else finite(float(value), dtype)


def may_change(value: Number, dtype: DType) -> bool:
    """Whether a number of a captured step can be another one in each run: devices bring it to its 32 bits."""
    if dtype.kind is Kind.FLOAT:
        return True
    now = plain(value)
    is_integer = isinstance(now, int) and not isinstance(now, bool)
    return is_integer and dtype.itemsize >= 4 and dtype.kind is Kind.INT and HELD[dtype][0] <= now <= HELD[dtype][1]


def is_zero(value: Number, dtype: DType) -> bool:
    """Whether a number of arithmetic is 0 in a dtype of whole numbers, as 256 is in uint8."""
    return bool(value == 0) if HELD[dtype][0] <= value <= HELD[dtype][1] else wrapped(value, dtype) == 0


def current(value: Number, dtype: DType, *, bits: int = 32) -> Number:
    """What a number of a captured step is in a later run, for a device whose whole numbers have so many bits.

    Raises: IntegerOverflowError for an int64 that takes more.
    """
    low, high = HELD[dtype]
    if low <= value <= high or dtype.kind is Kind.BOOL:
        return value
    check_size(value)
    if dtype.kind is Kind.FLOAT:
        return finite(float(value), dtype if dtype is dtypes.float64 else dtypes.float32)
    if dtype is dtypes.int64 and bits == 32:
        raise too_wide(value)
    return wrapped(value, dtype)


def finite(value: float, dtype: DType) -> float:
    """The value, or the infinity that it is rounded to."""
    if dtype.family == "float8":
        nearest: float = import_module("pywebgpu.support.float8").nearest(finite(value, dtypes.float32), dtype)
        return nearest
    if not isfinite(value) or dtype is dtypes.float64:
        return value
    if dtype is dtypes.bfloat16:
        word = struct.unpack("I", struct.pack("f", finite(value, dtypes.float32)))[0]
        return float(struct.unpack("f", struct.pack("I", word + 0x7FFF + (word >> 16 & 1) & 0xFFFF0000))[0])
    try:
        rounded: float = struct.unpack(_FORMATS[dtype], struct.pack(_FORMATS[dtype], value))[0]
    except OverflowError:
        return copysign(inf, value)
    return rounded


def wrapped(value: Number, dtype: DType) -> int:
    low = int(dtype.low)
    return (int(value) - low) % (int(dtype.high) - low + 1) + low


def overflow(name: str) -> IntegerOverflowError:
    """Of an op on int64 whose result takes more than the 32 bits that it is stored in."""
    return IntegerOverflowError(
        f"{name}: a result does not fit, since webgpu stores int64 as int32; "
        "compute it on the cpu device, or in float32"
    )


def unsupported(dtype: DType, device: str) -> DTypeError:
    return DTypeError(
        f"Cannot convert a {device} Tensor to {dtype.name}: WebGPU has no {dtype.name}. "
        f'Use float32 instead, or device="cpu", where {dtype.name} is exact.'
    )


def too_wide(value: Number) -> IntegerOverflowError:
    return IntegerOverflowError(
        f"the int64 number {value} is out of range: webgpu stores int64 as int32; keep such numbers on the cpu device, "
        "or as float32"
    )
