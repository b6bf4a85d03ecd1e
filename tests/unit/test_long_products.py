"""Products of many factors: what rounding takes from each of them is kept until the end."""

import numpy as np
import pytest

import pywebgpu as torch

COUNT = 200_000


def drawn() -> np.ndarray:
    """Factors around 1, whose product is about 1."""
    logarithms = np.random.default_rng(0).normal(0, 0.02, COUNT)
    return np.exp(logarithms - logarithms.mean()).astype("float32")


FACTORS = {
    "equal": np.full(COUNT, 1.0001, "float32"),  # Each lane rounds its product as the others do.
    "drawn": drawn(),
    "signed": drawn() * np.where(np.arange(COUNT) % 3, 1, -1).astype("float32"),
}


@pytest.mark.parametrize("name", FACTORS)
def test_a_long_product_is_as_near_as_pytorchs(name: str, device: str) -> None:
    factors = FACTORS[name]
    exact = float(np.prod(factors.astype("float64")))
    assert torch.tensor(factors, device=device).prod().item() == pytest.approx(exact, rel=2e-5)


# factors -> their product: where a remainder is no number, or as large as the product
EDGES = [
    ([1e30] * 300, float("inf")),
    ([1e-30] * 300, 0.0),
    ([1e30] * 300 + [0.0], float("nan")),
    ([float("inf"), -1.0] * 151, float("-inf")),
    ([float("inf"), -1.0] * 200, float("inf")),
    ([2.0] * 100 + [float("nan")], float("nan")),
    ([2.0] * 100 + [0.0], 0.0),
    ([-1.0] * 301, -1.0),
]


@pytest.mark.parametrize(("factors", "product"), EDGES)
def test_a_product_has_its_infinities_zeros_and_nans(factors: list[float], product: float, device: str) -> None:
    found = torch.tensor(factors, device=device).prod().item()
    assert found == pytest.approx(product, nan_ok=True)
