"""How results lie in memory, held against PyTorch's by its own samples."""

import pytest
import torch

pytest.importorskip("expecttest", reason="torch.testing's samples need expecttest, of the extra `test`")

from tests.opdb import operators, verdict  # After the package that they need.

MOST = 40  # samples of an operator
# Of inputs by columns these are row-major here where PyTorch's are not, or the other way round: layers of
# one axis, which PyTorch computes as of two, and functions of operands that lie in two orders.
OTHERWISE = {
    "_native_batch_norm_legit", "_softmax_backward_data", "einsum", "igamma", "igammac", "index_fill", "kron", "ldexp",
    "linalg.vander", "masked.logaddexp", "native_batch_norm", "native_layer_norm", "nn.functional.adaptive_avg_pool1d",
    "nn.functional.adaptive_max_pool1d", "nn.functional.avg_pool1d", "nn.functional.batch_norm", "nn.functional.conv1d",
    "nn.functional.conv_transpose1d", "nn.functional.interpolate|area", "nn.functional.max_pool1d", "roll", "rot90",
    "special.xlog1py", "special.zeta",
}  # fmt: skip
CRASHING = {"_segment_reduce|offsets", "lu_unpack"}  # PyTorch ends the process


@pytest.mark.one_in(8, webgpu=60)
@pytest.mark.parametrize("name", sorted(operators.entries()))
def test_results_lie_in_memory_as_those_of_pytorch(name: str, device: str) -> None:
    op = operators.entries()[name]
    verdicts = list(operators.strides(op, torch.float32, device, MOST))
    assert not [item.why for item in verdicts if item.kind == verdict.WRONG and item.why.startswith("strides")]


@pytest.mark.one_in(8)
@pytest.mark.parametrize("name", sorted(operators.entries().keys() - OTHERWISE - CRASHING))
def test_results_of_inputs_by_columns_lie_as_those_of_pytorch(name: str) -> None:
    op = operators.entries()[name]
    verdicts = list(operators.strides(op, torch.float32, "cpu", 8, operators.turned))
    assert not [item.why for item in verdicts if item.kind == verdict.WRONG and item.why.startswith("strides")]
