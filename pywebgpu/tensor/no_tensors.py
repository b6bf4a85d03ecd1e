"""Why a call of the surface failed: an argument is no tensor, or no dtype, or of a class with rules of its own."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from types import FrameType

from pywebgpu.dtypes import DType, Kind
from pywebgpu.ir.graph import Node
from pywebgpu.tensor import dispatch
from pywebgpu.tensor.base import TensorBase
from pywebgpu.tensor.generator import Source


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
    """Raises TypeError where a call failed because an argument, or a part of a list of tensors, is of another class.

    error: what it raised: the package, not a program's own function, asked that argument for what it has not.
    """
    if not isinstance(error, AttributeError) or error.obj is None:  # Which of several would it be?
        return
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    if frame is None or not frame.tb_frame.f_globals.get("__name__", "").startswith("pywebgpu."):
        return
    names, first = _names(function, len(args))
    positions = {name: position for position, name in enumerate(names, first)}
    _refuse_one_of(error, _title(function), [*zip(names, args, strict=False), *options.items()], positions)


def refuse_in_method(error: AttributeError, frame: FrameType) -> None:
    """The same of a method of a tensor, which has called a function of nodes. frame: the method's."""
    code = frame.f_code
    names = code.co_varnames[: code.co_argcount]
    if names[:1] != ("self",) or error.obj is None:
        return
    arguments = [(name, frame.f_locals[name]) for name in names[1:]]
    _refuse_one_of(error, code.co_name, arguments, {name: position for position, name in enumerate(names)})


def _refuse_one_of(
    error: AttributeError, called: str, arguments: Sequence[tuple[str, object]], positions: Mapping[str, int]
) -> None:
    """Raises TypeError for the argument that was asked for what it has not."""
    kind, value = _expected(error.name or ""), error.obj
    for name, argument in arguments if kind and not (kind == "Tensor" and isinstance(value, TensorBase)) else ():
        where = f" (position {positions[name]})" if name in positions else ""
        text = f"{called}(): argument '{name}'{where} must be"
        if argument is value or (type(argument) is type(value) and isinstance(value, list | tuple)):  # They are copied.
            raise TypeError(f"{text} {kind}, not {type(value).__name__}") from None
        if isinstance(argument, list | tuple | str) and any(item is value for item in argument):
            place = next(place for place, item in enumerate(argument) if item is value)
            raise TypeError(
                f"{text} tuple of {kind}s, but found element of type {type(value).__name__} at pos {place}"
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


def _expected(attribute: str) -> str:
    """What an argument should have been that is asked for this attribute."""
    for kind, name in (
        (TensorBase._kind, "Tensor"),
        (Node, "Tensor"),
        (DType, "torch.dtype"),
        (str, "str"),
        (Source, "Generator"),
    ):
        if hasattr(kind, attribute):
            return name
    return ""


def _title(function: Callable[..., object]) -> str:
    return getattr(function, "__name__", "function")


def _names(function: Callable[..., object], count: int) -> tuple[list[str], int]:
    """What the first arguments of a call are called, and how the first is counted: that of a method is not."""
    try:
        names = [*signature(function).parameters]
    except ValueError:
        names = []
    first = 0 if names[:1] == ["self"] and "." in getattr(function, "__qualname__", "") else 1
    names[:1] = ["input" if name in ("self", "x") else name for name in names[:1]]
    return names[:count] + [f"argument {place + 1}" for place in range(len(names), count)], first
