"""Notebooks in Pyodide: the same cells, with `await` at the top."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import devices, sampling

ROOT = Path(__file__).parents[2]
NAMES = ("6-port-a-script", "2-train-a-gpt")


@pytest.mark.skipif(bool(devices.why_no_node()), reason=devices.why_no_node())
def test_some_run_in_node(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    names = sampling.part(pytestconfig, NAMES, 2)
    script = ROOT / "tests" / "notebooks.py"
    notebooks = [str(ROOT / "notebooks" / f"{name}.ipynb") for name in names]
    command = [sys.executable, "-m", "pywebgpu", "node", str(script), *notebooks]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "captured anew" not in done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines() if line.endswith(" shown")] == names
