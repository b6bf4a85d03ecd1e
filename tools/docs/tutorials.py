"""The tutorials: a page for each program of demos/gallery, with its text, its source and a way to run it.

The text lies beside the program (boundary.md, boundary.py), without its code: marks say how far the program goes on.
"""

import ast
import re
import shutil
from pathlib import Path

GALLERY = Path(__file__).parents[2] / "demos" / "gallery"
LEAD = """# Tutorials

Each of these is one file, and a whole program: it runs natively (`python demos/gallery/NAME.py`), in Node
(`python -m pywebgpu node demos/gallery/NAME.py`) and in the editor of the page. *Run* under the last lines opens the
whole program in an editor, in place, where it can be changed.
"""
MARK = re.compile(r"^<!-- (?:code to: (?P<line>.+)|the rest) -->$", re.MULTILINE)


def write(made: Path) -> None:
    """Writes made/tutorials/*.md, and the pictures beside them."""
    folder = made / "tutorials"
    folder.mkdir(exist_ok=True)
    programs = sorted(path for path in GALLERY.glob("*.py") if not path.stem.startswith("_"))
    pages = {path.stem: page(path) for path in programs}
    listed = "\n".join(["```{toctree}", ":hidden:", "", *pages, "```", ""])
    cards = "\n".join(card(path) for path in programs)
    pages["index"] = f"{LEAD}\n::::{{container}} cards\n{cards}\n::::\n\n{listed}"
    for name, text in pages.items():
        target = folder / f"{name}.md"
        if not target.exists() or target.read_text(encoding="utf-8") != text:
            target.write_text(text, encoding="utf-8")
    for picture in GALLERY.glob("*.svg"):
        shutil.copyfile(picture, folder / picture.name)


def page(path: Path) -> str:
    """A title, what it does, a picture that the program made, and the program in pieces, with what they teach."""
    source = path.read_text(encoding="utf-8")
    title, what, rest = described(source, path.stem)
    lines = [f"# {title}", what, rest]
    if path.with_suffix(".svg").exists():
        lines.append(f"```{{image}} {path.stem}.svg\n:width: 320px\n:alt: What the program draws: {what or title}\n```")
    lines.append(f"The program is `demos/gallery/{path.name}`.")
    return "\n\n".join([*filter(None, lines), woven(path.with_suffix(".md").read_text(encoding="utf-8"), source)])


def card(path: Path) -> str:
    """A picture, the title and what it does, as one of the cards of the contents."""
    title, what, _ = described(path.read_text(encoding="utf-8"), path.stem)
    picture = f"```{{image}} {path.stem}.svg\n:target: {path.stem}.html\n:alt: {title}\n```"
    return f":::{{container}} card\n{picture}\n[{title}]({path.stem}.md)\n\n{what}\n:::"


def described(source: str, name: str) -> tuple[str, str, str]:
    """The title of a program, what it does, and what else its docstring says."""
    first, _, rest = (ast.get_docstring(ast.parse(source)) or name).partition("\n")
    title, _, what = first.partition(": ")
    return title.rstrip("."), f"{what[:1].upper()}{what[1:]}", rest.strip()


def woven(text: str, source: str) -> str:
    """The text with the program where its marks are: each from where the last one stopped up to the line it names."""
    at = 0

    def piece(mark: re.Match[str]) -> str:
        nonlocal at
        begin, at = at, start(source, mark["line"], at) if mark["line"] else len(source)
        return f"```{{code-block}} python\n:class: piece\n\n{source[begin:at].strip()}\n```"

    made = MARK.sub(piece, text)
    assert at == len(source), "a text ends with <!-- the rest -->"
    return made


def start(source: str, line: str, at: int) -> int:
    """Where the next line begins that starts so, with the decorators and the comments right above it."""
    found = source.find(f"\n{line}", at) + 1
    assert found, f"the program goes on without a line {line!r}"
    above = source[at:found].splitlines(keepends=True)
    while above and above[-1].startswith(("@", "#")):
        found -= len(above.pop())
    return found
