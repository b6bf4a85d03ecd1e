"""marimo's export for browsers, with Pyodide and its packages answered from npm and Python's index."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from playwright_tests.notebooks import places
from playwright_tests.notebooks.conftest import NO_JSPI
from tools import lock_file, notebook_site

ROOT = Path(__file__).parents[2]
PYODIDE = places.MODULES / "pyodide-314.0.0"  # The one that marimo's pages load.
STARTS = 120_000  # ms
NAMES = ("micropip", "packaging", "docutils", "pygments", "jedi", "pyodide-http", "narwhals")
FURTHER = (
    "marimo-base==0.25.2", "markdown==3.11.3", "pymdown-extensions==11.0.2", "tomlkit==0.15.2", "itsdangerous==2.2.0",
    "python-multipart==0.0.34", "msgspec==0.22.0",
)  # fmt: skip
KINDS = {".mjs": "text/javascript", ".wasm": "application/wasm", ".json": "application/json"}


@pytest.fixture(scope="module")
def mirror(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What marimo's pages ask of others."""
    if places.missing() or importlib.util.find_spec("marimo") is None:
        pytest.skip(places.missing() or "no marimo: make notebooks installs it")
    folder = tmp_path_factory.mktemp("marimo") / "full"
    lock = PYODIDE / "pyodide-lock.json"
    wheels = notebook_site.download(ROOT / "build" / "marimo", lock, NAMES, FURTHER)
    shutil.copytree(PYODIDE, folder)
    lock_file.add([*wheels, pure_yaml(tmp_path_factory.mktemp("yaml")), built], folder, lock)
    return folder


def pure_yaml(folder: Path) -> Path:
    """PyYAML without its compiled part, which is a choice of it; no index has one for Pyodide."""
    command = [sys.executable, "-m", "pip", "--quiet", "download", "--no-deps", "--dest", str(folder), "pyyaml==6.0.3"]
    subprocess.run(command, check=True)
    (compiled,) = folder.glob("*.whl")
    pure = folder / "pyyaml-6.0.3-py3-none-any.whl"
    with zipfile.ZipFile(compiled) as found, zipfile.ZipFile(pure, "w") as made:
        for name in found.namelist():
            if not name.endswith(".so"):
                made.writestr(name, found.read(name))
    return pure


def opened(page: Page, mirror: Path, address: str, name: str, folder: Path, before: str = "") -> None:
    """Opens what marimo exports of a notebook that lies here. before: what its worker does before all else."""

    def answer(route: Route) -> None:
        file = mirror / route.request.url.split("?")[0].split("/")[-1]
        kind = KINDS.get(file.suffix, "application/octet-stream")
        if file.is_file():
            route.fulfill(path=file, headers={"Content-Type": kind, "Access-Control-Allow-Origin": "*"})
        else:
            route.fallback()

    notebook = ROOT / "playwright_tests" / "notebooks" / name
    command = [sys.executable, "-m", "marimo", "export", "html-wasm", str(notebook), "--mode", "run", "-o", "site"]
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}  # for uv
    subprocess.run(command, check=True, capture_output=True, cwd=folder, env=environment)
    for worker in (folder / "site" / "assets").glob("worker-*.js"):
        worker.write_text(before + worker.read_text(encoding="utf-8"), encoding="utf-8")
    page.context.route(re.compile("^https://"), answer)
    page.goto(f"{address}/site/index.html")


def test_an_export_of_marimo_trains_draws_and_stops(
    page: Page, mirror: Path, tmp_path: Path, serve: Callable[..., str]
) -> None:
    opened(page, mirror, serve(tmp_path), "exported.py", tmp_path)
    expect(page.get_by_role("img", name="loss over steps")).to_be_visible(timeout=STARTS)
    expect(page.get_by_text("trained", exact=True)).to_be_visible()
    page.frame_locator("iframe").get_by_role("button", name="Stop", exact=True).click(timeout=STARTS)
    expect(page.get_by_text("stopped True")).to_be_visible()


def test_without_jspi_cells_of_marimo_await(
    page: Page, mirror: Path, tmp_path: Path, serve: Callable[..., str]
) -> None:
    opened(page, mirror, serve(tmp_path), "exported_awaiting.py", tmp_path, NO_JSPI)
    expect(page.get_by_text("trained", exact=True)).to_be_visible(timeout=STARTS)
    expect(page.get_by_text("await torch.webgpu.init()")).to_be_visible()
    expect(page.get_by_text("shown tensor(<not read: await x.cpu_async()>, device='webgpu', size=()")).to_be_visible()
    expect(
        page.get_by_text("tensor(<not read: await x.cpu_async()>, device='webgpu', size=(4, 2)").last
    ).to_be_visible()
