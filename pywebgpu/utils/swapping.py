"""What of torch.utils changes an object that stays the same one: a tensor's contents, the module that a class names."""

import itertools
import weakref
from typing import Any

from pywebgpu.ir.graph import thread_state
from pywebgpu.ir.observer import changed
from pywebgpu.step_capture.capture import OwnReference
from pywebgpu.tensor.base import TensorBase

_numbers = itertools.count(1)
SLOTS = tuple(name for name in TensorBase.__slots__ if not name.startswith("__"))


def swap_tensors(t1: TensorBase, t2: TensorBase) -> None:
    """Gives each the contents of the other: class, values, gradient, history. Who holds t1 finds what t2 was.

    Raises: RuntimeError where a weak reference to one of them is held outside of this library.
    """
    for name, swapped in (("t1", t1), ("t2", t2)):
        own = swapped._accumulator is not None
        others = [ref for ref in weakref.getweakrefs(swapped) if type(ref) is not OwnReference]
        if len(others) > own:
            raise RuntimeError(f"Cannot swap {name} because it has weakref associated with it")
    if thread_state.observer is not None:
        thread_state.observer.refuse("it swaps tensors")
    number(t1), number(t2)
    for slot in (*SLOTS, "__dict__", "__class__"):
        swapped, other = getattr(t1, slot), getattr(t2, slot)
        setattr(t1, slot, other)
        setattr(t2, slot, swapped)
    for tensor in (t1, t2):
        if tensor._accumulator is not None:
            tensor._accumulator.tensor = weakref.ref(tensor)
    changed()


def number(tensor: TensorBase) -> int:
    """The number of a tensor's contents; a new one at the first call."""
    try:
        return TensorBase._number.__get__(tensor)  # type: ignore[no-any-return,attr-defined]  # The slot's.
    except AttributeError:
        tensor._number = next(_numbers)
        return tensor._number


def module_load(own: Any, other: Any, assign: bool = False) -> Any:
    """What takes the place of a module's tensor that loads another, where torch.__future__ wants them exchanged."""
    return other.detach() if assign else own.copy_(other).detach()


def set_module(obj: object, mod: str) -> None:
    """Has a class or function say that it is from another module, as it is printed."""
    if not isinstance(mod, str):
        raise TypeError("The mod argument should be a string")
    obj.__module__ = mod
