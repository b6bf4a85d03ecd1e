"""Programs on disk: a second process reads what the first one compiled, and never anything stale or broken."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = """
import json
import pywebgpu as torch
from pywebgpu import devices
from pywebgpu.runtime import executor, state
x = torch.ones(4, 4, device="null")
y = (x @ x).softmax(-1) * 2
executor.submit(devices.open_device("null"))
program = next(iter(state.default.programs.values()))[0]
print(json.dumps([state.default.counters["stored_hits"], [kernel.wgsl for kernel in program.kernels]]))
"""


def run(folder: Path, **changes: str) -> tuple[int, list[str]]:
    environment = os.environ | {"PYWEBGPU_CACHE": str(folder)} | changes
    done = subprocess.run([sys.executable, "-c", SCRIPT], cwd=ROOT, env=environment, capture_output=True, check=True)
    hits, kernels = json.loads(done.stdout)
    return hits, kernels


def test_the_second_process_compiles_nothing(tmp_path: Path) -> None:
    hits, kernels = run(tmp_path)
    assert (hits, len(list(tmp_path.glob("*.json"))) > 0) == (0, True)
    assert run(tmp_path) == (len(list(tmp_path.iterdir())), kernels)


def test_another_way_of_compiling_is_another_program(tmp_path: Path) -> None:
    run(tmp_path)
    hits, _ = run(tmp_path, PYWEBGPU_FUSE="0")
    assert hits == 0


@pytest.mark.parametrize("text", ["", "{", '{"version": 0}', '{"version": 2}'])
def test_what_cannot_be_read_is_compiled_again(text: str, tmp_path: Path) -> None:
    _, kernels = run(tmp_path)
    for file in tmp_path.iterdir():
        file.write_text(text)
    assert run(tmp_path) == (0, kernels)
    assert run(tmp_path)[0] > 0


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert run(tmp_path / "file")[0] == 0
