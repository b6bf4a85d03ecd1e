"""Every schedule against PyTorch's: the rates of each step, before and after its state was saved and loaded."""

import math
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch

from pywebgpu import optim
from pywebgpu.tensor import create

Make = Callable[[Any, Any], Any]  # (the module of schedules, an optimizer) -> a schedule

MAKERS: dict[str, Make] = {
    "lambda": lambda s, o: s.LambdaLR(o, lambda step: 0.95**step),
    "lambda, one a group": lambda s, o: s.LambdaLR(o, [lambda step: 0.9**step, lambda step: 1 / (1 + step)]),
    "multiplicative": lambda s, o: s.MultiplicativeLR(o, lambda step: 0.9 + 0.01 * step),
    "step": lambda s, o: s.StepLR(o, step_size=3, gamma=0.5),
    "multistep": lambda s, o: s.MultiStepLR(o, milestones=[2, 5, 5, 9], gamma=0.3),
    "constant": lambda s, o: s.ConstantLR(o, factor=0.25, total_iters=4),
    "constant, no steps": lambda s, o: s.ConstantLR(o, factor=0.25, total_iters=0),
    "linear": lambda s, o: s.LinearLR(o, start_factor=0.1, end_factor=0.8, total_iters=7),
    "exponential": lambda s, o: s.ExponentialLR(o, gamma=0.9),
    "polynomial": lambda s, o: s.PolynomialLR(o, total_iters=8, power=2.0),
    "cosine": lambda s, o: s.CosineAnnealingLR(o, T_max=6, eta_min=0.001),
    "warm restarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, T_0=3, T_mult=2, eta_min=0.001),
    "warm restarts, even": lambda s, o: s.CosineAnnealingWarmRestarts(o, T_0=4),
    "one cycle": lambda s, o: s.OneCycleLR(o, max_lr=0.5, total_steps=24),
    "one cycle, linear": lambda s, o: s.OneCycleLR(
        o, max_lr=[0.5, 0.2], epochs=4, steps_per_epoch=6, anneal_strategy="linear", pct_start=0.4
    ),
    "one cycle, three phases": lambda s, o: s.OneCycleLR(o, max_lr=0.5, total_steps=24, three_phase=True),
    "cyclic": lambda s, o: s.CyclicLR(o, base_lr=0.01, max_lr=[0.3, 0.2], step_size_up=3, step_size_down=5),
    "cyclic, falling": lambda s, o: s.CyclicLR(o, [0.01, 0.02], 0.3, 3, mode="triangular2", cycle_momentum=False),
    "cyclic, exponential": lambda s, o: s.CyclicLR(o, 0.01, 0.3, 4, mode="exp_range", gamma=0.9),
    "cyclic, scaled": lambda s, o: s.CyclicLR(
        o, 0.01, 0.3, 4, scale_fn=lambda x: 1 / (1 + x), scale_mode="iterations", base_momentum=0.5, max_momentum=0.95
    ),
    "averaging": lambda s, o: averaging(s).SWALR(o, swa_lr=0.05, anneal_epochs=5),
    "averaging, linear": lambda s, o: averaging(s).SWALR(o, [0.05, 0.2], 4, anneal_strategy="linear"),
    "averaging at once": lambda s, o: averaging(s).SWALR(o, 0.05, 0),
    "sequential": lambda s, o: s.SequentialLR(
        o, [s.LinearLR(o, 0.1, total_iters=4), s.CosineAnnealingLR(o, 10), s.ExponentialLR(o, 0.5)], milestones=[4, 12]
    ),
    "sequential, milestone 0": lambda s, o: s.SequentialLR(
        o, [s.ConstantLR(o, 0.1), s.ExponentialLR(o, 0.9)], milestones=[0]
    ),
    "chained": lambda s, o: s.ChainedScheduler([s.ConstantLR(o, 0.1, total_iters=3), s.ExponentialLR(o, 0.9)]),
    "sequence of a chain": lambda s, o: s.SequentialLR(
        o, [s.ChainedScheduler([s.ConstantLR(o, 0.5), s.StepLR(o, 2)]), s.StepLR(o, 3)], milestones=[5]
    ),
}
RULES = {
    "sgd": lambda o, groups: o.SGD(groups, lr=0.1, momentum=0.9),
    "adam": lambda o, groups: o.Adam(groups, lr=0.1),
}
CLOSED_FORMS = ("step", "multistep", "constant", "linear", "exponential", "polynomial", "cosine", "lambda")


