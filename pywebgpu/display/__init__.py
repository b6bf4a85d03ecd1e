"""What notebooks and pages show: plots that grow, pictures of numbers, a Stop button, sliders and canvases."""

from pywebgpu.display.drawing import Picture as Picture
from pywebgpu.display.drawing import bars as bars
from pywebgpu.display.drawing import beside as beside
from pywebgpu.display.drawing import image as image
from pywebgpu.display.drawing import scatter as scatter
from pywebgpu.display.live import Live as Live
from pywebgpu.display.stopping import stoppable as stoppable
from pywebgpu.display.widgets import Canvas as Canvas
from pywebgpu.display.widgets import Slider as Slider
from pywebgpu.display.widgets import changes as changes

__all__ = ["Canvas", "Live", "Picture", "Slider", "bars", "beside", "changes", "image", "scatter", "stoppable"]
