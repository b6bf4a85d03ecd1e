"""explain and visualize: kernels, what they are for, the memory that they take."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import pywebgpu as torch
from pywebgpu import nn
from pywebgpu.compiler import fusion, inlining
from pywebgpu.ir.graph import thread_state
from pywebgpu.runtime import program_cache


def settled(*shape: int, device: str = "null") -> Any:
    x = torch.zeros(*shape, device=device)
    torch.webgpu.synchronize(device)
    return x


def training() -> Any:
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)).to("null")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = settled(32, 8)

    def step() -> Any:
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return step


@pytest.mark.parametrize("device", ["cpu", "null"])
def test_a_softmax_is_one_kernel(device: str) -> None:
    found = torch.explain((settled(4, 8, device=device) * 2 + 1).softmax(-1))
    assert len(found.kernels) == 1
    assert {"mul", "add", "exp", "sum", "div"} <= set(found.kernels[0].work)
    assert "@compute" in found.kernels[0].wgsl
    assert found.peak_bytes == found.lower_bound == 2 * 4 * 8 * 4


def test_explaining_computes_nothing() -> None:
    y = settled(4) + 1
    before = torch.memory.stats("null")["dispatches"]
    torch.explain(y)
    assert torch.memory.stats("null")["dispatches"] == before
    assert y._node.buffer is None
    assert thread_state.origins is None


def test_what_has_its_value_takes_no_kernel() -> None:
    found = torch.explain(settled(4))
    assert (found.kernels, found.peak_bytes, str(found)) == ((), 0, "")


def test_a_summary_counts_what_shares_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    found = torch.explain(training())
    first, kinds, memory = found.summary().split("\n")
    ops, kernels, together, shared, alone = map(int, re.findall(r"\d+", first))
    assert kernels == len(found.kernels) == shared + alone
    assert ops == together + alone
    assert "matmul" in kinds
    assert memory.startswith(f"{found.peak_bytes:,} bytes")
    monkeypatch.setattr(inlining, "settings", replace(inlining.settings, fuse=False))
    monkeypatch.setattr(fusion, "settings", replace(fusion.settings, fuse=False))
    program_cache.clear()
    apart = [*map(int, re.findall(r"\d+", torch.explain(training()).summary().split("\n")[0]))]
    program_cache.clear()  # The next test's Program is a fused one.
    assert apart[1] > kernels
    assert (apart[2], apart[3]) < (together, shared)


def test_a_call_is_explained_by_phase_module_and_line() -> None:
    found = torch.explain(training())
    assert {step.origin.phase for step in found.kernels} == {"forward", "backward", "optimizer"}
    first = found.kernels[0]
    assert (first.origin.module, first.op) == ("Sequential.0", "matmul")
    assert Path(__file__).name in first.origin.line
    modules = {origin.module for step in found.kernels for origin in step.origins}
    assert {"Sequential.0", "Sequential.1", "Sequential.2", "SGD"} <= modules
    assert found.peak_bytes >= found.lower_bound > 0


def test_a_known_program_is_explained_like_a_new_one() -> None:
    step = training()
    step()
    once, again = torch.explain(step), torch.explain(step)
    assert str(once) == str(again)
    assert [step.text for step in once.kernels] == [step.text for step in again.kernels]


def test_text_is_what_debug_prints() -> None:
    found = torch.explain((settled(3, 5) + 1).sum())
    one, two, three = (found.text(level) for level in (1, 2, 3))
    assert one == "program: 1 steps, 2 values, 64 bytes, 0 of them inside, at least 64"
    assert two.startswith(one)
    assert "0: rows_sum grid=(1, 1, 1) v0@0 -> v1@1 64 bytes  add, sum" in two
    assert found.kernels[0].wgsl in three


def test_what_is_no_tensor_is_refused() -> None:
    with pytest.raises(TypeError, match="needs a Tensor"):
        torch.explain([3])


def test_a_page_holds_all_that_it_shows(tmp_path: Path) -> None:
    file = torch.visualize(training(), tmp_path / "page.html")
    text = file.read_text(encoding="utf-8")
    assert not re.findall(r"(?:src|href)=|https?://|@import", text), "it needs nothing else"
    data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)[1])
    (program,) = data
    assert program["peak"] >= program["bound"] > 0
    for step in program["steps"]:
        assert "@compute" in program["kernels"][step["kernel"]]["wgsl"]
        assert step["lines"]
        assert step["writes"]
        assert step["phase"] in ("forward", "backward", "optimizer")
    assert all(slot["start"] + slot["bytes"] <= program["sizes"][slot["buffer"]] for slot in program["slots"])


def test_a_page_holds_two_plans_to_compare(tmp_path: Path) -> None:
    x = settled(4, 8)
    named = {"before": lambda: (x * 2).sum(), "after": lambda: (x * 2).sum(dim=1) + 1}
    text = torch.visualize(named, tmp_path / "page.html").read_text(encoding="utf-8")
    before, after = json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])
    assert (before["of"], after["of"]) == ("before", "after")
    assert before["kernels"] != after["kernels"]


def test_kernels_are_timed_where_the_device_has_a_clock(device: str) -> None:
    """But not while a profile times: one at a time can."""
    x = torch.rand(64, 64, device=device)

    def call() -> Any:
        return (x @ x).sum(dim=0)

    plans = torch.explain(call, times=True).programs
    assert len(plans) == 1
    assert all(len(plan.seconds) == (len(plan.steps) if device == "webgpu" else 0) for plan in plans)
    assert all(second > 0 for plan in plans for second in plan.seconds)
    assert not torch.explain(call).programs[0].seconds
    with torch.profiler.profile() as found:
        assert not torch.explain(call, times=True).programs[0].seconds
    assert len(found.events()) > 0


def test_text_of_the_program_cannot_end_the_page(tmp_path: Path) -> None:
    x = settled(4)
    with torch.profiler.record_function("</script>"):
        pass

    def call() -> Any:
        with torch.profiler.record_function("</script><b>"):
            return x + 1

    text = torch.visualize(call, tmp_path / "page.html").read_text()
    assert "</script><b>" not in text
