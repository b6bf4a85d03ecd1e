"""NumPy meanings that need more than one ufunc. `xp` is numpy; this module imports nothing of it."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from math import erf as _exact_erf
from math import erfc as _exact_erfc
from typing import TYPE_CHECKING, Any

from pywebgpu import dtypes
from pywebgpu.dtypes import DType, Kind
from pywebgpu.errors import of_row
from pywebgpu.ops.polynomials import ERF_P, ERF_Q, ERFINV_CENTRE, ERFINV_TAIL

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from numpy.typing import NDArray

# Held as values of a wider dtype that theirs can hold.
_FLOAT8 = tuple([dtype for dtype in dtypes.ALL if dtype.family == "float8"])
_NUMPY_NAMES = {"bfloat16": "float32", "complex32": "complex64"} | {dtype.name: "float32" for dtype in _FLOAT8}


def numpy_dtype(dtype: DType) -> str:
    return _NUMPY_NAMES.get(dtype.name, dtype.name)


def _horner(x: NDArray[Any], factors: tuple[float, ...]) -> NDArray[Any]:
    total: Any = factors[0]
    for factor in factors[1:]:
        total = total * x + factor
    return total


def erf(xp: ModuleType, x: NDArray[Any]) -> NDArray[Any]:
    if x.dtype == "float64":
        return xp.asarray(xp.frompyfunc(_exact_erf, 1, 1)(x), dtype="float64")
    clipped = xp.clip(upcast(xp, x), -4.0, 4.0)
    square = clipped * clipped
    return (clipped * _horner(square, ERF_P) / _horner(square, ERF_Q)).astype(x.dtype)


def erfc(xp: ModuleType, x: NDArray[Any]) -> NDArray[Any]:
    """Of float64."""
    return xp.asarray(xp.frompyfunc(_exact_erfc, 1, 1)(x), dtype="float64")


def erfinv(xp: ModuleType, x: NDArray[Any]) -> NDArray[Any]:
    with xp.errstate(divide="ignore", invalid="ignore"):
        w = -xp.log((1.0 - x) * (1.0 + x))
        centre = _horner(w - 2.5, ERFINV_CENTRE)
        tail = _horner(xp.sqrt(xp.maximum(w, 5.0)) - 3.0, ERFINV_TAIL)
        out = xp.where(w < 5.0, centre, tail) * x
        if x.dtype == "float64":
            size, below = xp.abs(out), 1.0 - xp.abs(x)
            for _ in range(4):  # Newton's steps from float32 to float64 accuracy, of log(erfc) where erf is nearly 1.
                rest = erfc(xp, size)
                residual = xp.where(size < 0.5, erf(xp, size) - xp.abs(x), -rest * xp.log(rest / below))
                size = size - residual / (1.1283791670955126 * xp.exp(-size * size))
            out = xp.copysign(size, x)
        out = xp.where(xp.abs(x) == 1.0, x * xp.inf, out)
        return xp.where(xp.abs(x) > 1.0, xp.nan, out).astype(x.dtype)


def sigmoid(xp: ModuleType, x: NDArray[Any]) -> NDArray[Any]:
    with xp.errstate(over="ignore"):
        return xp.reciprocal(1.0 + xp.exp(-x))


def sign(xp: ModuleType, x: NDArray[Any]) -> NDArray[Any]:
    if x.dtype.kind == "b":
        return x.copy()
    return xp.where(xp.isnan(x), xp.zeros((), x.dtype), xp.sign(x)) if x.dtype.kind == "f" else xp.sign(x)


def round_bfloat16(xp: ModuleType, x: NDArray[Any]) -> NDArray[Any]:
    """The nearest bfloat16 values, ties to even, kept as float32."""
    bits = xp.asarray(x, dtype="float32", order="C").view("uint32")
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).astype("uint32").view("float32")
    return xp.where(xp.isnan(x), xp.float32("nan"), rounded)


def round_complex32(xp: ModuleType, x: NDArray[Any]) -> NDArray[Any]:
    """Numbers whose parts are the nearest float16 values, kept as complex64."""
    with xp.errstate(over="ignore"):
        parts = xp.ascontiguousarray(x, "complex64").view("float32").astype("float16")
    return parts.astype("float32").view("complex64").reshape(x.shape)


def _round_float8(dtype: DType) -> Callable[[ModuleType, NDArray[Any]], NDArray[Any]]:
    return lambda xp, x: import_module("pywebgpu.support.float8").rounded(xp, x, dtype)


# What rounds to those that are kept as values of a wider dtype.
ROUNDED: dict[DType, Callable[[ModuleType, NDArray[Any]], NDArray[Any]]] = {
    dtypes.bfloat16: round_bfloat16,
    dtypes.complex32: round_complex32,
}
ROUNDED |= {dtype: _round_float8(dtype) for dtype in _FLOAT8}


def from_bytes(xp: ModuleType, data: Any, dtype: DType) -> NDArray[Any]:
    """Little-endian bytes of a dtype as an array, which shows the same memory unless values are kept wider."""
    if dtype is dtypes.bfloat16:
        return (xp.frombuffer(data, "uint16").astype("uint32") << 16).view("float32")
    if dtype is dtypes.complex32:
        return xp.frombuffer(data, "float16").astype("float32").view("complex64")
    if dtype.family == "float8":
        return import_module("pywebgpu.support.float8").from_bytes(xp, xp.frombuffer(data, "uint8"), dtype)
    return xp.frombuffer(data, numpy_dtype(dtype))


def stored(xp: ModuleType, array: NDArray[Any], dtype: DType) -> NDArray[Any]:
    """An array whose memory has the bytes of the dtype: itself, unless values are kept wider."""
    if dtype is dtypes.bfloat16:
        return (array.view("uint32") >> 16).astype("uint16")
    if dtype is dtypes.complex32:
        return array.reshape(-1).view("float32").astype("float16")
    if dtype.family == "float8":
        return import_module("pywebgpu.support.float8").to_bytes(xp, array, dtype)
    return array


def cast(xp: ModuleType, x: NDArray[Any], dtype: DType) -> NDArray[Any]:
    if x.dtype.kind == "c" and dtype.part is None and dtype.kind is not Kind.BOOL:
        x = x.real
    if dtype in ROUNDED:
        return ROUNDED[dtype](xp, x)
    if x.dtype.kind == "f" and dtype.kind is Kind.INT:
        with xp.errstate(invalid="ignore"):
            return x.astype("int64").astype(numpy_dtype(dtype))
    with xp.errstate(over="ignore"):
        return x.astype(numpy_dtype(dtype))


def _refuse_zero(a: NDArray[Any], divisor: NDArray[Any]) -> None:
    if divisor.dtype.kind != "f" and a.size and not divisor.all():
        raise RuntimeError("ZeroDivisionError")


def floor_divide(xp: ModuleType, a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    _refuse_zero(a, b)
    return xp.floor_divide(a, b)


def remainder(xp: ModuleType, a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    _refuse_zero(a, b)
    out = xp.remainder(a, b)
    return xp.where(out == 0, xp.copysign(out, a), out) if out.dtype.kind == "f" else out  # A zero has a's sign.


def fmod(xp: ModuleType, a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    _refuse_zero(a, b)
    return xp.fmod(a, b)


@cache
def _first_of_equals(xp: ModuleType, dtype: str) -> bool:
    """Whether of two equal numbers NumPy's maximum and minimum give the first: not of dtypes it has vectors for."""
    zero = xp.zeros(1, dtype)
    return bool(xp.signbit(xp.maximum(-zero, zero))[0])


