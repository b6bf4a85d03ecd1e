"""What torch.__future__ switches on: a converted module's tensors are replaced, or exchanged with others."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pywebgpu.autodiff import grad_mode
from pywebgpu.nn.parameter import Parameter, conversion

if TYPE_CHECKING:
    from collections.abc import Callable

    from pywebgpu.tensor.tensor import Tensor


def replace(module: Any, name: str, value: Tensor, fn: Callable[[Tensor], Tensor]) -> None:
    """Converts a parameter by a new one of a value, or by one that it changes places with."""
    parameter: Parameter = module._parameters[name]
    grad, converted = parameter.grad, Parameter(value, parameter.requires_grad)
    if not conversion.swaps:
        module._parameters[name] = converted
        if grad is not None:
            converted.grad = fn(grad).requires_grad_(grad.requires_grad)
        return
    parameter.grad = None
    try:
        _swap(parameter, converted)
        if grad is not None:
            _swap(grad, fn(grad).requires_grad_(grad.requires_grad))
            parameter.grad = grad
    except RuntimeError as error:
        raise RuntimeError(f"_apply(): Couldn't swap {type(module).__name__}.{name}") from error


def load(key: str, own: Tensor, value: Tensor, assign: bool, errors: list[str]) -> None:
    """Exchanges a module's tensor with what it loads."""
    if own.is_meta and not value.is_meta and not assign:
        warnings.warn(import_module("pywebgpu.devices.meta").NO_OP.format(key), stacklevel=3)
    try:
        with grad_mode.no_grad():
            loaded = own.module_load(value, assign)
        if loaded is value or loaded is own:
            raise RuntimeError("module_load returned one of self or other: return detach() of it")
        if isinstance(own, Parameter):
            loaded = loaded if isinstance(loaded, Parameter) else Parameter(loaded, own.requires_grad)
            loaded.requires_grad_(own.requires_grad)
        _swap(own, loaded)
    except Exception as error:
        errors.append(
            f'While swapping the parameter named "{key}", whose dimensions in the model are {own.shape} and whose '
            f"dimensions in the checkpoint are {value.shape}, an exception occurred : {error.args}."
        )


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Takes a prefix off the keys of a state dict and of its metadata, in place."""
    for table in (state_dict, getattr(state_dict, "_metadata", None) or {}):
        for key in list(table):
            if key.startswith(prefix):
                table[key.removeprefix(prefix)] = table.pop(key)
            elif table is not state_dict and key == prefix.removesuffix("."):  # What wrapped the module had a name.
                table[""] = table.pop(key)


def _swap(first: Tensor, second: Tensor) -> None:
    import_module("pywebgpu.utils.swapping").swap_tensors(first, second)


def warn_of_complex() -> None:
    """Of modules whose parameters become complex."""
    warnings.warn(
        "Complex modules are a new feature under active development whose design may change, and some modules might "
        "not work as expected when using complex tensors as parameters or buffers.",
        stacklevel=3,
    )
