"""The site as plain files, as `make site` writes it: at a path below an address of any web server.

`python -m tests site` makes the whole of it and walks through all; here its page is made, beside one of documentation.
"""

import importlib.util
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from playwright.sync_api import Browser, Page, expect

from playwright_tests.conftest import violations
from playwright_tests.steps import LOADED, STEPPED
from playwright_tests.test_export import served

ROOT = Path(__file__).parents[1]
BUILT = os.environ.get("PYWEBGPU_SITE")  # a folder that `make site` wrote
BELOW = "some/where"
LINK = re.compile(r"^http://localhost:\d+/some/where/index\.html\?program=[\w-]+#editor$")
PROGRAM = "import pywebgpu as torch\nprint(torch.arange(4.0).sum().item())\n"
DOCUMENT = f"""<!doctype html><title>A page</title><link rel="icon" href="data:,">
<script type="module" src="_static/run.mjs"></script>
<a class="sidebar-brand" href="index.html">pywebgpu</a>
<div class="highlight-python"><pre>{PROGRAM}</pre></div><div class="highlight-python still"><pre>1 / 0</pre></div>
<div class="highlight-python piece"><pre>{PROGRAM}</pre></div>
<div class="highlight-python piece"><pre>1 / 0</pre></div>"""


def builder() -> ModuleType:
    spec = importlib.util.spec_from_file_location("static_site", ROOT / "tools" / "static_site.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a folder of a static server."""
    root = tmp_path_factory.mktemp("server")
    folder = root / BELOW
    if BUILT:
        folder.parent.mkdir(parents=True)
        folder.symlink_to(Path(BUILT).resolve())
    else:
        request.getfixturevalue("address")  # It has made what takes seconds.
        builder().page(folder)
        shutil.copytree(ROOT / "docs" / "_static", folder / "docs" / "_static")
        (folder / "docs" / "index.html").write_text(DOCUMENT, encoding="utf-8")
    with served(root) as found:
        yield f"{found}{BELOW}/"


@pytest.fixture
def visitor(browser: Browser, site: str) -> Iterator[Page]:
    """A page with service workers, which asks nobody but the site for anything, and finds all of it."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page, wrong = context.new_page(), list[str]()
    context.on("request", lambda one: None if one.url.startswith((site, "data:", "blob:")) else wrong.append(one.url))
    context.on("response", lambda one: wrong.append(f"{one.status} {one.url}") if one.status >= 400 else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    yield page
    context.close()
    assert wrong == []


def test_a_program_of_the_documentation_runs_in_place(visitor: Page, site: str) -> None:
    visitor.goto(f"{site}docs/index.html")
    expect(visitor.get_by_role("link", name="Train in this browser")).to_have_attribute(
        "href", re.compile(r"/some/where/index\.html$")
    )
    expect(visitor.get_by_role("link", name="Open in the editor").first).to_have_attribute("href", LINK)
    alone, pieces = (visitor.locator(f".highlight-python{kind}") for kind in (":not(.still, .piece)", ".piece"))
    buttons = alone.count() + bool(pieces.count())  # Pieces are run as a whole.
    assert visitor.get_by_role("button", name="Run").count() == buttons
    visitor.get_by_role("button", name="Run").first.click()
    editor = visitor.frame_locator("iframe")
    expect(editor.locator("#editor-status")).to_have_text("Ready", timeout=LOADED)
    expect(editor.locator("header")).to_be_hidden()
    assert editor.locator("#output").inner_text() == "", "nothing runs before the visitor says so"
    editor.get_by_role("button", name="Run").click()
    expect(editor.locator("#output")).to_contain_text("6.0" if not BUILT else "loss", timeout=STEPPED)


def test_the_page_leads_to_the_rest(visitor: Page, site: str) -> None:
    visitor.goto(f"{site}index.html#editor")
    links = visitor.get_by_role("navigation", name="More of this site").get_by_role("link")
    assert [link.get_attribute("href") for link in links.all()] == ["docs/index.html", "export/index.html"]


@pytest.mark.skipif(not BUILT, reason="takes a minute: python -m tests site")
def test_the_whole_site_works_below_any_path(visitor: Page, site: str) -> None:
    visitor.goto(f"{site}index.html?layers=1&heads=2&width=16&context=16&batch=4")
    expect(visitor.locator("html")).to_have_attribute("data-kept", "", timeout=LOADED)
    scope = visitor.evaluate("navigator.serviceWorker.getRegistration().then(({ scope }) => scope)")
    assert scope == site
    for name in ("docs/guides/errors.html", "docs/made/reference/nn.html", "docs/perceptron.html", "export/index.html"):
        visitor.goto(f"{site}{name}")
        assert visitor.title()
        assert name.startswith("export") or violations(visitor) == [], name
