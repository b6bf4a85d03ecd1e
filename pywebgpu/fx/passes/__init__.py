"""Passes over graphs."""

from pywebgpu.support.lazy import absent

__getattr__ = absent(__name__)
