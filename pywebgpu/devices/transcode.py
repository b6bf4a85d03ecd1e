"""Elements <-> the 32-bit words that kernels see, without NumPy.

Whole buffers are converted by strided slices and by `array`, whose loops are C: a browser has nothing else at hand.
"""

from __future__ import annotations

import array
import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pywebgpu import dtypes, numbers
from pywebgpu.dtypes import DType, Kind

if TYPE_CHECKING:
    from pywebgpu.devices.base import Bytes

_SIGNS = bytes(128) + b"\xff" * 128  # the top byte of a number -> the byte that its sign fills
_CHUNK = 1 << 16  # elements that are Python numbers at a time


def to_words(data: Bytes, dtype: DType) -> Bytes:
    """Little-endian elements -> words, as bytes. Raises IntegerOverflowError for an int64 that an int32 cannot hold."""
    if dtype.itemsize == 4:
        return data
    raw = bytes(data)
    if dtype is dtypes.int64:
        return _narrowed(raw)
    if dtype is dtypes.float16:
        return _halves_to_floats(raw)
    words = bytearray(len(raw) // dtype.itemsize * 4)
    if dtype is dtypes.bfloat16:
        words[2::4], words[3::4] = raw[0::2], raw[1::2]
    elif dtype.itemsize == 2:
        words[0::4], words[1::4] = raw[0::2], raw[1::2]
        words[2::4] = words[3::4] = raw[1::2].translate(_SIGNS)
    else:
        words[0::4] = raw
        if dtype.low < 0:
            words[1::4] = words[2::4] = words[3::4] = raw.translate(_SIGNS)
    return words


def of_numbers(format_: struct.Struct, given: Sequence[Any], kinds: Sequence[DType]) -> bytes:
    """The host numbers of a run as words. Raises IntegerOverflowError for an int64 that an int32 cannot hold."""
    try:
        return format_.pack(*given)
    except (struct.error, OverflowError):
        return format_.pack(*[numbers.current(value, dtype) for value, dtype in zip(given, kinds, strict=True)])


def from_words(raw: bytes | bytearray, dtype: DType) -> bytes:
    """The opposite."""
    if dtype.kind is Kind.BOOL:
        return bytes(raw[0::4])
    if dtype.itemsize == 4:
        return bytes(raw)
    if dtype.itemsize == 1:
        return bytes(raw[0::4])
    if dtype is dtypes.float16:
        return _floats_to_halves(raw)
    if dtype is dtypes.bfloat16:
        return _interleaved(raw[2::4], raw[3::4])
    if dtype.itemsize == 2:
        return _interleaved(raw[0::4], raw[1::4])
    found = bytearray(2 * len(raw))
    for byte in range(4):
        found[byte::8] = raw[byte::4]
    found[4::8] = found[5::8] = found[6::8] = found[7::8] = bytes(raw[3::4]).translate(_SIGNS)
    return bytes(found)


def _narrowed(raw: bytes) -> bytearray:
    signs = raw[3::8].translate(_SIGNS)
    if any(raw[byte::8] != signs for byte in (4, 5, 6, 7)):
        raise numbers.too_wide(next(value for value in array.array("q", raw) if not -(2**31) <= value < 2**31))
    words = bytearray(len(raw) // 2)
    for byte in range(4):
        words[byte::4] = raw[byte::8]
    return words


def _interleaved(low: bytes | bytearray, high: bytes | bytearray) -> bytes:
    found = bytearray(2 * len(low))
    found[0::2], found[1::2] = low, high
    return bytes(found)


def _halves_to_floats(raw: bytes) -> bytes:
    count = len(raw) // 2
    parts = []
    for start in range(0, count, _CHUNK):
        n = min(_CHUNK, count - start)
        parts.append(array.array("f", struct.unpack_from(f"<{n}e", raw, 2 * start)).tobytes())
    return b"".join(parts)


def _floats_to_halves(raw: bytes | bytearray) -> bytes:
    """The words hold numbers that a float16 can hold: rounded when they were made."""
    values = array.array("f", bytes(raw))
    parts = []
    for start in range(0, len(values), _CHUNK):
        part = values[start : start + _CHUNK]
        parts.append(struct.pack(f"<{len(part)}e", *part))
    return b"".join(parts)
