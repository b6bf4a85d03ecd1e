"""One bad value, one error: it is raised to who reads that value, at each read, and the others go on."""

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

import pywebgpu as torch
from pywebgpu import devices
from pywebgpu.compiler.program import HostCall
from pywebgpu.errors import CompileError, DeviceError, DeviceLostError
from pywebgpu.ops import pointwise
from pywebgpu.runtime import executor, state
from pywebgpu.tensor.apply import apply

NEAR = 1e-3  # as near as a software driver's sine is
BAD = replace(pointwise.sin, name="bad", wgsl="sin({0} /* bad */)")  # As sin, where nothing makes it fail.
ERRORS = (
    OverflowError, MemoryError, ValueError, KeyError, struct.error, IndexError, RuntimeError, DeviceError, CompileError,
)  # fmt: skip
PLACES = ("load", "run")  # what a device does with a Program, either of which may fail


def bad(x: Any) -> Any:
    return apply(lambda node: BAD(node), x)


def has_bad(program: Any) -> bool:
    """Whether a Program, or what a device made of it, computes a bad value."""
    program = getattr(program, "program", program[0] if isinstance(program, tuple) else program)
    calls = [step.op for step in program.steps if isinstance(step, HostCall)]
    return BAD in calls or any("/* bad */" in kernel.wgsl for kernel in program.kernels)


@contextmanager
def failing(device: str, place: str, error: BaseException, *, calls: range = range(1 << 30)) -> Iterator[None]:
    """Inside the block, what computes a bad value raises `error` there, in the calls of these numbers."""
    opened: Any = devices.open_device(device)
    whole, number = getattr(opened, place), count()

    def partly(program: Any, *args: Any) -> Any:
        if has_bad(program) and next(number) in calls:
            raise error
        return whole(program, *args)

    setattr(opened, place, partly)
    try:
        yield
    finally:
        delattr(opened, place)


