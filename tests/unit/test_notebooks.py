"""The notebooks run natively, in one process, which is warm for the later ones, and are kept without outputs."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests import devices, notebooks, sampling

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
NEEDS = {"7-transformers": "transformers"}  # a package that is not installed with these tests; hosts/test_libraries.py
RUNNABLE = [path for path in NOTEBOOKS if path.stem not in NEEDS or find_spec(NEEDS[path.stem])]


def test_they_run_without_a_warning(device: str, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    paths = RUNNABLE if device == "cpu" else sampling.part(pytestconfig, RUNNABLE, 2)
    devices.prepare_environment()
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYWEBGPU_DEVICE": device}
    command = [sys.executable, "-W", "error", "-m", "tests.notebooks", *map(str, paths)]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines() if line.endswith(" shown")] == [
        path.stem for path in paths
    ]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_is_kept_without_outputs(path: Path) -> None:
    found = json.loads(path.read_text(encoding="utf-8"))
    assert (found["nbformat"], found["nbformat_minor"]) == (4, 5)
    for cell in found["cells"]:
        assert cell["id"]
        assert cell["cell_type"] == "markdown" or (cell["outputs"], cell["execution_count"]) == ([], None)
    assert all(notebooks.cells(path))


def test_there_are_seven() -> None:
    assert len(NOTEBOOKS) == 7
