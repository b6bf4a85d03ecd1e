"""What notebooks show: `Live`, a plot that grows while a model trains; `stoppable`, a loop with a Stop button."""

from pywebgpu.display.live import Live as Live
from pywebgpu.display.stopping import stoppable as stoppable

__all__ = ["Live", "stoppable"]
