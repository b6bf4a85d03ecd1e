"""Several threads on one device: each gets what it would get alone, bit for bit, and has its own modes.

`python -m tests threads` takes 1,000 steps a thread.
"""

import gc
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import pywebgpu as torch
from pywebgpu import devices, dtypes
from pywebgpu.ir import origin
from pywebgpu.ir.graph import thread_state
from pywebgpu.runtime import state

THREADS = 20


@pytest.fixture
def steps(request: pytest.FixtureRequest) -> int:
    return int(request.config.getoption("--steps"))


def in_threads(count: int, work: Callable[[int], Any]) -> list[Any]:
    """work(0), work(1), …, each in a thread of its own, all at a time. Raises what one of them raised."""
    results: list[Any] = [None] * count
    errors: list[BaseException] = []
    barrier = threading.Barrier(count)

    def run(at: int) -> None:
        try:
            barrier.wait()
            results[at] = work(at)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(at,)) for at in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results


def train(device: str, seed: int, steps: int, *, compiled: bool = False) -> list[bytes]:
    """The losses, and then the weights, of a small model that learns noise."""
    source = torch.Generator().manual_seed(seed)
    noise = lambda *shape: torch.randn(*shape, generator=source).to(device)  # noqa: E731
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)).to(device)
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(noise(*weight.shape) * 0.3)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01 * (1 + seed % 3))
    x, wanted = noise(6, 4), noise(6, 1)

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = (model(x) - wanted).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    take, found = torch.compile(step) if compiled else step, []
    for at in range(steps):
        loss = take(x)
        if at % 10 == 0:
            found.append(loss.numpy().tobytes())
    assert not compiled or take.counters["replays"] > steps // 2, take.reasons
    return found + [weight.detach().numpy().tobytes() for weight in model.parameters()]


def test_they_train_as_one_does(device: str, steps: int) -> None:
    alone = [train(device, seed, steps) for seed in range(THREADS)]
    programs = state.default.counters["program_misses"]
    assert in_threads(THREADS, lambda at: train(device, at, steps)) == alone
    assert state.default.counters["program_misses"] == programs, "each thread meets the Programs that it meets alone"


def test_compiled_steps_of_threads_train_as_one_does(device: str, steps: int) -> None:
    alone = [train(device, seed, steps) for seed in range(THREADS)]
    assert in_threads(THREADS, lambda at: train(device, at, steps, compiled=True)) == alone


def test_a_compiled_step_may_be_called_from_many_threads(device: str) -> None:
    step = torch.compile(lambda x, k: (x * k).sum())
    xs = [torch.full((4,), float(at), device=device) for at in range(8)]

    def values(at: int) -> list[float]:
        return [step(xs[at], float(turn % 3)).item() for turn in range(30)]

    assert in_threads(8, values) == [[4.0 * at * (turn % 3) for turn in range(30)] for at in range(8)]


def test_independent_tensors_do_not_disturb_each_other(device: str) -> None:
    def values(at: int) -> list[list[float]]:
        found = []
        for turn in range(40):
            x = torch.arange(8, dtype=torch.float32, device=device) + at
            y = (x * turn).sin() + x.square()
            x.mul_(2).add_(y)
            x[2:5] = y[1:4] - at
            found.append((x + y.cumsum(0)).tolist())
        return found

    alone = [values(at) for at in range(8)]
    assert in_threads(8, values) == alone


def test_they_share_weights_that_nobody_writes(device: str) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.Linear(8, 3)).to(device)
    for weight in model.parameters():
        weight.data = weight.data * 2  # Not computed yet: the first thread that reads it does so for all.
    places = (torch.arange(6, device=device) + 3) % 4

    def values(at: int) -> list[bytes]:
        found = []
        for turn in range(20):
            x = (torch.arange(24, dtype=torch.float32, device=device).reshape(6, 4) / (1 + at + turn)).requires_grad_()
            model(x[:, places % 4][:, :4]).square().sum().backward(inputs=[x])
            found.append(x.grad.numpy().tobytes())
        return found

    assert in_threads(8, values) == [values(at) for at in range(8)]


def test_gradients_of_shared_weights_add_up(device: str) -> None:
    weight = torch.ones(5, device=device).requires_grad_()

    def backward(at: int) -> None:
        for turn in range(25):
            (weight * float(at + turn)).sum().backward()

    in_threads(8, backward)
    assert weight.grad.tolist() == [float(sum(at + turn for at in range(8) for turn in range(25)))] * 5


