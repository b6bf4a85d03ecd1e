"""How results lie in memory, held against PyTorch's by its own samples."""

import pytest
import torch

pytest.importorskip("expecttest", reason="torch.testing's samples need expecttest, of the extra `test`")

from tests.opdb import operators, verdict  # After the package that they need.

MOST = 40  # samples of an operator
CRASHING = {"_segment_reduce|offsets", "lu_unpack"}  # PyTorch ends the process


def _different(verdicts: list[verdict.Verdict]) -> list[str]:
    return [item.why for item in verdicts if item.kind == verdict.WRONG and item.why.startswith("strides")]


@pytest.mark.one_in(8, webgpu=60)
@pytest.mark.parametrize("name", sorted(operators.entries()))
def test_results_lie_in_memory_as_those_of_pytorch(name: str, device: str) -> None:
    assert not _different(list(operators.strides(operators.entries()[name], torch.float32, device, MOST)))


@pytest.mark.one_in(8)
@pytest.mark.parametrize("name", sorted(operators.entries().keys() - CRASHING))
def test_results_of_inputs_in_another_layout_lie_as_those_of_pytorch(name: str) -> None:
    op = operators.entries()[name]
    different = {}
    for layout, function in operators.LAYOUTS.items():
        for views in (True, False) if layout in operators.DENSE else (True,):
            verdicts = list(operators.strides(op, torch.float32, "cpu", 8, function, views=views))
            different[layout, views] = _different(verdicts)
    assert not {key: texts for key, texts in different.items() if texts}
