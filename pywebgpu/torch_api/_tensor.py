"""torch._tensor: where PyTorch has its class of tensors, and how files make subclasses of it."""

from collections.abc import Callable
from copy import copy
from typing import Any

from pywebgpu.tensor.tensor import Tensor as Tensor


def _rebuild_from_type_v2(func: Callable[..., Any], new_type: type, args: tuple[Any, ...], state: Any) -> Any:
    """What a function makes of arguments, as an instance of a class, with its attributes."""
    result = func(*args)
    if type(result) is not new_type:
        result = result.as_subclass(new_type)
    if type(state) is tuple and len(state) == 2 and isinstance(state[1], dict):
        state = {**(state[0] or {}), **state[1]}
    for name, value in (copy(state) or {}).items():
        setattr(result, name, value)
    return result
