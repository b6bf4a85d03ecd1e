"""What is to be done once objects ended, noted where they end and done in a later call.

A finaliser runs in any thread, in the middle of anything: it must not wait for a lock, whose owner may wait for what
the finaliser's thread holds, and Python drops the interrupt that is raised in it. So no Python code runs there.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any
from weakref import ref

if TYPE_CHECKING:
    from collections.abc import Iterator


class _End(ref[Any]):
    """A weak reference that knows what its object leaves."""

    __slots__ = ("left",)
    left: tuple[Any, ...]


class Ends:
    """The objects that are watched, and what those left that ended."""

    __slots__ = ("_alive", "_ended")

    def __init__(self) -> None:
        self._alive: dict[int, _End] = {}  # A reference that went before its object would tell nobody.
        self._ended: deque[_End] = deque()

    def watch(self, thing: object, *left: Any) -> None:
        """`left` comes back by `take` once `thing` ended, and must not refer to it."""
        end = _End(thing, self._ended.append)
        end.left = left
        self._alive[id(end)] = end

    def take(self) -> Iterator[tuple[Any, ...]]:
        """What was left since the last call, each once."""
        ended = self._ended
        while ended:
            try:
                end = ended.popleft()
            except IndexError:  # Another thread took it.
                return
            del self._alive[id(end)]
            yield end.left
