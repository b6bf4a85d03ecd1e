"""Compiled steps: equal to eager code bit for bit, captured once, and captured again where something changed."""

import gc
import math
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

import pywebgpu as torch
from pywebgpu import devices
from pywebgpu.errors import CaptureError
from pywebgpu.nn.utils import clip_grad_norm_
from pywebgpu.optim import lr_scheduler
from pywebgpu.step_capture import function
from tests.unit.replays import audited

STEPS = 200


@pytest.fixture(autouse=True)
def _replayed_at_once() -> Iterator[None]:
    """What is claimed here of replays is claimed of every call after the first."""
    with audited("0"):
        yield


def batches(device: str, count: int = 4) -> list[Any]:
    draws = torch.Generator().manual_seed(7)
    return [torch.randn(6, 8, generator=draws).to(device) for _ in range(count)]


class Net(torch.nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(8, 16)
        self.norm = torch.nn.BatchNorm1d(16)
        self.drop = torch.nn.Dropout(0.25)
        self.last = torch.nn.Linear(16, 3)

    def forward(self, x: Any) -> Any:
        return self.last(self.drop(self.norm(self.first(x)).relu()))


def trainer(device: str, make: Callable[..., Any], *, compiled: bool) -> tuple[Any, Any, Any]:
    """One step: two micro-batches, clipping, an update, a schedule. -> the step, the model, the optimizer."""
    torch.manual_seed(3)
    model: Any = Net().to(device)
    optimizer = make(model.parameters())
    schedule = lr_scheduler.CosineAnnealingLR(optimizer, 50, eta_min=1e-4)
    labels = torch.tensor([0, 1, 2, 2, 1, 0], device=device)

    def step(x: Any, scale: float) -> Any:
        optimizer.zero_grad()
        total = 0.0
        for part in (x, x * 0.5):
            loss = torch.nn.functional.cross_entropy(model(part), labels) / 2
            (loss * scale).backward()
            total = total + loss.detach()
        norm = clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        return {"loss": total, "norm": norm}

    return (torch.compile(step) if compiled else step), model, optimizer


def losses(device: str, make: Callable[..., Any], steps: int, *, compiled: bool) -> tuple[list[float], Any, Any]:
    step, model, _ = trainer(device, make, compiled=compiled)
    data = batches(device)
    found = []
    for at in range(steps):
        out = step(data[at % len(data)], 1.0 + at % 3)
        found += [out["loss"].item(), out["norm"].item()]
    return found, model, step


def test_losses_equal_eager_ones_bit_for_bit(device: str) -> None:
    make = lambda parameters: torch.optim.AdamW(parameters, lr=0.01)  # noqa: E731
    expected, model, _ = losses(device, make, STEPS, compiled=False)
    found, other, step = losses(device, make, STEPS, compiled=True)
    assert found == expected
    assert step.counters["captures"] == 2  # The number that is passed is free from the second call on.
    assert step.counters["replays"] == STEPS - 2
    for (name, one), two in zip(model.state_dict().items(), other.state_dict().values(), strict=True):
        assert one.tolist() == two.tolist(), name


OPTIMIZERS: dict[str, Callable[..., Any]] = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True),
    "adam_amsgrad": lambda p: torch.optim.Adam(p, lr=0.01, amsgrad=True),
    "radam": lambda p: torch.optim.RAdam(p, lr=0.01),
    "lion": lambda p: torch.optim.Lion(p, lr=0.001),
    "nadam": lambda p: torch.optim.NAdam(p, lr=0.01),
    "rprop": lambda p: torch.optim.Rprop(p, lr=0.01),
    "asgd": lambda p: torch.optim.ASGD(p, lr=0.05, lambd=0.1),
    "adafactor": lambda p: torch.optim.Adafactor(p, lr=0.01),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.01, centered=True),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr=0.05, lr_decay=0.01),
}


