"""torch.utils._python_dispatch: modes that say what operators do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Self

from pywebgpu.support.lazy import absent
from pywebgpu.tensor.dispatch import state

__getattr__ = absent(__name__)


class TorchDispatchMode:
    """A block in which `__torch_dispatch__(func, types, args, kwargs)` of a subclass is asked at every operator.

    func is one of torch.ops.aten. Inside of it the mode itself is not asked.
    """

    def __init__(self, _dispatch_key: object = None) -> None: ...

    def __torch_dispatch__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError

    def __enter__(self) -> Self:
        import_module("pywebgpu.tensor.wrapper").start()
        state.operator_modes.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        state.operator_modes.remove(self)

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Self:
        """The mode; an older way to write it."""
        return cls(*args, **kwargs)


class BaseTorchDispatchMode(TorchDispatchMode):
    """A mode that calls each operator as it is."""

    def __torch_dispatch__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def _get_current_dispatch_mode() -> Any:
    return state.operator_modes[-1] if state.operator_modes else None


def _get_current_dispatch_mode_stack() -> list[Any]:
    return list(state.operator_modes)


def _len_torch_dispatch_stack() -> int:
    return len(state.operator_modes)


@contextmanager
def _pop_mode_temporarily(k: object = None) -> Iterator[Any]:
    mode = state.operator_modes.pop()
    try:
        yield mode
    finally:
        state.operator_modes.append(mode)


@contextmanager
def _disable_current_modes() -> Iterator[list[Any]]:
    modes = state.operator_modes[:]
    state.operator_modes.clear()
    try:
        yield modes
    finally:
        state.operator_modes[:] = modes


def is_traceable_wrapper_subclass(t: object) -> bool:
    """Whether a tensor can be taken apart into others, and put together again."""
    return hasattr(t, "__tensor_flatten__") and hasattr(t, "__tensor_unflatten__")


def transform_subclass(
    t: Any, callback: Callable[[str, Any], Any], outer_size: Any = None, outer_stride: Any = None
) -> Any:
    """A wrapper made of what callback(name, tensor) gives for the tensors inside one."""
    names, context = t.__tensor_flatten__()
    inner = {name: callback(name, getattr(t, name)) for name in names}
    size = t.size() if outer_size is None else outer_size
    return type(t).__tensor_unflatten__(inner, context, size, t.stride() if outer_stride is None else outer_stride)


def return_and_correct_aliasing(func: Any, args: Any, kwargs: Any, out: Any) -> Any:
    """The result of an operator: what it wrote in place, or what it made."""
    return args[0] if func._opname.endswith("_") and not func._opname.startswith("_") else out
