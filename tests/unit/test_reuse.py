"""Memory that is used again: it shows nothing of what was there, and is never handed out too early."""

import gc
import math
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import pywebgpu as torch
from pywebgpu import devices
from pywebgpu.runtime import executor
from tests.unit.test_suballocation import train

ROUNDS = 3_000


@pytest.fixture
def dirty(device: str) -> str:
    """The device, whose pool is full of NaN."""
    held = [torch.ones(4 * size, device=device) * math.nan for size in (1, 16, 64, 200, 1000, 5000) for _ in range(12)]
    torch.webgpu.synchronize(device)
    del held
    gc.collect()
    return device


def test_old_contents_do_not_show(dirty: str) -> None:
    for size in (4, 60, 250, 800, 4000, 20_000):
        index = torch.tensor([1, 3, 1, 0], device=dirty)
        found = [
            torch.zeros(size, device=dirty),
            torch.empty(size, device=dirty),
            torch.zeros(size, device=dirty).scatter_add(0, index, torch.ones(4, device=dirty)),
            torch.zeros(size, 2, device=dirty).index_add(0, index, torch.ones(4, 2, device=dirty)),
            torch.nn.functional.pad(torch.ones(4, device=dirty), (3, size)).cumsum(0),
        ]
        counts = np.bincount([1, 3, 1, 0], minlength=size)
        wanted = [0 * counts, 0 * counts, counts, np.stack([counts] * 2, 1), np.minimum(range(-2, size + 5), 4).clip(0)]
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(one.numpy(), other)


def test_states_of_an_optimizer_begin_with_zero(dirty: str) -> None:
    weights = [torch.full((size,), 2.0, device=dirty, requires_grad=True) for size in (4, 60, 250, 4000)]
    optimizer = torch.optim.AdamW(weights, lr=0.5, weight_decay=0.0)
    sum(weight.sum() for weight in weights).backward()
    optimizer.step()
    for weight in weights:
        assert weight.tolist() == pytest.approx([1.5] * weight.numel())


def test_a_buffer_is_handed_out_after_its_last_reader(device: str) -> None:
    """Each value is dropped while the run that reads it is queued, and the next one takes its memory."""
    opened = devices.open_device(device)
    base, total = torch.arange(1000.0, device=device), torch.zeros((), device=device)
    torch.webgpu.synchronize(device)
    for at in range(ROUNDS):
        x = base + float(at % 7)
        executor.submit(opened)
        total = total + (x[::250] * 2).sum()
        del x
        if at % 2:
            executor.submit(opened)
    assert total.item() == 2 * (ROUNDS * 1500 + 4 * sum(at % 7 for at in range(ROUNDS)))


def test_losses_do_not_depend_on_the_pool(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for budget in (1 << 30, 0):
        pool = getattr(devices.open_device(device), "_pool", None)
        if pool is not None:
            pool.clear()
            monkeypatch.setattr(pool, "budget", budget)
        torch.manual_seed(0)
        module = torch.nn.Sequential(torch.nn.Linear(5, 9), torch.nn.Tanh(), torch.nn.Linear(9, 5)).to(device)
        optimizer = torch.optim.AdamW(module.parameters(), lr=0.1)
        found.append([train(module, optimizer, 1, device=device) for _ in range(20)])
    assert found[0] == found[1]


def test_after_synchronizing_nothing_waits(device: str) -> None:
    opened = devices.open_device(device)
    x = torch.ones(50_000, device=device)
    kept, dropped = (x * 2).exp(), (x * 3).exp()
    assert executor.pending(opened)
    torch.webgpu.synchronize(device)
    assert not executor.pending(opened)
    gc.collect()  # What other tests left.
    before = dict(opened.counters)
    del dropped
    gc.collect()
    assert opened.counters["live_bytes"] == before["live_bytes"] - 200_000
    if device == "webgpu":
        assert opened.counters["waiting_bytes"] >= before["waiting_bytes"] + 200_000
    assert kept[0].item() == pytest.approx(math.exp(2), rel=1e-5)


def test_what_was_read_stays(device: str) -> None:
    x = torch.arange(4.0, device=device)
    arrays: list[Any] = []
    for _ in range(4):
        x += 1
        arrays.append(x.numpy().copy())  # On device cpu an array shows what is there now.
    assert [array.tolist() for array in arrays] == [[at + 1.0, at + 2.0, at + 3.0, at + 4.0] for at in range(4)]


@pytest.mark.parametrize("kind", ["discrete", "cpu"])
def test_what_is_read_step_by_step_is_of_that_step(kind: str, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However the host waits for it, and whether or not the next run was encoded meanwhile."""
    opened: Any = devices.open_device(device)
    if hasattr(opened, "_reader"):
        monkeypatch.setattr(opened._reader, "_way", import_module("pywebgpu.devices.native_read").chosen(kind))
    x = torch.zeros(300, device=device)
    found = []
    for at in range(20):
        x += at
        found.append((x.sum().item(), x[at].item()))
    assert found == [(150 * at * (at + 1), at * (at + 1) / 2) for at in range(20)]
