"""A plot that grows while a model trains."""

from __future__ import annotations

import time
from typing import Self

from pywebgpu.display import chart, html, places
from pywebgpu.errors import CannotWaitError
from pywebgpu.tensor import functions
from pywebgpu.tensor.tensor import Tensor

OFTEN = 200  # values of one name that are kept unread at most


class Live:
    """Values over steps, drawn where the program is: a cell of Jupyter or marimo, a page, a line in a terminal.

    ```python
    with Live("my model") as live:
        for batch in batches:
            live.log(loss=step(batch))  # a number, or a tensor: tensors are read when the plot is drawn
    ```

    `live.show(picture)` shows pictures above the plot, until others are shown.

    every: seconds between two drawings. log: a logarithmic axis. target: the id of an element of the page to draw in.
    Where Python cannot wait for the device, `await live.draw_async()` reads and draws; until then it waits to be read.
    """

    def __init__(self, title: str = "", *, every: float = 0.5, log: bool = False, target: str | None = None) -> None:
        self.title, self.every, self.log_scale = title, every, log
        self.lines: dict[str, list[tuple[float, float]]] = {}
        self.step = 0
        self._unread: dict[str, list[tuple[int, Tensor]]] = {}
        self._target = target
        self._place: places.Place | None = None
        self._pictures: tuple[object, ...] = ()
        self._drawn = 0.0

    def log(self, step: int | None = None, **values: float | Tensor) -> None:
        """Adds a value to each of these lines. step: one more than the last one if None."""
        self.step = self.step + 1 if step is None else step
        full = False
        for name, value in values.items():
            self.lines.setdefault(name, [])
            if isinstance(value, Tensor):
                unread = self._unread.setdefault(name, [])
                unread.append((self.step, value.detach()))
                full = full or len(unread) >= OFTEN
            else:
                self.lines[name].append((self.step, float(value)))
        if full or time.monotonic() - self._drawn >= self.every:
            self.draw()

    def show(self, *pictures: object) -> None:
        """Shows pictures, or whatever has `_repr_html_`, or text, above the plot: instead of what was shown so far."""
        self._pictures = pictures
        if time.monotonic() - self._drawn >= self.every:
            self.draw()

    def draw(self, *, last: bool = False) -> None:
        """Reads what was not read yet, and draws."""
        for name, waiting in self._unread.items():
            if waiting:
                try:
                    values = self._together(waiting).tolist()
                except CannotWaitError:
                    break
                self._take(name, waiting, values)
        self._show(last=last)

    async def draw_async(self, *, last: bool = False) -> None:
        """As draw, also where Python cannot wait."""
        for name, waiting in self._unread.items():
            taken = list(waiting)
            if taken:
                self._take(name, taken, await self._together(taken).tolist_async())
        self._show(last=last)

    def _together(self, waiting: list[tuple[int, Tensor]]) -> Tensor:
        return functions.stack([value.reshape(()).float() for _, value in waiting])

    def _take(self, name: str, waiting: list[tuple[int, Tensor]], values: list[float]) -> None:
        self.lines[name] += [(step, value) for (step, _), value in zip(waiting, values, strict=True)]
        del self._unread[name][: len(values)]

    def _show(self, *, last: bool) -> None:
        self._drawn = time.monotonic()
        if self._place is None:
            self._place = places.find(self._target)
        shown = [str(picture) for picture in self._pictures] if last else []
        self._place.show(self._repr_html_(), "\n".join([*filter(None, shown), str(self)]), last=last)

    def _repr_html_(self) -> str:
        unread = sum(map(len, self._unread.values()))
        note = f"<div>{unread} values are not read yet: await live.draw_async()</div>" if unread else ""
        plot = chart.chart(self.lines, logarithmic=self.log_scale) if self.lines else ""
        return places.titled(self.title, "".join(map(html.shown, self._pictures)) + plot + note)

    def __str__(self) -> str:
        said = [
            f"{name} {line[-1][1]:.4g} {chart.spark([v for _, v in line])}" for name, line in self.lines.items() if line
        ]
        return "  ".join([self.title, *([f"step {self.step}"] if self.step else []), *said]).strip()

    __repr__ = __str__

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.draw(last=True)
