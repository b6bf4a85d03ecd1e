"""Parameters in groups: as programs give them, by position, and as a state dict has them."""

import itertools
from typing import Any

from pywebgpu.tensor import create, tensor

Group = dict[str, Any]  # "params" and the options, by PyTorch's names.
COUNTS = frozenset({"step", "mu_product", "eta", "mu"})  # numbers in a state, which torch keeps as tensors


def unpack_names(group: Group) -> None:
    """Makes group["params"] a list of tensors; names given as (name, tensor) go to group["param_names"]."""
    params = group["params"]
    if isinstance(params, set | frozenset):
        raise TypeError(
            "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets "
            "will change between runs. Please use a list instead."
        )
    params = [params] if isinstance(params, tensor.Tensor) else list(params)
    names = [item[0] for item in params if isinstance(item, tuple)]
    if names and len(names) != len(params):
        raise ValueError("all optimizer params should be with/without names. Some param names are missing")
    if names:
        group["param_names"] = names
    group["params"] = [item[1] for item in params] if names else params


def indices(groups: list[Group]) -> dict[int, int]:
    """The id of each parameter -> its position, counted through all groups."""
    order: dict[int, int] = {}
    for i, parameter in enumerate(itertools.chain.from_iterable(group["params"] for group in groups)):
        order.setdefault(id(parameter), i)
    return order


def match(groups: list[Group], saved: list[Group]) -> dict[Any, tensor.Tensor]:
    """The saved indices -> the parameters at the same positions."""
    if len(groups) != len(saved):
        raise ValueError("loaded state dict has a different number of parameter groups")
    out: dict[Any, tensor.Tensor] = {}
    for group, new in zip(groups, saved, strict=True):
        if len(group["params"]) != len(new["params"]):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
            )
        out.update(zip(new["params"], group["params"], strict=True))
    return out


def restored(parameter: tensor.Tensor, value: object, old: object, key: str = "") -> object:
    """A saved value with its tensors where and how `parameter` needs them."""
    if isinstance(value, tensor.Tensor):
        if key in COUNTS:
            on_host = value.is_cpu  # A page without NumPy keeps such values, and computes none.
            return create.tensor(value.tolist(), dtype=value.dtype, device="cpu") if on_host else value.clone()
        if isinstance(old, tensor.Tensor) and old.shape == value.shape:
            return old.copy_(value)
        dtype = parameter.dtype if parameter.is_floating_point() else value.dtype
        return value.to(device=parameter.device, dtype=dtype, copy=True)
    if isinstance(value, dict):
        known = old if isinstance(old, dict) else {}
        return {k: restored(parameter, v, known.get(k), str(k)) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(restored(parameter, v, None) for v in value)
    return value
