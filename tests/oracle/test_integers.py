"""Whole numbers of 64 bits: PyTorch's results on every device, or OverflowError where a device has 32 bits."""

from typing import Any

import pytest
import torch as reference

import pywebgpu
from tests import integers


def outcome(torch: Any, expression: str, data: Any, device: str) -> Any:
    """dtype, elements; or the exception."""
    try:
        result = integers.value(torch, expression, data, device)
        return str(result.dtype), result.tolist()
    except Exception as error:
        return error


@pytest.mark.one_in(webgpu=3)
@pytest.mark.filterwarnings("ignore:index_reduce")
@pytest.mark.parametrize("expression", integers.EXPRESSIONS)
def test_a_result_is_torchs_or_does_not_fit(expression: str, device: str) -> None:
    for data in integers.NUMBERS:
        wanted, found = outcome(reference, expression, data, "cpu"), outcome(pywebgpu, expression, data, device)
        if isinstance(wanted, Exception):
            assert data is not integers.SMALL, repr(wanted)
            assert isinstance(found, Exception)
        elif device != "cpu" and isinstance(found, OverflowError):
            assert wanted[0] == "torch.int64"
            assert expression in integers.ON_THE_WAY or not fits(wanted[1])
        else:
            assert repr(found) == repr(wanted)  # NaN, too


def fits(value: Any) -> bool:
    return all(map(fits, value)) if isinstance(value, list) else integers.LOW <= value <= integers.TOP
