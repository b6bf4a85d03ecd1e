"""Gradients that a program writes itself (autograd.Function), under autocast."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from pywebgpu import dtypes
from pywebgpu.amp.autocast_mode import autocast, get_autocast_dtype, is_autocast_enabled
from pywebgpu.dtypes import DType
from pywebgpu.tensor.tensor import Tensor


def custom_fwd(
    fwd: Callable[..., Any] | None = None, *, device_type: str, cast_inputs: DType | None = None
) -> Callable[..., Any]:
    """Decorates `forward` of an autograd.Function, so that `custom_bwd` knows how it ran.

    cast_inputs: where autocast is on, floating tensors are cast to this dtype, and forward runs without autocast.
    """
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def forward(*args: Any, **kwargs: Any) -> Any:
        args[0]._dtype = get_autocast_dtype(device_type)
        is_on = is_autocast_enabled(device_type)
        args[0]._fwd_used_autocast = is_on and cast_inputs is None
        if cast_inputs is None or not is_on:
            return fwd(*args, **kwargs)
        with autocast(device_type, enabled=False):
            return fwd(*_cast_tensors(args, cast_inputs), **_cast_tensors(kwargs, cast_inputs))

    return forward


def custom_bwd(bwd: Callable[..., Any] | None = None, *, device_type: str) -> Callable[..., Any]:
    """Decorates `backward` of an autograd.Function: it runs with the autocast that its forward ran with."""
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def backward(*args: Any, **kwargs: Any) -> Any:
        with autocast(device_type, enabled=args[0]._fwd_used_autocast, dtype=args[0]._dtype):
            return bwd(*args, **kwargs)

    return backward


def _cast_tensors(value: Any, dtype: DType) -> Any:
    if isinstance(value, Tensor):
        floats = value.dtype.is_floating_point and value.dtype is not dtypes.float64
        return value.to(dtype=dtype) if floats else value
    if isinstance(value, dict):
        return {name: _cast_tensors(item, dtype) for name, item in value.items()}
    if isinstance(value, list | tuple):
        items = [_cast_tensors(item, dtype) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return value
