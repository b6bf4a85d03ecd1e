"""torch.utils: data loading, checkpointing and other tools."""

from importlib import import_module as _import_module
from typing import Any as _Any

from pywebgpu.support import lazy as _lazy
from pywebgpu.utils import checkpoint, data
from pywebgpu.utils.checkpointer import Checkpointer

__all__ = ["Checkpointer", "checkpoint", "data"]


def _part(name: str) -> _Any:
    """A private module of PyTorch's utils; None where there is none."""
    is_private = name.startswith("_") and not name.startswith("__")
    return _import_module("pywebgpu.torch_api.stand_ins").module(f"utils.{name}") if is_private else None


__getattr__, __dir__, _ = _lazy.names(__name__, {}, _part)
