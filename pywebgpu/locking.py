"""Work that finalisers ask for, done under a lock.

A finaliser runs in any thread, in the middle of anything: it must not wait for a lock, whose owner may wait for what
the finaliser's thread holds.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import threading


class Deferred:
    """Calls of `action`, each made as soon as `lock`, which is re-entrant, is free."""

    __slots__ = ("_action", "_calls", "_lock")

    def __init__(self, lock: threading.RLock, action: Callable[..., None]) -> None:
        self._lock, self._action = lock, action
        self._calls: deque[tuple[Any, ...]] = deque()

    def __call__(self, *args: Any) -> None:
        if self._lock.acquire(blocking=False):
            try:
                self._action(*args)
                if self._calls:
                    self.run()
            finally:
                self._lock.release()
        else:
            self._calls.append(args)

    def run(self) -> None:
        """Makes the calls that wait. The lock is held."""
        while self._calls:
            try:
                args = self._calls.popleft()
            except IndexError:  # A collection of garbage in between made it.
                return
            self._action(*args)
