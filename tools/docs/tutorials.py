"""The tutorials: a page for each program of demos/gallery, with its text, its source and a way to run it."""

import ast
from pathlib import Path

GALLERY = Path(__file__).parents[2] / "demos" / "gallery"
LEAD = """# Tutorials

Each of these is one file, and a whole program: it runs natively (`python demos/gallery/NAME.py`), in Node
(`python -m pywebgpu node demos/gallery/NAME.py`) and in the editor of the page. *Run* under a program opens it in an
editor, in place, where it can be changed.
"""


def write(made: Path) -> None:
    """Writes made/tutorials/*.md."""
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


def page(path: Path) -> str:
    """The docstring's first line is the title, the rest of it the text."""
    source = path.read_text(encoding="utf-8")
    title, _, rest = (ast.get_docstring(ast.parse(source)) or path.stem).partition("\n")
    return f"# {title.rstrip('.')}\n\n{rest.strip()}\n\n`demos/gallery/{path.name}`:\n\n```python\n{source}```\n"
