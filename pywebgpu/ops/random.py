"""Counter-based random bits: Philox 4x32 with 10 rounds (Salmon et al. 2011), the same on every host.

Element i is word i mod 4 of block (i div 4, draw, stream, 0) under the 64-bit key. Key, stream and draw are four host
numbers, so a Program holds no seed and a draw uploads nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pywebgpu.ir.graph import Generator, Node, Spec

if TYPE_CHECKING:
    from types import ModuleType

    from numpy.typing import NDArray

Seed = tuple[Node, Node, Node, Node]  # low and high half of the key, stream, draw: uint32, shape ()

ROUNDS = 10
M0, M1 = 0xD2511F53, 0xCD9E8D57
W0, W1 = 0x9E3779B9, 0xBB67AE85
CHUNK = 1 << 14  # blocks that NumPy computes at a time: they stay in the cache


def philox(xp: ModuleType, counter: Sequence[NDArray[Any]], key: tuple[int, int]) -> tuple[NDArray[Any], ...]:
    """Four random words for each counter. counter: four arrays of uint64 that hold uint32 words."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    low, half = xp.uint64(0xFFFFFFFF), xp.uint64(32)
    for _ in range(ROUNDS):
        p0, p1 = c0 * xp.uint64(M0), c2 * xp.uint64(M1)
        c0, c2 = (p1 >> half) ^ c1 ^ xp.uint64(k0), (p0 >> half) ^ c3 ^ xp.uint64(k1)
        c1, c3 = p1 & low, p0 & low
        k0, k1 = (k0 + W0) & 0xFFFFFFFF, (k1 + W1) & 0xFFFFFFFF
    return c0, c1, c2, c3


def _bits(
    xp: ModuleType, low: NDArray[Any], high: NDArray[Any], stream: NDArray[Any], draw: NDArray[Any], spec: Spec
) -> NDArray[Any]:
    count = 1
    for n in spec.shape:
        count *= n
    words = xp.empty(((count + 3) // 4, 4), "uint32")
    rest = [xp.full(1, int(word), "uint64") for word in (draw, stream, 0)]
    for start in range(0, len(words), CHUNK):
        part = words[start : start + CHUNK]
        blocks = xp.arange(start, start + len(part), dtype="uint64")
        for at, word in enumerate(philox(xp, (blocks, *rest), (int(low), int(high)))):
            part[:, at] = word
    return words.reshape(-1)[:count].reshape(spec.shape)


bits: Generator = Generator("random_bits", _bits, is_free=False)  # (*seed, spec=uint32 of any shape)