@pytest.mark.one_in(webgpu=3)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_rule_counts_its_steps_on(name: str, device: str) -> None:
    expected, _, _ = losses(device, OPTIMIZERS[name], 12, compiled=False)
    found, _, step = losses(device, OPTIMIZERS[name], 12, compiled=True)
    assert found == expected
    assert step.counters["replays"] >= 6, step.reasons


def test_a_schedule_set_from_outside_is_followed(device: str) -> None:
    def run(*, compiled: bool) -> list[float]:
        w = torch.ones(3, device=device, requires_grad=True)
        optimizer = torch.optim.SGD([w], lr=0.5)

        def step() -> Any:
            optimizer.zero_grad()
            loss = (w * w).sum()
            loss.backward()
            optimizer.step()
            return loss

        call = torch.compile(step) if compiled else step
        found = []
        for rate in (0.5, 0.1, 0.2, 0.05):
            optimizer.param_groups[0]["lr"] = rate
            found.append(call().item())
        return found

    assert run(compiled=True) == run(compiled=False)


# What is captured once, and what is captured again


def test_floats_that_change_are_numbers_of_each_run_and_ints_are_part_of_the_step(device: str) -> None:
    step = torch.compile(lambda x, rate, power: x * rate**2 + math.pi * power)
    x = torch.ones(2, device=device)
    for rate, power, captures in ((0.5, 1, 1), (2.0, 1, 2), (3.0, 1, 2), (0.5, 1, 2), (3.0, 2, 3)):
        assert step(x, rate, power).tolist() == (x * rate**2 + math.pi * power).tolist()
        assert step.counters["captures"] == captures


def test_a_number_that_python_looked_at_guards_the_step(device: str) -> None:
    step = torch.compile(lambda x, rate: x * math.sqrt(rate) if rate > 1 else -x)
    x = torch.ones(2, device=device)
    for rate in (0.5, 0.6, 4.0, 9.0, 9.0):
        assert step(x, rate).tolist() == [math.sqrt(rate) if rate > 1 else -1.0] * 2
    assert step.counters["captures"] == 4
    assert any("rate" in reason or "number of the host" in reason for reason in step.reasons)


def test_slices_of_data_share_one_capture(device: str) -> None:
    data = torch.arange(40, dtype=torch.float32, device=device).reshape(10, 4)
    step = torch.compile(lambda part: part.sum())
    for start in (0, 2, 5, 7):
        assert step(data[start : start + 3]).item() == data[start : start + 3].sum().item()
    assert step.counters["captures"] == 1


def change_mode(model: Any) -> None:
    model.eval()


def change_data(model: Any) -> None:
    model[0].weight.data = torch.full_like(model[0].weight, 0.5)


def change_parameter(model: Any) -> None:
    model[0].weight = torch.nn.Parameter(torch.full_like(model[0].weight, 0.25))


def change_rate(model: Any) -> None:
    model[1].p = 0.9


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (change_mode, "training"),
        (change_data, "data"),
        (change_parameter, "Linear.weight is another Parameter"),
        (change_rate, "p was"),
    ],
)
def test_a_changed_module_is_captured_again(change: Callable[[Any], None], word: str, device: str) -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.5)).to(device)
    x = torch.ones(2, 4, device=device)
    with torch.no_grad():
        step = torch.compile(lambda x: model(x))
        step(x), step(x)
        change(model)
        state = torch.get_rng_state()
        found = step(x).tolist()
        torch.set_rng_state(state)
        assert found == model(x).tolist()
    assert step.counters["recompiles"] == 1
    assert word in step.reasons[-1]


def test_names_around_the_function_guard_it(device: str) -> None:
    scale, weight = 2.0, torch.ones(2, device=device)

    def f(x: Any) -> Any:
        return x * scale + weight

    step, x = torch.compile(f), torch.ones(2, device=device)
    assert step(x).tolist() == [3.0, 3.0]
    scale = 4.0
    assert step(x).tolist() == [5.0, 5.0]
    weight = torch.zeros(2, device=device)
    assert step(x).tolist() == [4.0, 4.0]
    assert [reason.split()[0] for reason in step.reasons] == ["scale", "weight"]