def at_least(xp: ModuleType, x: NDArray[Any], low: NDArray[Any], into: NDArray[Any] | None = None) -> NDArray[Any]:
    """x, or `low` where that is larger: x itself where both are zeros, whose signs may differ."""
    return xp.maximum(x, low, out=into) if _first_of_equals(xp, x.dtype.char) else xp.maximum(low, x, out=into)


def at_most(xp: ModuleType, x: NDArray[Any], high: NDArray[Any]) -> NDArray[Any]:
    """x, or `high` where that is smaller: x itself where both are zeros, whose signs may differ."""
    return xp.minimum(x, high) if _first_of_equals(xp, x.dtype.char) else xp.minimum(high, x)


def index(xp: ModuleType, x: NDArray[Any], size: int, wrap: bool = True) -> NDArray[Any]:
    if not x.size:
        return x.copy()
    low, high = x.min(), x.max()
    if low < (-size if wrap else 0) or high >= size:
        bad = x[(x < (-size if wrap else 0)) | (x >= size)].flat[0]
        raise of_row(int(bad), size)
    return xp.where(x < 0, x + size, x)


def upcast(xp: ModuleType, x: NDArray[Any]) -> NDArray[Any]:
    """Sums and products of half floats are taken in float32."""
    return x.astype("float32") if x.dtype == "float16" else x


MANY = 1024  # elements from which arithmetic of bits is faster than NumPy's where
_WORDS = {"f": "i4", "i": "i4", "d": "i8", "l": "i8", "q": "i8"}


def where(
    xp: ModuleType, c: NDArray[Any], a: NDArray[Any], b: NDArray[Any], room: Callable[[], NDArray[Any]] | None = None
) -> NDArray[Any]:
    """NumPy's, by arithmetic of bits where that is possible: a fraction of the time, whatever the condition.

    room: gives an array of the result's kind to write to.
    """
    bits = _WORDS.get(a.dtype.char)
    if bits is None or a.dtype != b.dtype or c.dtype != bool or c.size < MANY or a.size + b.size <= c.size:
        return xp.where(c, a, b)
    chosen = xp.empty(c.shape, bits) if room is None else room().view(bits)
    other_bits, other = a.view(bits), b.view(bits)
    if other_bits.ndim == 0 and not other_bits:
        xp.subtract(c.view("i1"), 1, out=chosen)
        xp.bitwise_and(chosen, other, out=chosen)
        return chosen.view(a.dtype)
    xp.negative(c.view("i1"), out=chosen)
    if other.ndim == 0 and not other:
        xp.bitwise_and(chosen, other_bits, out=chosen)
        return chosen.view(a.dtype)
    xp.bitwise_and(xp.bitwise_xor(other_bits, other), chosen, out=chosen)
    xp.bitwise_xor(chosen, other, out=chosen)
    return chosen.view(a.dtype)
