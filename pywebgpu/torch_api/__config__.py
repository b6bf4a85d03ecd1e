"""torch.__config__: how this library was built, which is not at all."""

from __future__ import annotations

from pywebgpu import version


def show() -> str:
    """A line about this library, where PyTorch tells of compilers."""
    return f"pywebgpu {version.__version__}: Python and WebGPU"


def parallel_info() -> str:
    """A line about threads."""
    return "arithmetic runs on WebGPU, or by NumPy in one thread"


def _cxx_flags() -> str:
    return ""
