"""What notebooks show: `Live`, a plot of losses that grows while a model trains."""

from pywebgpu.display.live import Live as Live

__all__ = ["Live"]
