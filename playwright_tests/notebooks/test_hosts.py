"""The wheel in pages, workers, PyScript and Pyodide's console, on several versions of Pyodide: trains, waits, stops."""

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from playwright_tests.notebooks import places
from playwright_tests.notebooks.conftest import IsolatedFiles, without_jspi
from tools import notebook_site

ROOT = Path(__file__).parents[2]
STARTS = 90_000  # ms
ADVICE = "torch.webgpu.handler(function), or make the handler async"
HANDLERS = {"plain": ADVICE, "wrapped": "read 8.0"}
AWAITED = {
    "awaited-page-314": {
        "plain": "cannot wait for the device here; use: await x.item_async()",
        "awaited": "awaited 8.0",
    },
    "awaited-worker-314": {},
    "awaited-pyscript": {
        "plain": "cannot wait for the device here; use: await x.item_async()",
        "awaited": "awaited 8.0",
    },
    "awaited-pyscript-worker": {"awaited": "awaited 8.0"},
}


@pytest.fixture(scope="module")
def address(built: Path, tmp_path_factory: pytest.TempPathFactory, serve: Callable[..., str]) -> str:
    if places.missing():
        pytest.skip(places.missing())
    folder = tmp_path_factory.mktemp("hosts")
    kernel = notebook_site.download(ROOT / "build" / "kernel")
    places.write(folder, built, [path for path in kernel if path.name.startswith("micropip")])
    return serve(folder, IsolatedFiles)


def press(page: Page, handlers: dict[str, str]) -> None:
    for name, said in handlers.items():
        page.locator(f"#{name}").click()
        expect(page.locator("#said")).to_contain_text(said)


@pytest.mark.parametrize("version", places.PYODIDES)
def test_a_page_trains_waits_in_handlers_and_stops(page: Page, address: str, version: str) -> None:
    page.goto(f"{address}/page-{version}.html")
    expect(page.locator("#said")).to_have_text("trained on webgpu", timeout=STARTS)
    press(page, HANDLERS)
    page.locator("#endless").click()
    page.get_by_role("button", name="Stop").click()
    expect(page.locator("#said")).to_have_text("stopped True")


@pytest.mark.parametrize("version", places.PYODIDES)
def test_a_worker_trains(page: Page, address: str, version: str) -> None:
    page.goto(f"{address}/worker-{version}.html")
    expect(page.locator("#said")).to_have_text("trained on webgpu", timeout=STARTS)


@pytest.mark.parametrize("name", ["pyscript", "pyscript-worker"])
def test_pyscript_trains_and_waits_in_handlers(page: Page, address: str, name: str) -> None:
    page.goto(f"{address}/{name}.html")
    expect(page.locator("#said")).to_have_text("trained on webgpu", timeout=STARTS)
    handlers = HANDLERS if name == "pyscript" else {"wrapped": "read 8.0"}
    press(page, handlers | {"awaited": "awaited 8.0"})


@pytest.mark.parametrize("name", AWAITED)
def test_without_jspi_a_host_says_what_to_await_and_trains(page: Page, address: str, name: str) -> None:
    without_jspi(page)
    page.goto(f"{address}/{name}.html")
    expect(page.locator("#said")).to_contain_text("| trained on webgpu", timeout=STARTS)
    first, shown, there, _ = page.locator("#said").inner_text().split(" | ")
    assert first == "device webgpu is not open, and Python cannot wait for it here: await torch.webgpu.init()"
    assert shown.startswith("tensor(<not read: await x.cpu_async()>, device='webgpu', size=(4, 2)")
    assert f", in {'a worker' if 'worker' in name else 'a page'}: no, JSPI is missing" in there
    press(page, AWAITED[name])


def test_the_console_of_pyodide_trains(page: Page, address: str) -> None:
    page.context.route(re.compile("^https://"), from_npm)
    page.goto(f"{address}/314/console.html")
    prompt = page.locator(".cmd")
    expect(prompt).to_contain_text(">>>", timeout=STARTS)
    page.keyboard.type("import pywebgpu as torch; x = torch.ones(3) * 2; (x.device.type, x.sum().item())\n")
    expect(page.locator(".terminal-output")).to_contain_text("('webgpu', 6.0)", timeout=STARTS)


WHEELS = os.environ.get("PYWEBGPU_PYODIDE_WHEELS", "")


@pytest.mark.skipif(not WHEELS, reason="PYWEBGPU_PYODIDE_WHEELS names no folder with wheels of Pyodide's: NumPy")
def test_numpy_comes_after_a_training_step(page: Page, built: Path, tmp_path: Path, serve: Callable[..., str]) -> None:
    (numpy,) = Path(WHEELS).glob("numpy-*.whl")
    places.write_numpy(tmp_path, built, numpy)
    page.goto(f"{serve(tmp_path)}/numpy.html")
    expect(page.locator("#said")).to_have_text("with NumPy", timeout=STARTS)


def from_npm(route: Route) -> None:
    """What the console asks of a network for packages, from npm's."""
    package, _, inside = route.request.url.split("/npm/")[-1].partition("/")
    folder = places.MODULES / package.rsplit("@", 1)[0]
    candidates = [folder / (inside or "dist/jquery.min.js"), folder / inside.replace(".min.", ".")]
    found = next(path for path in candidates if path.is_file())
    kind = "text/css" if found.suffix == ".css" else "text/javascript"
    headers = {"Content-Type": kind, "Cross-Origin-Resource-Policy": "cross-origin"}
    route.fulfill(path=found, headers=headers)
