"""What an installation holds: the library, its kernels and the bridge, and nothing else."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("pywebgpu-*-py3-none-any.whl")
    return set(zipfile.ZipFile(wheel).namelist())


@pytest.mark.parametrize("pattern", ["*.py", "*.wgsl", "py.typed"])
def test_wheel_holds_every_file(names: set[str], pattern: str) -> None:
    wanted = {path.relative_to(ROOT).as_posix() for path in (ROOT / "pywebgpu").rglob(pattern)}
    assert wanted <= names


def test_wheel_holds_the_bridge(names: set[str]) -> None:
    bridge = ROOT / "js_bridge"
    modules = {path.relative_to(bridge).as_posix() for path in bridge.glob("*.mjs")}
    assert {f"pywebgpu/js_bridge/{name}" for name in modules} <= names


def test_wheel_holds_the_pages(names: set[str]) -> None:
    pages = {path.name for path in (ROOT / "web").iterdir() if path.suffix in (".css", ".html", ".mjs", ".py", ".svg")}
    assert {f"pywebgpu/web/{name}" for name in pages} <= names
    assert {f"pywebgpu/web/chargpt/{name}.py" for name in ("data", "model", "train")} <= names


def test_wheel_holds_nothing_else(names: set[str]) -> None:
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"pywebgpu"}
    assert not [name for name in names if name.endswith(".md") or "/test/" in name]
