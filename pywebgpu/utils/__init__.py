"""Data loading and checkpointing, where PyTorch has them."""

from pywebgpu.utils import checkpoint, data
from pywebgpu.utils.checkpointer import Checkpointer

__all__ = ["Checkpointer", "checkpoint", "data"]
