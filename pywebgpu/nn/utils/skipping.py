"""What programs ask for that needs no work here: layouts of memory, and modules without initial values."""

from collections.abc import Callable
from typing import TypeVar

from pywebgpu.nn.module import Module

M = TypeVar("M", bound=Module)


def skip_init(module_cls: Callable[..., M], *args: object, **kwargs: object) -> M:
    """A module whose parameters nobody counts on. Against torch: they have their initial values."""
    return module_cls(*args, **kwargs)


def convert_conv2d_weight_memory_format(module: M, memory_format: object) -> M:
    """Accepted: weights have one layout here."""
    return module


def convert_conv3d_weight_memory_format(module: M, memory_format: object) -> M:
    """Accepted: weights have one layout here."""
    return module
