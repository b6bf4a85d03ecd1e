"""`out=` of PyTorch's operators, by its own samples: dtypes, devices, shapes, strides and memory that overlaps."""

import pytest
import torch

import pywebgpu
from pywebgpu.tensor import functions

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


@pytest.mark.parametrize("name", sorted(functions.generated().keys() & vars(torch).keys()))
def test_out_is_refused_where_pytorch_has_none(name: str) -> None:
    """By the schemas of PyTorch's operators: none of them has an `out`."""
    schemas = torch._C._jit_get_schemas_for_operator(f"aten::{name}")
    if not schemas or any(argument.is_out for schema in schemas for argument in schema.arguments):
        return
    x = pywebgpu.ones(2, 2, device="cpu")
    with pytest.raises(TypeError, match="out"):
        functions.generated()[name](x, out=x.clone())
