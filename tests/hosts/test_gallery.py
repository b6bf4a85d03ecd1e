"""Programs of the gallery in Pyodide, unchanged: those whose kernels take the least time to compile there."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import devices, sampling

ROOT = Path(__file__).parents[2]
PIECES = ("cartpole", "diffusion", "faces", "words")
RUN = f"""
import runpy, sys
for piece in sys.argv[1:]:
    runpy.run_path(f"{(ROOT / "demos" / "gallery").as_posix()}/{{piece}}.py", run_name="__main__")
    print("ran", piece)
"""


@pytest.mark.skipif(bool(devices.why_no_node()), reason=devices.why_no_node())
def test_they_run_in_node(pytestconfig: pytest.Config) -> None:
    pieces = sampling.part(pytestconfig, PIECES, 2)
    done = subprocess.run(
        [sys.executable, "-m", "pywebgpu", "node", "-c", RUN, *pieces],
        env=os.environ | {"PYTHONPATH": str(ROOT), "STEPS": "3"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert [line[4:] for line in done.stdout.splitlines() if line.startswith("ran ")] == pieces
