"""What Python does around a compiled step: names, options, schedules, numbers, errors. All calls equal eager ones."""

import copy
import gc
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import pywebgpu as torch
from pywebgpu.nn.utils import clip_grad_norm_
from pywebgpu.optim import lr_scheduler
from tests.unit.replays import Program, Wrap, adam, audited, same, trained

SCALE = 2.0

# Names


@pytest.fixture(autouse=True)
def _replayed_at_once() -> Iterator[None]:
    """What is claimed here of replays is claimed of every call after the first."""
    with audited("0"):
        yield


def _helped(x: Any) -> Any:
    return x * SCALE


def names_of_helpers(wrap: Wrap, make: Any) -> list[Any]:
    global SCALE
    step, x, found = wrap(lambda x: _helped(x)), make([1.0]), []
    try:
        for scale in (2.0, 2.0, 3.0):
            SCALE = scale
            found.append(step(x))
    finally:
        SCALE = 2.0
    return found


def contents_of_names(wrap: Wrap, make: Any) -> list[Any]:
    class Options:
        scale = 0.0

    options, sizes, rates, array = Options(), [1, 2], {"a": 1.0}, np.ones(1, "float32")
    options.scale = 2.0
    step, x = wrap(lambda x: x * options.scale + sum(sizes) + rates["a"] + float(array[0])), make([1.0])
    found = [step(x), step(x)]
    options.scale = 3.0
    found.append(step(x))
    sizes.append(4)
    found.append(step(x))
    rates["a"] = 2.0
    found.append(step(x))
    array[0] = 5.0
    return [*found, step(x)]


def counts_in_names(wrap: Wrap, make: Any) -> list[Any]:
    count = 0

    def f(x: Any) -> Any:
        nonlocal count
        count += 1
        return x * count

    step = wrap(f)
    return [step(make([1.0])) for _ in range(4)]


# Optimizers and schedules


def optimizers_that_are_loaded(wrap: Wrap, make: Any) -> list[Any]:
    step, model, update, x = trained(wrap, make, adam)
    found = [step(x), step(x)]
    saved = copy.deepcopy(update.state_dict())
    weights = {name: value.clone() for name, value in model.state_dict().items()}
    found.append(step(x))
    update.load_state_dict(saved)
    model.load_state_dict(weights)
    found += [step(x), step(x)]
    update.param_groups[0]["lr"] = 0.5
    found += [step(x), step(x), update.state[model[0].weight]["step"]]
    model.load_state_dict(weights, assign=True)
    return [*found, step(x), step(x), step(x), *model.parameters()]


def options_that_are_no_floats(wrap: Wrap, make: Any) -> list[Any]:
    step, model, update, x = trained(wrap, make, lambda p: torch.optim.SGD(p, lr=1))
    found = [step(x * 0.1), step(x * 0.1)]
    for name, value in (("lr", 0.5), ("weight_decay", 0.5), ("maximize", True)):
        update.param_groups[0][name] = value
        found += [step(x * 0.1), *map(torch.clone, model.parameters())]
    return found


def groups_that_are_added(wrap: Wrap, make: Any) -> list[Any]:
    w, u = (torch.nn.Parameter(make([1.0, 2.0])) for _ in range(2))
    update = torch.optim.SGD([w], lr=0.1)

    def f(x: Any) -> Any:
        update.zero_grad()
        (w * x * u).square().sum().backward()
        update.step()

    step, x = wrap(f), make([0.1, 0.3])
    step(x), step(x)
    update.add_param_group({"params": [u]})
    step(x), step(x)
    return [w, u]


