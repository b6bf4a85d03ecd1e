"""Graphs to Programs; and PyTorch's names of its own compiler."""

from pywebgpu.support import lazy as _lazy

__getattr__ = _lazy.absent(__name__)
