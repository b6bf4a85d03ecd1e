"""`pywebgpu bench --host chromium`: what a steady step may cost, and that a peer computes the same."""

import json
import subprocess
import sys
from typing import Any

import pytest

from playwright_tests.conftest import ROOT
from pywebgpu.bench import compare


@pytest.mark.usefixtures("browser")  # which says what to do where there is none
def test_a_replayed_step_is_one_submit() -> None:
    (found,) = bench("mlp", "--steps", "5")
    assert found["host"] == "browser"
    assert found["loss_last"] < found["loss_first"]
    assert found["ffi_calls"] <= 2
    assert (found["submits"], found["buffers_created"], found["pipelines_created"]) == (1, 0, 0)


@pytest.mark.usefixtures("browser")
@pytest.mark.parametrize("name", compare.PEERS)
def test_a_peer_takes_turns_with_us(name: str) -> None:
    try:
        compare.folder(name)
    except compare.CompareError as error:
        pytest.skip(str(error))
    eager, compiled, peer = bench("mlp", "--peer", name, "--steps", "2")
    assert (eager["library"], compiled["library"]) == ("pywebgpu", "pywebgpu, compiled")
    assert peer["library"].startswith(f"{name} ")
    assert peer["ratio"] == 1
    for one in (eager, compiled, peer):
        assert one["steps"] == 2
        assert 0 < one["ms_min"] <= one["ms"] <= one["ms_max"]
        assert one["loss_last"] < one["loss_first"]
        assert one["loss_error"] <= compare.AGREE
        assert one["dispatches"] > 0
    assert eager["submits"] == compiled["submits"] == 1


def bench(*arguments: str) -> list[dict[str, Any]]:
    """In a process of its own: Playwright starts once in each."""
    command = [sys.executable, "-m", "pywebgpu", "bench", *arguments, "--host", "chromium", "--json"]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found
