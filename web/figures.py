"""Matplotlib's figures in the editor, as its backend: `pyplot.show()` shows them in the output."""

import base64
import io
from typing import Any

from matplotlib import pyplot
from matplotlib.backends.backend_agg import FigureCanvasAgg

from pywebgpu.display import widgets

FigureCanvas = FigureCanvasAgg


def show(*rest: Any, **options: Any) -> None:
    """Shows all figures that are open, and closes them."""
    page = widgets.page()
    for number in pyplot.get_fignums():
        file = io.BytesIO()
        pyplot.figure(number).savefig(file, format="png", bbox_inches="tight")
        packed = base64.b64encode(file.getvalue()).decode()
        if page is not None:
            page.show(page.place(), f'<img alt="Figure {number}" src="data:image/png;base64,{packed}">')
    pyplot.close("all")
