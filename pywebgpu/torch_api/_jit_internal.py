"""torch._jit_internal: marks for TorchScript. They say nothing here, where programs run as Python."""

from __future__ import annotations

import typing
import weakref
from collections.abc import Callable
from typing import Any, Final

Dict, List, Optional = typing.Dict, typing.List, typing.Optional  # noqa: UP006 - names of this module
Tuple, Union = typing.Tuple, typing.Union  # noqa: UP006
boolean_dispatched: weakref.WeakKeyDictionary[Any, dict[str, Any]] = weakref.WeakKeyDictionary()


class BroadcastingListCls:
    """BroadcastingList2[int]: a number, or a list of as many."""

    def __getitem__(self, types: object) -> None:
        return None


BroadcastingList1 = BroadcastingListCls()
BroadcastingList2, BroadcastingList3, BroadcastingList4, BroadcastingList5, BroadcastingList6 = (
    BroadcastingListCls() for _ in range(5)
)
# Names that torch.jit.annotations has, too.
TYPES = ("Any", "Dict", "List", "Optional", "Tuple", "Union", *(f"BroadcastingList{count}" for count in range(1, 7)))


class FunctionModifiers:
    """What marks are called."""

    UNUSED = "unused (ignored and replaced with raising of an exception)"
    IGNORE = "ignore (leave as a call to Python, cannot be torch.jit.save'd)"
    EXPORT = "export (compile this function even if nothing calls it)"
    DEFAULT = "default (compile if called from a exported function / forward)"
    COPY_TO_SCRIPT_WRAPPER = "if this method is not scripted, copy the python method onto the scripted model"
    _DROP = "_drop (function is fully ignored, declaration can be unscriptable)"


def is_scripting() -> bool:
    """False: nothing is compiled."""
    return False


def _mark(fn: Any) -> Any:
    """The function itself."""
    return fn


export = unused = _drop = _copy_to_script_wrapper = _overload = _overload_method = _mark


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """The function itself; may have options."""
    return drop if callable(drop) else _mark


def boolean_dispatch(
    arg_name: str,
    arg_index: int,
    default: bool,
    if_true: Callable[..., Any],
    if_false: Callable[..., Any],
    module_name: str | None = None,
    func_name: str | None = None,
) -> Callable[..., Any]:
    """A function that calls one of two, by an argument that is True or False."""

    def call(*args: Any, **kwargs: Any) -> Any:
        chosen = kwargs.get(arg_name, args[arg_index] if arg_index < len(args) else default)
        return (if_true if chosen else if_false)(*args, **kwargs)

    call.__doc__ = if_true.__doc__ or if_false.__doc__
    call.__module__, call.__name__ = module_name or call.__module__, func_name or call.__name__
    boolean_dispatched[call] = {
        "if_true": if_true, "if_false": if_false, "index": arg_index, "default": default, "arg_name": arg_name,
    }  # fmt: skip
    return call


def get_torchscript_modifier(fn: Any) -> Any:
    """The mark of a function."""
    return getattr(fn, "_torchscript_modifier", FunctionModifiers.DEFAULT)


def is_ignored_fn(fn: Any) -> bool:
    """Whether a function is marked so."""
    return get_torchscript_modifier(fn) in (FunctionModifiers.UNUSED, FunctionModifiers.IGNORE)


def is_final(ann: Any) -> bool:
    """Whether an annotation is Final[...]."""
    return ann is Final or getattr(ann, "__origin__", None) is Final


def _qualified_name(obj: Any, mangle_name: bool = True) -> str:
    """The path of a class or function, as TorchScript has it."""
    return f"__torch__.{obj.__module__}.{obj.__qualname__}"
