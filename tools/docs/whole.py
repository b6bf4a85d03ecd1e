"""Pages that lie above docs, CONTRIBUTING.md and its like, as pages of the site; and links that leave docs."""

import os
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = {"CONTRIBUTING.md": "contributing", "GLOSSARY.md": "glossary", "CHANGELOG.md": "changes"}
LINK = re.compile(r"\[([^\]]*)\]\(([^)#:]+)(#[^)]*)?\)")


def write(made: Path) -> None:
    """Writes made/contributing.md and the others."""
    for source, name in PAGES.items():
        text = relinked((ROOT / source).read_text(encoding="utf-8"), ROOT, made)
        if name == "contributing":
            text += "\n```{toctree}\n:hidden:\n\nglossary\nchanges\n../requirements\n```\n"
        target = made / f"{name}.md"
        if not target.exists() or target.read_text(encoding="utf-8") != text:
            target.write_text(text, encoding="utf-8")


def relinked(text: str, folder: Path, place: Path) -> str:
    """Text of a page of `folder` for a page in `place`; what is no page of the site is named, and not linked to."""

    def link(found: re.Match[str]) -> str:
        words, address, anchor = found[1], found[2], found[3] or ""
        target = (folder / address).resolve()
        if target.parent == ROOT and target.name in PAGES:
            target = ROOT / "docs" / "made" / f"{PAGES[target.name]}.md"
        elif not target.is_relative_to(ROOT / "docs"):
            return f"{words} (`{target.relative_to(ROOT)}`)"
        return f"[{words}]({Path(os.path.relpath(target, place)).as_posix()}{anchor})"

    return LINK.sub(link, text)
