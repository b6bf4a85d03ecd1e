"""torch._functorch, as far as libraries name it: function transforms by their private names."""

from pywebgpu.support.lazy import absent

__getattr__ = absent(__name__)
