"""The tutorials: a page for each program of demos/gallery, with its text, its source and a way to run it."""

import ast
import shutil
from pathlib import Path

GALLERY = Path(__file__).parents[2] / "demos" / "gallery"
LEAD = """# Tutorials

Each of these is one file, and a whole program: it runs natively (`python demos/gallery/NAME.py`), in Node
(`python -m pywebgpu node demos/gallery/NAME.py`) and in the editor of the page. *Run* under a program opens it in an
editor, in place, where it can be changed.
"""


def write(made: Path) -> None:
    """Writes made/tutorials/*.md, and the pictures beside them."""
    folder = made / "tutorials"
    folder.mkdir(exist_ok=True)
    programs = sorted(path for path in GALLERY.glob("*.py") if not path.stem.startswith("_"))
    pages = {path.stem: page(path) for path in programs}
    listed = "\n".join(["```{toctree}", ":maxdepth: 1", "", *pages, "```", ""])
    pages["index"] = f"{LEAD}\n{listed}"
    for name, text in pages.items():
        target = folder / f"{name}.md"
        if not target.exists() or target.read_text(encoding="utf-8") != text:
            target.write_text(text, encoding="utf-8")
    for picture in GALLERY.glob("*.svg"):
        shutil.copyfile(picture, folder / picture.name)


def page(path: Path) -> str:
    """A title, what it does, a picture that the program made, and the program."""
    source = path.read_text(encoding="utf-8")
    first, _, rest = (ast.get_docstring(ast.parse(source)) or path.stem).partition("\n")
    title, colon, what = first.partition(": ")
    lines = [f"# {title.rstrip('.')}", f"{what[:1].upper()}{what[1:]}" if colon else "", rest.strip()]
    if path.with_suffix(".svg").exists():
        lines.append(f"```{{image}} {path.stem}.svg\n:width: 320px\n:alt: What the program draws: {what or title}\n```")
    return "\n\n".join([*filter(None, lines), f"`demos/gallery/{path.name}`:", f"```python\n{source}```\n"])
