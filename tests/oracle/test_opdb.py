"""A part of PyTorch's own samples. `python -m tests opdb` runs all of them, and writes docs/conformance.md."""

import itertools
import json
import time

import pytest
import torch

import pywebgpu
from tests.opdb import report, verdict
from tests.opdb.verdict import LACKING, PASSED, WRONG, Verdict

pytest.importorskip("expecttest", reason="torch.testing's samples need expecttest, of the extra `test`")

from tests.opdb import modules, operators  # After the package that they need.

EVERY = 12  # one entry in so many, and this many samples of it
MOST = 2
KNOWN = json.loads((report.DOCS / "conformance.json").read_text(encoding="utf-8"))["cpu/float32"]


def passing(family: str) -> list[str]:
    """Some of the entries whose samples all pass on device cpu."""
    return [name for name, entry in sorted(KNOWN[family].items()) if report.state(entry) == PASSED][::EVERY]


def hold(verdicts: list[Verdict]) -> None:
    assert verdicts
    assert not [item for item in verdicts if item.kind not in (PASSED, LACKING)]


@pytest.mark.one_in(3, webgpu=2)
@pytest.mark.parametrize("name", passing("operators"))
def test_an_operator_passes_pytorchs_samples(name: str, device: str) -> None:
    hold(list(operators.judge(operators.entries()[name], torch.float32, device, MOST)))


@pytest.mark.parametrize("name", passing("modules"))
def test_a_module_passes_pytorchs_samples(name: str, device: str) -> None:
    hold(list(modules.judge_module(modules.modules()[name], torch.float32, device, MOST)))


@pytest.mark.parametrize("name", passing("optimizers")[:2])
def test_an_optimizer_passes_pytorchs_configurations(name: str, device: str) -> None:
    hold(list(modules.judge_optimizer(modules.optimizers()[name], device))[:MOST])


@pytest.mark.parametrize(("found", "kind"), [(0.5, LACKING), (0.75, WRONG)])
def test_float32_stands_for_a_float64_that_webgpu_has_not(found: float, kind: str, device: str) -> None:
    ours, theirs = pywebgpu.tensor([found], device=device), torch.tensor([0.5], dtype=torch.float64)
    seen = verdict.judged(lambda: verdict.same("value", ours, theirs))
    assert seen.kind == (kind if device == "webgpu" else WRONG), seen


def test_time_that_a_sample_waits_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    with verdict.limited(1):
        time.sleep(1.5)
    monkeypatch.setattr(verdict, "WAITED", 1)
    with pytest.raises(TimeoutError), verdict.limited(1):
        time.sleep(10)


def test_time_that_a_sample_computes_is_counted() -> None:
    with pytest.raises(TimeoutError), verdict.limited(1):
        any(False for _ in itertools.repeat(0))


def test_the_page_is_made_of_the_data() -> None:
    known = json.loads((report.DOCS / "conformance.json").read_text(encoding="utf-8"))
    assert (report.DOCS / "conformance.md").read_text(encoding="utf-8") == report.page(known)
