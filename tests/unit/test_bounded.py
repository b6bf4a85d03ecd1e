"""A loop whose shapes never come again holds no more pipelines, scratch and memory than its Programs have."""

import gc
import sys
from pathlib import Path
from typing import Any

import pytest

import pywebgpu as torch
from pywebgpu import devices
from pywebgpu.devices import adapters, loaded
from pywebgpu.runtime import program_cache, state
from tests.devices import open_another, why_no_webgpu

pytestmark = pytest.mark.skipif(bool(why_no_webgpu()), reason=why_no_webgpu())
NAME = "webgpu:4"  # a device of these tests alone
PROGRAMS = 8


def compute(n: int) -> None:
    x, w = torch.ones(n, 7, device=NAME), torch.ones(7, 5, device=NAME)
    assert (x @ w).softmax(1).sum().item() == pytest.approx(n)


def resident() -> int:
    """Bytes of this process in memory, without what nobody has any more."""
    gc.collect()
    adapters.return_memory()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def test_programs_that_ran_long_ago_lose_their_pipelines(monkeypatch: pytest.MonkeyPatch) -> None:
    """And get them again where they run again, whoever has them: the cache of programs, or a captured step."""
    program_cache.clear()
    open_another(NAME)
    opened: Any = devices.open_device(NAME)
    monkeypatch.setattr(loaded, "RECENT", 2)
    monkeypatch.setattr(opened._residents, "_text_bytes", 0)
    weight = torch.ones(3, device=NAME)

    @torch.compile
    def step(x: torch.Tensor) -> torch.Tensor:
        weight.mul_(2)
        return (x * weight).sum()

    xs = [torch.ones(n, 3, device=NAME) for n in range(1, 6)]
    values = [step(x).item() for _ in range(3) for x in xs]
    assert values == [3 * (at % 5 + 1) * 2 ** (at + 1) for at in range(15)]
    assert step.counters["captures"] == len(xs)
    made = opened.counters["pipelines_created"]
    assert len(opened._residents) == 2
    assert len(opened._pipelines) <= 4 < 15 <= made
    assert [step(x).item() for x in xs[3:]] == [3 * n * 2.0**m for n, m in ((4, 16), (5, 17))]
    assert opened.counters["pipelines_created"] == made  # These ran last.
    program_cache.clear()
    devices.close(NAME)


def test_programs_are_kept_by_what_they_take(monkeypatch: pytest.MonkeyPatch) -> None:
    """However large they are, those that ran last; of small ones many more."""
    program_cache.clear()
    monkeypatch.setattr(program_cache, "RECENT", 3)
    programs = state.default.programs
    for room, kept in ((0, 3), (1 << 20, 10)):
        monkeypatch.setattr(program_cache, "NBYTES", room)
        for n in range(1, 11):
            assert torch.ones(n, device="cpu").mul(2).sum().item() == 2 * n
        assert len(programs) == kept
    missed = state.default.counters["program_misses"]
    assert torch.ones(10, device="cpu").mul(2).sum().item() == 20
    assert state.default.counters["program_misses"] == missed
    program_cache.clear()


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
