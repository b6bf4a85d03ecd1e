"""What passes are, and their order."""

from pywebgpu.support.lazy import absent

__getattr__ = absent(__name__)
