"""Why a call of the surface failed: an argument is no tensor, or is of a class that has rules of its own."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from types import FrameType

from pywebgpu.dtypes import Kind
from pywebgpu.ir.graph import Node
from pywebgpu.tensor import dispatch
from pywebgpu.tensor.base import TensorBase


def is_asked_further_out() -> bool:
    """Whether a function of the surface further out has arguments of classes with rules: it asks them itself."""
    frame = sys._getframe(1)
    own, caller = frame.f_code, frame.f_back
    while caller is not None:
        if caller.f_code is own and dispatch.overriding(caller.f_locals["args"], caller.f_locals["options"]):
            return True
        caller = caller.f_back
    return False


def refuse(
    error: Exception, function: Callable[..., object], args: Sequence[object], options: Mapping[str, object]
) -> None:
    """Raises TypeError where a call failed because an argument is a number or a text and no tensor.

    error: what it raised: the package, not a program's own function, asked that argument for what tensors have.
    """
    value = getattr(error, "obj", None)
    if not isinstance(error, AttributeError) or type(value) not in _NO_TENSORS:
        return
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    if frame is None or not frame.tb_frame.f_globals.get("__name__", "").startswith("pywebgpu."):
        return
    names = _names(function, len(args))
    for name, argument in [*zip(names, args, strict=False), *options.items()]:
        if argument is value:
            where = f" (position {names.index(name) + 1})" if name in names else ""
            called = getattr(function, "__name__", "function")
            raise TypeError(
                f"{called}(): argument '{name}'{where} must be Tensor, not {type(value).__name__}"
            ) from None


def refuse_in_method(error: AttributeError, frame: FrameType) -> None:
    """The same of a method of a tensor, which has called a function of nodes. frame: the method's."""
    value, code = error.obj, frame.f_code
    names = code.co_varnames[: code.co_argcount]
    if names[:1] != ("self",) or type(value) not in _NO_TENSORS:
        return
    for position, name in enumerate(names[1:], 1):
        argument = frame.f_locals[name]
        is_it = argument is value or (
            type(argument) is type(value) and isinstance(value, list | tuple)
        )  # They are copied.
        if is_it and hasattr(Node, error.name or ""):
            raise TypeError(
                f"{code.co_name}(): argument '{name}' (position {position}) must be Tensor, not {type(value).__name__}"
            ) from None


def with_numbers(function: Callable[..., object], args: Sequence[object]) -> list[object] | None:
    """The arguments of a function of nodes, with numbers instead of tensors of one whole number each where it takes
    whole numbers; None where there are none such."""
    kinds = [parameter.annotation for parameter in signature(function).parameters.values()]
    read = [
        operator.index(arg) if kind in ("int", int) and isinstance(arg, TensorBase) and _is_whole(arg) else arg  # type: ignore[arg-type]
        for kind, arg in zip(kinds, args, strict=False)
    ]
    return read if any(new is not old for new, old in zip(read, args, strict=False)) else None


def _is_whole(tensor: TensorBase) -> bool:
    return tensor.ndim == 0 and tensor.dtype.kind is Kind.INT


def _names(function: Callable[..., object], count: int) -> list[str]:
    """What the first arguments of a call are called."""
    try:
        names = [*signature(function).parameters]
    except ValueError:
        names = []
    names[:1] = ["input" if name in ("self", "x") else name for name in names[:1]]
    return names[:count] + [f"argument {place + 1}" for place in range(len(names), count)]


_NO_TENSORS = frozenset((bool, int, float, complex, str, bytes, list, tuple, dict))
