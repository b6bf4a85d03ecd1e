"""When work happens: what is compiled again, computed again, freed, and what forcing a value may not change."""

import gc
import importlib
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

import pywebgpu as torch
from pywebgpu import devices, memory
from pywebgpu.errors import CompileError, DeviceError
from pywebgpu.ops import pointwise
from pywebgpu.runtime import executor, program_cache, state
from pywebgpu.settings import settings
from pywebgpu.tensor.apply import apply
from tests.devices import open_another, why_no_webgpu
from tests.fuzz import steps
from tests.unit import compiled

needs_webgpu = pytest.mark.skipif(bool(why_no_webgpu()), reason=why_no_webgpu() or "there is one")


def compiled_programs() -> int:
    return state.default.counters["program_misses"]


# Programs are reused


def train(device: str, rates: list[float]) -> tuple[list[float], np.ndarray, list[int]]:
    """Descends (x w - 1)^2; -> losses, the weights, and how many programs there were after each step."""
    x = torch.arange(12, dtype=torch.float32, device=device).reshape(4, 3) / 10
    w = torch.ones(3, 2, device=device).requires_grad_()
    losses, compiled_after = [], []
    for rate in rates:
        loss = (x @ w - 1).square().mean()
        loss.backward()
        with torch.no_grad():
            w -= rate * w.grad
        w.grad = None
        losses.append(loss.item())
        compiled_after.append(compiled_programs())
    return losses, w.detach().numpy(), compiled_after


def train_in_numpy(rates: list[float]) -> tuple[list[float], np.ndarray]:
    x, w, losses = np.arange(12).reshape(4, 3) / 10, np.ones((3, 2)), []
    for rate in rates:
        off = x @ w - 1
        losses.append(float((off**2).mean()))
        w = w - rate * (2 / off.size) * x.T @ off
    return losses, w


def test_a_changed_rate_compiles_nothing(device: str) -> None:
    rates = [0.1, 0.2, 0.3, 0.05, 0.7]
    losses, weights, counts = train(device, rates)
    wanted_losses, wanted = train_in_numpy(rates)
    assert losses == pytest.approx(wanted_losses, rel=1e-5)
    assert weights == pytest.approx(wanted, rel=1e-5)
    assert len(set(counts[1:])) == 1, counts
    again = compiled_programs()
    for other in ([0.4, 0.1, 0.9], [0.01, 0.02, 0.03], [1.0, 0.5, 0.25]):
        losses, weights, _ = train(device, other)
        assert losses == pytest.approx(train_in_numpy(other)[0], rel=1e-5)
        assert weights == pytest.approx(train_in_numpy(other)[1], rel=1e-4)
    assert compiled_programs() <= again + 1  # The values at the end were read in another step than before.


def test_batches_by_slicing_share_a_program(device: str) -> None:
    data = torch.arange(80, dtype=torch.float32, device=device).reshape(20, 4)
    data.sum().item()
    counts, sums = [], []
    for at in range(0, 20, 4):
        sums.append((data[at : at + 4] * 2).sum().item())
        counts.append(compiled_programs())
    assert sums == [float(np.arange(80).reshape(20, 4)[at : at + 4].sum() * 2) for at in range(0, 20, 4)]
    assert len(set(counts)) == 1


@pytest.mark.parametrize("values", [(0.0, -0.0), (-0.0, 0.0), (math.nan, 0.0)])
def test_programs_tell_fills_apart(values: tuple[float, float], device: str) -> None:
    """Also where Python calls them equal."""
    x = torch.ones(2, device=device)
    for value in values:
        (padded,) = torch.nn.functional.pad(x, (0, 1), value=value)[2:].numpy()
        assert (math.isnan(padded), math.copysign(1.0, padded)) == (math.isnan(value), math.copysign(1.0, value))


