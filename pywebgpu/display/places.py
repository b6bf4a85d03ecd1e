"""Where something can be shown again and again: a notebook's cell, a page, a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, Protocol

from pywebgpu.display import html, widgets


class Place(Protocol):
    def show(self, page: str, line: str, *, last: bool, active: bool = False) -> None:
        """Shows HTML, or one line of text where there is no HTML, instead of what was shown before.

        active: with handlers of events in it.
        """


class Cell:
    """The output of a Jupyter cell: IPython's display, updated."""

    def __init__(self, display: Callable[..., object]) -> None:
        self._display = display
        self._handle: Any = None

    def show(self, page: str, line: str, *, last: bool, active: bool = False) -> None:
        data = {"text/html": page, "text/plain": line}
        if self._handle is None:
            self._handle = self._display(data, raw=True, display_id=True)
        else:
            self._handle.update(data, raw=True)


class Marimo:
    """The output of a marimo cell."""

    def __init__(self, marimo: ModuleType) -> None:
        self._marimo = marimo

    def show(self, page: str, line: str, *, last: bool, active: bool = False) -> None:
        shown = self._marimo.iframe(page, height="48px") if active else self._marimo.Html(page)  # It drops handlers.
        self._marimo.output.replace(shown)


class Element:
    """An element of the page that Python runs in; a new one at its end where none is named."""

    def __init__(self, document: Any, target: str | None) -> None:
        self._element: Any = document.getElementById(target) if target else None
        if target and self._element is None:
            raise ValueError(f"Live(): the page has no element with the id {target!r}")
        if self._element is None:
            self._element = document.createElement("div")
            document.body.append(self._element)

    def show(self, page: str, line: str, *, last: bool, active: bool = False) -> None:
        self._element.innerHTML = page


class Output:
    """What a program shows in the editor of a page, which runs it in a worker."""

    def __init__(self, page: Any) -> None:
        self._page = page
        self._id = page.place()

    def show(self, page: str, line: str, *, last: bool, active: bool = False) -> None:
        self._page.show(self._id, page)


class Terminal:
    """One line, written over; without a terminal, the last one only."""

    def show(self, page: str, line: str, *, last: bool, active: bool = False) -> None:
        if sys.stderr.isatty():
            print(f"\r{line}\x1b[K", end="\n" if last else "", file=sys.stderr, flush=True)
        elif last:
            print(line, file=sys.stderr, flush=True)


def find(target: str | None = None) -> Place:
    """Where this program can show something. target: the id of an element of the page."""
    if target is None:
        marimo: Any = sys.modules.get("marimo")
        if marimo is not None and marimo.running_in_notebook():
            return Marimo(marimo)
        shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
        if shell is not None and type(shell).__name__ != "TerminalInteractiveShell":
            return Cell(sys.modules["IPython"].display.display)
    if sys.platform == "emscripten":
        import js

        if hasattr(js, "document"):
            return Element(js.document, target)
        if (there := widgets.page()) is not None:
            return Output(there)
    return Terminal()


def titled(title: str, body: str) -> str:
    return html.card(html.head(title, []) if title else "", body)
