"""What an installation holds: the library, its kernels and the bridge, and nothing else."""

import zipfile
from email.parser import Parser

import pytest

from tests import wheel
from tests.wheel import ROOT


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    return zipfile.ZipFile(wheel.build(tmp_path_factory.mktemp("wheel")))


@pytest.fixture(scope="module")
def names(built: zipfile.ZipFile) -> set[str]:
    return set(built.namelist())


@pytest.mark.parametrize("pattern", ["*.py", "*.pyi", "*.wgsl", "py.typed"])
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
    assert {f"pywebgpu/web/chargpt/{name}.py" for name in ("data", "model", "texts", "train")} <= names


def test_wheel_holds_nothing_else(names: set[str]) -> None:
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"pywebgpu", "pytest_pywebgpu.py"}
    assert not [name for name in names if name.endswith(".md") or "/test/" in name]


def test_wheel_is_pure_and_needs_nothing(built: zipfile.ZipFile, names: set[str]) -> None:
    """Every requirement belongs to an extra: Pyodide would download any other."""
    (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
    needed = Parser().parsestr(built.read(metadata).decode()).get_all("Requires-Dist", [])
    assert needed
    assert [line for line in needed if "extra ==" not in line] == []
    assert b"Root-Is-Purelib: true" in built.read(metadata.replace("METADATA", "WHEEL"))
