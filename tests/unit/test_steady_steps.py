"""What a step costs the host once it is compiled: no objects, no text, no search."""

import cProfile
import gc
import pstats
import sys
import time
import timeit
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import pywebgpu as torch
from pywebgpu import devices, nn
from pywebgpu.devices.pool import Pool
from pywebgpu.runtime import executor, program_cache

PACKAGE = str(Path(torch.__file__).parent)
SETTLED = 70  # calls after which the next audit is far
BARELY = 10  # calls after which the next six are none


def training(device: str, layers: int = 1, rows: int = 8, settled: int = SETTLED) -> Callable[[], Any]:
    torch.manual_seed(0)
    inner = [part for _ in range(layers) for part in (nn.Linear(16, 16), nn.GELU(), nn.LayerNorm(16))]
    model = nn.Sequential(*inner, nn.Linear(16, 4)).to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    x = torch.rand(rows, 16, device=device)

    @torch.compile
    def step() -> Any:
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    for _ in range(settled):
        step()
    return step


def profiled(step: Callable[[], Any]) -> dict[tuple[str, int, str], tuple[int, ...]]:
    """The functions that a call runs, with how often each, where nothing else waits."""

    def call() -> None:
        step()

    synchronize = torch.webgpu.synchronize  # A name that is new in the package is a change: the next call is audited.
    call()  # The first call from a line is an audit.
    gc.collect()
    for device in devices.opened():
        synchronize(device.name)
    with cProfile.Profile() as found:
        call()
    stats: dict[tuple[str, int, str], tuple[int, ...]] = pstats.Stats(found).stats  # type: ignore[attr-defined]
    return stats


def test_replays_leave_no_objects_and_hardly_any_garbage(device: str) -> None:
    step = training(device)
    spent, began = [], [0.0]

    def watch(phase: str, _: object) -> None:
        if phase == "start":
            began[0] = time.perf_counter()
        else:
            spent.append(time.perf_counter() - began[0])

    gc.collect()
    gc.freeze()  # What other tests keep is not looked through.
    before, start = sys.getallocatedblocks(), time.perf_counter()
    gc.callbacks.append(watch)
    try:
        for _ in range(50):
            step()
    finally:
        gc.callbacks.remove(watch)
        gc.unfreeze()
    taken = time.perf_counter() - start
    gc.collect()
    assert sys.getallocatedblocks() - before < 200, "four a step"
    assert sum(spent) < 0.02 * taken


def test_a_replay_runs_none_of_the_compiler_and_builds_no_text(device: str) -> None:
    step = training(device)
    ran = {Path(file).relative_to(PACKAGE).parts[0] for file, _, _ in profiled(step) if file.startswith(PACKAGE)}
    assert ran
    assert ran.isdisjoint({"compiler", "kernels", "composites", "nn"})


def test_the_calls_of_a_replay_grow_no_faster_than_the_model(device: str) -> None:
    counts = []
    for layers in (2, 4, 8):
        step = training(device, layers, settled=BARELY)
        counts.append(min(sum(calls[1] for calls in profiled(step).values()) for _ in range(3)))
    assert counts[2] - counts[1] <= 2.2 * max(counts[1] - counts[0], 20), counts


@pytest.mark.parametrize("device", ["webgpu", "null"])
def test_a_dispatch_of_a_replay_costs_the_host_less_than_a_tenth_of_a_millisecond(device: str) -> None:
    step, counters = training(device, layers=2, settled=BARELY), devices.open_device(device).counters
    taken = []
    for _ in range(20):
        torch.webgpu.synchronize(device)
        before, start = counters["dispatches"], time.perf_counter()
        step()
        taken.append((time.perf_counter() - start) / (counters["dispatches"] - before))
    assert min(taken) < 1e-4


@pytest.mark.parametrize("device", ["webgpu"])
def test_bind_groups_are_found_again_after_another_call_came_between(device: str) -> None:
    step, other = training(device), training(device, rows=5)
    counters = devices.open_device(device).counters
    for run in (other, step, other, step):
        run().item()
    before = counters["bind_groups_created"], counters["buffers_created"]
    for _ in range(4):
        other().item()
        step().item()
    assert (counters["bind_groups_created"], counters["buffers_created"]) == before


def test_lengths_of_sequences_take_no_more_than_the_longest() -> None:
    opened = devices.open_device("null")
    model = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).to("null")
    optimizer = torch.optim.SGD(model.parameters())

    def train(length: int) -> None:
        optimizer.zero_grad()
        model(torch.zeros(2, length, 16, device="null")).square().mean().backward()
        optimizer.step()
        torch.webgpu.synchronize("null")

    program_cache.clear()
    gc.collect()
    train(100)
    gc.collect()
    live, scratch = opened.counters["live_bytes"], opened.counters["scratch_bytes"]
    for length in (1, 37, 64, 99, 100):
        train(length)
    gc.collect()
    assert opened.counters["live_bytes"] <= live
    assert opened.counters["scratch_bytes"] <= 1.5 * scratch


def test_losses_are_the_same_and_peaks_are_not_wherever_work_is_submitted(
    device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(pending: int) -> tuple[list[float], int]:
        monkeypatch.setattr(executor, "settings", replace(executor.settings, pending=pending))
        torch.manual_seed(2)
        x, losses = torch.rand(64, 64, device=device), []
        torch.webgpu.synchronize(device)
        torch.memory.reset_peak(device)
        start = torch.memory.stats(device)["peak_bytes"]
        for _ in range(3):
            y = x
            for _ in range(12):
                y = (y @ x / 32).tanh()
            losses.append(y.square().mean())
        found = [loss.item() for loss in losses]
        return found, torch.memory.stats(device)["peak_bytes"] - start

    (often, some), (once, most) = run(5), run(10_000)
    assert often == once
    assert some != most


def test_a_thousand_ops_are_recorded_without_a_submit(device: str) -> None:
    x = torch.ones(4, device=device)
    torch.webgpu.synchronize(device)
    counters = devices.open_device(device).counters
    before = counters["submits"]
    for _ in range(1000):
        x = x + 1
    assert counters["submits"] == before
    assert x.tolist() == [1001.0] * 4
    assert counters["submits"] <= before + 2


def test_a_buffer_is_taken_from_a_full_pool_as_fast_as_from_an_empty_one() -> None:
    def taking(waiting: int) -> float:
        made: list[object] = []
        pool = Pool(lambda size: made.append(object()) or made[-1], lambda buffer: None, 1 << 40)
        for buffer in [pool.take(256) for _ in range(waiting)]:
            pool.give(buffer, 256)
        return min(timeit.repeat(lambda: pool.give(pool.take(256), 256), number=200, repeat=5))

    assert taking(20_000) < 20 * taking(2)
