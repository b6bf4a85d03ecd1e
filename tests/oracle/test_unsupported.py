"""What webgpu cannot hold is an error: float64, and int64 beyond 32 bits."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.oracle import oracle

NO_PLACE: dict[str, Callable[[Any, str], Any]] = {
    "zeros_float64": lambda torch, device: torch.zeros(2, dtype=torch.float64, device=device),
    "tensor_float64": lambda torch, device: torch.tensor([1.0], dtype=torch.double, device=device),
    "cast_to_float64": lambda torch, device: torch.ones(2, device=device).double(),
    "sum_float64": lambda torch, device: torch.ones(2, device=device).sum(dtype=torch.float64),
    "softmax_float64": lambda torch, device: torch.ones(2, device=device).softmax(0, dtype=torch.float64),
    "cumprod_float64": lambda torch, device: torch.ones(2, device=device).cumprod(0, dtype=torch.float64),
    "float_power": lambda torch, device: torch.float_power(torch.ones(2, device=device), 2),
    "moved_float64": lambda torch, device: torch.ones(2, dtype=torch.float64, device="cpu").to(device),
}


@pytest.mark.parametrize("name", sorted(NO_PLACE))
def test_float64_on_webgpu_is_a_type_error(name: str, device: str) -> None:
    if device != "webgpu":
        pytest.skip("other devices hold float64")
    with pytest.raises(TypeError, match="float64"):
        NO_PLACE[name](oracle.library(), device)


@pytest.mark.parametrize("number", [2**31, -(2**31) - 1, 2**40])
def test_int64_beyond_int32_on_webgpu_is_an_error(number: int, device: str) -> None:
    if device != "webgpu":
        pytest.skip("other devices hold int64")
    with pytest.raises((RuntimeError, ValueError, OverflowError)):
        oracle.library().tensor([number], device=device).tolist()
