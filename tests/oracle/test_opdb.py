"""A part of PyTorch's own samples. `python -m tests opdb` runs all of them, and writes docs/conformance.md."""

import json

import pytest
import torch

from tests.opdb import report
from tests.opdb.verdict import LACKING, PASSED, Verdict

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


@pytest.mark.parametrize("name", passing("operators"))
def test_an_operator_passes_pytorchs_samples(name: str, device: str) -> None:
    hold(list(operators.judge(operators.entries()[name], torch.float32, device, MOST)))


@pytest.mark.parametrize("name", passing("modules"))
def test_a_module_passes_pytorchs_samples(name: str, device: str) -> None:
    hold(list(modules.judge_module(modules.modules()[name], torch.float32, device, MOST)))


@pytest.mark.parametrize("name", passing("optimizers")[:2])
def test_an_optimizer_passes_pytorchs_configurations(name: str, device: str) -> None:
    hold(list(modules.judge_optimizer(modules.optimizers()[name], device))[:MOST])


def test_the_page_is_made_of_the_data() -> None:
    known = json.loads((report.DOCS / "conformance.json").read_text(encoding="utf-8"))
    assert (report.DOCS / "conformance.md").read_text(encoding="utf-8") == report.page(known)
