"""How results lie in memory, held against PyTorch's by its own samples."""

import pytest
import torch

pytest.importorskip("expecttest", reason="torch.testing's samples need expecttest, of the extra `test`")

from tests.opdb import operators, verdict  # After the package that they need.

MOST = 40  # samples of an operator


@pytest.mark.one_in(8, webgpu=60)
@pytest.mark.parametrize("name", sorted(operators.entries()))
def test_results_lie_in_memory_as_those_of_pytorch(name: str, device: str) -> None:
    op = operators.entries()[name]
    verdicts = list(operators.strides(op, torch.float32, device, MOST))
    assert not [item.why for item in verdicts if item.kind == verdict.WRONG and item.why.startswith("strides")]