def averaging(schedules: Any) -> Any:
    """The module of SWALR, of the library that a module of schedules belongs to."""
    return (torch.optim if schedules is torch.optim.lr_scheduler else optim).swa_utils


def ours(rule: str = "sgd") -> Any:
    groups = [{"params": [create.zeros(2)]}, {"params": [create.zeros(3)], "lr": 0.03}]
    return RULES[rule](optim, groups)


def theirs(rule: str = "sgd") -> Any:
    groups = [{"params": [torch.zeros(2)]}, {"params": [torch.zeros(3)], "lr": 0.03}]
    return RULES[rule](torch.optim, groups)


def rates(optimizer: Any, schedule: Any, n_steps: int) -> list[Any]:
    """Rates and momentum of both groups, step by step."""
    out = []
    for _ in range(n_steps):
        out.append(
            [(g["lr"], g.get("momentum"), g.get("betas")) for g in optimizer.param_groups] + schedule.get_last_lr()
        )
        optimizer.step()
        schedule.step()
    return out


def flat(values: list[Any]) -> list[float]:
    out: list[float] = []
    for value in values:
        if isinstance(value, list | tuple):
            out += flat(list(value))
        elif value is not None:
            out.append(float(value))
    return out


def assert_same(found: list[Any], expected: list[Any]) -> None:
    assert flat(found) == pytest.approx(flat(expected), rel=1e-12, abs=1e-15)


