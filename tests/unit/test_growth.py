"""The cost of compiling grows with the model and no faster; an eager loop compiles its step once."""

import cProfile
import json
import pstats
from collections import Counter
from dataclasses import fields
from typing import Any

import pytest

import pywebgpu as torch
from pywebgpu.bench import gpt, growth, main, workloads
from pywebgpu.compiler.program import Dispatch
from pywebgpu.kernels.kernel import Limits
from pywebgpu.kernels.target import Target
from pywebgpu.runtime import program_cache, state
from tests.cases.optim import RULES
from tests.unit.compiled import NULL, programs

SMALL = (1, 2)


def measured(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    monkeypatch.setattr(growth, "LAYERS", SMALL)
    assert main(["--growth", "--json"]) == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return found


def test_the_curve_has_a_point_a_depth(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    found = measured(capsys, monkeypatch)
    assert [list(one) for one in found] == [[field.name for field in fields(growth.Growth)]] * len(SMALL)
    assert [one["layers"] for one in found] == list(SMALL)
    assert all(one["programs"] == 1 for one in found)
    assert all(one["first_ms"] > one["second_ms"] > 0 for one in found)
    assert all(one["planned_bytes"] <= 1.01 * one["bound_bytes"] for one in found)
    assert found[0]["dispatches"] < found[1]["dispatches"] <= 2 * found[0]["dispatches"]
    assert main(["--growth"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in ("layers", "programs", "kernels"))


def calls(layers: int) -> int:
    """What a first step calls, in Python and in C: its cost without a clock."""
    step = workloads.training_of(gpt.Shape(layers=layers, heads=2, width=8, block=8, batch=2)).build(torch, "null")
    profile = cProfile.Profile()
    programs(lambda: profile.runcall(step))
    found: int = pstats.Stats(profile).total_calls  # type: ignore[attr-defined]
    return found


def test_twice_the_layers_cost_twice_the_calls() -> None:
    calls(2)  # What is found once in a process is known then.
    few, some, many = calls(2), calls(4), calls(8)
    assert many - some <= 2.1 * (some - few)


def test_only_the_head_has_products_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first layer reads what was looked up as the others read what the layer before them gave."""
    monkeypatch.setattr(NULL, "target", Target(True, Limits(bindings=10)))
    step = workloads.training_of(gpt.Shape(layers=3)).build(torch, "null")
    program = max(programs(step), key=lambda one: len(one.steps))
    uses = Counter(one.kernel for one in program.steps if isinstance(one, Dispatch))
    assert sum(program.kernels[at].name.startswith("matmul") for at, count in uses.items() if count == 1) <= 3


def steps_that_compile(rule: str, options: dict[str, Any], device: str, *, count: int, read: bool) -> list[int]:
    """How many Programs each of four steps of an eager loop compiled, over `count` layers."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(*(torch.nn.Linear(8, 8) for _ in range(count))).to(device)
    x = torch.ones(4, 8, device=device)
    optimizer = getattr(torch.optim, rule)(model.parameters(), **options)
    program_cache.clear()
    found = []
    for _ in range(4):
        before = state.default.counters["program_misses"]
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        if read:
            loss.item()
        found.append(state.default.counters["program_misses"] - before)
    return found


# At most so many Programs of later steps, of rules whose formula changes with the step's number: a rate that is lr in
# the first step alone; a share of 1, then a rate below the limit.
OTHERS = {"ASGD": 1, "Adafactor": 2}


@pytest.mark.one_in(webgpu=4)
@pytest.mark.parametrize("name", RULES)
def test_an_eager_loop_compiles_its_step_once(name: str, device: str) -> None:
    """Whatever the rule remembers: its first step is the Program of the others."""
    for count in (1, 3):
        first, *others = steps_that_compile(*RULES[name], device, count=count, read=device != "null")
        assert first >= 1
        assert sum(others) <= OTHERS.get(name, 0)
