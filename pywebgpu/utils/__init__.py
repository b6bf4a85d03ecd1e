"""Data loading and checkpointing, where PyTorch has them."""

from pywebgpu.support import lazy as _lazy
from pywebgpu.utils import checkpoint, data
from pywebgpu.utils.checkpointer import Checkpointer

__all__ = ["Checkpointer", "checkpoint", "data"]

__getattr__ = _lazy.absent(__name__)
