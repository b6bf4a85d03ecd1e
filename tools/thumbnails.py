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
        path.with_suffix(".svg").write_text(picture + "\n", encoding="utf-8")
        print(path.with_suffix(".svg"), len(picture))


if __name__ == "__main__":
    main(sys.argv[1:])