def test_steady_steps_create_nothing_on_the_device(device: str) -> None:
    x = torch.ones(16, 8, device=device)
    w = torch.ones(8, 8, device=device).requires_grad_()
    optimizer = torch.optim.AdamW([w], lr=0.01)
    opened = devices.open_device(device)
    made = []
    for _ in range(7):
        loss = (x @ w).tanh().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss.item()
        made.append((opened.counters["buffers_created"], opened.counters["pipelines_created"], compiled_programs()))
    assert len(set(made[3:])) == 1, made  # The fourth is the first that is encoded ahead.


# Values do not depend on when they are forced


instruction = st.tuples(st.integers(0, 11), steps.numbers, steps.numbers, steps.numbers)


def play(library: Any, tensors: list[Any], drawn: list[Any], force: Any) -> list[Any]:
    """Writes in place, views and new values, the same for NumPy's arrays and for tensors."""
    copy = (lambda x: x.copy()) if library is np else (lambda x: x.clone())
    for at, (kind, i, j, k) in enumerate(drawn):
        x, y = tensors[i % len(tensors)], tensors[j % len(tensors)]
        match kind:
            case 0 | 1:
                x += k
            case 2:
                x *= 0.5
            case 3 if x.shape == y.shape and x is not y:
                x += copy(y)
            case 4:
                x[k % x.shape[0]] = float(j)
            case 5:
                x[k % x.shape[0] :] *= 2.0
            case 6 | 7:
                tensors.append(x[j % x.shape[0] :])
            case 8:
                tensors.append(x.T if x.ndim == 2 else x[::2])
            case 9:
                tensors.append(x + 0.25)
            case 10:
                tensors.append(abs(x))
            case _:
                if len(tensors) > 2:
                    del tensors[i % len(tensors)]
        if not tensors[-1].shape[0]:
            tensors.pop()
        force(at, tensors)
    return tensors


@given(st.lists(instruction, min_size=1, max_size=25), st.sets(st.integers(0, 24)), st.integers(0, 5))
@hypothesis_settings(steps.PROFILE, max_examples=40)
def test_forcing_values_in_between_changes_nothing(device: str, drawn: list[Any], reads: set[int], which: int) -> None:
    def force(at: int, tensors: list[Any]) -> None:
        if at in reads:
            tensors[which % len(tensors)].sum().item()

    start = np.arange(-10, 10, dtype="float32").reshape(4, 5)
    wanted = play(np, [start.copy(), start[0].copy()], drawn, lambda at, tensors: None)
    found = play(torch, [torch.tensor(start, device=device), torch.tensor(start[0], device=device)], drawn, force)
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one.numpy(), other, rtol=1e-6)


def test_equal_values_have_owners_of_their_own(device: str) -> None:
    """Equal graphs are computed once, into one buffer: a write to one tensor may not show in the other."""
    a = torch.tensor([-1.0, 2.0, -3.0], device=device)
    x, y = a.abs(), a.abs()
    torch.webgpu.synchronize(device)
    x.add_(1)
    z = y * 2
    del y
    assert x.tolist() == [2.0, 3.0, 4.0]
    assert z.tolist() == [2.0, 4.0, 6.0]


def test_the_old_value_is_read_before_it_is_overwritten(device: str) -> None:
    """Both results may come from one kernel, and the one that takes the buffer over may be first in it."""
    x, y = (torch.tensor(values, device=device) for values in ([1.0, 2.0], [3.0, 4.0]))
    torch.webgpu.synchronize(device)
    x.neg_()
    x.neg_()  # x waits before z does, and its value is still the old buffer's.
    z = x * y.abs()
    x.copy_(y.abs())
    assert z.tolist() == [3.0, 8.0]
    assert x.tolist() == [3.0, 4.0]


def test_rows_and_their_statistics_updated_in_one_step(device: str) -> None:
    x, m = torch.ones(300, 1000, device=device) * 2, torch.ones(300, 1, device=device) * 3
    torch.webgpu.synchronize(device)
    m.add_(x.sum(1, keepdim=True))
    y = x / m
    assert m.flatten().tolist() == [2003.0] * 300
    assert y.sum().item() == pytest.approx(300 * 2000 / 2003, rel=1e-5)


