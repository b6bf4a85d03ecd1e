"""Numbers at the edge of float32 where PyTorch is no oracle, or where a device may choose."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from tests.cases.case import resolve
from tests.cases.functional import ACTIVATIONS
from tests.cases.pointwise import UNARY
from tests.cases.run import place
from tests.oracle import oracle

DENORMALS = (1e-40, -1e-40, 1.1e-38, -1.1e-38)
FUNCTIONS = [*UNARY, "isnan", "isinf", "signbit", "nan_to_num"] + [f"nn.functional.{name}" for name in ACTIVATIONS]


def outcome(library: Any, name: str, values: tuple[float, ...], device: str) -> np.ndarray:
    x = library.tensor(values, dtype=library.float32, device=place(library, device))
    found: np.ndarray = np.array(resolve(library, name)(x).cpu().numpy(), "float64")
    return found


@pytest.mark.parametrize("name", FUNCTIONS)
def test_denormals_are_themselves_or_zero(name: str, device: str) -> None:
    """WGSL leaves it to the device whether a denormal number is 0."""
    if device == "null":
        pytest.skip("device null computes no values")
    found = outcome(oracle.library(), name, DENORMALS, device)
    allowed = [outcome(torch, name, DENORMALS, "cpu")]
    if device == "webgpu":
        allowed.append(outcome(torch, name, tuple(0.0 * value for value in DENORMALS), "cpu"))
    near = [np.isclose(found, expected, rtol=1e-5, atol=1e-6, equal_nan=True) for expected in allowed]
    assert np.logical_or.reduce(near).all(), f"{found}, not one of {allowed}"


EXACT: dict[str, tuple[Callable[[Any, Any], Any], float, float]] = {
    "gelu_of_infinity": (lambda lib, x: lib.nn.functional.gelu(x), np.inf, np.inf),
    "fmod_far": (lambda lib, x: lib.fmod(x, 1e-10), 1e38, float(np.fmod(np.float32(1e38), np.float32(1e-10)))),
    "hypot_of_infinity_and_nan": (lambda lib, x: lib.hypot(x, x * 0), np.inf, np.inf),
    "sigmoid_far": (lambda lib, x: lib.sigmoid(x), -1e38, 0.0),
    "pow_minus_2_slope_at_zero": (lambda lib, x: slope(lib.pow(x, -2), x), 0.0, -np.inf),
}


def slope(y: Any, x: Any) -> Any:
    y.sum().backward()
    return x.grad


@pytest.mark.parametrize("name", EXACT)
def test_value_is_the_right_one(name: str, device: str) -> None:
    if device == "null":
        pytest.skip("device null computes no values")
    function, argument, wanted = EXACT[name]
    library = oracle.library()
    x = library.tensor([argument] * 9, device=device, requires_grad=True)
    assert np.array_equal(function(library, x).detach().cpu().numpy(), np.full(9, wanted, "float32"))