def groups_that_are_written(wrap: Wrap, make: Any) -> list[Any]:
    """Also where nobody can see it happen: by methods of dict and list."""
    w, u = (torch.nn.Parameter(make([1.0, 2.0])) for _ in range(2))
    update = torch.optim.SGD([w], lr=0.1)

    def f(x: Any) -> Any:
        update.zero_grad()
        (w * x * u).square().sum().backward()
        update.step()
        return w.clone().detach()

    step, x = wrap(f), make([0.1, 0.3])
    found = [step(x), step(x), step(x)]
    update.param_groups[0]["params"].append(u)
    found += [step(x), step(x)]
    update.param_groups[0].update(lr=0.5, weight_decay=1)
    found += [step(x), step(x)]
    update.param_groups = [{**update.param_groups[0], "lr": 0.01}]
    found += [step(x), step(x)]
    update.param_groups[0]["lr"] = 0.02
    return [*found, step(x), step(x), w, u]


def gradients_of_eager_code(wrap: Wrap, make: Any) -> list[Any]:
    w = torch.nn.Parameter(make([1.0, 2.0]))
    update = torch.optim.SGD([w], lr=0.1)

    def f(x: Any) -> Any:
        (w * x).square().sum().backward()
        update.step()
        update.zero_grad()
        return w.clone().detach()

    step, x = wrap(f), make([1.0, 0.3])
    found = [step(x), step(x), step(x)]
    (w * x * 5).sum().backward()
    return [*found, step(x), step(x)]


def rates_that_are_tensors(wrap: Wrap, make: Any) -> list[Any]:
    step, model, update, x = trained(wrap, make, lambda p: torch.optim.Adam(p, lr=make(0.1)))
    found, kept = [], []
    for rate in (0.1, 0.2, 0.3):
        kept.append(update.param_groups[0]["lr"])
        update.param_groups[0]["lr"] = make(rate)
        found.append(step(x))
    return [*found, *model.parameters()]


class Counted(torch.optim.Optimizer):  # type: ignore[misc]
    """A program's own rule, with a count for each parameter, one for the group, and a number that shrinks."""

    def __init__(self, params: Any, lr: float) -> None:
        super().__init__(params, {"lr": lr, "k": 0, "d": 1.0})

    def step(self, closure: Any = None) -> None:
        for group in self.param_groups:
            group["k"] += 1
            group["d"] *= 0.9
            for p in group["params"]:
                state = self.state[p]
                state["step"] = state.get("step", 0) + 1
                with torch.no_grad():
                    p.add_(p.grad, alpha=-group["lr"] * group["d"] / (state["step"] + group["k"]))


def rules_of_a_program(wrap: Wrap, make: Any) -> list[Any]:
    step, model, update, x = trained(wrap, make, lambda p: Counted(p, lr=0.1))
    found = [step(x) for _ in range(4)]
    update.param_groups[0]["lr"] = 0.01
    found += [step(x), step(x), update.state[model[0].weight]["step"], update.param_groups[0]["k"]]
    return [*found, *model.parameters()]


def rates_that_are_read_and_set(wrap: Wrap, make: Any) -> list[Any]:
    w = torch.nn.Parameter(make([1.0, 2.0]))
    update = torch.optim.SGD([w], lr=0.1)
    schedule = lr_scheduler.ExponentialLR(update, 0.5)

    def f(x: Any, decay: float) -> Any:
        update.zero_grad()
        (w * x).square().sum().backward()
        update.param_groups[0]["weight_decay"] = decay
        update.step()
        with torch.no_grad():
            w.mul_(1 - update.param_groups[0]["lr"] * 0.1)
        schedule.step()
        return w.sum().detach(), schedule.get_last_lr()[0], update.param_groups[0]["lr"]

    step, x = wrap(f), make([1.0, 0.3])
    return [*[step(x, 0.1 * n) for n in range(1, 5)], update.param_groups[0]["weight_decay"]]


def schedules_of_schedules(wrap: Wrap, make: Any) -> list[Any]:
    w, found = torch.nn.Parameter(make([1.0, 2.0])), []
    update = torch.optim.SGD([w], lr=0.1)
    schedule = lr_scheduler.ChainedScheduler([lr_scheduler.LinearLR(update), lr_scheduler.ExponentialLR(update, 0.5)])

    def f(x: Any, scale: float) -> Any:
        update.zero_grad()
        (w * x).square().sum().backward()
        update.step()
        schedule.step()
        return w.sum().detach() * 2 if scale > 1 else w.sum().detach()

    step = wrap(f)
    for scale in (1.0, 1.0, 2.0, 1.0, 2.0):
        found += [step(make([1.0, 0.3]), scale), update.param_groups[0]["lr"]]
    return found


