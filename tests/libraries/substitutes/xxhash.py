"""The hash xxh64, where the folder of Pyodide's wheels has no package xxhash.

Source: github.com/Cyan4973/xxHash, doc/xxhash_spec.md.
"""

import struct

_PRIMES = (
    0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5,
)  # fmt: skip
_MASK = (1 << 64) - 1


class xxh64:
    """The hash of bytes, or of a text's UTF-8."""

    def __init__(self, data=b"", seed=0):
        self._number = _hash(data.encode() if isinstance(data, str) else bytes(data), seed)

    def intdigest(self):
        return self._number

    def hexdigest(self):
        return f"{self._number:016x}"


def _turned(number, count):
    return (number << count | number >> (64 - count)) & _MASK


def _round(total, lane):
    return _turned((total + lane * _PRIMES[1]) & _MASK, 31) * _PRIMES[0] & _MASK


def _hash(data, seed):
    first, second, third, fourth, fifth = _PRIMES
    stripes = len(data) // 32
    total = (seed + fifth) & _MASK
    if stripes:
        sums = [(seed + offset) & _MASK for offset in (first + second, second, 0, -first)]
        for stripe in struct.iter_unpack("<4Q", data[: stripes * 32]):
            sums = [_round(value, lane) for value, lane in zip(sums, stripe, strict=True)]
        total = sum(_turned(value, count) for value, count in zip(sums, (1, 7, 12, 18), strict=True)) & _MASK
        for value in sums:
            total = ((total ^ _round(0, value)) * first + fourth) & _MASK
    total = (total + len(data)) & _MASK
    rest = data[stripes * 32 :]
    for (lane,) in struct.iter_unpack("<Q", rest[: len(rest) // 8 * 8]):
        total = (_turned(total ^ _round(0, lane), 27) * first + fourth) & _MASK
    rest = rest[len(rest) // 8 * 8 :]
    if len(rest) >= 4:
        total = (_turned(total ^ struct.unpack("<I", rest[:4])[0] * first & _MASK, 23) * second + third) & _MASK
        rest = rest[4:]
    for byte in rest:
        total = _turned(total ^ byte * fifth & _MASK, 11) * first & _MASK
    total = (total ^ total >> 33) * second & _MASK
    total = (total ^ total >> 29) * third & _MASK
    return total ^ total >> 32
