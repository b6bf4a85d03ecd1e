"""The NaN guard names what made the first NaN, on each device, and leaves a program without NaN as it is."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pywebgpu as torch
from pywebgpu import nn
from pywebgpu.autograd import anomaly
from pywebgpu.errors import CaptureError, NonFiniteError
from pywebgpu.ir.graph import thread_state
from pywebgpu.nn import functional as F

ROOT = Path(__file__).parents[2]
nan, inf = torch.nan, torch.inf


@pytest.fixture
def guard() -> Iterator[Callable[[str], None]]:
    """Turns PYWEBGPU_NANS on as if it had been set."""
    yield anomaly.start
    anomaly.start("0")
    assert thread_state.origins is None


class Attention(nn.Module):
    def __init__(self, device: str) -> None:
        super().__init__()
        self.q = nn.Linear(3, 3, device=device)

    def forward(self, x: Any) -> Any:
        return self.q(x).softmax(-1)


class Block(nn.Module):
    def __init__(self, device: str) -> None:
        super().__init__()
        self.attn = Attention(device)
        self.register_buffer("scale", torch.ones(1, device=device))

    def forward(self, x: Any) -> Any:
        return (self.attn(x) * self.scale - 2).log()


class Net(nn.Module):
    def __init__(self, device: str) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([Block(device)])

    def forward(self, x: Any) -> Any:
        return self.blocks[0](x)


def tensor(device: str, *values: float) -> Any:
    return torch.tensor([float(value) for value in values], device=device)


def in_model(device: str) -> Any:
    net = Net(device)
    return net(torch.ones(2, 3, device=device)).tolist()


def in_parameter(device: str) -> Any:
    net = Net(device)
    net.blocks[0].attn.q.weight.data = tensor(device, 1, nan, 3, 4, 5, 6, 7, 8, 9).view(3, 3)
    return net(torch.ones(2, 3, device=device)).tolist()


def in_buffer(device: str) -> Any:
    net = Net(device)
    net.blocks[0].scale = tensor(device, nan)
    return net(torch.ones(2, 3, device=device)).tolist()


def in_packed_parameter(device: str) -> Any:
    """An optimizer has made the parameters parts of one flat tensor."""
    net = nn.Sequential(nn.Linear(3, 3, device=device), nn.Linear(3, 3, device=device))
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.1)
    net(torch.ones(2, 3, device=device)).sum().backward()
    optimizer.step()
    net[1].weight.data.mul_(tensor(device, 1, nan, 3))
    return net(torch.ones(2, 3, device=device)).tolist()


def in_dead_value(device: str) -> Any:
    x = tensor(device, -1, 1)
    return torch.where(x > 0, x.log(), x)


def in_place(device: str) -> Any:
    x = tensor(device, -1, 1)
    x[0].sqrt_()
    return x


def in_update(device: str) -> Any:
    weight = tensor(device, 1, 2).requires_grad_()
    (weight * 3).sum().backward()
    optimizer = torch.optim.SGD([weight], lr=1.0)
    optimizer.param_groups[0]["lr"] = nan
    optimizer.step()
    return weight


def in_backward(device: str) -> Any:
    x = tensor(device, 4, 0).requires_grad_()
    (x.sqrt() * 0).sum().backward()
    return x.grad


def in_sum_of_gradients(device: str) -> Any:
    x = tensor(device, 0).requires_grad_()
    (x.sqrt() - (x * 1).sqrt()).sum().backward()
    return x.grad


def in_checkpoint(device: str) -> Any:
    x = tensor(device, 4, 0).requires_grad_()
    y = torch.utils.checkpoint.checkpoint(lambda x: x.sqrt() * 0, x, use_reentrant=False)
    y.sum().backward()
    return x.grad


def of_number(device: str) -> Any:
    return tensor(device, 1, 2) * nan


def of_input(device: str) -> Any:
    given = tensor(device, 1, nan)
    return given.view(1, 2) + 1


def of_numpy(device: str) -> Any:
    return torch.from_numpy(np.array([1, nan], np.float32)).to(device).exp()


def of_constants(device: str) -> Any:
    return torch.zeros(2, device=device) / torch.zeros(2, device=device)


def after_infinity(device: str) -> Any:
    x = tensor(device, 200, 1).exp()
    return x * tensor(device, 0, 0)


# A program, and what the message says: the op, the module and the line's text, or the name of what holds the NaN.
NANS: dict[Any, tuple[str, ...]] = {
    in_model: ("made by log, in forward of Net.blocks.0 at", "- 2).log())", "6 of 6 elements of float32 [2, 3]"),
    in_parameter: ("the parameter Net.blocks.0.attn.q.weight holds nan", "of Net.blocks.0.attn.q at", "self.q(x)"),
    in_buffer: ("the buffer Net.blocks.0.scale holds nan", "given to mul, in forward of Net.blocks.0 at"),
    in_packed_parameter: ("holds nan and is given to mul", "(net[1].weight.data.mul_"),
    in_dead_value: ("made by log, in forward at", "(return torch.where(x > 0, x.log(), x))", "1 of 2"),
    in_place: ("made by sqrt, in forward at", "(x[0].sqrt_())"),
    in_update: ("the number nan is given to", "in optimizer of SGD at", "(optimizer.step())"),
    in_backward: ("Function 'SqrtBackward0' returned nan values in its 0th output.", "backward at", "(x.sqrt() * 0)"),
    in_sum_of_gradients: ("made by add, in backward at", "- (x * 1).sqrt()"),
    in_checkpoint: ("Function 'SqrtBackward0' returned nan values in its 0th output.", "x.sqrt() * 0"),
    of_number: ("the number nan is given to mul, in forward at", "* nan"),
    of_input: ("the input float32 [2] made at", "holds nan and is given to add", "given.view(1, 2) + 1"),
    of_numpy: ("the input float32 [2]", "holds nan and is given to exp"),
    of_constants: ("made by div, in forward at",),
    after_infinity: ("made by mul, in forward at", "(return x * tensor(device, 0, 0))"),
}
INFINITIES: dict[Any, tuple[str, ...]] = {
    after_infinity: ("the first inf was made by exp", "200, 1).exp())", "1 of 2"),
    in_backward: ("Function 'SqrtBackward0' returned nan values",),
    of_input: ("the input float32 [2] made at", "holds nan"),
}


def said(program: Callable[[str], Any], device: str) -> str:
    with pytest.raises(NonFiniteError) as raised:
        torch.as_tensor(program(device)).tolist()
    assert isinstance(raised.value, RuntimeError)
    return str(raised.value)


@pytest.mark.parametrize("program", NANS, ids=lambda program: program.__name__)
def test_first_nan_is_named(program: Any, device: str, no_leaks: None, guard: Any) -> None:
    guard("1")
    message = said(program, device)
    assert all(text in message for text in NANS[program]), message


@pytest.mark.parametrize("program", INFINITIES, ids=lambda program: program.__name__)
def test_first_infinity_is_named(program: Any, device: str, no_leaks: None, guard: Any) -> None:
    guard("inf")
    message = said(program, device)
    assert all(text in message for text in INFINITIES[program]), message


def test_line_is_that_of_the_program(device: str, guard: Any) -> None:
    guard("1")
    line = in_dead_value.__code__.co_firstlineno + 2
    assert f"at {__file__}:{line} (" in said(in_dead_value, device)


def causal(device: str) -> Any:
    x = torch.ones(1, 4, 2, device=device).requires_grad_()
    F.scaled_dot_product_attention(x, x, x, is_causal=True).sum().backward()
    return x.grad


def clipped_zeros(device: str) -> Any:
    weight = torch.zeros(3, device=device).requires_grad_()
    (weight * 0).sum().backward()
    nn.utils.clip_grad_norm_([weight], 1.0)
    return weight.grad


def masked_scores(device: str) -> Any:
    mask = torch.full((3, 3), -inf, device=device).triu(1)
    scores = torch.ones(3, 3, device=device).requires_grad_()
    (scores + mask).softmax(-1).square().sum().backward()
    return scores.grad


# Programs whose values are finite, though they pass NaN or infinity in places where that is meant.
FINE: dict[str, Callable[[str], Any]] = {
    "causal attention": causal,
    "masked scores": masked_scores,
    "norm of zeros": clipped_zeros,
    "NaN that nobody reads": lambda device: (tensor(device, nan), tensor(device, 1) + 1)[1],
    "NaN that is replaced": lambda device: tensor(device, nan, 1).nan_to_num(),
    "NaN that is looked for": lambda device: tensor(device, nan, 1).isnan().float(),
    "NaN that is chosen away": lambda device: torch.where(tensor(device, 0, 1) > 0, 1.0, tensor(device, 2, nan)),
    "NaN that is moved": lambda device: tensor(device, nan, 1).view(2, 1).clone().t()[0, 1:],
    "NaN that fills": lambda device: (torch.full((2,), nan, device=device), tensor(device, 1))[1],
    "infinity": lambda device: (tensor(device, 0).log(), tensor(device, 1))[1],
    "logsumexp of nothing": lambda device: torch.full((2,), -inf, device=device).logsumexp(0).exp(),
    "no elements": lambda device: torch.zeros(0, device=device) * nan,
    "whole numbers": lambda device: torch.arange(3, device=device) * 2,
    "pooling": lambda device: F.max_pool2d(torch.ones(1, 1, 3, 3, device=device), 2, padding=1),
}


@pytest.mark.parametrize("name", FINE)
def test_no_false_alarm(name: str, device: str, no_leaks: None, guard: Any) -> None:
    wanted = FINE[name](device).tolist()
    guard("1")
    assert FINE[name](device).tolist() == wanted


def training(device: str, *, compiled: bool, bad: float = 1.0) -> tuple[Callable[[Any, float], Any], Any]:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8, device=device), nn.GELU(), nn.Dropout(0.1), nn.Linear(8, 1, device=device))
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)

    def step(x: Any, shift: float) -> Any:
        optimizer.zero_grad()
        loss = (net(x).square().mean() + shift).log()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        return loss

    return torch.compile(step) if compiled else step, net


@pytest.mark.parametrize("compiled", [False, True])
def test_a_sound_training_is_the_same_under_the_guard(compiled: bool, device: str, guard: Any) -> None:
    runs = []
    for nans in ("0", "1"):
        guard(nans)
        step, net = training(device, compiled=compiled)
        x = torch.linspace(-1, 1, 8, device=device).view(2, 4)
        losses = [step(x, 1.0).item() for _ in range(4)]
        runs.append(losses + [value for weight in net.parameters() for value in weight.flatten().tolist()])
    np.testing.assert_allclose(runs[0], runs[1], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("compiled", [False, True])
def test_nan_in_a_step_is_named_wherever_it_is_recorded(compiled: bool, device: str, guard: Any) -> None:
    step, _ = training(device, compiled=compiled)
    x = torch.linspace(-1, 1, 8, device=device).view(2, 4)
    for _ in range(2):
        step(x, 1.0)
    guard("1")
    step(x, 1.0)
    with pytest.raises(NonFiniteError, match=r"made by log, in forward at .*\+ shift\)\.log\(\)"):
        step(x, -5.0)


def test_a_step_is_replayed_again_afterwards(device: str, guard: Any) -> None:
    step, _ = training(device, compiled=True)
    x = torch.linspace(-1, 1, 8, device=device).view(2, 4)
    step(x, 1.0)
    step(x, 1.0)
    before = dict(step.counters)  # type: ignore[attr-defined]
    guard("1")
    step(x, 1.0)
    step.warmup(x, 1.0)  # type: ignore[attr-defined]
    assert dict(step.counters) == before  # type: ignore[attr-defined]
    guard("0")
    step(x, 1.0)
    assert sum(step.counters.values()) > sum(before.values())  # type: ignore[attr-defined]


def test_detection_in_a_compiled_step_is_refused(device: str) -> None:
    @torch.compile
    def step(x: Any) -> Any:
        with torch.autograd.set_detect_anomaly(True):
            return x * 2

    with pytest.raises(CaptureError, match="put it around the call"):
        step(torch.ones(2, device=device))
    assert not torch.is_anomaly_enabled()


def test_detection_finds_nan_in_a_compiled_step(device: str) -> None:
    @torch.compile
    def step(x: Any) -> Any:
        x = x.detach().requires_grad_()
        (x.sqrt() * 0).sum().backward()
        return x.grad

    x = tensor(device, 4, 0)
    assert str(step(x).tolist()) == "[0.0, nan]"
    with (
        torch.autograd.set_detect_anomaly(True),
        pytest.warns(UserWarning, match="Error detected in SqrtBackward0"),
        pytest.raises(NonFiniteError, match="Function 'SqrtBackward0'"),
    ):
        step(x)
    assert str(step(x).tolist()) == "[0.0, nan]"


def test_values_are_there_after_the_error(device: str, guard: Any) -> None:
    guard("1")
    x = tensor(device, -1, 4)
    y, z = x.sqrt(), x + 1
    with pytest.raises(NonFiniteError):
        y.tolist()
    assert (str(y.tolist()), z.tolist()) == ("[nan, 2.0]", [0.0, 5.0])


def test_a_failing_run_raises_its_own_error(device: str, no_leaks: None, guard: Any) -> None:
    guard("1")
    x = tensor(device, -1, 4).sqrt()
    y = torch.ones(3, device=device)[tensor(device, 1, 20).long()]
    with pytest.raises(IndexError):
        y.tolist()
    del x, y


def test_one_device_does_not_wait_for_another(device: str, guard: Any) -> None:
    guard("1")
    here, there = tensor(device, -1), torch.tensor([-1.0], device="null")
    lost = there.log()
    with pytest.raises(NonFiniteError, match="made by sqrt"):
        here.sqrt().tolist()
    assert lost.shape == (1,)


@pytest.mark.parametrize(
    ("value", "status", "text"),
    [("1", 1, "NonFiniteError: the first nan was made by log"), ("0", 0, ""), ("", 0, ""), ("2", 1, "PYWEBGPU_NANS=2")],
)
def test_environment_turns_it_on(value: str, status: int, text: str) -> None:
    code = "import pywebgpu as torch; torch.tensor([-1.0], device='cpu').log().tolist()"
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYWEBGPU_NANS": value}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, bool(re.search(re.escape(text), done.stderr))) == (status, True), done.stderr
