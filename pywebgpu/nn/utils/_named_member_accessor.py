"""torch.nn.utils._named_member_accessor: tensors and modules of a module by their names, read and replaced."""

from __future__ import annotations

from typing import Any

from pywebgpu.nn.module import Module
from pywebgpu.tensor.tensor import Tensor

MISSING = object()


def set_tensor(module: Module, name: str, tensor: Tensor | None) -> None:
    """Gives a module another parameter, buffer or attribute. Raises KeyError for a name with dots."""
    swap_tensor(module, name, tensor)


def swap_tensor(module: Module, name: str, tensor: Any, allow_missing: bool = False) -> Any:
    """Puts a tensor in the place of another, which it returns: a module's own tensor stays what it was, of its kind.

    Raises KeyError for a name with dots, AttributeError for one that is not there.
    """
    if "." in name:
        raise KeyError('tensor name can\'t contain "."')
    for tensors in (module._parameters, module._buffers):
        if name in tensors:
            before: Any = tensors[name]
            if tensor is MISSING:
                del tensors[name]
            else:
                tensors[name] = tensor
            return before
    before = getattr(module, name, MISSING)
    if before is MISSING and not allow_missing:
        raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
    if tensor is MISSING:
        delattr(module, name)
    else:
        setattr(module, name, tensor)
    return before
