"""Elements <-> the bytes of a buffer, which are the same but for int64, and whole words.

Without NumPy, by strided slices, whose loops are C: a browser has nothing else at hand.
"""

from __future__ import annotations

import array
import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pywebgpu import dtypes
from pywebgpu.dtypes import DType
from pywebgpu.support import numbers
from pywebgpu.support.formats import WORD

if TYPE_CHECKING:
    from pywebgpu.devices.base import Bytes

_SIGNS = bytes(128) + b"\xff" * 128  # the top byte of a number -> the byte that its sign fills
_TRUTHS = b"\0" + b"\1" * 255  # a byte -> that of a bool


def stored(data: Bytes, dtype: DType) -> Bytes:
    """Little-endian elements -> a buffer's bytes. Raises IntegerOverflowError for an int64 that no int32 can hold."""
    if dtype is dtypes.int64:
        return _narrowed(bytes(data))
    if dtype is dtypes.bool_:
        data = bytes(data).translate(_TRUTHS)  # A kernel takes it for granted that nothing else is there.
    rest = -memoryview(data).nbytes % WORD
    return bytes(data) + bytes(rest) if rest else data


def elements(raw: bytes | bytearray, dtype: DType, count: int) -> bytes:
    """The opposite, of `count` elements."""
    if dtype is not dtypes.int64:
        return bytes(raw[: count * dtype.itemsize])
    encoded = bytearray(2 * len(raw))
    for byte in range(4):
        encoded[byte::8] = raw[byte::4]
    encoded[4::8] = encoded[5::8] = encoded[6::8] = encoded[7::8] = bytes(raw[3::4]).translate(_SIGNS)
    return bytes(encoded)


def of_numbers(format_: struct.Struct, values: Sequence[Any], kinds: Sequence[DType]) -> bytes:
    """The host numbers of a run as words. Raises IntegerOverflowError for an int64 that an int32 cannot hold."""
    try:
        return format_.pack(*values)
    except (struct.error, OverflowError):
        return format_.pack(*[numbers.current(value, dtype) for value, dtype in zip(values, kinds, strict=True)])


def _narrowed(raw: bytes) -> bytearray:
    signs = raw[3::8].translate(_SIGNS)
    if any(raw[byte::8] != signs for byte in (4, 5, 6, 7)):
        raise numbers.too_wide(next(value for value in array.array("q", raw) if not -(2**31) <= value < 2**31))
    words = bytearray(len(raw) // 2)
    for byte in range(4):
        words[byte::4] = raw[byte::8]
    return words
