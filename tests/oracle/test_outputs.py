"""`out=` of PyTorch's operators, by its own samples: dtypes, devices, shapes, strides and memory that overlaps."""

import pytest
import torch

pytest.importorskip("expecttest", reason="torch.testing's samples need expecttest, of the extra `test`")

from tests.opdb import operators, outputs, verdict  # After the package that they need.

NAMES = sorted(name for name, op in operators.entries().items() if op.supports_out and op.name not in outputs.CRASHING)


@pytest.mark.one_in(6, webgpu=40)
@pytest.mark.parametrize("name", NAMES)
def test_out_is_taken_and_refused_as_by_pytorch(name: str, device: str) -> None:
    op = operators.entries()[name]
    dtype = torch.float32 if op.supports_dtype(torch.float32, "cpu") else torch.int64
    if not op.supports_dtype(dtype, "cpu"):
        pytest.skip("PyTorch has it on CUDA alone")
    found = list(outputs.judge(op, dtype, device, 1))
    wrong = [f"{case}: {item.why}" for case, item in found if item.kind not in (verdict.PASSED, verdict.LACKING)]
    assert not wrong
