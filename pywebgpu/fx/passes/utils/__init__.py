"""Functions that passes share."""

from pywebgpu.support.lazy import absent

__getattr__ = absent(__name__)
