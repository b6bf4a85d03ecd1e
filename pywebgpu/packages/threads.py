"""Threads where there are none: what a thread would do is done by the call that starts it.

So it is in Pyodide. A pool's `submit` calls; `Thread.start` calls, and the thread has ended when it returns. Daemons do
not start, as before: they wait for others.
"""

from __future__ import annotations

import sys
import threading
from concurrent import futures
from typing import Any


def install() -> None:
    """Replaces them for this process, once; nothing changes where threads start."""
    info = getattr(sys, "_emscripten_info", None)
    if info is not None and not info.pthreads:
        setattr(futures.ThreadPoolExecutor, "submit", submit)  # noqa: B010 - mypy refuses to assign to a method
        threading.Thread = Thread  # type: ignore[misc]


def submit(self: Any, fn: Any, /, *args: Any, **kwargs: Any) -> futures.Future[Any]:
    """The result of a call, or what it raised, as a future."""
    if self._shutdown:
        raise RuntimeError("cannot schedule new futures after shutdown")
    future: futures.Future[Any] = futures.Future()
    future.set_running_or_notify_cancel()
    try:
        future.set_result(fn(*args, **kwargs))
    except Exception as error:
        future.set_exception(error)
    return future


class Thread(threading.Thread):
    """A thread that runs when it is started."""

    _has_run = False

    def start(self) -> None:
        if self.daemon:
            super().start()
            return
        if self._has_run:
            raise RuntimeError("threads can only be started once")
        self._has_run = True
        try:
            self.run()
        except SystemExit:
            pass
        except Exception:
            threading.excepthook(threading.ExceptHookArgs((*sys.exc_info(), self)))

    def join(self, timeout: float | None = None) -> None:
        if not self._has_run:
            raise RuntimeError("cannot join thread before it is started")

    def is_alive(self) -> bool:
        return False
