"""Datasets, samplers and the DataLoader: `pywebgpu.data` under PyTorch's name."""

from pywebgpu.data import *  # noqa: F403 - its __all__ is below
from pywebgpu.data import __all__ as __all__
from pywebgpu.support import lazy as _lazy

__getattr__ = _lazy.absent(__name__)