@pytest.fixture(autouse=True)
def anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test has a runtime of its own: no Program is there already."""
    monkeypatch.setattr(state, "default", state.Runtime())


@pytest.mark.parametrize("error", ERRORS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("place", PLACES)
def test_it_is_raised_at_each_read_of_that_value_alone(device: str, place: str, error: type[Exception]) -> None:
    x = torch.ones(3, device=device)
    good, wrong = x + 1, bad(x)
    after = wrong * 2
    with failing(device, place, error("no room")):
        assert good.tolist() == [2.0] * 3
        for value in (wrong, after, wrong, after):
            with pytest.raises(error, match="no room"):
                value.tolist()
            assert (good * 2).tolist() == [4.0] * 3
        assert (x * 5).tolist() == [5.0] * 3
    assert wrong.tolist() == pytest.approx([0.841471] * 3, rel=NEAR)
    assert after.tolist() == pytest.approx([1.682942] * 3, rel=NEAR)


@pytest.mark.parametrize("place", PLACES)
def test_the_others_are_computed_without_a_device(place: str) -> None:
    opened = devices.open_device("null")
    x = torch.ones(3, device="null")
    good, wrong = x + 1, bad(x)
    with failing("null", place, MemoryError()):
        executor.submit(opened)
        later = good * 2
        executor.submit(opened)
    assert good._storage.node.buffer is not None
    assert later._storage.node.buffer is not None
    assert wrong._storage.node.buffer is None
    assert not executor.pending(opened), "nobody asks for it, so nobody computes it"


@pytest.mark.parametrize("place", PLACES)
def test_writes_in_place_happen_once(device: str, place: str) -> None:
    x = torch.ones(3, device=device)
    x.tolist()
    before, wrong = x * 10, bad(x)
    x.add_(1)
    with failing(device, place, MemoryError()):
        assert x.tolist() == [2.0] * 3
        assert before.tolist() == [10.0] * 3
        x.mul_(3)
        assert x.tolist() == [6.0] * 3
    assert wrong.tolist() == pytest.approx([0.841471] * 3, rel=NEAR), "of the value that x had"


def test_a_step_that_runs_out_of_memory_leaves_what_it_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """On device cpu, where one Program is many calls, of which a later one fails."""
    x = torch.ones(4, device="cpu")
    x.tolist()
    x.add_(1)
    wrong = apply(lambda node: replace(pointwise.sin, name="broken", reference=no_room)(node), x)
    assert x.tolist() == [2.0] * 4
    with pytest.raises(MemoryError):
        wrong.tolist()
    assert x.tolist() == [2.0] * 4


def no_room(xp: Any, x: Any) -> Any:
    raise MemoryError


@pytest.mark.parametrize("place", PLACES)
def test_an_interrupt_keeps_the_work(device: str, place: str) -> None:
    x = torch.ones(3, device=device)
    x.tolist()
    x.add_(1)
    good, wrong = x * 2, bad(x)
    with failing(device, place, KeyboardInterrupt(), calls=range(1)):
        with pytest.raises(KeyboardInterrupt):
            good.tolist()
        assert good.tolist() == [4.0] * 3
    assert x.tolist() == [2.0] * 3
    assert wrong.tolist() == pytest.approx([0.909297] * 3, rel=NEAR)


def test_an_interrupt_while_values_run_apart_keeps_the_work(device: str) -> None:
    x = torch.ones(3, device=device)
    wrong, good = bad(x), x + 1
    once, second = range(1), range(1, 2)  # Both fail together, so each is computed alone.
    with (
        failing(device, "run", ValueError(), calls=once),
        failing(device, "load", KeyboardInterrupt(), calls=second),
        pytest.raises(KeyboardInterrupt),
    ):
        good.tolist()
    assert {id(storage) for storage in executor.pending(devices.open_device(device))} >= {id(wrong._storage)}
    assert good.tolist() == [2.0] * 3
    assert wrong.tolist() == pytest.approx([0.841471] * 3, rel=NEAR)


def train(device: str, disturb: Callable[[Any], object], *, compiled: bool = False) -> list[float]:
    """The losses of ten steps; before each one `disturb` sees the weights."""
    weight = torch.ones(4, device=device).requires_grad_()
    optimizer = torch.optim.SGD([weight], lr=0.1, momentum=0.9)

    def step() -> Any:
        optimizer.zero_grad()
        loss = (weight * 3 - 1).square().sum()
        loss.backward()
        optimizer.step()
        return loss

    run = torch.compile(step) if compiled else step
    losses, kept = [], []
    for _ in range(10):
        kept.append(disturb(weight.detach()))
        losses.append(float(run().item()))
    return losses


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_training_goes_on_beside_it(device: str, place: str, compiled: bool) -> None:
    wanted = train(device, lambda weight: None, compiled=compiled)
    with failing(device, place, ValueError()):
        assert train(device, bad, compiled=compiled) == wanted


def test_a_replay_that_fails_leaves_all_as_it_was(device: str) -> None:
    total = torch.zeros(3, device=device)

    @torch.compile
    def step(x: Any) -> Any:
        total.add_(x)
        return bad(x)

    x = torch.ones(3, device=device)

    def call() -> None:  # From one line: the first call from another one is an audit.
        step(x)

    for _ in range(3):
        call()
    before = total.tolist()
    with failing(device, "run", MemoryError()), pytest.raises(MemoryError):
        call()
    assert (x + 1).tolist() == [2.0] * 3
    assert total.tolist() == before
    call()
    assert total.tolist() == [value + 1 for value in before]


@pytest.mark.parametrize("error", [MemoryError, DeviceError])
def test_a_read_that_fails_can_be_made_again(
    device: str, error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    x = torch.ones(3, device=device) + 1
    with monkeypatch.context() as patched:
        patched.setattr(devices.open_device(device), "download", raising(error))
        with pytest.raises(error):
            x.tolist()
    assert x.tolist() == [2.0] * 3


def test_an_upload_that_fails_raises_at_the_call(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.ones(3, device=device) + 1
    with monkeypatch.context() as patched:
        patched.setattr(devices.open_device(device), "upload", raising(MemoryError))
        with pytest.raises(MemoryError):
            torch.tensor([1.0, 2.0], device=device)
    assert x.tolist() == [2.0] * 3


def raising(error: type[Exception]) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        raise error

    return call


def test_a_lost_device_tells_everybody(device: str) -> None:
    x = torch.ones(3, device=device)
    wrong = bad(x)
    with failing(device, "run", DeviceLostError("gone")), pytest.raises(DeviceLostError):
        executor.submit(devices.open_device(device))
    assert wrong.shape == (3,)
