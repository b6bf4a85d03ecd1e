"""What a captured step holds: constants, state and its aliases, and nothing of Python, whatever it is given."""

import contextlib
import gc
import sys
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

import pywebgpu as torch
from pywebgpu.step_capture.capture import Capture
from tests.unit.replays import audited


@pytest.fixture(autouse=True)
def _replayed_at_once() -> Iterator[None]:
    """What is claimed here of replays is claimed of every call after the first."""
    with audited("0"):
        yield


def test_a_replay_runs_no_python(device: str) -> None:
    step = torch.compile(lambda x: x.t().reshape(-1)[1:] + 1)
    ran = []

    def profile(frame: Any, event: str, arg: Any) -> None:
        ran.append(frame.f_code.co_filename)

    for n in (1.0, 2.0, 3.0):
        x = torch.full((2, 3), n, device=device)
        sys.setprofile(profile if n > 1.0 else None)
        y = step(x)
        sys.setprofile(None)
        assert y.tolist() == [n + 1] * 5
    assert step.counters["replays"] == 2
    assert not any(name.endswith("tensor/movement.py") for name in ran)


def test_arguments_by_place_and_by_name_are_not_mixed_up(device: str) -> None:
    step = torch.compile(lambda x, k, *, y, n: (x - y, k, n))
    for k in (2.0, 3.0, 0.5):
        x, y = torch.tensor([k], device=device), torch.tensor([1.0], device=device)
        difference, *numbers = step(x, k, y=y, n=[7.0])
        assert (difference.item(), *numbers) == (k - 1, k, [7.0])


def test_classes_that_steps_were_given_end_with_their_last_object(device: str) -> None:
    class Given:
        __slots__ = ("factor",)

        def __init__(self, factor: float) -> None:
            self.factor = factor

    step = torch.compile(lambda x, given: x * given.factor)
    for factor in (2.0, 3.0):
        assert step(torch.ones(1, device=device), Given(factor)).item() == factor
    ended = weakref.ref(Given)
    del step, Given
    gc.collect()
    assert ended() is None


def test_constants_outlive_many_runs(device: str) -> None:
    step = torch.compile(lambda x: x * torch.tensor([1.0, 2.0, 3.0], device=device) + torch.arange(3.0, device=device))
    for n in range(20):
        assert step(torch.full((3,), float(n), device=device)).tolist() == [n, 2.0 * n + 1, 3.0 * n + 2]
    assert step.counters["captures"] == 1


def test_a_tensor_given_twice_is_another_signature(device: str) -> None:
    step = torch.compile(lambda a, b: a.add_(1.0) * b)
    x, y = torch.full((2,), 3.0, device=device), torch.full((2,), 5.0, device=device)
    assert step(x, y).tolist() == [20.0, 20.0]
    assert step(x, x).tolist() == [25.0, 25.0]
    assert step(y, y[:]).tolist() == [36.0, 36.0]
    assert step(x, y).tolist() == [36.0, 36.0]
    assert (step.counters["captures"], step.counters["replays"]) == (3, 1)


def test_states_that_share_memory_stay_together(device: str) -> None:
    whole = torch.zeros(4, device=device)
    part = whole[1:3]

    def f(x: Any) -> Any:
        part.add_(x)
        whole.mul_(2.0)
        return whole.sum()

    step = torch.compile(f)
    for total in (4.0, 12.0, 28.0):
        assert step(torch.ones(2, device=device)).item() == total
    assert part.tolist() == [14.0, 14.0]
    assert whole.tolist() == [0.0, 14.0, 14.0, 0.0]


def test_sizes_of_a_batch_share_the_parameters(device: str) -> None:
    model = torch.nn.Linear(3, 1).to(device)
    step = torch.compile(lambda x: (model(x).sum(), model.weight.detach().add_(1.0)))
    with torch.no_grad():
        model.bias.zero_()
        model.weight.copy_(torch.zeros(1, 3))
        for at, size in enumerate((2, 5, 2, 5, 2)):
            assert step(torch.ones(size, 3, device=device))[0].item() == 3.0 * size * at
    assert (step.counters["captures"], step.counters["replays"]) == (2, 3)
    assert model.weight.tolist() == [[5.0] * 3]


def test_captures_stay_those_of_their_run(device: str) -> None:
    w = torch.zeros(2, device=device)

    def f() -> Any:
        torch.capture("before", w * 10)
        return w.add_(1.0).sum()

    step = torch.compile(f)
    kept = []
    for at in range(4):
        assert step().item() == 2.0 * (at + 1)
        kept.append(step.captures["before"])
    assert [one.tolist() for one in kept] == [[10.0 * at] * 2 for at in range(4)]


def test_a_capture_with_plain_numbers_is_an_ordinary_call(device: str) -> None:
    """Nothing is different for Python or for the values; what was read and written is noted."""

    def trained(capture: Capture | None) -> Any:
        torch.manual_seed(3)
        model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Dropout(), torch.nn.Linear(2, 1)).to(device)
        rule = torch.optim.AdamW(model.parameters(), lr=0.1)
        schedule = torch.optim.lr_scheduler.ExponentialLR(rule, 0.5)
        seen = []
        for _ in range(3):
            with capture.active() if capture else contextlib.nullcontext():
                rule.zero_grad()
                loss = model(torch.ones(4, 2, device=device)).square().sum()
                loss.backward()
                rule.step()
                seen.append((type(rule.param_groups[0]["lr"]), rule.param_groups[0]["lr"], schedule.get_last_lr()))
                schedule.step()
            seen.append(loss.detach())
        values = [one.tolist() if isinstance(one, torch.Tensor) else one for one in seen]
        return values, [p.tolist() for p in model.parameters()], torch.get_rng_state().tolist()

    capture = Capture(free=False)
    assert repr(trained(capture)) == repr(trained(None))
    assert capture.program().instructions == ()
    names = {capture.cells[at].name for at, _ in capture.writes}
    assert {"step", "draws"} <= names
    assert {"lr", "betas.0", "draws"} <= {capture.cells[at].name for at, _ in capture.reads}
    assert [name for name, _ in capture.acts] == ["schedule"] * 3