def test_shapes_dtypes_and_modes_are_signatures(device: str) -> None:
    step = torch.compile(lambda x: x + 1)
    inputs = [
        torch.ones(2, device=device),
        torch.ones(3, device=device),
        torch.ones(2, dtype=torch.int32, device=device),
    ]
    for _ in range(2):
        for x in inputs:
            assert step(x).dtype == x.dtype
    assert step.counters["captures"] == 3
    assert step.counters["replays"] == 3


def test_gradients_that_were_there_are_added_to(device: str) -> None:
    w = torch.ones(2, device=device, requires_grad=True)

    def f(x: Any) -> None:
        (w * x).sum().backward()

    step, x = torch.compile(f), torch.ones(2, device=device)
    for total in (1.0, 2.0, 3.0):
        step(x)
        assert w.grad.tolist() == [total, total]
    w.grad = None
    step(x)
    assert w.grad.tolist() == [1.0, 1.0]


# Arguments, results, state


def test_containers_come_back_as_they_are(device: str) -> None:
    step = torch.compile(
        lambda batch, *, flag: {"sum": batch["x"] + batch["y"][0], "flag": flag, "pair": (batch["x"],)}
    )
    for value in (1.0, 2.0):
        x, y = torch.full((2,), value, device=device), torch.ones(2, device=device)
        out = step({"x": x, "y": [y]}, flag="on")
        assert out["sum"].tolist() == [value + 1] * 2
        assert out["flag"] == "on"
        assert out["pair"][0] is x


def test_each_run_returns_new_tensors(device: str) -> None:
    step, x = torch.compile(lambda x: x * 2), torch.ones(2, device=device)
    results = [step(x * n) for n in range(4)]
    assert [r.tolist() for r in results] == [[2.0 * n] * 2 for n in range(4)]


def test_views_of_a_result_share_its_memory(device: str) -> None:
    def f(x: Any) -> Any:
        y = x * 2
        return y, y[0], y.t()

    step = torch.compile(f)
    for _ in range(2):
        whole, row, turned = step(torch.ones(2, 3, device=device))
        row.zero_()
        assert whole.tolist() == [[0.0] * 3, [2.0] * 3]
        assert turned.tolist() == [[0.0, 2.0]] * 3


def test_an_argument_is_written_in_place(device: str) -> None:
    step = torch.compile(lambda x, n: x.add_(n))
    for _ in range(3):
        x = torch.ones(2, device=device)
        assert step(x, 1.5) is x
        assert x.tolist() == [2.5, 2.5]


def test_work_that_waits_runs_before_state_is_overwritten(device: str) -> None:
    w = torch.zeros(2, device=device)
    step = torch.compile(lambda: w.add_(1.0))
    step()
    for n in range(1, 4):
        copy = w * 1
        step()
        assert copy.tolist() == [float(n)] * 2
    assert w.tolist() == [4.0, 4.0]


def test_two_tensors_of_one_storage_stay_together(device: str) -> None:
    step = torch.compile(lambda a, b: a.add_(1.0) + b)
    for _ in range(2):
        x = torch.zeros(4, device=device)
        assert step(x[:2], x[:2]).tolist() == [2.0, 2.0]


def test_draws_go_on_as_in_eager_code(device: str) -> None:
    f = lambda: torch.rand(3, device=device)  # noqa: E731
    step = torch.compile(f)
    found = []
    for call in (f, step):
        torch.manual_seed(5)
        found.append([call().tolist() for _ in range(3)] + [torch.rand(1).tolist()])
        torch.manual_seed(5)
        assert call().tolist() == found[-1][0]
    assert found[0] == found[1]


def test_taps_show_what_is_inside(device: str) -> None:
    def f(x: Any) -> Any:
        inner = torch.capture("inner", x * 2)
        return inner.sum()

    step = torch.compile(f)
    for n in (1.0, 2.0):
        step(torch.full((2,), n, device=device))
        assert step.captures["inner"].tolist() == [2 * n, 2 * n]


