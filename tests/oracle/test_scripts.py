"""Programs in the shape people write them print the same curves under PyTorch and under `pywebgpu run`."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import sampling

SCRIPTS = Path(__file__).parents[1] / "scripts"
ROOT = SCRIPTS.parents[1]
NAMES = sorted(path.name for path in SCRIPTS.glob("*.py") if path.stem not in ("every", "seeding", "__init__"))
NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")
STEPS = {"cpu": "4", "webgpu": "2"}
TOLERANCE = {
    "cpu": 1e-3,
    "webgpu": 3e-3,
}  # Products of the software adapter round otherwise, and training amplifies it.


def started(names: list[str], device: str, *command: str) -> subprocess.Popen[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore", "STEPS": STEPS[device]}
    return subprocess.Popen(
        [sys.executable, *command, "every.py", *names], cwd=SCRIPTS, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def printed(process: subprocess.Popen[str]) -> dict[str, list[str]]:
    """What each program printed, by lines."""
    out, errors = process.communicate(timeout=600)
    assert process.returncode == 0, errors
    parts = [part.splitlines() for part in out.split("## ")[1:]]
    return {lines[0]: lines[1:] for lines in parts}


def differences(wanted: list[str], found: list[str], tolerance: float) -> list[str]:
    """The lines that differ by more than numbers' rounding."""
    wrong = [f"{len(wanted)} lines, and {len(found)}"] if len(wanted) != len(found) else []
    for one, other in zip(wanted, found, strict=False):
        pairs = zip(map(float, NUMBER.findall(one)), map(float, NUMBER.findall(other)), strict=False)
        if NUMBER.sub("#", one) != NUMBER.sub("#", other) or any(
            abs(a - b) > tolerance * max(1.0, abs(a)) for a, b in pairs
        ):
            wrong.append(f"{one!r} and {other!r}")
    return wrong


def test_a_difference_is_seen() -> None:
    assert not differences(["loss 1.0000"], ["loss 1.0004"], 1e-3)
    assert differences(["loss 1.0000"], ["loss 1.0020"], 1e-3)
    assert differences(["loss 1.0"], ["lost 1.0"], 1e-3)
    assert differences(["loss 1.0", "x"], ["loss 1.0"], 1e-3)


def test_programs_print_what_they_print_under_pytorch(device: str, pytestconfig: pytest.Config) -> None:
    assert len(NAMES) == 12
    if device not in STEPS:
        pytest.skip(f"device {device} computes nothing")
    names = NAMES if device == "cpu" else sampling.part(pytestconfig, NAMES, 4)
    theirs, ours = started(names, device), started(names, device, "-m", "pywebgpu", "run", "--device", device)
    wanted, found = printed(theirs), printed(ours)
    assert list(wanted) == list(found) == names
    wrong = {name: differences(wanted[name], found[name], TOLERANCE[device]) for name in names}
    assert not any(wrong.values()), {name: lines for name, lines in wrong.items() if lines}
