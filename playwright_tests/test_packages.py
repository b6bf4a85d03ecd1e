"""Packages that programs of the editor import: out of a folder of a full Pyodide, else from the network, else a word.

The packages are small ones of these tests, with names and interfaces of real ones: no registry has those for Pyodide.
Where PYWEBGPU_PYODIDE_WHEELS names a folder of a full Pyodide's wheels, the real ones are tested as well.
"""

import base64
import hashlib
import json
import os
import shutil
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from playwright_tests.conftest import ROOT, photograph
from playwright_tests.steps import LOADED, STEPPED, begin, press, shown_loss, state, wait_for_step
from playwright_tests.test_editor import finish, run
from pywebgpu.hosts import chromium, site
from tools import lock_file

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

WHEELS = os.environ.get("PYWEBGPU_PYODIDE_WHEELS", "")
with_wheels = pytest.mark.skipif(not WHEELS, reason="PYWEBGPU_PYODIDE_WHEELS names no folder with wheels of Pyodide's")
REAL = """\
import matplotlib.pyplot as plt
import numpy as np
import torch

angle = np.linspace(0, 2 * np.pi, 50)
x = torch.tensor(angle)
print("from NumPy", x.dtype, torch.from_numpy(np.random.rand(3, 2)).dtype, (torch.ones(50) * angle).dtype)
print("exact", torch.tensor(angle, device="cpu").dtype, torch.tensor([3, 1, 2], device="cpu").argsort().tolist())
fig, axes = plt.subplots(1, 2)
axes[0].plot(x, x.sin(), label="sine")
axes[0].legend()
axes[1].imshow(torch.eye(8).numpy())
plt.figure()
plt.hist(torch.randn(100).tolist())
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


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The pages, over a folder of a full Pyodide with NumPy and Matplotlib themselves."""
    folder = tmp_path_factory.mktemp("full") / "pyodide"
    shutil.copytree(ROOT / "node_modules" / "pyodide", folder)
    lock = json.loads((folder / "pyodide-lock.json").read_text(encoding="utf-8"))
    for file in Path(WHEELS).glob("*.whl"):
        name, version, _ = file.name.split("-", 2)
        entry = lock["packages"].get(lock_file.normal(name))
        if entry:  # A wheel of Pyodide's own release has the digest already.
            digest = hashlib.sha256(file.read_bytes()).hexdigest()
            entry |= {"file_name": file.name, "sha256": digest, "version": version}
            shutil.copy(file, folder)
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


@with_wheels
def test_numpy_and_matplotlib_themselves(page: Page, full: str) -> None:
    output = page.locator("#output")
    page.goto(f"{full}#editor")
    finish(page, LOADED)
    run(page, REAL)
    expect(output).to_contain_text("from NumPy torch.float32 torch.float32 torch.float32", timeout=STEPPED)
    expect(output).to_contain_text("exact torch.float64 [1, 2, 0]")
    assert output.inner_text().count("NumPy's float64 becomes float32") == 1
    finish(page)
    for number in (1, 2):
        picture = output.get_by_role("img", name=f"Figure {number}")
        assert picture.evaluate("picture => picture.decode().then(() => picture.naturalWidth)") > 300
    photograph(page, "8-matplotlib")


@with_wheels
def test_without_webgpu_the_cpu_trains(page: Page, full: str) -> None:
    """A small model, which it can: the tab, and a program of the gallery."""
    page.add_init_script("delete Navigator.prototype.gpu")
    begin(page, full)
    expect(page.locator("#status")).to_have_text("Ready, on the CPU: right, but slow")
    expect(page.get_by_label("Size")).to_have_value("tiny")
    press(page, "Start")
    wait_for_step(page, 2)
    first = shown_loss(page)
    wait_for_step(page, 30)
    assert shown_loss(page) < first - 0.5
    page.get_by_text("See inside").click()
    expect(page.locator("#inside-maps canvas")).to_have_count(4, timeout=STEPPED)
    state(page, "done", STEPPED)
    photograph(page, "9-on-the-cpu")
    page.get_by_role("tab", name="Gallery").click()
    page.get_by_role("link", name="Boundary").click()
    finish(page, LOADED)
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator("#output")).to_contain_text("240 of 240 points", timeout=STEPPED)
