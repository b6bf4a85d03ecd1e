"""The browser, the server and the page of these tests. A screenshot of what failed is left in test-results/."""

import os
import re
import shutil
import threading
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Playwright, sync_playwright

from pywebgpu import serve

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SILENCED = ("quic", "background-networking", "component-update", "sync")  # nothing but the page uses the network
SOFTWARE = ("--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader")  # the same adapter on every machine
RESULTS = Path(__file__).parents[1] / "test-results"
TINY = "?layers=1&heads=2&width=16&context=16&batch=4&rate=0.01"
LOADED, STEPPED = 120_000, 180_000  # milliseconds for Python to load, and for a first step, on a busy machine

_failed = pytest.StashKey[bool]()


def chromium(playwright: Playwright) -> str | None:
    """A Chromium: Playwright's own, or the system's."""
    found = [os.environ.get("PYWEBGPU_CHROMIUM"), playwright.chromium.executable_path, *map(shutil.which, NAMES)]
    return next((path for path in found if path and Path(path).exists()), None)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        path = chromium(playwright)
        if path is None:
            advice = "no Chromium; install one: apt-get install chromium, or python -m playwright install chromium"
            if os.environ.get("CI"):
                pytest.fail(advice)
            pytest.skip(advice)
        is_root = hasattr(os, "geteuid") and os.geteuid() == 0
        arguments = [*SOFTWARE, "--no-first-run", *(f"--disable-{name}" for name in SILENCED)]
        arguments += ["--no-sandbox"] if is_root else []
        found = playwright.chromium.launch(executable_path=path, args=arguments)
        yield found
        found.close()


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    """Where the pages are served."""
    server = serve.start(0)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield serve.address(server)
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def page(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    """An empty page of its own. The test ends with no exception in it, no error in its console and no file missing."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    found = context.new_page()
    wrong: list[str] = []
    found.on("pageerror", lambda error: wrong.append(f"{error}"))
    found.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    found.on("response", lambda answer: wrong.append(f"{answer.status} {answer.url}") if answer.status >= 400 else None)
    yield found
    if request.node.stash.get(_failed, False):
        RESULTS.mkdir(exist_ok=True)
        found.screenshot(path=RESULTS / f"{re.sub(r'[^-.a-z0-9]+', '_', request.node.name)}.png", full_page=True)
    context.close()
    assert not wrong, "\n".join(wrong)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.when == "call":
        item.stash[_failed] = report.failed
    return report
