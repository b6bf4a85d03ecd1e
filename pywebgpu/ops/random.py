"""Counter-based random bits: Philox 4x32 with 10 rounds (Salmon et al. 2011), the same on every host.

Element i is word i mod 4 of block (i div 4, draw, stream, 0) under the 64-bit key. Key, stream and draw are four host
numbers, so a Program holds no seed and a draw uploads nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any

from pywebgpu.ir.graph import Generator, Node, Spec

if TYPE_CHECKING:
    from types import ModuleType

    from numpy.typing import NDArray

Seed = tuple[Node, Node, Node, Node]  # low and high half of the key, stream, draw: uint32, shape ()

ROUNDS = 10
M0, M1 = 0xD2511F53, 0xCD9E8D57
W0, W1 = 0x9E3779B9, 0xBB67AE85
CHUNK = 1 << 12  # blocks that NumPy computes at a time: they stay in the cache
FEW = 6  # blocks that Python computes faster
WORD = 0xFFFFFFFF
Words = tuple[int, int, int, int]


def philox(counter: Sequence[int], key: tuple[int, int]) -> Words:
    """Four random words for a counter of four."""
    (c0, c1, c2, c3), (k0, k1) = counter, key
    for _ in range(ROUNDS):
        p0, p1 = c0 * M0, c2 * M1
        c0, c1, c2, c3 = (p1 >> 32) ^ c1 ^ k0, p1 & WORD, (p0 >> 32) ^ c3 ^ k1, p0 & WORD
        k0, k1 = (k0 + W0) & WORD, (k1 + W1) & WORD
    return c0, c1, c2, c3


@lru_cache(16)
def _keys(xp: ModuleType, low: int, high: int) -> list[NDArray[Any]]:
    """The key of each round, a column."""
    rounds = range(ROUNDS)
    return [xp.array([[(low + W0 * step) & WORD], [(high + W1 * step) & WORD]], "uint64") for step in rounds]


def _blocks(xp: ModuleType, start: int, draw: int, stream: int, keys: list[NDArray[Any]], out: NDArray[Any]) -> None:
    """philox for all blocks from `start` on, both of its products as one. out: (blocks, 4)."""
    factors, word, half = xp.array([[M1], [M0]], "uint64"), xp.uint64(WORD), xp.uint64(32)
    even, odd, product = xp.empty((3, 2, len(out)), "uint64")
    even[0], even[1] = stream, xp.arange(start, start + len(out), dtype="uint64")  # counters 2 and 0
    odd[0], odd[1] = draw, 0  # counters 1 and 3
    for key in keys:
        xp.multiply(even, factors, product)
        xp.right_shift(product, half, even)
        xp.bitwise_xor(even, odd, even)
        xp.bitwise_xor(even, key, even)
        xp.bitwise_and(product, word, odd)
        even = even[::-1]
    out[:, 0::2], out[:, 1::2] = even[::-1].T, odd.T


def _bits(
    xp: ModuleType, low: NDArray[Any], high: NDArray[Any], stream: NDArray[Any], draw: NDArray[Any], spec: Spec
) -> NDArray[Any]:
    count = prod(spec.shape)
    key, counter = (int(low), int(high)), (int(draw), int(stream))
    if count <= 4 * FEW:
        blocks = [philox((block, *counter, 0), key) for block in range(-(-count // 4))]
        words = xp.array(blocks, "uint32")
    else:
        words = xp.empty(((count + 3) // 4, 4), "uint32")
        for start in range(0, len(words), CHUNK):
            _blocks(xp, start, *counter, _keys(xp, *key), words[start : start + CHUNK])
    return words.reshape(-1)[:count].reshape(spec.shape)


bits: Generator = Generator("random_bits", _bits, is_free=False)  # (*seed, spec=uint32 of any shape)
