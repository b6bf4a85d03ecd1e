"""Passes over graphs of one kind of operators."""

from pywebgpu.support.lazy import absent

__getattr__ = absent(__name__)
