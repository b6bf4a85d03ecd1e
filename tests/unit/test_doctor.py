"""doctor speaks on every machine, and the default device follows from what it finds."""

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pywebgpu.cli import doctor
from pywebgpu.devices import adapters
from pywebgpu.devices.adapters import AdapterInfo
from pywebgpu.settings import settings
from pywebgpu.support import installation

ROOT = Path(__file__).parents[2]

GPU = AdapterInfo("A GPU", "Vulkan", "DiscreteGPU", "a driver", False, {"max-buffer-size": 1 << 30}, ("shader-f16",))
LAVAPIPE = dataclasses.replace(GPU, name="llvmpipe", kind="CPU", is_software=True)
ONLY_OPENGL = dataclasses.replace(GPU, backend="OpenGL")


def pretend(monkeypatch: pytest.MonkeyPatch, *found: AdapterInfo, trouble: str = "", device: str = "") -> None:
    """Makes the machine look as if it had these adapters, and PYWEBGPU_DEVICE said `device`."""
    monkeypatch.setattr(adapters, "_survey", lambda: (found, trouble))
    monkeypatch.setattr(adapters, "settings", dataclasses.replace(settings, device=device))


@pytest.mark.parametrize(
    ("found", "device"), [((LAVAPIPE, GPU), "webgpu"), ((LAVAPIPE,), "cpu"), ((ONLY_OPENGL,), "cpu"), ((), "cpu")]
)
def test_default_is_webgpu_only_on_hardware(
    monkeypatch: pytest.MonkeyPatch, found: tuple[AdapterInfo, ...], device: str
) -> None:
    pretend(monkeypatch, *found, trouble="" if found else "no driver")
    chosen, reason = adapters.choose_default()
    assert chosen == device
    assert reason


def test_environment_overrides_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, GPU, device="null")
    monkeypatch.setattr(adapters, "_survey", lambda: pytest.fail("no adapter is asked for"))
    assert adapters.choose_default() == ("null", "the environment variable PYWEBGPU_DEVICE says so")


def test_text_names_adapter_and_default(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pretend(monkeypatch, GPU)
    assert doctor.main([]) == 0
    text = capsys.readouterr().out
    assert "A GPU, Vulkan, DiscreteGPU (hardware)" in text
    assert "max-buffer-size = 1,073,741,824" in text
    assert "default device: webgpu, because A GPU is a hardware adapter" in text


def test_doctor_says_which_node_is_used_and_why(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    pretend(monkeypatch, GPU)
    for name in installation.RUNTIME:
        (tmp_path / "node_modules" / name).mkdir(parents=True)
    (tmp_path / "node").write_text("#!/bin/sh\necho v26.10.0\n", encoding="utf-8")
    (tmp_path / "node").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(installation, "settings", dataclasses.replace(settings, node=str(tmp_path)))
    assert doctor.main([]) == 0
    text = capsys.readouterr().out
    assert f"node: {tmp_path}/node, because it is on the PATH" in text
    assert f"packages: {tmp_path}/node_modules, because PYWEBGPU_NODE names it" in text


def test_doctor_says_how_to_install_node(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pretend(monkeypatch, GPU)
    monkeypatch.setattr(installation, "PACKAGE", tmp_path / "pywebgpu")
    monkeypatch.setenv("PATH", "")
    report = doctor.examine()
    assert [used.path for used in report.node.values()] == ["", ""]
    assert any("npm install --prefix" in advice.install for advice in report.advice)


def test_missing_packages_are_named_with_their_cure() -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYWEBGPU_DEVICE": ""}
    # -S leaves out site-packages, and with them NumPy and wgpu-py.
    command = [sys.executable, "-S", "-m", "pywebgpu", "doctor", "--json"]
    done = subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True)
    report = json.loads(done.stdout)
    assert report["default_device"] == "cpu"
    found = {advice["missing"]: advice["install"] for advice in report["advice"]}
    assert found.keys() >= {"numpy", "wgpu"}
    assert all("pip install" in found[name] for name in ("numpy", "wgpu"))


def test_every_setting_is_listed_and_a_variable_changes_its_own() -> None:
    def listed(**variables: str) -> dict[str, object]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PYWEBGPU_")}
        environment = kept | {"PYTHONPATH": str(ROOT), "PYWEBGPU_CACHE": ""} | variables
        command = [sys.executable, "-m", "pywebgpu", "doctor", "--json"]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
        found: dict[str, object] = json.loads(done.stdout)["settings"]
        return found

    usual, changed = listed(), listed(PYWEBGPU_FUSE="0", PYWEBGPU_POOL="64", PYWEBGPU_TRACEBACKS="full")
    assert set(usual) == {one.name for one in dataclasses.fields(settings)}
    differing = {name: value for name, value in changed.items() if value != usual[name]}
    assert differing == {"fuse": False, "pool": 64, "short_tracebacks": False}
