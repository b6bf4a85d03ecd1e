"""What a browser is sent. Where Playwright or a browser is missing, the commands that need one say what to install."""

import io
import sys
import zipfile
from pathlib import Path

import pytest

from pywebgpu import bench
from pywebgpu.hosts import chromium, site
from pywebgpu.kernels import tuning


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


def test_what_is_sent_has_the_tables_of_launches() -> None:
    names = zipfile.ZipFile(io.BytesIO(chromium._archive({"x.py": b""}))).namelist()
    tables = {f"pywebgpu/kernels/tunings/{file.name}" for file in tuning.FOLDER.glob("*-tint.json")}
    assert tables
    assert {*tables, "x.py", "pywebgpu/js_bridge/bridge.mjs", "pywebgpu/kernels/ir.py"} <= set(names)
    assert not [name for name in names if name.endswith("-naga.json")]
