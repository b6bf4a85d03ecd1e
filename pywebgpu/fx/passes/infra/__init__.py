"""Base classes of passes, and a manager that runs them in order."""

from pywebgpu.support.lazy import absent

__getattr__ = absent(__name__)
