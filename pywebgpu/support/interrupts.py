"""Ctrl-C that waits: between a submit and the host's note of what it did, an interrupt raises nothing.

Python raises KeyboardInterrupt between any two calls, also where a device has its commands and a step count is still
the old one. Only the main thread runs signal handlers, so elsewhere these blocks do nothing.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` makes an enum of each handler, in twenty times the time.
import os
import threading
from signal import SIGINT
from threading import get_ident
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

_set, _get, _NUMBER = _signal.signal, _signal.getsignal, int(SIGINT)


class _State:
    """Of the main thread.

    depth: how many blocks hold interrupts back. before: the program's own handler, while ours is in its place.
    thread: its number; None where no thread may set handlers.
    """

    __slots__ = ("before", "depth", "is_pending", "thread")

    def __init__(self) -> None:
        self.before: Callable[[int, FrameType | None], object] | None = None
        self.depth = 0
        self.is_pending = False
        self.enter_main_thread()

    def enter_main_thread(self) -> None:
        self.thread: int | None = threading.main_thread().ident


_state = _State()
if hasattr(os, "register_at_fork"):  # The thread that forked is the main one of the child.
    os.register_at_fork(after_in_child=_state.enter_main_thread)


def _note(number: int, frame: FrameType | None) -> None:
    """Our handler."""
    state = _state
    if state.depth:
        state.is_pending = True
    else:
        _deliver(frame)


def _deliver(frame: FrameType | None = None) -> None:
    """Hands an interrupt to the program's handler. What an exception of it leaves is not interrupted once more."""
    state = _state
    before = state.before
    state.is_pending, state.depth = False, 1
    if before is not None:
        before(_NUMBER, frame)
    state.depth = 0


class held:
    """An interrupt that comes inside the block is raised at its end. Blocks may stand inside one another."""

    __slots__ = ("_depth", "_installed")

    def __enter__(self) -> None:
        self._depth, self._installed = -1, False
        state = _state
        if get_ident() != state.thread:
            return
        if state.before is None:
            before: Any = _get(_NUMBER)
            if not callable(before):  # Nothing raises here, or the process ends.
                return
            state.depth, state.before = 1, before
            try:
                _set(_NUMBER, _note)
            except BaseException as error:
                state.depth, state.before = 0, None
                if not isinstance(error, ValueError):
                    raise
                state.thread = None  # Python says so where the main thread is one that it does not know.
            else:
                self._depth, self._installed = 0, True
            return
        self._depth, state.depth = state.depth, state.depth + 1

    def __exit__(self, *_: object) -> None:
        depth, state = self._depth, _state
        if depth < 0:
            return
        if not self._installed:
            state.depth = depth
            if not depth and state.is_pending:
                _deliver()
            return
        before: Any = state.before
        try:
            if _get(_NUMBER) is _note:  # A program may set its own inside.
                _set(_NUMBER, before)
        finally:
            is_pending, state.is_pending, state.depth, state.before = state.is_pending, False, 0, None
        if is_pending:
            before(_NUMBER, None)


class allowed:
    """Inside a block of `held`, a part that may be interrupted; not where that block is a part of another one."""

    __slots__ = ("_is_open",)

    def __enter__(self) -> None:
        state = _state
        self._is_open = state.depth == 1 and get_ident() == state.thread
        if self._is_open:
            if state.is_pending:
                _deliver()
            state.depth = 0

    def __exit__(self, *_: object) -> None:
        if self._is_open:
            _state.depth = 1
