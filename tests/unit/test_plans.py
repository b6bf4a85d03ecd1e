"""The memory of whole training steps: planned near the least that could be, and what a device counts then."""

import importlib.util
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

import pywebgpu as torch
from pywebgpu import devices
from pywebgpu.bench import main, plans

NEAR = 1.15  # planned bytes to those of the fullest step
DEMO = Path(__file__).parents[2] / "demos" / "chargpt"


@pytest.mark.parametrize("name", plans.MODELS)
def test_a_model_is_planned_near_the_bound(name: str) -> None:
    found = plans.plan(name)
    assert 1.0 <= found.ratio <= NEAR, found


def test_the_demos_own_step_is_planned_near_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = importlib.util.spec_from_file_location("chargpt_model", DEMO / "model.py")
    demo = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "chargpt_model", demo)
    spec.loader.exec_module(demo)
    with torch.device("null"):
        model = demo.GPT(demo.Config(vocabulary=65))
        characters = torch.zeros(16, 80, dtype=torch.int64)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95))
    torch.webgpu.synchronize("null")

    def step() -> Any:
        optimizer.zero_grad()
        loss = model.loss(characters, characters)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.detach()

    step()
    found = plans.planned("demo", step)
    assert 1.0 <= found.ratio <= NEAR, found


def test_a_plan_is_what_the_device_counts() -> None:
    """Live tensors and what passes inside, at the moment when the step's results are there and nothing is freed."""
    device = devices.open_device("null")
    x = torch.zeros(256, 256, device="null")
    torch.webgpu.synchronize("null")
    y = ((x @ x).relu() @ x).softmax(-1)
    planned = torch.explain(y)
    before = device.counters["live_bytes"]
    torch.memory.reset_peak("null")
    torch.webgpu.synchronize("null")
    result = 256 * 256 * 4
    assert device.counters["live_bytes"] == before + result
    assert device.counters["peak_bytes"] >= before + planned.peak_bytes - result  # x was there before.
    assert device.counters["scratch_bytes"] >= planned.programs[0].program.scratch_bytes


def test_the_command_prints_both_models(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--plans", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in found] == list(plans.MODELS)
    assert all(one["planned_bytes"] / one["bound_bytes"] == pytest.approx(one["ratio"], abs=1e-3) for one in found)
    assert re.search(r"distilgpt2 +\d+ +\d+\.\d", plans.table([plans.plan("distilgpt2")]))


def test_live_tensors_are_named_by_their_line() -> None:
    with torch.memory.track():
        kept = [torch.zeros(3, 5, device="null") for _ in range(4)]
        torch.zeros(7, device="null")
        found = [one for one in torch.memory.live_tensors("null") if one.shape == (3, 5)]
        summary = torch.memory.memory_summary("null")
    (one,) = found
    assert (one.count, one.nbytes, one.text) == (4, 4 * 15 * 4, "float32[3, 5]")
    assert Path(__file__).name in one.line
    assert "4 x float32[3, 5]" in summary
    assert not torch.memory.live_tensors("null")
    del kept


def test_a_list_that_keeps_tensors_is_a_leak_and_is_named() -> None:
    kept: list[object] = []
    x = torch.ones(5, 7, device="null", requires_grad=True)

    def step() -> None:
        x.grad = None
        (x * 2).sum().backward()

    def leaking() -> None:
        step()
        kept.append(x.detach() + 1)

    sound, leaky = torch.memory.leaks(step, device="null"), torch.memory.leaks(leaking, device="null")
    assert sound.ok, str(sound)
    assert str(sound) == "leaks OK: 0 B and 0 tensors more after 3 calls"
    assert not leaky.ok
    assert (leaky.nbytes, leaky.count) == (3 * 5 * 7 * 4, 3)
    (line,) = leaky.lines
    assert (line.count, line.text, line.nbytes) == (3, "float32[5, 7]", 3 * 5 * 7 * 4)
    assert Path(__file__).name in line.line
    assert str(leaky).startswith("leaks FAIL: 420 B and 3 tensors more after 3 calls\n")


def test_audits_hold_no_gradients_but_the_new_ones() -> None:
    with torch.device("null"):
        model = torch.nn.Linear(512, 512)
        x = torch.ones(4, 512)
    optimizer = torch.optim.AdamW(model.parameters())

    @torch.compile
    def step() -> object:
        optimizer.zero_grad()
        loss = model(x).sum()
        loss.backward()
        optimizer.step()
        return loss.detach()

    counters = devices.open_device("null").counters
    live = []
    for _ in range(6):
        counters["peak_bytes"] = 0
        step()
        live.append((counters["live_bytes"], counters["peak_bytes"]))
    assert step.counters["audits"] >= 2
    assert step.counters["replays"] >= 2
    assert len(set(live[1:])) == 1, "as much after the capture, in audits and in replays"