def test_a_tensor_kept_elsewhere_is_right_and_said(device: str) -> None:
    kept: list[Any] = []
    step = torch.compile(lambda x: kept.append(x * 2))
    for n in (1.0, 2.0, 3.0):
        step(torch.full((2,), n, device=device))
    assert [k.tolist() for k in kept] == [[2.0] * 2, [4.0] * 2, [6.0] * 2]
    with pytest.warns(UserWarning, match="return it instead"):
        step(torch.ones(2, device=device))


# Modules, methods, nesting


def test_a_compiled_module_trains_in_an_eager_loop(device: str) -> None:
    def run(*, compiled: bool) -> list[float]:
        torch.manual_seed(1)
        model = torch.nn.Linear(3, 2).to(device)
        model = torch.compile(model) if compiled else model
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        found = []
        for _ in range(5):
            loss = model(torch.ones(4, 3, device=device)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        return found

    assert run(compiled=True) == run(compiled=False)


def test_a_compiled_module_is_replayed_without_gradients(device: str) -> None:
    model = torch.nn.Linear(3, 2).to(device)
    model.compile()
    x = torch.ones(4, 3, device=device)
    with torch.no_grad():
        found = [model(x).tolist() for _ in range(3)]
    assert found[0] == found[1] == found[2]
    assert model._compiled_call_impl.counters["replays"] == 2


def test_methods_and_steps_in_steps(device: str) -> None:
    class Counter:
        def __init__(self, start: float) -> None:
            self.value = torch.full((1,), start, device=device)

        @torch.compile  # type: ignore[untyped-decorator]
        def add(self, n: float) -> Any:
            return self.value.add_(n)

    one, two = Counter(0.0), Counter(10.0)
    outer = torch.compile(lambda n: one.add(n) * 2)
    for _ in range(3):
        one.add(1.0), two.add(2.0)
    assert (one.value.item(), two.value.item()) == (3.0, 16.0)
    assert [outer(1.0).item(), outer(1.0).item()] == [8.0, 10.0]


def test_warming_up_changes_nothing(device: str) -> None:
    step, model, _ = trainer(device, lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9), compiled=True)
    drawn = torch.get_rng_state()
    before = {name: value.tolist() for name, value in model.state_dict().items()}
    step.warmup(batches(device)[0], 1.0)
    assert {name: value.tolist() for name, value in model.state_dict().items()} == before
    assert torch.get_rng_state().tolist() == drawn.tolist()
    assert all(p.grad is None for p in model.parameters())
    make = lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9)  # noqa: E731
    expected, _, _ = losses(device, make, 1, compiled=False)
    torch.set_rng_state(drawn)
    out = step(batches(device)[0], 1.0)
    assert [out["loss"].item(), out["norm"].item()] == expected
    assert (step.counters["captures"], step.counters["replays"]) == (0, 1)


# What cannot be captured


def test_a_read_in_the_middle_names_the_line(device: str) -> None:
    def f(x: Any) -> Any:
        return x * float(x.sum())  # this line

    with pytest.raises(CaptureError, match=r"test_compile\.py:\d+: .*# this line"):
        torch.compile(f)(torch.ones(2, device=device))


def test_an_error_inside_leaves_things_as_eager_code_does(device: str) -> None:
    w = torch.zeros(2, device=device)

    def f(x: Any) -> None:
        w.add_(x)
        raise KeyError("stop")

    step = torch.compile(f)
    for n in (1.0, 2.0):
        with pytest.raises(KeyError):
            step(torch.ones(2, device=device))
        assert w.tolist() == [n, n]


# Cost


def test_a_replay_is_one_submit_and_makes_nothing(device: str) -> None:
    step, _, _ = trainer(device, lambda p: torch.optim.AdamW(p, lr=0.01), compiled=True)
    batch = batches(device)[0]
    gc.collect()  # What other tests left would come back to the pool meanwhile.
    for _ in range(12):  # Until results come from the same few buffers.
        step(batch, 1.0)
    opened = devices.open_device(device)
    before = dict(opened.counters)
    for _ in range(20):
        step(batch, 1.0)
    counts = {name: opened.counters[name] - before[name] for name in before}
    assert counts["submits"] == 20
    made = ("buffers_created", "bind_groups_created", "pipelines_created", "live_bytes", "live_buffers")
    assert {name: counts[name] for name in made} == dict.fromkeys(made, 0)


