"""`make pyodide`: pyodide-build makes the wheel and its entry in a lock file, by which Node and Chromium load it."""

import functools
import json
import os
import subprocess
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from pywebgpu.hosts import chromium
from tests import devices, wheel
from tools import distribution, lock_file

ROOT = Path(__file__).parents[2]
STEP = f"""
{wheel.TRAINING}

@torch.compile
def total(x):
    return (x * 2).sum()

for _ in range(6):
    assert total(x).item() == 16
assert total.counters["replays"] and not total.reasons, (total.counters, total.reasons)
try:
    torch.ones(2) + torch.ones(3)
except RuntimeError as error:  # Its traceback is the program's own.
    assert error.__traceback__.tb_next is None
f"{{model.weight.device.type}} {{'site-packages' in torch.__file__}}"
"""
LOAD = """
const step = STEP;
const python = await loadPyodide({ lockFileURL: `${folder}/pyodide-lock.json`, packageBaseUrl: `${folder}/` });
const packages = await load(python);
const said = `${packages.map(({ name }) => name).join()} ${await python.runPythonAsync(step)}`;
""".replace("STEP", json.dumps(STEP))
IN_NODE = f"""
import {{ pathToFileURL }} from "node:url";
const [folder, modules, bridge] = process.argv.slice(2);
const {{ offerWebGPU }} = await import(pathToFileURL(`${{bridge}}/dawn.mjs`));
await offerWebGPU(pathToFileURL(`${{modules}}/webgpu/index.js`).href);
const {{ loadPyodide }} = await import(pathToFileURL(`${{modules}}/pyodide/pyodide.mjs`));
const load = (python) => python.loadPackage("pywebgpu");
{LOAD}
console.log(said);
process.exit(0);
"""
IN_A_PAGE = f"""async () => {{
const folder = `${{location.origin}}/distribution`;
const {{ loadPyodide }} = await import("/pyodide/pyodide.mjs");
const load = (python) => python.loadPackagesFromImports(step);
{LOAD}
return said;
}}"""
LOADED = "pywebgpu webgpu True"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if (reason := distribution.missing()) and not os.environ.get("CI"):
        pytest.skip(reason)
    made = tmp_path_factory.mktemp("distribution")
    distribution.make(made)
    return made


def test_node_loads_it_by_its_name(folder: Path, tmp_path: Path) -> None:
    if (reason := devices.why_no_node()) and not os.environ.get("CI"):
        pytest.skip(reason)
    (tmp_path / "load.mjs").write_text(IN_NODE, encoding="utf-8")
    arguments = [str(folder), str(ROOT / "node_modules"), str(ROOT / "js_bridge")]
    command = [*devices.node_command(), "--no-warnings", str(tmp_path / "load.mjs"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == LOADED


class Files(SimpleHTTPRequestHandler):
    extensions_map = SimpleHTTPRequestHandler.extensions_map | {
        ".mjs": "text/javascript",
        ".wasm": "application/wasm",
    }

    def log_message(self, *words: object) -> None:
        """Says nothing."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Files, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://localhost:{server.server_port}"
        server.shutdown()


def test_a_page_loads_it_by_what_a_program_imports_in_chromium(folder: Path, tmp_path: Path) -> None:
    if (reason := chromium.why_missing()) and not os.environ.get("CI"):
        pytest.skip(reason)
    (tmp_path / "pyodide").symlink_to(ROOT / "node_modules" / "pyodide")
    (tmp_path / "distribution").symlink_to(folder)
    (tmp_path / "index.html").write_text("<!doctype html>", encoding="utf-8")
    with served(tmp_path) as address, chromium.launched(software=True) as browser:
        page = browser.new_page()
        page.goto(address)
        assert page.evaluate(IN_A_PAGE) == LOADED


def test_all_other_packages_stay(folder: Path) -> None:
    before = json.loads(lock_file.LOCK.read_text(encoding="utf-8"))
    after = json.loads((folder / "pyodide-lock.json").read_text(encoding="utf-8"))
    assert after["info"] == before["info"]
    assert after["packages"].keys() == before["packages"].keys() | {"pywebgpu"}
    numpy = after["packages"]["numpy"]
    assert numpy["file_name"].startswith("https://cdn.jsdelivr.net/pyodide/v")
    assert numpy | {"file_name": ""} == before["packages"]["numpy"] | {"file_name": ""}


def test_the_wheel_is_the_one_of_all_hosts_as_bytecode(folder: Path, tmp_path: Path) -> None:
    (made,) = folder.glob("*.whl")
    ours = wheel.build(tmp_path)
    python = "".join(lock_file.read()["info"]["python"].split(".")[:2])
    assert made.name == ours.name.replace("-py3-", f"-cp{python}-")
    with zipfile.ZipFile(made) as packed, zipfile.ZipFile(ours) as expected:
        names = [name for name in expected.namelist() if not name.endswith("RECORD")]
        compiled = {name + "c" * name.endswith(".py") for name in names}
        assert {name for name in packed.namelist() if not name.endswith("RECORD")} == compiled
        assert all(packed.read(name) == expected.read(name) for name in compiled & {*names})


def test_lock_files_without_pyodide_build_have_the_entry_that_it_writes(folder: Path) -> None:
    lock = json.loads((folder / "pyodide-lock.json").read_text(encoding="utf-8"))
    (made,) = folder.glob("*.whl")
    assert lock_file.describe(made, lock["info"]) == lock["packages"]["pywebgpu"]


def test_without_pyodide_build_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(distribution, "TOOLS", tmp_path)
    with pytest.raises(distribution.DistributionError, match=r"tools/setup\.sh pyodide"):
        distribution.make(tmp_path)


OTHERS = ("cp313-cp313-pyodide_2026_0_wasm32", "cp314-cp314-linux_x86_64", "cp314-cp314-pyodide_2025_0_wasm32")


@pytest.mark.parametrize("tag", OTHERS)
def test_wheels_of_other_machines_are_refused(tag: str) -> None:
    info = {"python": "3.14.2", "abi_version": "2026_0", "arch": "wasm32"}
    with pytest.raises(lock_file.LockError, match="is not for Pyodide's Python"):
        lock_file.check_tag(f"a-1-{tag}.whl", info)
    lock_file.check_tag("a-1-py3-none-any.whl", info)
    lock_file.check_tag("a-1-cp314-cp314-pyemscripten_2026_0_wasm32.whl", info)
