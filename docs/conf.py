"""How Sphinx makes the site of these pages: `make docs` runs it."""

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
