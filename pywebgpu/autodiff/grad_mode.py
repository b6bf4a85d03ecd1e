"""Switches for remembering history: no_grad, enable_grad, inference_mode, set_grad_enabled.

Each is a context manager and a decorator, as in torch.
"""

import functools
from collections.abc import Callable, Generator
from types import TracebackType
from typing import Any, Self, TypeVar

from pywebgpu.ir.graph import thread_state, used

F = TypeVar("F", bound=Callable[..., Any])
GENERATOR = 0x20  # the flag of a generator function's code


class _Switch:
    """Sets the mode inside a `with` block or a decorated function."""

    def __init__(self, mode: bool) -> None:
        self._mode = mode
        self._before: list[bool] = []

    def __enter__(self) -> Self:
        self._before.append(thread_state.grad)
        thread_state.grad = _records(self._mode)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        before = self._before
        thread_state.grad = before[-1]  # Before any call, after which an interrupt may come.
        before.pop()

    def __call__(self, function: F) -> F:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> object:
            with self._again():
                return function(*args, **kwargs)

        @functools.wraps(function)
        def steps(*args: Any, **kwargs: Any) -> Generator[Any, Any, object]:
            inner = function(*args, **kwargs)
            resume: Callable[[], Any] = functools.partial(inner.send, None)
            while True:
                with self._again():  # Around each step: the caller's code between two of them has its own mode.
                    try:
                        value = resume()
                    except StopIteration as stop:
                        return stop.value
                try:
                    sent = yield value
                except GeneratorExit:
                    with self._again():
                        inner.close()
                    raise
                except BaseException as error:
                    resume = functools.partial(inner.throw, error)
                else:
                    resume = functools.partial(inner.send, sent)

        code = getattr(function, "__code__", None)
        if code is not None and code.co_flags & GENERATOR:
            return steps  # type: ignore[return-value]  # The wrapper has the function's signature.
        return wrapped  # type: ignore[return-value]  # The wrapper has the function's signature.

    def _again(self) -> "_Switch":
        return _Switch(self._mode)


class no_grad(_Switch):
    """Nothing inside is remembered for gradients."""

    def __init__(self, function: object = None) -> None:
        super().__init__(False)
        self._function = function

    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        switch = super().__new__(cls)
        if function is None:
            return switch
        _Switch.__init__(switch, False)
        return switch(function)


class enable_grad(_Switch):
    """Everything inside is remembered, also within no_grad."""

    def __new__(cls, orig_func: Callable[..., Any] | None = None) -> Any:
        switch = super().__new__(cls)
        if orig_func is None:
            return switch
        _Switch.__init__(switch, True)
        return switch(orig_func)

    def __init__(self, orig_func: object = None) -> None:
        super().__init__(True)


class keeping_history(_Switch):
    """For a value that goes on to have the history of what it was: it is recorded in inference_mode too."""

    def __init__(self) -> None:
        super().__init__(True)

    def __enter__(self) -> Self:
        self._before.append(thread_state.grad)
        thread_state.grad = True
        return self


class inference_mode(_Switch):
    """As no_grad; tensors made inside say so in `is_inference`. Usable with and without parentheses, as in torch."""

    def __new__(cls, mode: Callable[..., Any] | bool = True) -> Any:
        switch = super().__new__(cls)
        if isinstance(mode, bool):
            return switch
        inference_mode.__init__(switch, True)
        return switch(mode)

    def __init__(self, mode: bool = True) -> None:
        super().__init__(not mode)
        self._inference = mode
        self._outer: list[bool] = []

    def __enter__(self) -> Self:
        self._outer.append(thread_state.inference)
        used.inference = True
        thread_state.inference = self._inference
        return super().__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        outer = self._outer
        thread_state.inference = outer[-1]
        outer.pop()
        super().__exit__(kind, error, traceback)

    def _again(self) -> "_Switch":
        return inference_mode(self._inference)


class set_grad_enabled(_Switch):
    """Turns remembering on or off at once; as a context manager, or a decorator, only inside."""

    def __init__(self, mode: bool) -> None:
        if not isinstance(mode, bool | int):
            raise TypeError(f"set_grad_enabled(): argument 'mode' must be bool, not {type(mode).__name__}")
        super().__init__(bool(mode))
        self._outside = thread_state.grad
        thread_state.grad = _records(bool(mode))

    def __enter__(self) -> Self:
        self._before.append(self._outside)
        thread_state.grad = _records(self._mode)
        return self

    def __call__(self, function: F) -> F:
        thread_state.grad = self._outside
        return super().__call__(function)


def _records(mode: bool) -> bool:
    """Whether ops are remembered by a mode: never inside inference_mode, whatever is switched on there."""
    return mode and not thread_state.inference


def is_grad_enabled() -> bool:
    """Whether operations are remembered for gradients."""
    return thread_state.grad
