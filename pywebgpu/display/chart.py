"""Lines over steps, as SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, floor, isfinite, log10

from pywebgpu.display import html

WIDTH, HEIGHT = 560, 240
LEFT, RIGHT, TOP, BOTTOM = 54, 10, 10, 24
COLORS = ("#1f5eff", "#c8651b", "#0f8a7e", "#b4237a", "#7447c9", "#6b7688")
POINTS = 400  # of a line, at most
Line = Sequence[tuple[float, float]]  # step and value


def chart(lines: Mapping[str, Line], *, logarithmic: bool = False) -> str:
    """Each line with its name and last value."""
    thin = {name: _thinned([point for point in line if isfinite(point[1])]) for name, line in lines.items()}
    steps = [step for line in thin.values() for step, _ in line]
    values = [value for line in thin.values() for _, value in line]
    logarithmic = logarithmic and min(values, default=0) > 0
    x0, x1 = min(steps, default=0), max(steps, default=1)
    marks = _decades(values) if logarithmic else _marks(min(values, default=0), max(values, default=1))
    y0, y1 = marks[0], marks[-1]
    scale = log10 if logarithmic else float

    def place(step: float, value: float) -> tuple[float, float]:
        across = (step - x0) / ((x1 - x0) or 1)
        up = (scale(value) - scale(y0)) / ((scale(y1) - scale(y0)) or 1)
        return LEFT + across * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM)

    parts = []
    for mark in marks:
        y = place(x0, mark)[1]
        parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="currentColor" opacity=".15"/>')
        parts.append(_text(LEFT - 6, y + 4, f"{mark:.4g}", "end"))
    parts += [_text(LEFT, HEIGHT - 6, f"{x0:g}", "start"), _text(WIDTH - RIGHT, HEIGHT - 6, f"step {x1:g}", "end")]
    for color, line in zip(_colors(len(thin)), thin.values(), strict=True):
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in (place(*point) for point in line))
        if path:
            parts.append(f'<path d="M{path}" fill="none" stroke="{color}" stroke-width="1.5"/>')
    drawn = (
        f'<svg role="img" aria-label="{html.escape(", ".join(lines))} over steps" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'style="width:100%;max-width:{WIDTH}px;display:block">{"".join(parts)}</svg>'
    )
    return f"<div>{_legend(lines)}</div>{drawn}"


def spark(values: Sequence[float], width: int = 32) -> str:
    """Values as a line of text."""
    fine = [value for value in values if isfinite(value)]
    low, high = min(fine, default=0), max(fine, default=0)
    step = -(-len(fine) // width) or 1
    kept = fine[::step][-width:]
    return "".join("▁▂▃▄▅▆▇█"[min(7, int(8 * (value - low) / ((high - low) or 1)))] for value in kept)


def _legend(lines: Mapping[str, Line]) -> str:
    entries = []
    for color, (name, line) in zip(_colors(len(lines)), lines.items(), strict=True):
        last = f"{line[-1][1]:.4g}" if line else "-"
        swatch = f'<span style="display:inline-block;width:14px;height:3px;background:{color};vertical-align:middle">'
        entries.append(f'{swatch}</span> {html.escape(name)} <b style="margin-right:14px">{last}</b>')
    return "".join(entries)


def _colors(count: int) -> list[str]:
    return [COLORS[index % len(COLORS)] for index in range(count)]


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="11" fill="currentColor">{text}</text>'


def _thinned(line: Line) -> Line:
    step = -(-len(line) // POINTS) or 1
    return [*line[::step], line[-1]] if step > 1 else line


def _marks(low: float, high: float) -> list[float]:
    """Round numbers from below the lowest to above the highest."""
    span = (high - low) or abs(high) or 1.0
    unit = 10.0 ** floor(log10(span / 4))
    unit *= next((factor for factor in (1, 2, 5) if span / (factor * unit) <= 5), 10)
    first, last = floor(low / unit), ceil(high / unit)
    return [index * unit for index in range(first, max(last, first + 1) + 1)]


def _decades(values: Sequence[float]) -> list[float]:
    first, last = floor(log10(min(values))), ceil(log10(max(values)))
    return [10.0**exponent for exponent in range(first, max(last, first + 1) + 1)]
