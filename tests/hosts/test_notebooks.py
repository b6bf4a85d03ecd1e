"""Notebooks in Pyodide: the same cells, with `await` at the top."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import devices

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(bool(devices.why_no_node()), reason=devices.why_no_node())
@pytest.mark.parametrize("name", ["2-train-a-gpt", "6-port-a-script"])
def test_it_runs_in_node(name: str, tmp_path: Path) -> None:
    script = ROOT / "tests" / "notebooks.py"
    command = [sys.executable, "-m", "pywebgpu", "node", str(script), str(ROOT / "notebooks" / f"{name}.ipynb")]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].endswith("shown")
