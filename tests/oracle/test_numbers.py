"""Python numbers that a dtype cannot hold: in arithmetic and where they are stored, as in PyTorch, in every place."""

from typing import Any

import numpy as np
import pytest
import torch as reference

import pywebgpu
from pywebgpu.errors import IntegerOverflowError

DTYPES = ("float32", "float16", "bfloat16", "int64", "int32", "int8", "uint8", "bool")
NUMBERS: tuple[Any, ...] = (
    1e39, -1e300, 70000.0, 1e10, 10**10, 2**31, -(2**31) - 1, 2**32 - 1, 300, -1, -129,
    float("inf"), float("-inf"), float("nan"), 1.5, True,
)  # fmt: skip
HALF = ("float16", "bfloat16")

# Where numbers are computed with. `x` is (3,): 1, 0, 2 in a dtype; `n` the number.
ARITHMETIC = (
    "x + n", "n + x", "x - n", "n - x", "x * n", "x / n", "x // n", "x % n", "torch.fmod(x, n)", "n * x.sum()",
    "x < n", "x <= n", "x > n", "x >= n", "x == n", "x != n", "n < x", "torch.eq(x, n)", "x.clone().add_(n)",
    "x.clone().mul_(n)", "x[:1] - n", "x & n", "x | n", "x ^ n", "x << n", "x >> n", "torch.where(x == n, x, x + 1)",
    "x ** n", "torch.addcmul(x, x, x, value=n)", "x.copysign(n)", "x.lerp(x + 1, n)",
)  # fmt: skip
# Where they become elements, bounds or factors, and have to fit.
STORED = (
    "torch.full((1,), n, dtype=x.dtype)", "torch.full((2, 3), n, dtype=x.dtype)", "torch.full((2,), n)",
    "x.clone().fill_(n)", "torch.full_like(x, n)", "x.new_full((2,), n)", "x.masked_fill(x > 0, n)", "x.clamp(max=n)",
    "x.clamp(min=n)", "torch.clip(x, n, n)", "x.index_fill(0, ROWS(torch), n)", "x.scatter(0, ROWS(torch), n)",
    "x.scatter(0, ROWS(torch), n, reduce='add')", "SET(x, 0, n)", "SET(x, slice(1, None), n)", "SET(x, x > 0, n)",
    "torch.where(x > 0, x, n)", "torch.tensor([n], dtype=x.dtype)", "torch.tensor(n, dtype=x.dtype)",
    "torch.tensor([n, 1])", "torch.scalar_tensor(n, dtype=x.dtype)", "x.add(x, alpha=n)", "torch.sub(x, x, alpha=n)",
    "torch.nn.functional.pad(x, (1, 0), value=n)", "torch.nn.functional.threshold(x, 1, n)",
    "torch.nn.functional.hardtanh(x, -1, n)", "torch.nn.functional.leaky_relu(x, n)", "torch.linspace(0, n, 2)",
    "torch.linspace(0, n, 2, dtype=x.dtype)", "x.index_add(0, ROWS(torch), x[:1], alpha=n)",
    "torch.addmm(x[None], x[None], EYE(torch, x), beta=n)", "torch.arange(0, n, n)",
    "x.clone().uniform_(0, n) * 0", "torch.histc(x, 3, 0, n)",
)  # fmt: skip
# Where PyTorch raises by other rules than these, or has none: (call, dtype), and (call, number) for every dtype.
ODD: set[tuple[str, Any]] = {
    ("x.add(x, alpha=n)", True), ("torch.sub(x, x, alpha=n)", True), ("torch.sub(x, x, alpha=n)", "int32"),
    ("torch.nn.functional.threshold(x, 1, n)", "bool"), ("torch.nn.functional.hardtanh(x, -1, n)", "uint8"),
    ("torch.nn.functional.hardtanh(x, -1, n)", "bool"), ("torch.linspace(0, n, 2, dtype=x.dtype)", "bool"),
    ("torch.nn.functional.pad(x, (1, 0), value=n)", "uint8"),
    ("torch.addmm(x[None], x[None], EYE(torch, x), beta=n)", "bool"),
}  # fmt: skip


def on(device: str) -> dict[str, Any]:
    """What expressions may call, with tensors of a device."""

    def put(x: Any, where: Any, n: Any) -> Any:
        x[where] = n
        return x

    return {
        "SET": put,
        "ROWS": lambda torch: torch.tensor([0], device=device),
        "EYE": lambda torch, x: torch.eye(3, device=device).to(x.dtype),
    }


def outcome(torch: Any, text: str, dtype: str, n: Any, device: str) -> Any:
    """The elements, or the exception."""
    try:
        x = torch.tensor([1, 0, 2], device=device).to(getattr(torch, dtype))
        found = eval(text, {"torch": torch, "x": x, "n": n, **on(device)})
        return found.dtype, found.tolist()
    except Exception as error:
        return error


@pytest.fixture(autouse=True)
def default_device(device: str) -> Any:
    before = pywebgpu.get_default_device()
    pywebgpu.set_default_device(device)
    yield
    pywebgpu.set_default_device(before)


@pytest.mark.one_in(2, webgpu=8)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("text", [*ARITHMETIC, *STORED])
def test_a_number_is_taken_as_by_torch(device: str, text: str, dtype: str) -> None:
    if (text, dtype) in ODD:
        return
    for n in NUMBERS:
        if n is True and (text, n) in ODD:
            continue
        wanted, found = outcome(reference, text, dtype, n, "cpu"), outcome(pywebgpu, text, dtype, n, device)
        if isinstance(found, IntegerOverflowError) and device != "cpu" and not isinstance(wanted, Exception):
            assert str(wanted[0]) == "torch.int64"
            assert not fits(wanted[1]) or not fits(n), (n, wanted, found)
            continue
        if isinstance(wanted, Exception):
            assert isinstance(found, Exception), (n, wanted, found)
            assert isinstance(found, known(wanted)), (n, repr(wanted), repr(found))
            continue
        assert not isinstance(found, Exception), (n, wanted, repr(found))
        assert str(found[0]) == str(wanted[0]), n
        tolerance = 0.01 if dtype in HALF else 1e-6 if device == "cpu" else 1e-5
        np.testing.assert_allclose(np.array(found[1]), np.array(wanted[1]), rtol=tolerance, atol=1e-37, err_msg=str(n))


def fits(numbers: Any) -> bool:
    return bool(np.all(np.abs(np.array(numbers, dtype=np.float64)) < 2.0**31))


def known(error: Exception) -> tuple[type[Exception], ...]:
    """NotImplementedError is a RuntimeError, and says of a dtype what a TypeError may say."""
    return (RuntimeError, TypeError) if isinstance(error, NotImplementedError) else (type(error),)
