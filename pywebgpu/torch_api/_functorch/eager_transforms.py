"""torch._functorch.eager_transforms: derivatives of functions, which torch.func has."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_derivatives = import_module("pywebgpu.func.derivatives")


def _slice_argnums(args: tuple[Any, ...], argnums: int | tuple[int, ...], as_tuple: bool = True) -> Any:
    """The arguments of some numbers. Raises RuntimeError for numbers that name none."""
    numbers = _derivatives.argument_numbers(len(args), argnums)
    if isinstance(argnums, int) and not as_tuple:
        return args[numbers[0]]
    return tuple(args[number] for number in numbers)


def __getattr__(name: str) -> Any:
    return getattr(import_module("pywebgpu.func"), name)
