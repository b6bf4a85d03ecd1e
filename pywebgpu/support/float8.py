"""Floats of 8 bits: what each of the 256 bytes means, and the nearest byte to a number.

A kind has a sign, an exponent and a fraction, and says which bytes are no numbers. "fn" has no infinities; "uz" has one
zero, and its only NaN where the other has -0. A number that is too large becomes the largest, an infinity or NaN, as in
PyTorch. float8_e8m0fnu has an exponent alone: it is a scale, and holds neither 0 nor negative numbers.
Source: Micikevicius et al. 2022 (arXiv 2209.05433); OCP Microscaling Formats 1.0.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from functools import cache
from math import copysign, frexp, inf, isnan, ldexp, nan
from typing import TYPE_CHECKING, Any, NamedTuple

from pywebgpu import dtypes
from pywebgpu.dtypes import DType

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import ModuleType

    from numpy.typing import NDArray


class Kind(NamedTuple):
    """n_fraction: bits of the fraction.  bias: of the exponent.  too_large: what a number beyond the last becomes."""

    n_fraction: int
    bias: int
    too_large: float | None  # None: the largest

    @property
    def smallest_normal(self) -> int:
        """The exponent of the smallest number with all bits of its fraction."""
        return 1 - self.bias


KINDS = {
    dtypes.float8_e4m3fn: Kind(3, 7, None),
    dtypes.float8_e5m2: Kind(2, 15, inf),
    dtypes.float8_e4m3fnuz: Kind(3, 8, nan),
    dtypes.float8_e5m2fnuz: Kind(2, 16, nan),
    dtypes.float8_e8m0fnu: Kind(0, 127, nan),
}
_NAN = {dtypes.float8_e8m0fnu: 0xFF, dtypes.float8_e4m3fnuz: 0x80, dtypes.float8_e5m2fnuz: 0x80}  # else 0x7f


@cache
def values(dtype: DType) -> tuple[float, ...]:
    """What each byte means."""
    if dtype is dtypes.float8_e8m0fnu:
        return (*(ldexp(1.0, byte - 127) for byte in range(255)), nan)
    positive = [_positive(byte, dtype) for byte in range(128)]
    negative = [-value for value in positive]
    if dtype.name.endswith("uz"):
        negative[0] = nan
    return (*positive, *negative)


def _positive(byte: int, dtype: DType) -> float:
    kind = KINDS[dtype]
    exponent, fraction = byte >> kind.n_fraction, byte & (1 << kind.n_fraction) - 1
    if exponent == 0:
        return ldexp(fraction, kind.smallest_normal - kind.n_fraction)
    value = ldexp((1 << kind.n_fraction) + fraction, exponent - kind.bias - kind.n_fraction)
    if value <= dtype.high:
        return value
    return inf if dtype is dtypes.float8_e5m2 and fraction == 0 else nan


@cache
def _numbers(dtype: DType) -> list[float]:
    """Those that are not negative and finite, which the bytes count up."""
    return [value for value in values(dtype)[: 255 if dtype.low > 0 else 128] if value < inf]


def nearest(value: float, dtype: DType) -> float:
    """The nearest number of the dtype, the even one of two, of a number of float32."""
    kind, size = KINDS[dtype], abs(value)
    if isnan(value):
        return nan
    if dtype.low > 0 and size == inf:
        return nan
    if size != inf:
        exponent = frexp(size)[1] - 1 if size else kind.smallest_normal
        step = max(exponent, kind.smallest_normal) - kind.n_fraction
        if dtype.low > 0:  # Half a step up is up; between the two smallest, anything is.
            exponent = max(exponent, -127) if size else -127
            size = ldexp(1.0, exponent + (size >= ldexp(1.5, exponent) if exponent > -127 else size > dtype.low))
        else:
            size = ldexp(round(ldexp(size, -step)), step)
    if size > dtype.high:
        size = dtype.high if kind.too_large is None else kind.too_large
    if dtype.low > 0:
        return size
    return copysign(size, value) if size or not dtype.name.endswith("uz") else 0.0


def encode(numbers: Iterable[float], dtype: DType) -> bytes:
    """The bytes of the nearest numbers."""
    ordered, encoded = _numbers(dtype), bytearray()
    for number in numbers:
        value = nearest(_single(number), dtype)
        if isnan(value):
            encoded.append(_NAN.get(dtype, 0x7F))
        else:
            byte = bisect_left(ordered, abs(value)) if abs(value) < inf else 0x7C
            encoded.append(byte | (0x80 if copysign(1.0, value) < 0 else 0))
    return bytes(encoded)


def _single(number: float) -> float:
    """The nearest number of float32, through which PyTorch rounds."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", number))[0])
    except OverflowError:
        return copysign(inf, number)


def decode(data: bytes, dtype: DType) -> list[float]:
    return list(map(values(dtype).__getitem__, data))


# The same of arrays. `xp` is numpy. Values are kept as float32.


@cache
def _table(xp: ModuleType, dtype: DType) -> NDArray[Any]:
    return xp.array(values(dtype), "float32")  # type: ignore[no-any-return]


def from_bytes(xp: ModuleType, data: NDArray[Any], dtype: DType) -> NDArray[Any]:
    return _table(xp, dtype)[data]  # type: ignore[no-any-return]


def to_bytes(xp: ModuleType, x: NDArray[Any], dtype: DType) -> NDArray[Any]:
    """Of numbers that the dtype has."""
    ordered = xp.array(_numbers(dtype), "float32")
    size = xp.abs(x)
    codes = xp.searchsorted(ordered, size).astype("uint8")
    if dtype.low < 0:
        codes = xp.where(xp.isinf(x), 0x7C, codes) | xp.where(xp.signbit(x), 0x80, 0)
    return xp.where(xp.isnan(x), _NAN.get(dtype, 0x7F), codes).astype("uint8")  # type: ignore[no-any-return]


def rounded(xp: ModuleType, x: NDArray[Any], dtype: DType) -> NDArray[Any]:
    """The nearest numbers of the dtype."""
    kind = KINDS[dtype]
    with xp.errstate(all="ignore"):
        narrow = xp.asarray(x, "float32")
        size = xp.abs(narrow).astype("float64")
        exponent = xp.frexp(size)[1] - 1
        if dtype.low > 0:
            exponent = xp.maximum(xp.where(size == 0, -127, exponent), -127)
            up = xp.where(exponent > -127, size >= xp.ldexp(1.5, exponent), size > dtype.low)
            rounded_size = xp.where(xp.isinf(size), xp.nan, xp.ldexp(1.0, exponent + up))
        else:
            step = xp.maximum(xp.where(size == 0, kind.smallest_normal, exponent), kind.smallest_normal)
            step = step - kind.n_fraction
            rounded_size = xp.where(xp.isinf(size), xp.inf, xp.ldexp(xp.rint(xp.ldexp(size, -step)), step))
        rounded_size = xp.where(
            rounded_size > dtype.high, dtype.high if kind.too_large is None else kind.too_large, rounded_size
        )
        if dtype.low < 0:
            rounded_size = xp.copysign(rounded_size, narrow)
        if dtype.name.endswith("uz"):
            rounded_size = rounded_size + 0.0  # No -0.
        return xp.where(xp.isnan(narrow), xp.nan, rounded_size).astype("float32")  # type: ignore[no-any-return]
