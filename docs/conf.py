"""How Sphinx makes the site of these pages: `make docs` runs it."""

import re
import sys
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).parents[1]))

from pywebgpu.version import __version__
from tools.docs import names, pictures, reference, tutorials, whole

project = "pywebgpu"
version = release = __version__
copyright = "the pywebgpu authors"
extensions = ["myst_parser"]
exclude_patterns = ["_build", "**/README.md", "README.md"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
add_module_names = False
python_maximum_signature_line_length = 100
toc_object_entries = False

html_theme = "furo"
html_title = f"pywebgpu {__version__}"
html_favicon = "../web/icon.svg"
html_static_path = ["_static"]
html_extra_path = ["made/pages"]
html_css_files = ["pages.css"]
if "site" in tags:  # noqa: F821 - Sphinx says which there are: with `make site` an editor lies beside the pages
    html_js_files = [("run.mjs", {"type": "module"})]
html_copy_source = html_show_sourcelink = False


def setup(app: Sphinx) -> None:
    """Writes the pages that are made of the code."""
    made = Path(app.srcdir) / "made"
    made.mkdir(exist_ok=True)
    for part in (reference, names, tutorials, pictures, whole):
        part.write(made)
    app.connect("source-read", relink)
    app.connect("html-page-context", level, priority=900)  # after the theme has made its contents
    app.connect("build-finished", open_to_all)


def relink(app: Sphinx, page: str, source: list[str]) -> None:
    """Links of the pages work in a checkout; those that leave docs are led to pages of the site."""
    folder = (Path(app.srcdir) / page).parent
    if "made" not in folder.parts:
        source[0] = whole.relinked(source[0], folder, folder)


def level(app: Sphinx, page: str, template: str, context: dict[str, Any], document: object) -> None:
    """Captions of the contents are headings to a screen reader, which asks for their level."""
    tree = context.get("furo_navigation_tree")
    if tree:
        context["furo_navigation_tree"] = tree.replace('role="heading"', 'role="heading" aria-level="2"')


ARGUMENTS = re.compile(r'<dl>\n((?:<dd><em class="sig-param">.*</dd>\n)+)</dl>')  # of a long signature, a line each


def open_to_all(app: Sphinx, error: Exception | None) -> None:
    """Adds what a page lacks for those who hear it, or have only keys: names, a way to scroll, lists that are none."""
    for page in Path(app.outdir).rglob("*.html") if error is None else ():
        found = page.read_text(encoding="utf-8")
        made = found.replace('<aside class="sidebar-drawer">', '<aside class="sidebar-drawer" aria-label="Pages">')
        made = made.replace('<aside class="toc-drawer', '<aside aria-label="On this page" class="toc-drawer')
        made = made.replace('<div class="highlight"><pre>', '<div class="highlight"><pre tabindex="0">')
        made = made.replace('<th class="head"><p></p></th>', "<td></td>")
        made = ARGUMENTS.sub(as_lines, made)
        if made != found:
            page.write_text(made, encoding="utf-8")


def as_lines(arguments: re.Match[str]) -> str:
    lines = arguments[1].replace("<dd>", "<div>").replace("</dd>", "</div>")
    return f'<div class="arguments">\n{lines}</div>'