def test_a_write_that_equals_a_new_value(device: str) -> None:
    b = torch.tensor([-1.0, 2.0, -3.0], device=device)
    z = b.abs()
    b.abs_()
    assert z.tolist() == [1.0, 2.0, 3.0]
    z.add_(1)
    assert (z.tolist(), b.tolist()) == ([2.0, 3.0, 4.0], [1.0, 2.0, 3.0])


def test_what_a_gradient_saved_is_not_written_through_an_equal_value(device: str) -> None:
    x = torch.tensor([0.0, 1.0, 2.0], device=device, requires_grad=True)
    loss, equal = x.exp().sum(), x.detach().exp()
    loss.item()
    equal.mul_(2)
    equal.tolist()
    loss.backward()
    assert x.grad.tolist() == pytest.approx([1.0, math.e, math.e**2])


# A loss that is read before backward


def test_reading_the_loss_first_gives_the_same_gradients(device: str) -> None:
    def gradients(*, read: bool) -> list[np.ndarray]:
        x = torch.arange(12, dtype=torch.float32, device=device).reshape(4, 3) / 10
        w, v = (torch.ones(3, n, device=device).mul(0.3).requires_grad_() for n in (3, 2))
        loss = ((x @ w).tanh() @ v).softmax(1)[:, 0].log().mean()
        if read:
            loss.item()
        loss.backward()
        return [w.grad.numpy(), v.grad.numpy()]

    for one, other in zip(gradients(read=True), gradients(read=False), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)


def test_reading_the_loss_first_does_not_compute_the_products_again() -> None:
    x, weights = compiled.leaf(32, 64), [compiled.leaf(64, 64, grad=True) for _ in range(3)]

    def forward() -> Any:
        y = x
        for w in weights:
            y = (y @ w).tanh()
        return y.square().mean()

    def products(program: Any) -> int:
        return sum(program.kernels[step.kernel].name.startswith("matmul") for step in program.steps)

    loss = forward()
    compiled.settle()
    backward = compiled.only(loss.backward)
    assert products(backward) == 5  # Two for each weight, but none for the input's gradient.


# What is freed


def test_live_bytes_stay_flat(device: str) -> None:
    x = torch.ones(8, 4, device=device)
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1)).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    found = []
    for _ in range(300):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        found.append(memory.allocated(device))
    assert found[10] == found[100] == found[-1]


def test_deleted_tensors_are_not_computed(device: str) -> None:
    opened = devices.open_device(device)
    x = torch.ones(4, device=device) * 2
    torch.webgpu.synchronize(device)
    before = opened.counters["dispatches"]
    y = x.sin().exp()
    z = (y @ y).cos()
    del y, z
    torch.webgpu.synchronize(device)
    assert opened.counters["dispatches"] == before


def test_a_freed_graph_frees_its_values(device: str) -> None:
    x = torch.ones(64, 64, device=device, requires_grad=True)
    x.sum().item()
    gc.collect()
    before = memory.allocated(device)
    loss = x.exp().sin().exp().sum()
    loss.item()
    assert memory.allocated(device) > before + 64 * 64 * 4  # what the gradient will read
    loss.backward()
    grad = x.grad.sum().item()
    assert grad == pytest.approx(64 * 64 * math.exp(math.sin(math.e)) * math.cos(math.e) * math.e, rel=1e-4)
    x.grad = None
    del loss
    gc.collect()
    assert memory.allocated(device) == before


