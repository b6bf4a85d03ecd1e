"""Flags, texts and dtypes that are arguments: a function that would take anything for true refuses what is none."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from pywebgpu.dtypes import DType

P = ParamSpec("P")
R = TypeVar("R")

KINDS: dict[str, tuple[type, str]] = {"bool": (bool, "bool"), "str": (str, "str"), "DType": (DType, "torch.dtype")}


def typed(function: Callable[P, R]) -> Callable[P, R]:
    """Raises TypeError for an argument of another class than its annotation says: a bool, a str or a dtype.

    For functions that are not called in every step of a training: each call looks at its arguments.
    """
    code = function.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    first = names[:1] != ("self",)  # A method's own tensor is not counted.
    kinds = [
        (place, name, *KINDS[str(function.__annotations__[name])])
        for place, name in enumerate(names)
        if str(function.__annotations__.get(name)) in KINDS
    ]

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> R:
        for place, name, kind, title in kinds:
            value = args[place] if place < len(args) else options.get(name, kind)
            if value is not kind and not isinstance(value, kind):
                raise TypeError(
                    f"{function.__name__}(): argument '{name}' (position {place + first}) must be {title}, "
                    f"not {type(value).__name__}"
                )
        return function(*args, **options)

    return call
