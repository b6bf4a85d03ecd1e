"""Sliders and drawing canvases of the page that a program runs in; a fixed value everywhere else.

The page is reached through JavaScript's global `pywebgpuPage`, which web/interplay.mjs makes; other pages may, too.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any


def page() -> Any:
    """The page's end of this protocol; None where there is no page, or one that knows nothing of it.

    show(id, html): shows HTML in place of what `id` showed before. place(): a new such id. add(json): shows a widget.
    value(id): what was last set, as JSON, or "". changed(): whether somebody sets something, and not Stop.
    turn(): settles once what has been set meanwhile has arrived.
    """
    if sys.platform == "emscripten":
        import js

        return getattr(js, "pywebgpuPage", None)
    return None


class _Widget:
    """Something that somebody sets. `value` is what it is now."""

    def __init__(self, initial: object, **about: object) -> None:
        self._given, self._page, self._id = initial, page(), ""
        if self._page is not None:
            self._id = str(self._page.place())
            self._page.add(json.dumps({"id": self._id, "value": initial, **about}))

    def _now(self) -> Any:
        if self._page is None:
            return self._given
        _wait(self._page.turn)
        text = str(self._page.value(self._id))
        return json.loads(text) if text else self._given


class Slider(_Widget):
    """A number between two others. value: at first, and always where there is no page; the middle if None."""

    def __init__(
        self, label: str, low: float, high: float, value: float | None = None, *, step: float | None = None
    ) -> None:
        initial = (low + high) / 2 if value is None else value
        super().__init__(
            initial, kind="slider", label=label, low=low, high=high, step=(high - low) / 200 if step is None else step
        )

    @property
    def value(self) -> float:
        return float(self._now())


class Canvas(_Widget):
    """A square of `size` by `size` cells to draw on, each from 0 to 1. value: its rows at first; empty if None."""

    def __init__(self, label: str, size: int = 28, value: Sequence[Sequence[float]] | None = None) -> None:
        initial = [[0.0] * size for _ in range(size)] if value is None else [list(map(float, row)) for row in value]
        super().__init__(initial, kind="canvas", label=label, size=size)

    @property
    def value(self) -> list[list[float]]:
        return [[float(cell) for cell in row] for row in self._now()]


def changes(*widgets: Slider | Canvas) -> Iterator[None]:
    """Once, and in a page again after each change of a widget, until Stop is pressed.

    ```python
    slider = display.Slider("power", 0, 3)
    for _ in display.changes(slider):
        print(2**slider.value)
    ```
    """
    yield
    there = page()
    while there is not None and widgets and _wait(there.changed):
        yield


def _wait(promise: Callable[[], object]) -> bool:
    """Waits for what a function of the page promises, and returns whether it is so; not where Python cannot wait."""
    from pyodide.ffi import can_run_sync, run_sync

    return can_run_sync() and bool(run_sync(promise()))