def schedules_of_tensors(wrap: Wrap, make: Any) -> list[Any]:
    step, model, update, x = trained(lambda f: f, make, lambda p: torch.optim.SGD(p, lr=make(0.1)))
    schedule = lr_scheduler.ExponentialLR(update, 0.5)
    whole = wrap(lambda x: (step(x), schedule.step())[0])
    return [*[whole(x) for _ in range(3)], update.param_groups[0]["lr"], *model.parameters()]


def steps_that_share_gradients(wrap: Wrap, make: Any) -> list[Any]:
    _, model, update, x = trained(lambda f: f, make, adam)

    def grow(x: Any) -> Any:
        loss = model(x).square().sum()
        loss.backward()
        return loss

    def change() -> None:
        update.step()
        update.zero_grad()

    first, last, found = wrap(grow), wrap(change), []
    for _ in range(4):
        found += [first(x), first(x * 2)]
        last()
    return [*found, *model.parameters()]


def updates_outside_of_the_step(wrap: Wrap, make: Any) -> list[Any]:
    _, model, update, x = trained(lambda f: f, make, adam)

    def f(x: Any) -> Any:
        loss = model(x).square().sum()
        loss.backward()
        return loss

    step, found = wrap(f), []
    for _ in range(4):
        update.zero_grad()
        found.append(step(x))
        update.step()
    return [*found, *model.parameters()]


# Numbers and errors


def divisions_by_zero(wrap: Wrap, make: Any) -> list[Any]:
    inner, model, update, x = trained(lambda f: f, make, adam)
    step, found = wrap(lambda x, n: inner(x) * (1 / n)), []
    for n in (1.0, 2.0, 0.0, 2.0):
        try:
            found.append(step(x, n))
        except ZeroDivisionError as error:
            found.append(str(error))
    return [*found, *model.parameters(), update.state[model[0].weight]["step"]]


def errors_after_a_draw(wrap: Wrap, make: Any) -> list[Any]:
    def f(x: Any, stop: bool) -> Any:
        drawn = torch.rand(2, device=x.device)
        if stop:
            raise KeyError
        return drawn + x

    step, found = wrap(f), []
    for stop in (False, True, False, True, False):
        try:
            found.append(step(make([0.0, 0.0]), stop))
        except KeyError:
            found.append("stopped")
    return [*found, torch.get_rng_state()]


