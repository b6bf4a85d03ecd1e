"""torch.ops.aten: `aten.slice.Tensor(x, 0, 1, 3)` is the function of that name, in whichever overload."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

_PLACES = "pywebgpu.torch_api.operators", "pywebgpu", "pywebgpu.nn.functional", "pywebgpu.special", "pywebgpu.linalg"

_OTHERS = frozenset({"_efficient_attention_forward", "_flash_attention_forward"})  # CUDA's own


def _refusing(name: str) -> Callable[..., Any]:
    def refuse(*args: Any, **options: Any) -> Any:
        """It is a kernel of CUDA's."""
        raise NotImplementedError(f"torch.ops.aten.{name} is a kernel of CUDA's: use the function of torch")

    return refuse


class Operator:
    """A function that has its overloads as attributes: here they are the function itself."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.__name__, self.__doc__, self._function = name, function.__doc__, function

    def __call__(self, *args: Any, **options: Any) -> Any:
        return self._function(*args, **options)

    def __getattr__(self, overload: str) -> Operator:
        if overload.startswith("__"):
            raise AttributeError(overload)
        return self

    def __repr__(self) -> str:
        return f"aten.{self.__name__}"


def __getattr__(name: str) -> Operator:
    for place in _PLACES if not name.startswith("__") else ():
        module = import_module(place)
        for spelled in (name, f"{name}_"):
            found = vars(module).get(spelled) or (getattr(module, spelled, None) if spelled == name else None)
            if callable(found):
                return Operator(name, found)
    if name in _OTHERS:
        return Operator(name, _refusing(name))
    raise AttributeError(f"torch.ops.aten has no operator {name!r} here")
