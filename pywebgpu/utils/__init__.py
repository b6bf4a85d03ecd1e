"""PyTorch's place for data loading and checkpointing."""

from pywebgpu.utils import checkpoint, data

__all__ = ["checkpoint", "data"]
