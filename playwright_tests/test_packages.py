"""Packages that programs of the editor import: out of a folder of a full Pyodide, else from the network, else a word.

The packages are small ones of these tests, with names and interfaces of real ones: no registry has those for Pyodide.
"""

import base64
import hashlib
import json
import shutil
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from playwright_tests.conftest import ROOT
from playwright_tests.steps import LOADED, STEPPED
from playwright_tests.test_editor import finish, run
from pywebgpu.hosts import chromium, site

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
PYPLOT = f"""
import base64
_open = []
class Figure:
    def savefig(self, file, **options):
        file.write(base64.b64decode({PIXEL!r}))
def plot(*points):
    _open.append(Figure())
def get_fignums():
    return [*range(1, len(_open) + 1)]
def figure(number):
    return _open[number - 1]
def close(which):
    _open.clear()
"""
MATPLOTLIB = {
    "matplotlib/__init__.py": "",
    "matplotlib/pyplot.py": PYPLOT,
    "matplotlib/backends/__init__.py": "",
    "matplotlib/backends/backend_agg.py": "class FigureCanvasAgg: pass\n",
}
TQDM = {"tqdm/__init__.py": "def tqdm(values):\n    yield from values\n    print('all of them')\n"}
PROGRAM = """\
import matplotlib.pyplot as plt
from tqdm import tqdm
plt.plot([number**2 for number in tqdm(range(3))])
"""


def wheel(folder: Path, name: str, files: dict[str, str]) -> Path:
    made = folder / f"{name}-1.0-py3-none-any.whl"
    about = f"{name}-1.0.dist-info"
    meta = {
        "METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        "WHEEL": "Wheel-Version: 1.0\n",
        "RECORD": "",
    }
    with zipfile.ZipFile(made, "w") as archive:
        for path, text in (files | {f"{about}/{path}": text for path, text in meta.items()}).items():
            archive.writestr(path, text)
    return made


@pytest.fixture
def network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of what cdn.jsdelivr.net has in these tests."""
    folder = tmp_path / "network"
    folder.mkdir()

    class Cdn(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            file = folder / self.path.rpartition("/")[2]
            self.send_response(200 if file.is_file() else 404)
            self.send_header("Access-Control-Allow-Origin", "*")
            self.send_header("Cross-Origin-Resource-Policy", "cross-origin")
            self.end_headers()
            self.wfile.write(file.read_bytes() if file.is_file() else b"")

        def log_message(self, *words: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Cdn) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setattr(site, "CDN", f"http://127.0.0.1:{server.server_port}")
        yield folder
        server.shutdown()


@pytest.fixture
def address(tmp_path: Path, network: Path) -> Iterator[str]:
    """The pages, over a folder of a full Pyodide: of its packages it has matplotlib, and the network has tqdm."""
    folder = tmp_path / "pyodide"
    shutil.copytree(ROOT / "node_modules" / "pyodide", folder)
    lock = json.loads((folder / "pyodide-lock.json").read_text(encoding="utf-8"))
    for made in (wheel(folder, "matplotlib", MATPLOTLIB), wheel(network, "tqdm", TQDM)):
        digest = hashlib.sha256(made.read_bytes()).hexdigest()
        entry = lock["packages"][made.name.partition("-")[0]]
        entry |= {"file_name": made.name, "sha256": digest, "version": "1.0", "depends": []}
    (folder / "pyodide-lock.json").write_text(json.dumps(lock), encoding="utf-8")
    with chromium.served(site.Site(site.find_folders(cdn=False, pyodide=folder))) as found:
        yield found


def test_imports_load_packages_and_figures_are_shown(page: Page, address: str, troubles: list[str]) -> None:
    output = page.locator("#output")
    page.goto(f"{address}#editor")
    finish(page, LOADED)
    run(page, PROGRAM)
    expect(output).to_contain_text("all of them", timeout=STEPPED)
    picture = output.get_by_role("img", name="Figure 1")
    expect(picture).to_be_visible()
    assert (picture.get_attribute("src") or "").endswith(PIXEL)
    assert base64.b64decode(PIXEL).startswith(b"\x89PNG")
    finish(page)
    assert not troubles
    run(page, "import scipy\n")
    expect(output).to_contain_text(
        "scipy: not loaded. Neither this server nor cdn.jsdelivr.net gives it", timeout=STEPPED
    )
    expect(output).to_contain_text("ModuleNotFoundError")
    finish(page)
    troubles.clear()  # What the network has not.
