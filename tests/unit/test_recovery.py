"""A device that is lost: told by class on every path, opened again, and written anew. `pywebgpu.utils.Checkpointer`."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pywebgpu as torch
from pywebgpu import devices, nn, optim
from pywebgpu.errors import DeviceLostError
from pywebgpu.runtime import executor
from tests.devices import open_another, why_no_webgpu

NAME = "webgpu:3"  # a device of these tests alone
Use = Callable[[torch.Tensor], Any]

# What needs the device; `x` was computed on it.
USES: dict[str, Use] = {
    "download": lambda x: x.tolist(),
    "upload": lambda x: torch.tensor([1.0, 2.0], device=NAME),
    "run": lambda x: (x + 1).tolist(),
    "load": lambda x: (x * 3 - x.sin()).exp().sum().item(),
    "alloc": lambda x: torch.full((700,), 2.0, device=NAME).tolist(),
    "copy to the host": lambda x: x.cpu(),
    "synchronize": lambda x: torch.webgpu.synchronize(NAME),
    "submit": lambda x: (x.add_(1), executor.submit(devices.open_device(NAME))),
    "timing": lambda x: devices.open_device(NAME).timings(),
    "replay": lambda x: doubled(x),
}


def _doubled(x: torch.Tensor) -> torch.Tensor:
    return x * 2


doubled = torch.compile(_doubled)


@pytest.fixture
def opened() -> Iterator[Any]:
    if why_no_webgpu():
        pytest.skip(why_no_webgpu())
    open_another(NAME)
    yield devices.open_device(NAME)
    devices.close(NAME)


def lose(opened: Any) -> None:
    opened._gpu.destroy()


@pytest.mark.parametrize("use", USES)
def test_a_lost_device_is_told(use: str, opened: Any) -> None:
    x = torch.ones(700, device=NAME) + 1
    doubled(x)
    x.tolist()
    opened.time(True)
    (x + 5).tolist()
    lose(opened)
    for _ in range(2):
        with pytest.raises(DeviceLostError, match=r"device is gone.*recover"):
            USES[use](x)


def test_a_lost_device_is_opened_again(opened: Any) -> None:
    x = torch.arange(4.0, device=NAME) * 2
    assert x.tolist() == [0.0, 2.0, 4.0, 6.0]
    assert not torch.webgpu.recover(NAME)
    lose(opened)
    assert torch.webgpu.recover(NAME)
    assert not torch.webgpu.recover(NAME)
    assert devices.open_device(NAME) is opened
    assert (torch.arange(4.0, device=NAME) * 2).tolist() == [0.0, 2.0, 4.0, 6.0]
    for attempt in (lambda: x.tolist(), lambda: (x + 1).tolist(), lambda: x[1:].sum().item(), lambda: x.cpu()):
        with pytest.raises(DeviceLostError, match="was on a device that was lost"):
            attempt()


def test_what_was_lost_is_written_anew(opened: Any) -> None:
    x, flat = torch.arange(6.0, device=NAME) + 1, torch.zeros(4, device=NAME)
    view = x.reshape(2, 3).t()
    assert view.tolist() == [[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]
    lose(opened)
    torch.webgpu.recover(NAME)
    flat[1:3] = 1  # The rest of it is still lost.
    with pytest.raises(DeviceLostError):
        flat.tolist()
    view.copy_(torch.arange(6.0).reshape(3, 2))
    assert x.tolist() == [0.0, 2.0, 4.0, 1.0, 3.0, 5.0]
    x.add_(1)
    assert view.tolist() == [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    assert flat.zero_().tolist() == [0.0] * 4


def test_what_a_step_writes_in_place_is_not_taken_for_written(opened: Any) -> None:
    """Reading and writing one buffer, a step of an optimizer must not take a new buffer for the lost one."""
    model, batch = nn.Linear(3, 3, device=NAME), torch.ones(2, 3, device=NAME)
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def step() -> float:
        optimizer.zero_grad()
        loss = (model(batch) ** 2).sum()
        loss.backward()
        optimizer.step()
        return float(loss.item())

    step()
    step()
    lose(opened)
    torch.webgpu.recover(NAME)
    batch = torch.ones(2, 3, device=NAME)
    for _ in range(3):
        with pytest.raises(DeviceLostError):
            step()


def test_compiled_steps_are_captured_again(opened: Any) -> None:
    weight = torch.tensor([1.0, 2.0], device=NAME)
    step = torch.compile(lambda x: x * weight + torch.tensor([1.0, 1.0], device=NAME))
    for _ in range(3):
        assert step(torch.ones(2, device=NAME)).tolist() == [2.0, 3.0]
    lose(opened)
    with pytest.raises(DeviceLostError):
        step(torch.ones(2, device=NAME)).tolist()
    torch.webgpu.recover(NAME)
    weight.copy_(torch.tensor([5.0, 6.0]))
    for _ in range(3):
        assert step(torch.ones(2, device=NAME)).tolist() == [6.0, 7.0]
    assert any("lost" in reason for reason in step.reasons)


def test_nothing_of_a_lost_device_is_kept(opened: Any) -> None:
    x = torch.ones(1000, device=NAME) + 1
    x.tolist()
    lose(opened)
    torch.webgpu.recover(NAME)
    before = opened.counters["live_bytes"]
    y = torch.ones(1000, device=NAME) + 1
    y.tolist()
    held = opened.counters["live_bytes"] - before
    del x
    assert opened.counters["live_bytes"] - before == held
    del y
    assert opened.counters["live_bytes"] == before


# Checkpointer


def training(device: str) -> tuple[dict[str, Any], Callable[[], float]]:
    """What is trained, and one step of it, whose data come from three sources of random numbers."""
    torch.manual_seed(0)
    random.seed(0)
    np.random.seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.2), nn.Linear(8, 2)).to(device)
    optimizer = optim.AdamW(model.parameters(), lr=0.05)
    scheduler = optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
    own = torch.Generator().manual_seed(5)

    def step() -> float:
        noise = random.random() + float(np.random.rand())
        batch = torch.rand(6, 4, generator=own, device=device) + noise
        optimizer.zero_grad()
        loss = (model(batch) ** 2).mean()
        loss.backward()
        optimizer.step()
        scheduler.step()
        return float(loss.item())

    return {"model": model, "optimizer": optimizer, "scheduler": scheduler, "own": own}, step


@pytest.mark.parametrize("kind", ["host", "file"])
def test_a_restored_run_repeats_itself(kind: str, device: str, tmp_path: Path) -> None:
    parts, step = training(device)
    kept = torch.utils.Checkpointer(parts, every=3, path=None if kind == "host" else tmp_path / "run.safetensors")
    parameters = list(parts["model"].parameters())
    assert kept.is_empty
    losses = []
    for at in range(8):
        assert kept.step(at) == (at % 3 == 0)
        losses.append(step())
    for _ in range(2):
        assert kept.restore() == 6
        assert [id(p) for p in parts["model"].parameters()] == [id(p) for p in parameters]
        assert all(p.grad is None for p in parameters)
        assert [step(), step()] == losses[6:]


def test_a_new_process_goes_on_from_the_file(device: str, tmp_path: Path) -> None:
    path = tmp_path / "run.safetensors"
    parts, step = training(device)
    kept = torch.utils.Checkpointer(parts, every=2, path=path)
    losses = []
    for at in range(5):
        kept.step(at)
        losses.append(step())
    parts, step = training(device)
    again = torch.utils.Checkpointer(parts, path=path)
    assert not again.is_empty
    assert again.restore() == 4
    assert step() == losses[4]


def test_a_rate_that_is_a_tensor_stays_on_its_device(device: str) -> None:
    weight = nn.Parameter(torch.ones(2, device=device))
    optimizer = optim.SGD([weight], lr=torch.tensor(0.5, device=device))
    kept = torch.utils.Checkpointer({"optimizer": optimizer})
    kept.save(1)
    optimizer.param_groups[0]["lr"].fill_(2.0)
    assert kept.restore() == 1
    rate = optimizer.param_groups[0]["lr"]
    assert (rate.device, rate.item()) == (weight.device, 0.5)


def test_a_loss_while_saving_leaves_the_last_copy(opened: Any) -> None:
    parts, step = training(NAME)
    kept = torch.utils.Checkpointer(parts)
    kept.save(0)
    first = step()
    lose(opened)
    with pytest.raises(DeviceLostError):
        kept.save(1)
    torch.webgpu.recover(NAME)
    assert kept.restore() == 0
    assert step() == first


def test_a_checkpointer_refuses_what_does_not_fit(tmp_path: Path) -> None:
    model = nn.Linear(2, 2)
    with pytest.raises(RuntimeError, match="nothing was saved yet"):
        torch.utils.Checkpointer({"model": model}).restore()
    with pytest.raises(ValueError, match="every is a number of steps from 1 on, got 0"):
        torch.utils.Checkpointer({"model": model}, every=0)
    torch.utils.Checkpointer({"model": model}, path=tmp_path / "run").save(3)
    with pytest.raises(RuntimeError, match=r"holds \['model'\], and not \['optimizer'\]"):
        torch.utils.Checkpointer({"optimizer": optim.SGD(model.parameters())}, path=tmp_path / "run").restore()