@pytest.mark.parametrize("is_default", [True, False], ids=["default", "passed"])
def test_no_two_draws_of_a_shared_generator_are_equal(device: str, is_default: bool) -> None:
    source = None if is_default else torch.Generator()

    def draws(n: int) -> list[tuple[float, ...]]:
        return [tuple(torch.rand(4, generator=source, device=device).tolist()) for _ in range(n)]

    def start() -> None:
        torch.manual_seed(3) if source is None else source.manual_seed(3)

    start()
    alone = draws(8 * 30)
    start()
    found = [draw for part in in_threads(8, lambda at: draws(30)) for draw in part]
    assert sorted(found) == sorted(alone)


def test_what_a_thread_recorded_outlives_it(device: str) -> None:
    made: list[Any] = []

    def record(at: int) -> None:
        x = torch.full((4,), float(at), device=device)
        x.tolist()
        made.append((at, x * 10, x, x.add_(1)))

    for at in range(3):
        in_threads(1, lambda _, at=at: record(at))
    for at, y, x, _ in made:
        assert (y.tolist(), x.tolist()) == ([at * 10.0] * 4, [at + 1.0] * 4)


def test_a_write_leaves_what_another_thread_still_reads(device: str) -> None:
    x = torch.ones(4, device=device)
    x.tolist()
    recorded, written = threading.Event(), threading.Event()
    found = []

    def read(at: int) -> None:
        y = x * 10
        recorded.set()
        written.wait(60)
        found.append(y.tolist())

    thread = threading.Thread(target=read, args=(0,))
    thread.start()
    recorded.wait(60)
    x.add_(1)
    assert x.tolist() == [2.0] * 4
    written.set()
    thread.join()
    assert found == [[10.0] * 4]


def test_synchronize_computes_what_all_threads_recorded(device: str) -> None:
    recorded, done = threading.Event(), threading.Event()
    made = []

    def record() -> None:
        made.append(torch.ones(4, device=device) * 3)
        recorded.set()
        done.wait(60)

    thread = threading.Thread(target=record)
    thread.start()
    recorded.wait(60)
    torch.webgpu.synchronize(device)
    assert made[0]._storage.node.buffer is not None
    done.set()
    thread.join()


def test_a_captured_step_reads_what_another_thread_recorded(device: str) -> None:
    weight, x = torch.ones(4, device=device) * 3, torch.ones(4, device=device)
    step = torch.compile(lambda x: x * weight)
    for wanted in (3.0, 5.0, 0.0):
        weight.fill_(wanted)
        assert in_threads(1, lambda at: [step(x).tolist() for _ in range(3)]) == [[[wanted] * 4] * 3]


# Modes


@contextmanager
def other_device() -> Iterator[None]:
    torch.set_default_device("null")
    try:
        yield
    finally:
        torch.set_default_device(None)


@contextmanager
def watched() -> Iterator[None]:
    watcher = origin.Watcher()
    origin.watch(watcher)
    try:
        yield
    finally:
        origin.unwatch(watcher)


MODES: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "no_grad": (torch.no_grad, torch.is_grad_enabled),
    "inference_mode": (torch.inference_mode, torch.is_inference_mode_enabled),
    "set_default_device": (other_device, lambda: str(torch.ones(1).device)),
    "device": (lambda: torch.device("null"), lambda: str(torch.ones(1).device)),
    "watch": (watched, lambda: thread_state.origins is None),
}


@pytest.mark.parametrize("name", MODES)
def test_each_thread_has_its_own(name: str) -> None:
    enter, now = MODES[name]
    usual = now()
    inside, left = threading.Event(), threading.Event()
    found = []

    def other() -> None:
        with enter():
            found.append(now())
            inside.set()
            left.wait(60)
        found.append(now())

    thread = threading.Thread(target=other)
    thread.start()
    inside.wait(60)
    assert now() == usual
    with enter():
        assert in_threads(1, lambda at: now()) == [usual]
    left.set()
    thread.join()
    assert found[0] != usual
    assert found[1] == usual


def test_the_default_dtype_is_everybodys() -> None:
    torch.set_default_dtype(torch.float64)
    try:
        assert in_threads(1, lambda at: dtypes.default()) == [torch.float64]
    finally:
        torch.set_default_dtype(torch.float32)


def test_a_device_is_opened_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "_open", {})
    opened = in_threads(8, lambda at: devices.open_device("null"))
    assert len({id(device) for device in opened}) == 1


def test_garbage_is_collected_again_after_captures_that_overlap() -> None:
    before = gc.get_threshold()
    first_began, second_began, first_ended = (threading.Event() for _ in range(3))

    def first(x: Any) -> Any:
        first_began.set()
        assert second_began.wait(60)
        return x * 2

    def second(x: Any) -> Any:
        second_began.set()
        assert first_ended.wait(60)
        return x * 2

    def record(at: int) -> None:
        if at == 0:
            torch.compile(first)(torch.ones(2))
            first_ended.set()
        else:
            assert first_began.wait(60)
            torch.compile(second)(torch.ones(2))

    in_threads(2, record)
    assert gc.get_threshold() == before
