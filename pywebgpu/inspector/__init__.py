"""Looking at what a program was compiled to: `explain` for an object, `visualize` for a page."""

from pywebgpu.inspector.explanation import explain as explain
from pywebgpu.inspector.page import visualize as visualize

__all__ = ["explain", "visualize"]
