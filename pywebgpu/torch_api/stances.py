"""torch.compiler.set_stance: whether compiled functions run as ordinary ones. A switch that changes nothing."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

from pywebgpu.ir.graph import thread_state

F = TypeVar("F", bound=Callable[..., Any])
EAGER = "force_eager"
# All but the first of these say when to compile: results are those of ordinary code in any case.
STANCES = ("default", EAGER, "eager_on_recompile", "eager_then_compile", "aot_eager_then_compile")


class _Thread(threading.local):
    stance = "default"


_thread = _Thread()


class set_stance:
    """A function, a context manager and a decorator. Of this thread.

    Raises RuntimeError for a name that is no stance, and NotImplementedError for "fail_on_recompile".
    """

    def __init__(
        self, stance: str = "default", *, skip_guard_eval_unsafe: bool = False, force_backend: object = None
    ) -> None:
        if stance == "fail_on_recompile":
            raise NotImplementedError("set_stance: explain() says what is captured anew, and why; nothing fails")
        if stance not in STANCES:
            raise RuntimeError(f"invalid torch.compiler.set_stance stance: {stance}, expected one of {STANCES}")
        if force_backend is not None and stance != "default":
            raise RuntimeError("non-default stance cannot have force_backend set")
        self._stance, self._before = stance, _thread.stance
        _set(stance)

    def __enter__(self) -> None:
        _set(self._stance)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _set(self._before)

    def __call__(self, function: F) -> F:
        _set(self._before)

        @functools.wraps(function)
        def wrapped(*args: Any, **options: Any) -> object:
            with set_stance(self._stance):
                return function(*args, **options)

        return wrapped  # type: ignore[return-value]  # The wrapper has the function's signature.


def _set(stance: str) -> None:
    thread_state.n_ordinary += (stance == EAGER) - (_thread.stance == EAGER)
    _thread.stance = stance


_multithreading = [True]


class set_multithreading_enabled:
    """Sets what is_multithreading_enabled() says, at once; as a context manager up to its end. Backward runs in the
    thread that calls it anyhow."""

    def __init__(self, mode: bool) -> None:
        self._before, _multithreading[0] = _multithreading[0], bool(mode)

    def __enter__(self) -> None: ...

    def __exit__(self, *error: object) -> None:
        _multithreading[0] = self._before


def is_multithreading_enabled() -> bool:
    """What was set."""
    return _multithreading[0]
