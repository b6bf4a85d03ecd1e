"""Compiles graphs to Programs; also has PyTorch's names for its own compiler."""

from pywebgpu.support import lazy as _lazy

__getattr__ = _lazy.absent(__name__)