def test_steps_are_forgotten_when_there_are_many(device: str) -> None:
    step = torch.compile(lambda x, text: x + len(text))
    x = torch.ones(1, device=device)
    for n in range(80):
        assert step(x, "a" * n).item() == 1.0 + n
    assert sum(len(one.steps) for one in step._variants.values()) == 64


def test_how_many_steps_are_kept_is_a_setting(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(function, "settings", replace(function.settings, steps=2, audit="0"))
    step = torch.compile(lambda x: x * 2)
    for size in (1, 2, 3, 1, 2, 3, 3):
        assert step(torch.ones(size, device=device)).tolist() == [2.0] * size
        assert sum(len(one.steps) for one in step._variants.values()) <= 2
    assert (step.counters["captures"], step.counters["replays"]) == (6, 1)  # The one that is asked for next is gone.


def test_what_the_function_never_names_does_not_matter(device: str) -> None:
    class Run:
        def __init__(self) -> None:
            self.scale, self.losses = 2.0, [0.0]
            self.step = torch.compile(self.compute)

        def compute(self, x: Any) -> Any:
            return x * self.scale

    run, x = Run(), torch.ones(1, device=device)
    for n in range(4):
        run.losses.append(run.step(x).item())
        run.scale = 2.0 if n < 2 else 5.0
    assert run.losses[1:] == [2.0, 2.0, 2.0, 5.0]
    assert (run.step.counters["captures"], run.step.counters["replays"]) == (2, 2)


class _Holder:
    """A program's object that keeps its own compiled step."""

    def __init__(self, device: str) -> None:
        self.total = torch.zeros(2, device=device)
        self.step = torch.compile(self.add)

    def add(self) -> Any:
        self.total += 1
        return self.total * (2 if self.step is not None else 3)


def test_a_step_kept_by_what_it_reads_is_not_looked_at_anew(device: str) -> None:
    """What a replay notes of itself is no change of what the step takes for granted."""
    holder = _Holder(device)

    def looks() -> int:
        steps = [step for variants in holder.step._variants.values() for step in variants.steps]
        return sum(step.now.surroundings.n_looks for step in steps)

    for _ in range(12):
        holder.step()
    before, captures = looks(), holder.step.counters["captures"]
    for _ in range(5):
        holder.step()
    assert holder.step.counters["captures"] == captures
    assert looks() == before


def ordered(step: Any) -> list[Any]:
    """An ordered dict whose order is another one than that of the dict below it, as an argument."""
    numbers = OrderedDict(a=2.0, b=3.0)
    numbers.move_to_end("a")
    results = []
    for call in range(8):
        numbers["a"] += 1
        if call in (5, 7):
            numbers.move_to_end("b" if call == 5 else "a")
        results.append((step(numbers, torch.ones(1)).item(), list(numbers), list(numbers.values())))
    return results


def test_ordered_dicts_keep_their_order() -> None:
    def step(numbers: Any, x: Any) -> Any:
        return sum(((place + 1) * numbers[key] * x for place, key in enumerate(numbers)), x * 0)

    assert ordered(torch.compile(step)) == ordered(step)


@pytest.mark.usefixtures("default_device")
def test_windows_that_leave_a_part_open_are_noticed() -> None:
    window = torch.hann_window(8)
    frames = torch.stft(torch.arange(32.0), 8, 4, window=window, return_complex=True)
    step = torch.compile(lambda frames, window: torch.istft(frames, 8, 4, window=window))
    for _ in range(4):
        assert step(frames, window).tolist() == pytest.approx([float(n) for n in range(32)], abs=1e-4)
    with pytest.raises(IndexError):
        step(frames, torch.zeros(8)).tolist()
