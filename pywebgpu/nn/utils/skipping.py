"""Memory formats of weights, and modules without initial values."""

from collections.abc import Callable
from typing import Any, TypeVar

from pywebgpu.nn import conv
from pywebgpu.nn.module import Module

M = TypeVar("M", bound=Module)


def skip_init(module_cls: Callable[..., M], *args: object, **kwargs: object) -> M:
    """A module whose parameters nobody counts on. Against torch: they have their initial values."""
    return module_cls(*args, **kwargs)


def convert_conv2d_weight_memory_format(module: M, memory_format: object) -> M:
    """Gives the weights of all Conv2d and ConvTranspose2d inside a module a memory format."""
    return _converted(module, memory_format, (conv.Conv2d, conv.ConvTranspose2d))


def convert_conv3d_weight_memory_format(module: M, memory_format: object) -> M:
    """The same of Conv3d and ConvTranspose3d."""
    return _converted(module, memory_format, (conv.Conv3d, conv.ConvTranspose3d))


def _converted(module: M, memory_format: object, kinds: tuple[type[Module], ...]) -> M:
    for part in module.modules():
        if isinstance(part, kinds):
            weight: Any = part.weight
            weight.data = weight.detach().clone(memory_format=memory_format)
    return module
