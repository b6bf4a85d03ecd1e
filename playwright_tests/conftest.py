"""The browser, the server and the page of these tests. A screenshot of what failed is left in test-results/."""

import os
import re
from collections.abc import Generator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from pywebgpu.hosts import chromium, prepared, site
from pywebgpu.settings import settings
from tests import sampling

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "test-results"
WIDTHS = {1280: 900, 390: 844}  # and heights, of what people look at

_failed = pytest.StashKey[bool]()


def pytest_addoption(parser: pytest.Parser) -> None:
    sampling.add_option(parser)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    sampling.take_sample(config, items)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    missing = chromium.why_missing()
    if missing and os.environ.get("CI"):
        pytest.fail(missing)
    if missing:
        pytest.skip(missing)
    with chromium.launched(software=True) as found:
        yield found


@pytest.fixture(scope="session")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where the pages are served, with all that a server makes for them once."""
    kept = replace(settings, cache=str(tmp_path_factory.mktemp("kept")))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prepared, "settings", kept)
        pages = site.Site(site.find_folders(cdn=False))
        pages.prepare()
        with chromium.served(pages) as found:
            yield found


@pytest.fixture
def troubles() -> list[str]:
    """What went wrong in the page. A test that means something to go wrong takes it away."""
    return []


@pytest.fixture
def page(browser: Browser, request: pytest.FixtureRequest, troubles: list[str]) -> Iterator[Page]:
    """An empty page of its own. The test ends with no exception in it, no error in its console and no file missing."""
    # What a service worker answers no test could intercept; test_page.py has one that lets it.
    context = browser.new_context(viewport={"width": 1280, "height": 900}, service_workers="block")
    found = context.new_page()
    tell = troubles.append
    found.on("pageerror", lambda error: tell(f"{error} {error.stack}"))
    found.on("console", lambda message: tell(message.text) if message.type == "error" else None)
    found.on("response", lambda answer: tell(f"{answer.status} {answer.url}") if answer.status >= 400 else None)
    yield found
    if request.node.stash.get(_failed, False):
        RESULTS.mkdir(exist_ok=True)
        found.screenshot(path=RESULTS / f"{re.sub(r'[^-.a-z0-9]+', '_', request.node.name)}.png", full_page=True)
    context.close()
    assert not troubles, "\n".join(troubles)


def violations(page: Page) -> list[list[str]]:
    """What shuts somebody out, by axe-core's rules: of each the rule, then the elements."""
    page.evaluate((ROOT / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8") + ";null")
    told = "({ id, nodes }) => [id, ...nodes.map((node) => node.html)]"
    found: list[list[str]] = page.evaluate(f"async () => (await axe.run()).violations.map({told})")
    return found


def photograph(page: Page, name: str) -> None:
    """What a visitor sees now, on a desk and on a phone, as test-results/walks/NAME-WIDTH.png: to be looked at."""
    seen = page.viewport_size
    for width, height in WIDTHS.items():
        page.set_viewport_size({"width": width, "height": height})
        page.screenshot(path=RESULTS / "walks" / f"{name}-{width}.png")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (name, width)
    if seen:
        page.set_viewport_size(seen)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.when == "call":
        item.stash[_failed] = report.failed
    return report
