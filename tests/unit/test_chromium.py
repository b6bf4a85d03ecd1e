"""Where Playwright or a browser is missing, the commands that need one say what to install."""

import sys
from pathlib import Path

import pytest

from pywebgpu import bench
from pywebgpu.hosts import chromium, site


@pytest.fixture(autouse=True)
def pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """No node_modules are needed to find out that there is no browser."""
    folders = site.find_folders(cdn=True)
    monkeypatch.setattr(site, "find_folders", lambda *, cdn: folders)


def test_missing_playwright_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "playwright.sync_api", None)
    assert bench.main(["mlp", "--host", "chromium"]) == 2
    assert "pip install playwright" in capsys.readouterr().err
    assert "pip install playwright" in chromium.why_missing()


def test_missing_browser_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("playwright.sync_api")
    monkeypatch.setattr(Path, "exists", lambda path: False)
    assert "apt-get install chromium" in chromium.why_missing()
