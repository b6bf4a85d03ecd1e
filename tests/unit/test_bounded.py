"""A loop whose shapes never come again holds no more pipelines, scratch and memory than its Programs have."""

import gc
import sys
from pathlib import Path

import pytest

import pywebgpu as torch
from pywebgpu import devices
from pywebgpu.runtime import program_cache
from tests.devices import open_another, why_no_webgpu

pytestmark = pytest.mark.skipif(bool(why_no_webgpu()), reason=why_no_webgpu())
NAME = "webgpu:4"  # a device of these tests alone
PROGRAMS = 8


def compute(n: int) -> None:
    x, w = torch.ones(n, 7, device=NAME), torch.ones(7, 5, device=NAME)
    assert (x @ w).softmax(1).sum().item() == pytest.approx(n)


def resident() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.long("compiles hundreds of kernels")
def test_shapes_that_never_come_again_cost_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program_cache, "PROGRAMS", PROGRAMS)
    program_cache.clear()
    open_another(NAME)
    opened = devices.open_device(NAME)
    for n in range(1, 2 * PROGRAMS):
        compute(n)
    pipelines, scratch = len(opened._pipelines), opened.counters["scratch_bytes"]
    made, before = opened.counters["pipelines_created"], 0
    rounds, counted = 60, 30
    for n in range(2 * PROGRAMS, 2 * PROGRAMS + rounds):
        if n == 2 * PROGRAMS + rounds - counted and sys.platform == "linux":
            before = resident()  # The threads that compile have by now the memory that they keep.
        compute(n)
    gc.collect()
    assert opened.counters["pipelines_created"] - made > 2 * rounds
    assert len(opened._pipelines) <= pipelines + 4
    assert opened.counters["scratch_bytes"] <= 2 * scratch + 256 * PROGRAMS
    if sys.platform == "linux":  # Without a bound each shape takes 0.4 MB and more.
        assert resident() - before < 0.2e6 * counted
    program_cache.clear()
    assert len(opened._pipelines) == opened.counters["scratch_bytes"] == 0
    devices.close(NAME)
