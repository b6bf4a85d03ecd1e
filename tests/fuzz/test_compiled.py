"""Random compiled steps: what they compute, leave and do is what eager steps and PyTorch have, call after call."""

import gc
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pywebgpu
from pywebgpu import devices
from pywebgpu.runtime import executor
from tests.cases import run
from tests.cases.case import Case, randn
from tests.fuzz import steps
from tests.fuzz.programs import command
from tests.fuzz.test_graphs import build, node
from tests.oracle import oracle

RATES = (0.1, 0.2, 0.3, 0.2, 0.1)  # The second and the third call are audits, the fourth is a replay.
CHUNKS, CHUNK = 10, {"cpu": 15, "webgpu": 3}
write = st.tuples(st.integers(0, 6), st.integers(0, 3), steps.numbers)


def random_step(torch: Any, w: Any, drawn: list[Any], writes: list[Any], *, has_gradient: bool) -> Any:
    """A function of an input and a number, which reads and writes `w`, and what is kept of it."""
    kept = w.detach().clone() * 0.5

    def step(x: Any, rate: float) -> Any:
        values = build(torch, (x, w.detach() if not has_gradient else w), drawn)
        loss = sum(value.sin().mean() for value in values) + 0.1 * (w * w).mean()
        if has_gradient:
            (gradient,) = torch.autograd.grad(loss * rate, w, allow_unused=True, materialize_grads=True)
        with torch.no_grad():
            for kind, row, number in writes:
                place = w[row % w.shape[0]] if kind else w
                match kind:
                    case 0:
                        w.mul_(1.0 - rate)
                    case 1:
                        place.add_(loss.detach() * rate)
                    case 2:
                        place.copy_(place.flip(0) * (number / 11))
                    case 3:
                        place.copy_(x[row % w.shape[0]] if kind else x)
                    case 4:
                        kept.copy_(w)
                    case 5:
                        w.copy_(kept)
                        kept.mul_(rate)
                    case _:
                        place.zero_()
            if has_gradient:
                w.sub_(gradient)
        return {
            "loss": loss.detach(),
            "values": [value.detach() for value in values],
            "again": (w * rate).detach() + kept,
        }

    return step


def flat(out: dict[str, Any]) -> list[Any]:
    return [out["loss"], *out["values"], out["again"]]


def program(drawn: list[Any], writes: list[Any], *, has_gradient: bool, is_compiled: bool = True) -> Any:
    def call(torch: Any, x: Any, w: Any) -> Any:
        w = w.detach().clone().requires_grad_(has_gradient)
        step = random_step(torch, w, drawn, writes, has_gradient=has_gradient)
        if torch is pywebgpu and is_compiled:
            step = torch.compile(step)
        found = []
        for rate in RATES:
            given = x.detach() * rate
            _queue(torch, given)  # Whatever shares a Program with the step may be rounded in another way.
            out = flat(step(given, rate))
            _queue(torch, given)
            found += [value.clone() for value in out]
        return [*found, w.detach()]

    return call


def _queue(torch: Any, tensor: Any) -> None:
    if torch is pywebgpu:
        executor.submit(devices.open_device(str(tensor.device)))


@pytest.fixture(autouse=True)
def not_frozen() -> Iterator[None]:
    yield
    gc.unfreeze()


@pytest.mark.one_in(2, webgpu=3)
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_random_programs_do_what_python_does(chunk: int, device: str) -> None:
    """`python -m tests fuzz-steps` runs as many as one likes."""
    first = chunk * CHUNK["cpu"]
    reports = command.chunk(range(first, first + CHUNK[device]), device, wide=False)
    assert reports == [], "\n".join(reports)


@given(st.integers(1, 4), st.booleans(), st.lists(node, min_size=1, max_size=5), st.lists(write, max_size=4))
@steps.PROFILE
def test_random_steps_match_torch_and_eager(
    device: str, rows: int, has_gradient: bool, drawn: list[Any], writes: list[Any]
) -> None:
    make = partial(program, drawn, writes, has_gradient=has_gradient)
    case = Case("step", make(), (randn(rows, 4), randn(rows, 4)), grad=False, tolerance="model")
    oracle.agree(case, device)
    eager = replace(case, fn=make(is_compiled=False))
    compiled, recorded = (run.run(one, pywebgpu, device) for one in (case, eager))
    for one, other in zip(compiled.outputs, recorded.outputs, strict=True):
        np.testing.assert_array_equal(one.array, other.array)
