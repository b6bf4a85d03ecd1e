"""Draws the thumbnails of the gallery: python tools/thumbnails.py [NAME...]

Each program of demos/gallery runs as it is; the first picture that it shows at its end is NAME.svg beside it.
"""

import re
import runpy
import sys
from pathlib import Path

from pywebgpu.display import places

GALLERY = Path(__file__).parents[1] / "demos" / "gallery"
PICTURE = re.compile(r"<svg.*?</svg>", re.DOTALL)
NAME = re.compile(r'<text x="([\d.]+)" y="([\d.]+)" text-anchor="start" font-size="11"[^>]*>(.*?)</text>')
PLOT = "over steps"  # of every plot's label


class Kept:
    """A place that keeps the pictures of all that is shown."""

    def __init__(self) -> None:
        self.pictures: list[str] = []

    def show(self, page: str, line: str, *, last: bool) -> None:
        self.pictures += [one for one in PICTURE.findall(page) if PLOT not in one] if last else []


def main(names: list[str]) -> None:
    for path in sorted(GALLERY.glob("*.py")):
        if names and path.stem not in names:
            continue
        kept = Kept()
        places.find = lambda target=None, kept=kept: kept  # type: ignore[assignment]
        runpy.run_path(str(path), run_name="__main__")
        picture = kept.pictures[0]
        if "xmlns=" not in picture:
            picture = picture.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1)
        path.with_suffix(".svg").write_text(legible(picture) + "\n", encoding="utf-8")
        print(path.with_suffix(".svg"), len(picture))


def legible(picture: str) -> str:
    """Points and their names, twice as large: a thumbnail is half as wide. Of names that would meet, the first."""
    taken: list[tuple[float, float, float]] = []

    def name(found: re.Match[str]) -> str:
        x, y, text = float(found[1]) + 4, float(found[2]) + 4, found[3]
        width = 11 * len(text)
        if any(abs(y - other) < 20 and x < end and start < x + width for start, end, other in taken):
            return ""
        taken.append((x, x + width, y))
        return f'<text x="{x}" y="{y}" text-anchor="start" font-size="20" fill="currentColor">{text}</text>'

    larger = re.sub(r'(<circle[^>]*) r="3"', r'\1 r="6"', picture)
    return NAME.sub(name, larger)


if __name__ == "__main__":
    main(sys.argv[1:])
