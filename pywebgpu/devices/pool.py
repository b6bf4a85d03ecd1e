"""Buffers that wait to be used again, by size class, within a budget.

Apart from the devices because both hosts of WebGPU reuse buffers by the same rule: the queue runs in order, so a buffer
may be handed out as soon as the last submit that uses it was queued. js_bridge/pool.mjs is the same in JavaScript;
tests/cases/device_memory.json holds both.
"""

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

B = TypeVar("B")
BUDGET = 1 << 30  # bytes that may wait unused


def size_class(nbytes: int) -> int:
    """Rounds up to one of eight sizes between powers of two: at most an eighth, 255 bytes, or 1 MiB is wasted."""
    if nbytes <= 256:
        return 256
    step = 1 << min(max((nbytes - 1).bit_length() - 4, 8), 20)
    return -(-nbytes // step) * step


class Pool(Generic[B]):
    """`make(size)` creates a buffer, `destroy(buffer)` ends one; the pool decides when."""

    def __init__(self, make: Callable[[int], B], destroy: Callable[[B], None], budget: int = BUDGET) -> None:
        self._make, self._destroy = make, destroy
        self.budget = budget
        self.waiting_bytes = self.created = self.reused = 0
        self._closed = False
        self._waiting: OrderedDict[int, list[B]] = OrderedDict()  # by class, the one last given to last; each by age
        self._made: dict[int, int] = {}  # by id of a buffer: the how-manieth it was

    def take(self, nbytes: int) -> B:
        size = size_class(nbytes)
        stack = self._waiting.get(size)
        if stack:
            self.waiting_bytes -= size
            self.reused += 1
            return stack.pop()
        self.created += 1
        buffer = self._make(size)
        self._made[id(buffer)] = self.created
        return buffer

    def give(self, buffer: B, nbytes: int) -> None:
        if self._closed:
            return
        size = size_class(nbytes)
        assert id(buffer) in self._made, "pool: a buffer comes back that was not taken here, or has ended"
        # The oldest on top: the same requests get the same buffers again, so bind groups made for them serve again.
        stack = self._waiting.setdefault(size, [])
        index = bisect_left(stack, self._youth(buffer), key=self._youth)
        assert index == len(stack) or stack[index] is not buffer, "pool: a buffer comes back twice"
        stack.insert(index, buffer)
        self._waiting.move_to_end(size)
        self.waiting_bytes += size
        if self.waiting_bytes > self.budget:
            self._shrink(self.budget)

    def lose(self, buffer: B) -> None:
        """Ends a buffer that was taken and must not be used again."""
        self._made.pop(id(buffer), None)
        self._destroy(buffer)

    def close(self) -> None:
        """Ends what waits; what comes back later belongs to a device that is gone."""
        self.clear()
        self._closed = True

    def clear(self) -> None:
        self._shrink(0)

    def _youth(self, buffer: B) -> int:
        return -self._made[id(buffer)]

    def _shrink(self, budget: int) -> None:
        """Ends the class first that nothing was given to for longest; in it the youngest, in the fewest bind groups."""
        for size, stack in list(self._waiting.items()):
            while stack and self.waiting_bytes > budget:
                buffer = stack.pop(0)
                self._made.pop(id(buffer), None)
                self.waiting_bytes -= size
                self._destroy(buffer)
            if not stack:
                del self._waiting[size]


@dataclass(slots=True, eq=False)
class Chunk:
    """Memory for values inside Programs, and how many Programs have it."""

    buffer: Any
    nbytes: int
    users: int = 0


class Scratch:
    """Memory for what passes inside Programs. They share it, because a queue runs one of them at a time."""

    def __init__(self, pool: Pool[Any]) -> None:
        self._pool = pool
        self._chunks: list[Chunk] = []

    @property
    def nbytes(self) -> int:
        return sum(chunk.nbytes for chunk in self._chunks)

    def take(self, sizes: dict[int, int]) -> dict[int, Chunk]:
        """The bytes of a Program's scratch buffers -> a chunk for each: the smallest that is large enough."""
        free = sorted(self._chunks, key=lambda chunk: chunk.nbytes)
        chunks: dict[int, Chunk] = {}
        for buffer, nbytes in sorted(sizes.items(), key=lambda item: -item[1]):
            chunk = next((chunk for chunk in free if chunk.nbytes >= nbytes), None)
            if chunk is None:
                chunk = Chunk(self._pool.take(nbytes), size_class(nbytes))
                self._chunks.append(chunk)
            else:
                free.remove(chunk)
            chunk.users += 1
            chunks[buffer] = chunk
        return chunks

    def give(self, chunks: Iterable[Chunk]) -> None:
        """Takes back what a Program had; the pool gets what no other one has."""
        for chunk in chunks:
            chunk.users -= 1
            if not chunk.users:
                self._chunks.remove(chunk)
                self._pool.give(chunk.buffer, chunk.nbytes)