@pytest.fixture(autouse=True)
def _torch_speaks_freely() -> Any:
    """Silences what torch's own schedules warn of when they are nested."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*lr_scheduler.step.*before.*optimizer.step.*")
        yield


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", MAKERS)
def test_rates_are_torchs(name: str, rule: str) -> None:
    a, b = ours(rule), theirs(rule)
    found = rates(a, MAKERS[name](optim.lr_scheduler, a), 24)
    assert_same(found, rates(b, MAKERS[name](torch.optim.lr_scheduler, b), 24))


@pytest.mark.parametrize("name", MAKERS)
def test_a_loaded_schedule_goes_on(name: str) -> None:
    whole = ours()
    expected = rates(whole, MAKERS[name](optim.lr_scheduler, whole), 20)
    first = ours()
    schedule = MAKERS[name](optim.lr_scheduler, first)
    found = rates(first, schedule, 8)
    second = ours()
    resumed = MAKERS[name](optim.lr_scheduler, second)
    second.load_state_dict(first.state_dict())
    resumed.load_state_dict(schedule.state_dict())
    assert_same(found + rates(second, resumed, 12), expected)


@pytest.mark.parametrize("name", MAKERS)
def test_state_dicts_have_torchs_keys(name: str) -> None:
    a, b = ours(), theirs()
    found = MAKERS[name](optim.lr_scheduler, a).state_dict()
    assert found.keys() == MAKERS[name](torch.optim.lr_scheduler, b).state_dict().keys()


@pytest.mark.parametrize("name", CLOSED_FORMS)
@pytest.mark.filterwarnings("ignore:The epoch parameter")
def test_a_step_to_an_epoch_is_torchs(name: str) -> None:
    a, b = ours(), theirs()
    for optimizer, module in ((a, optim.lr_scheduler), (b, torch.optim.lr_scheduler)):
        schedule = MAKERS[name](module, optimizer)
        optimizer.step()
        schedule.step(7)
    assert_same([g["lr"] for g in a.param_groups], [g["lr"] for g in b.param_groups])


@pytest.mark.parametrize("epoch", [0, 0.5, 2, 3, 7.25, 21])
def test_warm_restarts_go_to_fractions(epoch: float) -> None:
    a, b = ours(), theirs()
    for optimizer, module in ((a, optim.lr_scheduler), (b, torch.optim.lr_scheduler)):
        module.CosineAnnealingWarmRestarts(optimizer, 3, 2).step(epoch)
    assert_same([g["lr"] for g in a.param_groups], [g["lr"] for g in b.param_groups])


@pytest.mark.parametrize("mode", ["min", "max"])
@pytest.mark.parametrize("threshold_mode", ["rel", "abs"])
def test_plateaus_are_torchs(mode: str, threshold_mode: str) -> None:
    a, b = ours(), theirs()
    options = {"patience": 1, "cooldown": 1, "threshold": 0.05, "min_lr": [0.002, 0.001], "factor": 0.3}
    pair = [
        module.ReduceLROnPlateau(optimizer, mode, threshold_mode=threshold_mode, **options)
        for optimizer, module in ((a, optim.lr_scheduler), (b, torch.optim.lr_scheduler))
    ]
    for i in range(30):
        measure = math.sin(i / 3) + 1.5
        for schedule in pair:
            schedule.step(measure)
        assert_same([g["lr"] for g in a.param_groups], [g["lr"] for g in b.param_groups])
        assert_same(pair[0].get_last_lr(), pair[1].get_last_lr())
    restored = optim.lr_scheduler.ReduceLROnPlateau(a)
    restored.load_state_dict(pair[0].state_dict())
    assert restored.best == pair[1].best
    assert restored.num_bad_epochs == pair[1].num_bad_epochs


def test_a_schedule_sets_the_rate_when_it_is_made() -> None:
    optimizer = ours()
    schedule = optim.lr_scheduler.LinearLR(optimizer, start_factor=0.5)
    assert [group["lr"] for group in optimizer.param_groups] == [0.05, 0.015]
    assert [group["initial_lr"] for group in optimizer.param_groups] == [0.1, 0.03]
    assert schedule.last_epoch == 0


def test_a_schedule_that_runs_before_the_optimizer_warns() -> None:
    schedule = optim.lr_scheduler.StepLR(ours(), 1)
    warnings.simplefilter("always")  # Until the fixture above ends.
    with pytest.warns(UserWarning, match="before"):
        schedule.step()


def test_get_lr_outside_a_step_warns() -> None:
    schedule = optim.lr_scheduler.StepLR(ours(), 1)
    with pytest.warns(UserWarning, match="get_last_lr"):
        schedule.get_lr()


def test_a_program_can_write_a_schedule() -> None:
    class Halves(optim.lr_scheduler.LRScheduler):
        def get_lr(self) -> list[float]:
            return [rate / 2**self.last_epoch for rate in self.base_lrs]

    optimizer = ours()
    schedule = Halves(optimizer)
    optimizer.step()
    schedule.step()
    assert schedule.get_last_lr() == [0.05, 0.015]


WRONG: dict[str, tuple[type[Exception], Make]] = {
    "no optimizer": (TypeError, lambda s, o: s.StepLR("adam", 3)),
    "too few lambdas": (ValueError, lambda s, o: s.LambdaLR(o, [lambda step: 1.0])),
    "a lambda that is a number": (TypeError, lambda s, o: s.MultiplicativeLR(o, 0.9)),
    "constant above 1": (ValueError, lambda s, o: s.ConstantLR(o, factor=1.5)),
    "linear from 0": (ValueError, lambda s, o: s.LinearLR(o, start_factor=0.0)),
    "one cycle without steps": (ValueError, lambda s, o: s.OneCycleLR(o, 0.1)),
    "one cycle of 0 steps": (ValueError, lambda s, o: s.OneCycleLR(o, 0.1, total_steps=0)),
    "one cycle, strange shape": (ValueError, lambda s, o: s.OneCycleLR(o, 0.1, total_steps=9, anneal_strategy="sin")),
    "one cycle, three rates": (ValueError, lambda s, o: s.OneCycleLR(o, [0.1, 0.2, 0.3], total_steps=9)),
    "restarts after 0 steps": (ValueError, lambda s, o: s.CosineAnnealingWarmRestarts(o, 0)),
    "plateau that rises": (ValueError, lambda s, o: s.ReduceLROnPlateau(o, factor=1.0)),
    "plateau of no mode": (ValueError, lambda s, o: s.ReduceLROnPlateau(o, mode="least")),
    "no schedules": (ValueError, lambda s, o: s.SequentialLR(o, [], [])),
    "too many milestones": (ValueError, lambda s, o: s.SequentialLR(o, [s.StepLR(o, 1)], [1, 2])),
    "a plateau in a chain": (ValueError, lambda s, o: s.ChainedScheduler([s.ReduceLROnPlateau(o)])),
    "a resumed schedule without a state": (KeyError, lambda s, o: s.StepLR(o, 3, last_epoch=5)),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments_raise_what_torch_raises(name: str) -> None:
    error, make = WRONG[name]
    with pytest.raises(error):
        make(torch.optim.lr_scheduler, theirs())
    with pytest.raises(error):
        make(optim.lr_scheduler, ours())
