"""torch.overrides: classes and modes that say what functions do with them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from types import FunctionType, TracebackType
from typing import Any, Self

from pywebgpu.support.lazy import absent
from pywebgpu.tensor import dispatch
from pywebgpu.tensor.dispatch import disabled, state
from pywebgpu.tensor.tensor import Tensor

__getattr__ = absent(__name__)
SPACES = ("", "nn.functional", "linalg", "fft", "special")  # whose functions ask


def of_tensors(cls: type, func: Callable[..., Any], types: Iterable[type], args: Any, kwargs: Any) -> object:
    """The rule of Tensor's subclasses that have no other: results are of the subclass, too."""
    if not all(issubclass(cls, kind) for kind in types):
        return NotImplemented
    result = disabled(func, types, args, kwargs)
    return result if func in get_default_nowrap_functions() else _converted(result, cls)


def _converted(result: Any, cls: Any) -> Any:
    if cls is Tensor:
        return result
    if isinstance(result, Tensor):
        return result if isinstance(result, cls) else result.as_subclass(cls)
    if isinstance(result, tuple | list):
        parts = [_converted(part, cls) for part in result]
        return result._make(parts) if hasattr(result, "_make") else type(result)(parts)
    return result


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether a mode, or a class of one of the arguments, has rules for functions."""
    return bool(state.modes or (not state.n_off and dispatch.overriding(tuple(relevant_args), {})))


def has_torch_function_unary(relevant_arg: Any) -> bool:
    """As has_torch_function, of one argument."""
    return has_torch_function((relevant_arg,))


def has_torch_function_variadic(*relevant_args: Any) -> bool:
    """As has_torch_function."""
    return has_torch_function(relevant_args)


def handle_torch_function(
    public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """What modes and the classes of the arguments say to a call. Raises TypeError where none says anything."""
    return dispatch.answered(public_api, state.modes, dispatch.overriding(tuple(relevant_args), {}), args, kwargs)


def wrap_torch_function(dispatcher: Callable[..., Iterable[Any]]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorates a function so that modes and classes are asked. dispatcher: (its arguments) -> those that count."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            relevant = tuple(dispatcher(*args, **kwargs))
            if has_torch_function(relevant):
                return handle_torch_function(call, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return call

    return decorate


def is_tensor_like(inp: object) -> bool:
    """Whether it is a tensor, or of a class with `__torch_function__`."""
    return type(inp) is Tensor or hasattr(inp, "__torch_function__")


def get_default_nowrap_functions() -> set[Any]:
    """Those whose results stay as they are: what a tensor has."""
    return _nowrap


_nowrap: set[Any] = {getattr(Tensor, name).__get__ for name in ("_base", "grad", "_grad")}


def get_ignored_functions() -> set[Any]:
    """Those that never ask."""
    return {Tensor.as_subclass, Tensor.__new__, Tensor.__repr__}


def get_overridable_functions() -> dict[Any, list[Callable[..., Any]]]:
    """All functions that ask, by module or class."""
    spaces = [import_module(".".join(filter(None, ("pywebgpu", space)))) for space in SPACES]
    functions: dict[Any, list[Callable[..., Any]]] = {}
    for space in (*spaces, Tensor):
        values = [(name, getattr(space, name)) for name in dir(space) if name in dispatch.OPERATORS or name[0] != "_"]
        functions[space] = [value for _, value in values if isinstance(value, FunctionType)]
    return functions


def is_tensor_method_or_property(func: Any) -> bool:
    """Whether it is a method of Tensor, or `__get__` of one of its properties."""
    if getattr(func, "__name__", "") == "__get__":
        return True
    return getattr(Tensor, getattr(func, "__name__", ""), None) is func


def resolve_name(f: Any) -> str | None:
    """The name of a function that asks, "torch.add" or "torch.Tensor.add"; None of any other."""
    if getattr(f, "__name__", "") == "__get__":
        owner = next((name for name in dir(Tensor) if getattr(Tensor, name, None) is f.__self__), None)
        return owner and f"torch.Tensor.{owner}.__get__"
    name = getattr(f, "__name__", "")
    for method in (name, *sorted(dispatch.OPERATORS)):
        if getattr(Tensor, method, None) is f:
            return f"torch.Tensor.{method}"
    for space in SPACES:
        module = import_module(".".join(filter(None, ("pywebgpu", space))))
        if getattr(module, name, None) is f:
            return ".".join(filter(None, ("torch", space, name)))
    return None


class TorchFunctionMode:
    """A block in which `__torch_function__(func, types, args, kwargs)` of a subclass is asked at every call.

    Inside of it the mode itself is not asked.
    """

    inner: Self | None = None

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError

    def __enter__(self) -> Self:
        dispatch.start()
        state.modes.append(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        state.modes.pop()

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Self:
        """The mode; an older way to write it."""
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that calls each function as it is."""

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


class DisableTorchFunctionSubclass:
    """A block in which classes are not asked; modes are."""

    def __enter__(self) -> None:
        state.n_off += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        state.n_off -= 1


class DisableTorchFunction:
    """A block in which neither classes nor modes are asked."""

    def __enter__(self) -> None:
        state.n_all_off += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        state.n_all_off -= 1


@contextmanager
def enable_reentrant_dispatch() -> Iterator[None]:
    """A block inside of a rule; it has no meaning here, where rules may call functions that ask."""
    yield


def _get_current_function_mode() -> TorchFunctionMode | None:
    return state.modes[-1] if state.modes else None


def _get_current_function_mode_stack() -> list[TorchFunctionMode]:
    return list(state.modes)


@contextmanager
def _pop_mode_temporarily() -> Iterator[Any]:
    mode = state.modes.pop()
    try:
        yield mode
    finally:
        state.modes.append(mode)
