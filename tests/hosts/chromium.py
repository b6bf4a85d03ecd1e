"""Runs a script of the tests in Pyodide in a page of a headless Chromium, on its software adapter."""

from collections.abc import Sequence
from pathlib import Path

from pywebgpu.hosts import chromium

ROOT = Path(__file__).parents[2]
PARTS = ("tests/__init__.py", "tests/cases/*.py", "tests/hosts/*.py", "demos/chargpt/*.py")


def run(command: Sequence[str], given: dict[str, bytes], wanted: str = "") -> tuple[int, bytes]:
    """Runs SCRIPT [ARGUMENT...], a script of the checkout. `given` are files by name, `wanted` is one to bring back."""
    script, *arguments = command
    inside = Path(script).resolve().relative_to(ROOT).as_posix()
    checkout = {path.relative_to(ROOT).as_posix(): path.read_bytes() for part in PARTS for path in ROOT.glob(part)}
    return chromium.run([inside, *arguments], files=checkout | given, wanted=wanted, software=True)
