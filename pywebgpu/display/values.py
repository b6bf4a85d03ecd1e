"""A tensor as HTML: what it is, its statistics, a small map of its values, its text."""

from __future__ import annotations

from math import inf, isfinite
from typing import Any

from pywebgpu import dtypes
from pywebgpu.autodiff import grad_mode
from pywebgpu.display import html
from pywebgpu.dtypes import Kind
from pywebgpu.tensor import functions, show
from pywebgpu.tensor.tensor import Tensor

ROWS, COLUMNS = 24, 48  # of the map, at most
CELL, LARGE = 6, 16  # pixels; of a small map
LINES = 12  # of text; more are folded
# From the lowest to the highest: around 0, or from 0 on.
SIGNED = ("#2166ac", "#4393c3", "#92c5de", "#d1e5f0", "#f7f7f7", "#fddbc7", "#f4a582", "#d6604d", "#b2182b")
RISING = ("#f7fbff", "#deebf7", "#c6dbef", "#9ecae1", "#6baed6", "#4292c6", "#2171b5", "#08519c", "#08306b")
ODD = "#a0a"  # NaN, and infinities


def tensor_html(tensor: Tensor) -> str:
    """What a notebook shows of a tensor. Waits for the device; where that is impossible, or fails, it says so.

    Where nothing can be computed, as on device cpu without NumPy, its values are shown without statistics and map.
    """
    shape = " x ".join(map(str, tensor.shape)) or "a number"
    history = f"grad_fn {show.gradient_name(tensor._node)}" if tensor.grad_fn is not None else ""
    facts = [shape, tensor.dtype, tensor.device, html.amount(tensor.nbytes)]
    head = html.head(type(tensor).__name__, [*facts, history or ("requires grad" if tensor.requires_grad else "")])
    try:
        with grad_mode.no_grad():
            parts = _parts(tensor.detach())
    except Exception:  # Whatever it is, a cell that only shows a value must not fail.
        parts = []
    try:
        said = repr(tensor)
    except Exception as error:
        said = f"not read: {error}"
    text = html.text(said)
    if parts and said.count("\n") >= LINES:
        text = f'<details><summary style="{html.SOFT}">values</summary>{text}</details>'
    return html.card(head, *parts, text)


def _parts(tensor: Tensor) -> list[str]:
    if tensor.numel() < 2 or tensor.ndim == 0:
        return []
    is_complex = tensor.dtype.is_complex
    magnitudes = tensor.abs() if is_complex else tensor
    facts = ("of magnitudes: " if is_complex else "") + _statistics(magnitudes)
    return [f'<div style="{html.SOFT}">{html.escape(facts)}</div>', _map(magnitudes)]


def _statistics(tensor: Tensor) -> str:
    """Of the finite values, read at once."""
    if tensor.dtype.kind is Kind.BOOL:
        return f"{tensor.sum().item():,} of {tensor.numel():,} are True"
    if not tensor.dtype.is_floating_point:
        low, high = functions.stack([tensor.min(), tensor.max()]).tolist()
        return f"min {low:,}  max {high:,}"
    x = tensor if tensor.dtype is dtypes.float64 else tensor.to(dtypes.float32)
    fine = x.isfinite()
    count = fine.sum()
    mean = functions.where(fine, x, 0).sum() / count
    spread = (functions.where(fine, x - mean, 0).square().sum() / count).sqrt()
    low, high = functions.where(fine, x, inf).min(), functions.where(fine, x, -inf).max()
    least, most, middle, deviation, n = functions.stack([low, high, mean, spread, count.to(x.dtype)]).tolist()
    odd = tensor.numel() - round(n)
    odd = 0 if n >= 1 << 24 and odd < n / 1000 else odd  # A float32 counts that far.
    if n == 0:
        return f"{odd:,} values, none of them finite"
    said = f"min {least:.4g}  max {most:.4g}  mean {middle:.4g}  std {deviation:.4g}"
    return said + (f"  {odd:,} not finite" if odd else "")


def _map(tensor: Tensor) -> str:
    """A picture of the values; of more than two axes the first matrix, of long ones every n-th row and column."""
    shown: Any = tensor.reshape(1, -1) if tensor.ndim == 1 else tensor
    notes = []
    if shown.ndim > 2:
        notes.append(f"[{', '.join('0' * (shown.ndim - 2))}]")
        for _ in range(shown.ndim - 2):
            shown = shown[0]
    steps = [-(-n // most) for n, most in zip(shown.shape, (ROWS, COLUMNS), strict=True)]
    if 0 in shown.shape:
        return ""
    if max(steps) > 1:
        notes.append(f"every {steps[0]}. row, every {steps[1]}. column")
    values = shown[:: steps[0], :: steps[1]].to(dtypes.float32).tolist()
    note = f'<span style="{html.SOFT};margin-left:8px">{html.escape(", ".join(notes))}</span>' if notes else ""
    return f"<div>{heat_map(values)}{note}</div>"


def heat_map(values: list[list[float]]) -> str:
    """A matrix as SVG: a path for each color, a rectangle for each run of equal cells."""
    fine = [value for row in values for value in row if isfinite(value)]
    low, high = min(fine, default=0.0), max(fine, default=0.0)
    colors = SIGNED if low < 0 else RISING
    top = max(-low, high) if low < 0 else high
    bottom = -top if low < 0 else low
    span = top - bottom
    paths: dict[str, list[str]] = {}
    for y, row in enumerate(values):
        x = 0
        painted = [_color(value, bottom, span, colors) for value in row]
        while x < len(painted):
            end = x
            while end < len(painted) and painted[end] == painted[x]:
                end += 1
            paths.setdefault(painted[x], []).append(f"M{x} {y}h{end - x}v1h{x - end}z")
            x = end
    width, height = len(values[0]), len(values)
    cell = max(CELL, min(LARGE, 96 // max(width, height)))
    drawn = "".join(f'<path fill="{color}" d="{"".join(path)}"/>' for color, path in paths.items())
    return (
        f'<svg role="img" aria-label="map of values" viewBox="0 0 {width} {height}" width="{width * cell}" '
        f'height="{height * cell}" shape-rendering="crispEdges" style="vertical-align:top">{drawn}</svg>'
    )


def _color(value: float, bottom: float, span: float, colors: tuple[str, ...]) -> str:
    if not isfinite(value):
        return ODD
    part = (value - bottom) / span if span else 0.5
    return colors[min(len(colors) - 1, int(part * len(colors)))]
