"""Pieces of HTML. Whatever comes from a program is escaped here."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

# Without a scroller of its own: whatever shows it has one, and one inside another hides half of a table on a phone.
CARD = "font:13px/1.45 system-ui,sans-serif;margin:4px 0"
MONO = "font:12px/1.4 ui-monospace,monospace;white-space:pre;margin:4px 0"
SOFT = "opacity:.65"


def escape(value: object) -> str:
    return html.escape(str(value))


def card(*parts: str) -> str:
    return f'<div style="{CARD}">{"".join(parts)}</div>'


def head(title: str, facts: Iterable[object]) -> str:
    said = " · ".join(escape(fact) for fact in facts if fact != "")
    return f'<div><b>{escape(title)}</b> <span style="{SOFT}">{said}</span></div>'


def text(value: str) -> str:
    return f'<pre style="{MONO}">{escape(value)}</pre>'


def shown(value: object) -> str:
    """A value that knows its HTML, or else its text."""
    own = getattr(value, "_repr_html_", None)
    return f'<div style="margin:4px 0 8px">{own()}</div>' if own is not None else text(str(value))


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """The first column is text, the others are numbers, on the right."""
    cells = "padding:1px 10px 1px 0;white-space:nowrap;text-align:"
    sides = ["left", *["right"] * (len(heads) - 1)]
    lines = ["".join(f'<th style="{cells}{side}">{escape(cell)}</th>' for cell, side in zip(heads, sides, strict=True))]
    for row in rows:
        lines.append(
            "".join(f'<td style="{cells}{side}">{escape(cell)}</td>' for cell, side in zip(row, sides, strict=True))
        )
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f'<table style="border-collapse:collapse;font-variant-numeric:tabular-nums">{body}</table>'


def amount(nbytes: float) -> str:
    """Bytes for people."""
    for unit in ("B", "kB", "MB"):
        if nbytes < 1000:
            return f"{nbytes:.3g} {unit}"
        nbytes /= 1000
    return f"{nbytes:.3g} GB"
