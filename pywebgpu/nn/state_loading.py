"""The tensors of a state dict, put into one module: what a first training step does not do."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any

from pywebgpu.autodiff import grad_mode
from pywebgpu.nn.parameter import Parameter, conversion
from pywebgpu.nn.state import EXTRA, StateDict
from pywebgpu.tensor.tensor import Tensor


def load(
    module: StateDict,
    state_dict: dict[str, Any],
    prefix: str,
    local_metadata: dict[str, Any],
    strict: bool,
    missing_keys: list[str],
    unexpected_keys: list[str],
    error_msgs: list[str],
) -> None:
    """Loads a module's own tensors, without its children."""
    for with_module, hook in module._hooks_of_kind("_load_state_dict_pre_hooks"):
        arguments = (state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        hook(module, *arguments) if with_module else hook(*arguments)
    assign = local_metadata.get("assign_to_params_buffers", False)
    own = dict(module._persistent_tensors())
    for name, tensor in own.items():
        if prefix + name not in state_dict:
            if strict:
                missing_keys.append(prefix + name)
        else:
            _load_one(module, name, tensor, prefix + name, state_dict[prefix + name], assign, error_msgs)
    _load_extra(module, state_dict, prefix + EXTRA, strict, missing_keys, unexpected_keys)
    if strict:
        for key in state_dict:
            rest = key[len(prefix) :]
            if not key.startswith(prefix) or key == prefix + EXTRA:
                continue
            first, *further = rest.split(".", 1)
            if (further and first not in module._modules) or (not further and first not in own):
                unexpected_keys.append(key)


def _load_one(
    module: StateDict, name: str, own: Tensor, key: str, value: object, assign: bool, errors: list[str]
) -> None:
    if not isinstance(value, Tensor):
        errors.append(
            f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object from '
            f"checkpoint but received {type(value)}"
        )
        return
    is_lazy = hasattr(own, "materialize")
    if is_lazy and hasattr(value, "materialize"):
        return  # Neither has a shape yet.
    if not is_lazy and own.ndim == 0 and tuple(value.shape) == (1,):
        value = value.reshape(())  # Old checkpoints hold single numbers so.
    if not is_lazy and value.shape != own.shape:
        errors.append(
            f"size mismatch for {key}: copying a param with shape {value.shape} from checkpoint, the shape in "
            f"current model is {own.shape}."
        )
    elif conversion.swaps:
        import_module("pywebgpu.nn.exchange").load(key, own, value, assign, errors)
    elif not assign:
        if own.is_meta and not value.is_meta:
            warnings.warn(import_module("pywebgpu.devices.meta").NO_OP.format(key), stacklevel=2)
        try:
            with grad_mode.no_grad():
                own.copy_(value)
        except NotImplementedError as error:
            errors.append(
                f'While copying the parameter named "{key}", whose dimensions in the model are {own.shape} and '
                f"whose dimensions in the checkpoint are {value.shape}, an exception occurred : {error.args}."
            )
    elif name not in module._parameters:
        setattr(module, name, value)
    else:
        wanted = own.requires_grad
        setattr(module, name, value if isinstance(value, Parameter) else Parameter(value, wanted))


def _load_extra(
    module: StateDict, state_dict: dict[str, Any], key: str, strict: bool, missing: list[str], unexpected: list[str]
) -> None:
    if type(module).set_extra_state is not StateDict.set_extra_state:
        if key in state_dict:
            module.set_extra_state(state_dict[key])
        elif strict:
            missing.append(key)
    elif strict and key in state_dict:
        unexpected.append(key)
