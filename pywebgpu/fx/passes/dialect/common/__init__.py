"""Passes over graphs of any operators."""

from pywebgpu.support.lazy import absent

__getattr__ = absent(__name__)
