"""PyTorch's place for data loading and checkpointing."""

from pywebgpu.utils import checkpoint, data
from pywebgpu.utils.checkpointer import Checkpointer

__all__ = ["Checkpointer", "checkpoint", "data"]
