"""Pictures of numbers: SVG where there is a page, characters in a terminal."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from pywebgpu.display import html

INK = ("#10131a", "#f4f6fa")  # of images, from low to high
BLUE_RED = ("#3f6fd8", "#b9cdf5", "#f5f5f2", "#f3c4a8", "#c8552b")
GROUPS = ("#1f5eff", "#c8651b", "#0f8a7e", "#b4237a", "#7447c9", "#6b7688", "#a08a00", "#3f9b3a", "#d43b3b", "#008bb5")
SHADES = " .:-=+*#%@"
MARKS = "ox+*#@%&$="
WIDEST = 110  # characters of an image in a terminal
COLUMNS, LINES = 56, 20  # of a scatter plot in a terminal
LETTER, LINE = 9, 18  # pixels of a letter's width, and of a line, at the edges of an image
Matrix = Sequence[Sequence[float]]


@dataclass(frozen=True, slots=True)
class Picture:
    """Something to look at: HTML, and text for where there is no page."""

    markup: str
    text: str = ""

    def _repr_html_(self) -> str:
        return self.markup

    def __str__(self) -> str:
        return self.text


def image(
    values: object,
    *,
    low: float | None = None,
    high: float | None = None,
    scale: float = 6,
    colors: Sequence[str] = INK,
    rows: Sequence[str] = (),
    columns: Sequence[str] = (),
    title: str = "",
) -> Picture:
    """A matrix of numbers, or a tensor of two axes, as an image: a cell for each.

    low, high: what gets the first and the last of the colors, the lowest and highest value if None. scale: of a cell.
    rows, columns: what stands beside each row, and above each column.
    """
    cells = _rows(values)
    fine = [value for row in cells for value in row]
    low = min(fine, default=0.0) if low is None else low
    high = max(fine, default=1.0) if high is None else high
    parts = [[_part(value, low, high) for value in row] for row in cells]
    width, height = (len(cells[0]) if cells else 0) * scale, len(cells) * scale
    left, top = max(map(len, rows), default=0) * LETTER, LINE if columns else 0
    inside = _bitmap(parts, colors, f'x="{left}" y="{top}" width="{width:g}" height="{height:g}"')
    inside += "".join(_word(left - 4, top + (index + 0.5) * scale + 4, word, "end") for index, word in enumerate(rows))
    inside += "".join(
        _word(left + (index + 0.5) * scale, LINE - 5, word, "middle") for index, word in enumerate(columns)
    )
    text = _shaded(parts)
    return _drawn(left + width, top + height, inside, title or "image", f"{title}\n{text}" if title else text)


def _shaded_text(shades: Sequence[Sequence[float]]) -> list[list[str]]:
    rows = [shades[row * len(shades) // LINES] for row in range(LINES)]
    return [[" " if row[column * len(row) // COLUMNS] < 0.5 else "." for column in range(COLUMNS)] for row in rows]


def scatter(
    points: object,
    groups: object = None,
    *,
    names: Sequence[str] = (),
    span: tuple[float, float] | None = None,
    behind: object = None,
    colors: Sequence[str] = BLUE_RED,
    size: int = 300,
    title: str = "",
) -> Picture:
    """Points of a plane, n rows of x and y, each in the color of its group and with its name.

    span: where both axes begin and end. behind: a matrix from 0 to 1 over the whole plane, its first row on top.
    """
    rows = _rows(points)
    group = [0] * len(rows) if groups is None else [int(label) for label in _plain(groups)]
    flat = [value for point in rows for value in point] or [0.0, 1.0]
    start, end = span or (min(flat), max(flat))
    reach = (end - start) or 1.0
    places = [((x - start) / reach, (end - y) / reach) for x, y in rows]
    inside, lines = "", [[" "] * COLUMNS for _ in range(LINES)]
    if behind is not None:
        shades = [[_part(value, 0.0, 1.0) for value in row] for row in _rows(behind)]
        inside = _bitmap(shades, colors, f'width="{size}" height="{size}"', smooth=True)
        lines = _shaded_text(shades)
    for index, ((x, y), point) in enumerate(zip(places, group, strict=True)):
        if not (0 <= x <= 1 and 0 <= y <= 1):
            continue
        center, color = f'cx="{x * size:.1f}" cy="{y * size:.1f}"', GROUPS[point % len(GROUPS)]
        inside += f'<circle {center} r="3" fill="{color}" stroke="#fff" stroke-width=".7"/>'
        if name := names[index] if index < len(names) else "":
            left, side = (5, "start") if x < 0.8 else (-5, "end")
            inside += _word(x * size + left, y * size + 4, name, side)
        column, line_at = min(int(x * COLUMNS), COLUMNS - 1), min(int(y * LINES), LINES - 1)
        shown = name or MARKS[point % len(MARKS)]
        column = max(0, min(column, COLUMNS - len(shown)))
        lines[line_at][column : column + len(shown)] = shown
    text = "\n".join("".join(line) for line in lines)
    return _drawn(size, size, inside, title or "points of a plane", f"{title}\n{text}" if title else text)


def bars(values: Mapping[Any, float], *, most: float = 1.0, width: int = 240) -> Picture:
    """A bar for each number from 0 to `most`, by name."""
    rows, lines = [], []
    for name, value in values.items():
        part = _part(float(value), 0.0, most)
        bar = f'<div style="height:12px;background:{GROUPS[0]};width:{part * width:.1f}px"></div>'
        rows.append(f"<tr><td>{html.escape(name)}</td><td>{bar}</td><td>{float(value):.2f}</td></tr>")
        lines.append(f"{name} {'█' * round(part * 30)} {float(value):.2f}")
    return Picture(f'<table style="line-height:1.1">{"".join(rows)}</table>', "\n".join(lines))


def beside(*pictures: Picture) -> Picture:
    """Pictures in a row, which breaks where it is too wide."""
    markup = "".join(picture.markup for picture in pictures)
    return Picture(
        f'<div style="display:flex;flex-wrap:wrap;gap:12px">{markup}</div>',
        "\n\n".join(picture.text for picture in pictures if picture.text),
    )


def _word(x: float, y: float, word: str, anchor: str) -> str:
    said = html.escape(word)
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="11" fill="currentColor">{said}</text>'


def _drawn(width: float, height: float, inside: str, said: str, text: str) -> Picture:
    label = html.escape(said)
    caption = f'<div style="{html.SOFT}">{label}</div>' if text.startswith(said) else ""
    return Picture(
        f'<div>{caption}<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{label}" '
        f'viewBox="0 0 {width:g} {height:g}" width="{width:g}" style="max-width:100%;height:auto;display:block">'
        f"{inside}</svg></div>",
        text,
    )


def _bitmap(parts: Matrix, colors: Sequence[str], where: str, *, smooth: bool = False) -> str:
    """Numbers from 0 to 1 as an image of SVG: a PNG inside."""
    palette = [_between(colors, shade / 255) for shade in range(256)]
    lines = b"".join(b"\0" + bytes(round(part * 255) for part in row) for row in parts)
    head = struct.pack(">IIBBBBB", len(parts[0]) if parts else 1, len(parts) or 1, 8, 3, 0, 0, 0)
    chunks = [(b"IHDR", head), (b"PLTE", b"".join(palette)), (b"IDAT", zlib.compress(lines or b"\0\0")), (b"IEND", b"")]
    data = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in chunks
    )
    style = "" if smooth else ' style="image-rendering:pixelated"'
    packed = base64.b64encode(data).decode()
    return f'<image {where} preserveAspectRatio="none"{style} href="data:image/png;base64,{packed}"/>'


def _shaded(parts: Matrix) -> str:
    """Numbers from 0 to 1 as characters, two for each, since they are higher than wide; of many, every n-th."""
    step = -(-2 * len(parts[0]) // WIDEST) if parts else 1
    return "\n".join(
        "".join(SHADES[round(part * (len(SHADES) - 1))] * 2 for part in row[::step]) for row in parts[::step]
    )


def _between(colors: Sequence[str], part: float) -> bytes:
    """The color at a part of the way through these."""
    position = part * (len(colors) - 1)
    first = min(int(position), len(colors) - 2)
    pair = [bytes.fromhex(color[1:]) for color in colors[first : first + 2]]
    return bytes(round(a + (b - a) * (position - first)) for a, b in zip(*pair, strict=True))


def _part(value: float, low: float, high: float) -> float:
    """Where a value lies from low to high, from 0 to 1; a NaN is at 0."""
    part = (value - low) / ((high - low) or 1.0)
    return 0.0 if part != part else min(1.0, max(0.0, part))


def _rows(values: object) -> list[list[float]]:
    nested = _plain(values)
    if any(not isinstance(row, list | tuple) or len(row) != len(nested[0]) for row in nested):
        raise ValueError("a picture needs rows of equal length: a matrix, or a tensor of two axes")
    return [list(row) for row in nested]


def _plain(values: object) -> list[Any]:
    """A tensor, an array or a list as a list."""
    return list(values.tolist() if hasattr(values, "tolist") else cast("Iterable[Any]", values))
