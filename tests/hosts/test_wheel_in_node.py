"""The wheel as users install it: by micropip in Pyodide, and natively where `pywebgpu node` finds its bridge inside."""

import importlib.util
import os
import shutil
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from pywebgpu.support import installation
from tests import devices, wheel
from tests.hosts.test_node import run, script

pytestmark = pytest.mark.skipif(bool(devices.why_no_node()), reason=devices.why_no_node())

PROGRAM = """
import pywebgpu as torch
x = torch.arange(4.0, requires_grad=True)
(x.exp() * x).sum().backward()
print(torch.__file__)
print(x.device, [round(value, 3) for value in x.grad.tolist()])
"""
PRINTED = "webgpu [1.0, 5.437, 22.167, 80.342]"


class Handler(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None: ...


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return wheel.build(tmp_path_factory.mktemp("dist"))


@pytest.fixture
def address(built: Path) -> Iterator[str]:
    """Where the wheel is served."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(built.parent))) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/{built.name}"
        server.shutdown()
        thread.join()


def test_micropip_installs_it_in_pyodide(address: str, tmp_path: Path) -> None:
    found = importlib.util.find_spec("micropip")
    if found is None or found.origin is None:
        pytest.skip("micropip is not installed; tools/setup.sh packages test installs it")
    # Apart from what else is installed, which is for another Python.
    shutil.copytree(Path(found.origin).parent, tmp_path / "micropip")
    install = f"""
from pyodide.ffi import run_sync
import micropip
run_sync(micropip.install({address!r}))
"""
    done = run(script(tmp_path, install + PROGRAM), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    file, printed = done.stdout.splitlines()
    assert "/site-packages/pywebgpu/" in file
    assert printed == PRINTED


def test_the_command_runs_from_an_installation(built: Path, tmp_path: Path) -> None:
    zipfile.ZipFile(built).extractall(tmp_path / "installed")
    modules = installation.find_modules().path
    (tmp_path / "installed" / "pywebgpu" / "node_modules").symlink_to(modules)
    name = script(tmp_path, PROGRAM)
    done = subprocess.run(
        [sys.executable, "-m", "pywebgpu", "node", name],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path / "installed")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines() == [f"{tmp_path}/installed/pywebgpu/__init__.py", PRINTED], done.stderr