@pytest.mark.parametrize("write", ["new", "in place", "subscript"])
def test_pending_work_is_submitted_by_itself(device: str, write: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop that reads nothing neither grows nor stalls."""
    monkeypatch.setattr(executor, "settings", replace(settings, pending=50))
    opened = devices.open_device(device)
    x = torch.zeros(8, device=device)
    before = opened.counters["submits"]
    for at in range(200):
        if write == "new":
            x = x + 1
        elif write == "in place":
            x.add_(1)
        else:
            x[at % 8] = float(at)
    assert opened.counters["submits"] >= before + 3
    assert state.default.local.queues[opened].recorded <= 51
    assert x.sum().item() == (sum(range(192, 200)) if write == "subscript" else 1600)


# What runs work


def test_recording_runs_nothing_and_these_run_it(device: str) -> None:
    opened = devices.open_device(device)
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4), torch.nn.Dropout(0.5)).to(device)
    optimizer = torch.optim.Adam(model.parameters())
    x = torch.ones(3, 4, device=device)
    torch.webgpu.synchronize(device)

    def work() -> Any:
        before = opened.counters["submits"]
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        y = x.clone().requires_grad_(False)
        y[1:].add_(y.t()[:, :1].sum())
        assert (y.shape, y.stride(), y.dtype) == ((3, 4), (4, 1), torch.float32)
        assert not y.t().is_contiguous()
        torch.randn(3, device=device).to(torch.float16).to(device)
        assert opened.counters["submits"] == before
        return loss

    for force in (
        lambda loss: loss.item(),
        lambda loss: loss.tolist(),
        lambda loss: float(loss),
        lambda loss: bool(loss > 0),
        lambda loss: repr(loss),
        lambda loss: optimizer.step(),
        lambda loss: torch.webgpu.synchronize(device),
        lambda loss: loss.to("null"),
    ):
        loss, before = work(), opened.counters["submits"]
        force(loss)
        assert opened.counters["submits"] > before


def test_a_new_op_works_alone_and_in_a_chain(device: str) -> None:
    cubed = replace(pointwise.sin, name="cubed", wgsl="({0} * {0} * {0})", reference=lambda xp, a: a * a * a)
    x = torch.arange(4.0, device=device)
    assert apply(lambda node: cubed(node), x).tolist() == [0.0, 1.0, 8.0, 27.0]
    assert (apply(lambda node: cubed(node), x.exp().log() * 2) - 1).sum(0).item() == pytest.approx(284)


def test_values_of_large_grids_are_right(device: str) -> None:
    """More workgroups than one dimension of a grid holds."""
    x = torch.arange(17_000_003, device=device, dtype=torch.int32)
    y = x * 2 + 1
    assert y[-3:].tolist() == [34_000_001, 34_000_003, 34_000_005]
    assert ((y - x - x) == 1).all().item()
    a = torch.arange(2.0 * 65_537, device=device).reshape(65_537, 1, 2)
    product = a @ torch.ones(65_537, 2, 1, device=device)
    assert product[-2:].flatten().tolist() == [4 * at + 1.0 for at in (65_535, 65_536)]


# Devices


@needs_webgpu
def test_a_model_on_each_device_trains_as_on_one() -> None:
    open_another("webgpu:1")
    losses: dict[str, list[float]] = {}
    models = {}
    for name in ("cpu", "webgpu", "webgpu:1"):
        torch.manual_seed(0)
        parts = torch.nn.Linear(4, 8, device="cpu"), torch.nn.Tanh(), torch.nn.Linear(8, 1, device="cpu")
        model = torch.nn.Sequential(*parts).to(name)
        models[name] = model, torch.optim.AdamW(model.parameters(), lr=0.1)
    for _ in range(4):
        for name, (model, optimizer) in models.items():
            loss = (model(torch.arange(12.0, device=name).reshape(3, 4) / 12) - 1).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.setdefault(name, []).append(loss.item())
    assert losses["webgpu"] == losses["webgpu:1"] == pytest.approx(losses["cpu"], rel=1e-4)


@needs_webgpu
@pytest.mark.parametrize("megabytes", [0, 8, 64])
def test_the_pool_keeps_as_much_as_was_set(megabytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pywebgpu.devices.native.settings", replace(settings, pool=megabytes))
    name = f"webgpu:{3 + megabytes}"
    open_another(name)
    tensors = [torch.full((1 << 18,), 1.0, device=name) for _ in range(100)]
    torch.webgpu.synchronize(name)
    del tensors
    torch.ones(1, device=name).item()
    pool = devices.open_device(name)._pool
    assert pool.created >= 100
    assert pool.waiting_bytes <= megabytes << 20
    devices.close(name)


@needs_webgpu
def test_two_devices_side_by_side() -> None:
    names = ("webgpu", "webgpu:1")
    open_another(names[1])
    weights = [torch.full((4, 4), float(at + 1), device=name, requires_grad=True) for at, name in enumerate(names)]
    for _ in range(3):
        losses = [(w @ w).sum() for w in weights]
        for loss in losses:
            loss.backward()
        with torch.no_grad():
            for w in weights:
                w -= 0.01 * w.grad
                w.grad = None
    wanted = []
    for value in (1.0, 2.0):
        for _ in range(3):
            value -= 0.01 * 8 * value
        wanted.append(value)
    for w, value in zip(weights, wanted, strict=True):
        assert w.detach().numpy() == pytest.approx(np.full((4, 4), value), rel=1e-5)
    with pytest.raises(RuntimeError, match="same device"):
        weights[0] + weights[1]


@needs_webgpu
def test_a_closed_device_says_so() -> None:
    open_another("webgpu:2")
    x = torch.ones(4, device="webgpu:2")
    y = x + 1
    y.tolist()
    pending = y * 2
    devices.close("webgpu:2")
    for function in (y.tolist, pending.tolist, (y[1:] + 1).tolist):
        with pytest.raises(DeviceError, match="closed"):
            function()
    open_another("webgpu:2")  # The name opens it anew.
    assert (torch.ones(2, device="webgpu:2") + 1).tolist() == [2.0, 2.0]
    devices.close("webgpu:2")


def test_the_host_is_one_device() -> None:
    assert torch.ones(2, device="cpu:7").device == torch.ones(2, device="cpu").device == torch.device("cpu")


@needs_webgpu
def test_an_adapter_that_is_not_there_is_refused() -> None:
    assert torch.webgpu.device_count() < 99
    with pytest.raises(RuntimeError, match="invalid device ordinal: webgpu:99 "):
        torch.ones(2, device="webgpu:99")


def test_an_index_out_of_range_is_told_once(device: str) -> None:
    x = torch.arange(10, dtype=torch.float32, device=device)
    for wrong in (10, -11):
        index = torch.tensor([1, wrong, 3], device=device)
        with pytest.raises(IndexError, match=rf"index {wrong} is out of bounds for dimension .* with size 10"):
            x[index + 0].tolist()
        assert x[torch.tensor([1, -1], device=device)].tolist() == [1.0, 9.0]
        assert (x + 1).sum().item() == 55.0


@needs_webgpu
def test_equal_shaders_are_one_pipeline() -> None:
    x = torch.ones(37, device="webgpu")
    torch.webgpu.synchronize("webgpu")
    wanted, opened = (x.exp() * 2).tolist(), devices.open_device("webgpu")
    kept = list(state.default.programs.values())  # Pipelines are there as long as a Program that has them.
    program_cache.clear()
    programs, pipelines = compiled_programs(), opened.counters["pipelines_created"]
    found = (x.exp() * 2).tolist()
    assert found == wanted
    assert compiled_programs() > programs
    assert opened.counters["pipelines_created"] == pipelines
    del kept


@needs_webgpu
def test_a_shader_that_does_not_compile_is_shown() -> None:
    broken = replace(pointwise.sin, name="broken", wgsl="nonsense({0})")
    x = torch.ones(4, device="webgpu")
    y = apply(lambda node: broken(node), x)
    with pytest.raises(CompileError, match="map_broken: the shader does not compile") as caught:
        y.tolist()
    assert any(line.lstrip()[:2].strip().isdigit() and "nonsense" in line for line in str(caught.value).splitlines())
    del y, caught
    gc.collect()
    assert (x + 1).tolist() == [2.0] * 4


@pytest.fixture
def adopted(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of each run on device webgpu, whether its commands were there."""
    reader = importlib.import_module("pywebgpu.devices.reader")
    found: list[bool] = []
    adopt = reader.Reader.adopt

    def noted(self: Any, *run: Any) -> Any:
        commands = adopt(self, *run)
        found.append(commands is not None)
        return commands

    monkeypatch.setattr(reader.Reader, "adopt", noted)
    return found


@needs_webgpu
def test_a_run_that_was_encoded_ahead_counts_only_if_it_fits(adopted: list[bool]) -> None:
    """A loop that reads each value finds its commands, beside other Programs, too; not after what nobody read."""
    device: Any = devices.open_device("webgpu")
    weight, step = torch.ones(8, device="webgpu"), torch.compile(lambda x: (weight.mul_(2.0) * x).sum())
    total, free = 8.0, device.counters["device_bytes"]
    for at in range(24):
        x = torch.full((8,), float(at), device="webgpu")
        total = total * 2 if at != 12 else total * 4
        if at == 12:
            step(x)  # Nobody reads it.
        loss = step(x)
        assert loss.item() == total * at
        free = device.counters["device_bytes"] if at == 12 else free
    assert adopted.count(True) >= 8
    assert not all(adopted)
    assert device.counters["device_bytes"] <= free + 4096, "what does not fit is given back"


@needs_webgpu
def test_a_loop_that_reads_two_values_has_both_runs_encoded_ahead(adopted: list[bool]) -> None:
    device: Any = devices.open_device("webgpu")
    weight = torch.ones(8, device="webgpu")
    double, count = torch.compile(lambda: weight.mul_(2.0).sum()), torch.compile(lambda: weight.add_(1.0).max())
    largest = 1.0
    for _ in range(20):
        assert double().item() == 16 * largest
        assert count().item() == 2 * largest + 1
        largest = 2 * largest + 1
    assert adopted.count(True) >= 20
    waiting = device._staging.waiting_bytes
    program_cache.clear()
    del double, count
    gc.collect()
    assert device.counters["live_buffers"] >= 0  # Whoever asks has what ended taken back.
    assert device._staging.waiting_bytes > waiting, "what was ahead goes with its Program"


@needs_webgpu
def test_a_run_is_in_two_parts_where_much_is_left_to_do_after_what_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing else differs, and what a later kernel of it checks is told by the same read."""
    loaded = importlib.import_module("pywebgpu.devices.loaded")
    device: Any = devices.open_device("webgpu")

    def run(least: int, *, checks: bool) -> tuple[list[float], list[int], list[float]]:
        monkeypatch.setattr(loaded, "LONG", least)
        program_cache.clear()
        weight = torch.ones(8, 4, device="webgpu")

        def body(x: Any, at: Any) -> Any:
            loss = (weight @ x).sum()
            weight.mul_(2.0).add_(weight[at] if checks else weight.sum())
            return loss

        step, losses, submits = torch.compile(body), [], []
        x, at = torch.ones(4, 3, device="webgpu"), torch.tensor([1] * 8, device="webgpu")
        for _ in range(14):
            before = device.counters["submits"]
            losses.append(step(x, at).item())
            submits.append(device.counters["submits"] - before)
        return losses, submits, weight.flatten().tolist()

    plain, split = run(10**30, checks=False), run(0, checks=False)
    assert (plain[0], plain[2]) == (split[0], split[2])
    assert (plain[1][-1], split[1][-1]) == (1, 2)
    assert run(0, checks=True)[1][-1] == 1
