"""The exported char-GPT: a folder on any web server trains and writes, and no Python is on the page."""

import importlib
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from playwright.sync_api import Page, expect

import pywebgpu as torch
from playwright_tests.conftest import photograph
from playwright_tests.steps import LOADED, STEPPED
from pywebgpu.devices import open_device
from pywebgpu.kernels.kernel import Limits
from pywebgpu.kernels.target import Target
from tests import devices

ROOT = Path(__file__).parents[1]
STEPS = 6
TINY = [f"--{name}={n}" for name, n in {"layers": 1, "heads": 2, "width": 16, "context": 16, "batch": 4}.items()]


class Static(SimpleHTTPRequestHandler):
    extensions_map = {**SimpleHTTPRequestHandler.extensions_map, ".mjs": "text/javascript"}  # noqa: RUF012

    def log_message(self, *words: object) -> None: ...


@contextmanager
def served(folder: Path) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Static, directory=folder)) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://localhost:{server.server_address[1]}/"
        server.shutdown()
        thread.join()


def random(seed: int) -> Iterator[float]:
    """The draws of page.mjs: mulberry32."""
    word, state = 0xFFFFFFFF, seed
    while True:
        state = state + 0x6D2B79F5 & word
        mixed = (state ^ state >> 15) * (1 | state) & word
        mixed = (mixed + (mixed ^ mixed >> 7) * (61 | mixed) ^ mixed) & word
        yield (mixed ^ mixed >> 14) / 2**32


def batch(numbers: list[int], run: Any, step: int) -> list[Any]:
    settings = run.settings
    draws = random(settings.seed * 1000003 + step)
    starts = [int(next(draws) * (len(numbers) - settings.context)) for _ in range(settings.batch)]
    pieces = [[numbers[start + by : start + by + settings.context] for start in starts] for by in (0, 1)]
    return [torch.tensor(piece, device=run.device) for piece in pieces]


@pytest.fixture
def exporter(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "demos" / "chargpt"))
    for name in ("data", "model", "train", "export"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module("export")


@pytest.mark.skipif(bool(devices.why_no_webgpu()), reason=devices.why_no_webgpu())
def test_exported_gpt_trains_and_writes_without_python(
    page: Page, exporter: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As PYWEBGPU_PORTABLE=1: the page's adapter is another one, which may bind fewer buffers.
    monkeypatch.setattr(open_device("webgpu"), "target", Target(wgsl=True, limits=Limits()))
    text = tmp_path / "text.txt"
    text.write_text("The quick brown fox jumps over the lazy dog. " * 20, encoding="utf-8")
    kept: list[Any] = []
    programs = exporter.programs
    exporter.programs = lambda run: kept.append(run) or programs(run)
    parts = exporter.exported([*TINY, "--data", str(text)])
    folder = tmp_path / "out"
    said = torch.export(folder, **parts)
    assert "schedule" in str(said)
    (run,) = kept
    training, numbers = parts["programs"]["training"], run.corpus.parts["train"]
    wanted = [training(*batch(numbers, run, step)).item() for step in range(STEPS)]

    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    with served(folder) as address:
        page.goto(address)
        expect(page.locator("#status")).to_have_text("Ready", timeout=LOADED)
        page.get_by_role("button", name="Train").click()
        page.wait_for_function(f"Number(document.querySelector('#step').textContent) >= {STEPS}", timeout=STEPPED)
        page.get_by_role("button", name="Pause").click()
        expect(page.locator("#status")).to_have_text("Paused", timeout=STEPPED)
        losses = page.evaluate("async () => (await import('./page.mjs')).losses")
        assert losses[:STEPS] == pytest.approx(wanted, abs=1e-4)
        assert float(page.locator("#loss").inner_text()) == pytest.approx(losses[-1], abs=1e-3)
        page.get_by_role("button", name="Write").click()
        page.wait_for_function("document.querySelector('#sample').textContent.length > 40", timeout=STEPPED)
        expect(page.locator("#sample")).to_contain_text("The ")
        photograph(page, "9-exported")
        page.locator("#prompt").fill("é")
        expect(page.get_by_role("button", name="Write")).to_be_enabled(timeout=STEPPED)
        page.get_by_role("button", name="Write").click()
        expect(page.locator("#trouble")).to_contain_text("does not occur in the text")
    assert not [url for url in asked if "pyodide" in url.lower() or url.endswith((".wasm", ".py"))]
    assert {url for url in asked if not url.startswith((address, "data:"))} == set()


@pytest.mark.skipif(bool(devices.why_no_webgpu()), reason=devices.why_no_webgpu())
def test_an_export_without_a_page_shows_itself_and_runs_in_a_worker(page: Page, tmp_path: Path) -> None:
    @torch.compile
    def affine(x: Any, scale: float) -> dict[str, Any]:
        return {"y": x * scale + 1, "sum": x.sum()}

    affine(torch.ones(2, 3, device="webgpu"), 2.0)
    torch.export(tmp_path, {"affine": affine})
    with served(tmp_path) as address:
        page.goto(address)
        page.get_by_role("button", name="Run on zeros").click(timeout=LOADED)
        expect(page.locator("output")).to_have_text("y: 2, 3: 1, 1, 1, 1, 1, 1; sum: 0", timeout=STEPPED)
        found = page.evaluate(
            """(address) => new Promise((resolve, reject) => {
              const text = `import { load } from "${address}player.mjs";
                const player = await load("${address}");
                const { y, sum } = await player.run("affine", { x: [1, 2, 3, 4, 5, 6], scale: 3 });
                postMessage([...y.data, sum, typeof window]);`;
              const script = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
              const worker = new Worker(script, { type: "module" });
              worker.onmessage = ({ data }) => resolve(data);
              worker.onerror = (error) => reject(error);
            })""",
            address,
        )
        assert found == [4, 7, 10, 13, 16, 19, 21, "undefined"]