def numbers_that_python_looks_at(wrap: Wrap, make: Any) -> list[Any]:
    def f(x: Any, n: float) -> Any:
        signed = x * (n % 2) + x * (7 // n) + x * int(n) + len(f"{n:.1f}") + (n if n.is_integer() else 1)
        return signed, torch.tensor(n, device=x.device), torch.full((2,), n, device=x.device), -n, {n: 1}[n]

    step, x = wrap(f), make([1.0, 2.0])
    return [step(x, n) for n in (0.5, 1.5, 3.0, 0.5)]


def signs_of_zero(wrap: Wrap, make: Any) -> list[Any]:
    step = wrap(lambda x, n: x * float(repr(n) == "0.0") if n == 0 else x * n)
    return [step(make([1.0]), n) for n in (0.0, -0.0, 2.0, float("nan"), float("inf"))]


HOST = (
    names_of_helpers,
    contents_of_names,
    counts_in_names,
    optimizers_that_are_loaded,
    options_that_are_no_floats,
    groups_that_are_added,
    groups_that_are_written,
    gradients_of_eager_code,
    rates_that_are_tensors,
    rules_of_a_program,
    rates_that_are_read_and_set,
    schedules_of_schedules,
    schedules_of_tensors,
    steps_that_share_gradients,
    updates_outside_of_the_step,
    divisions_by_zero,
    errors_after_a_draw,
    numbers_that_python_looks_at,
    signs_of_zero,
)


@pytest.mark.one_in(webgpu=2)
@pytest.mark.filterwarnings("ignore:.*captured anew:UserWarning", "ignore:.*cannot be replayed:UserWarning")
@pytest.mark.parametrize("program", HOST, ids=lambda program: program.__name__)
def test_steps_equal_eager_ones(program: Program, device: str) -> None:
    same(program, device)


# Cost


LOOPS = (
    steps_that_share_gradients,
    updates_outside_of_the_step,
)


@pytest.mark.parametrize("program", LOOPS, ids=lambda program: program.__name__)
def test_ordinary_loops_are_replayed(program: Program, device: str) -> None:
    assert same(program, device).counters["replays"] >= 3


def test_gradients_that_are_zeroed_in_place_settle(device: str) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)).to(device)
    update = torch.optim.AdamW(model.parameters(), lr=0.1)

    def f(x: Any) -> None:
        update.zero_grad(set_to_none=False)
        model(x).square().sum().backward()
        update.step()

    step = torch.compile(f)
    for _ in range(6):
        step(torch.ones(1, 2, device=device))
    assert step.counters["replays"] == 3, step.reasons


def test_forgotten_steps_free_what_they_held(device: str) -> None:
    """Also where a gradient is a part of a larger tensor that was written after it was computed."""
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Dropout(), torch.nn.Linear(2, 2)).to(device)
    update = torch.optim.AdamW(model.parameters(), lr=0.1)

    def f(x: Any, scale: float) -> Any:
        update.zero_grad()
        (model(x).square().sum() * scale).backward()
        clip_grad_norm_(model.parameters(), 1.0)
        update.step()
        return x[0]

    step = torch.compile(f)
    x = torch.ones(3, 2, device=device)
    step(x, 1.0), step(x, 2.0)
    step(x, 3.0)
    assert step.counters["replays"] == 1
    (kept,) = step._variants.values()
    held = [weakref.ref(kept.steps[0].capture), weakref.ref(x)]
    step.clear()
    del x, kept
    gc.collect()
    assert [ref() for ref in held] == [None, None]


@pytest.mark.parametrize("audits", ["0", "1"])
def test_a_step_keeps_none_of_its_arguments(device: str, audits: str) -> None:
    """Nor does what recorded it wait for the collector of cycles, with batches on a GPU: calls with ever new shapes."""
    weight = torch.ones(3, device=device, requires_grad=True)

    @torch.compile
    def step(x: torch.Tensor, rate: float, more: list[torch.Tensor], y: torch.Tensor | None = None) -> torch.Tensor:
        loss = ((x if y is None else x + y) * weight * rate + more[0]).sum()
        weight.grad = None
        loss.backward()
        return loss

    gc.collect()
    gc.disable()
    try:
        with audited(audits):
            for n in (2, 3, 3, 2):
                whole = torch.ones(2, n, 3, device=device)
                x, more, y = whole[1], [torch.ones(3, device=device)], torch.ones(n, 3, device=device)
                for rate in (0.5, 0.25):
                    assert step(x, rate, more, y).item() == 6 * n * rate + 3 * n
                    assert step(x, rate, more).item() == 3 * n * rate + 3 * n
                ended = [weakref.ref(thing) for thing in (whole._storage, x, more[0], y)]
                del whole, x, more, y
                assert [ref() for ref in ended] == [None] * 4, n
    finally:
        gc.enable()
    assert step.counters["audits" if audits == "1" else "replays"] > 0


def test_captures_that_never_fit_are_said(device: str) -> None:
    step = torch.compile(lambda x, n: x * int(n))
    x = torch.ones(1, device=device)
    with pytest.warns(UserWarning, match="is captured anew at each call"):
        found = [step(x, float(n)).item() for n in range(10)]
    assert found == list(range(10))
