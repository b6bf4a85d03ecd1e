"""Buffers that wait to be used again, by size class, within a budget.

Apart from the devices because both hosts of WebGPU reuse buffers by the same rule: the queue runs in order, so a buffer
may be handed out as soon as the last submit that uses it was queued.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

BUDGET = 1 << 30  # bytes that may wait unused


def size_class(nbytes: int) -> int:
    """Rounds up to one of eight sizes between powers of two: at most an eighth, or 255 bytes, is wasted."""
    if nbytes <= 256:
        return 256
    step = 1 << max((nbytes - 1).bit_length() - 4, 8)
    return -(-nbytes // step) * step


class Pool:
    """`make(size)` creates a buffer, `destroy(buffer)` ends one; the pool decides when."""

    def __init__(self, make: Callable[[int], Any], destroy: Callable[[Any], None], budget: int = BUDGET) -> None:
        self._make, self._destroy = make, destroy
        self.budget = budget
        self.waiting_bytes = self.created = self.reused = 0
        self._closed = False
        self._waiting: OrderedDict[int, list[Any]] = OrderedDict()

    def take(self, nbytes: int) -> Any:
        size = size_class(nbytes)
        stack = self._waiting.get(size)
        if stack:
            self.waiting_bytes -= size
            self.reused += 1
            self._waiting.move_to_end(size)
            return stack.pop()
        self.created += 1
        return self._make(size)

    def give(self, buffer: Any, nbytes: int) -> None:
        if self._closed:
            return
        size = size_class(nbytes)
        self._waiting.setdefault(size, []).append(buffer)
        self._waiting.move_to_end(size)
        self.waiting_bytes += size
        while self.waiting_bytes > self.budget:
            oldest = next(size for size, stack in self._waiting.items() if stack)
            self._destroy(self._waiting[oldest].pop(0))
            self.waiting_bytes -= oldest

    def close(self) -> None:
        """Ends what waits; what comes back later belongs to a device that is gone."""
        self.clear()
        self._closed = True

    def clear(self) -> None:
        for stack in self._waiting.values():
            for buffer in stack:
                self._destroy(buffer)
        self._waiting.clear()
        self.waiting_bytes = 0


@dataclass(slots=True, eq=False)
class Chunk:
    """Memory for values inside Programs, and how many Programs have it."""

    buffer: Any
    nbytes: int
    users: int = 0


class Scratch:
    """Memory for what passes inside Programs. They share it, because a queue runs one of them at a time."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._chunks: list[Chunk] = []

    @property
    def nbytes(self) -> int:
        return sum(chunk.nbytes for chunk in self._chunks)

    def take(self, sizes: dict[int, int]) -> dict[int, Chunk]:
        """The bytes of a Program's scratch buffers -> a chunk for each: the smallest that is large enough."""
        free = sorted(self._chunks, key=lambda chunk: chunk.nbytes)
        found: dict[int, Chunk] = {}
        for buffer, nbytes in sorted(sizes.items(), key=lambda item: -item[1]):
            chunk = next((chunk for chunk in free if chunk.nbytes >= nbytes), None)
            if chunk is None:
                chunk = Chunk(self._pool.take(nbytes), size_class(nbytes))
                self._chunks.append(chunk)
            else:
                free.remove(chunk)
            chunk.users += 1
            found[buffer] = chunk
        return found

    def give(self, chunks: Iterable[Chunk]) -> None:
        """Takes back what a Program had; the pool gets what no other one has."""
        for chunk in chunks:
            chunk.users -= 1
            if not chunk.users:
                self._chunks.remove(chunk)
                self._pool.give(chunk.buffer, chunk.nbytes)
