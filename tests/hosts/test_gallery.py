"""The programs of the gallery in Pyodide, unchanged."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import devices

ROOT = Path(__file__).parents[2]
GALLERY = ROOT / "demos" / "gallery"
ALL = f"""
import pathlib, runpy
for piece in sorted(pathlib.Path({str(GALLERY)!r}).glob("*.py")):
    runpy.run_path(str(piece), run_name="__main__")
    print("ran", piece.stem)
"""


@pytest.mark.skipif(bool(devices.why_no_node()), reason=devices.why_no_node())
def test_all_run_in_node() -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT), "STEPS": "3"}
    done = subprocess.run(
        [sys.executable, "-m", "pywebgpu", "node", "-c", ALL],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    ran = [line.removeprefix("ran ") for line in done.stdout.splitlines() if line.startswith("ran ")]
    assert ran == sorted(path.stem for path in GALLERY.glob("*.py"))
