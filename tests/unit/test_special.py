"""torch.special in float64: with nearly all digits, also where PyTorch has fewer."""

import numpy as np
import pytest

import pywebgpu as torch

# Computed with 40 digits by mpmath: PyTorch's own are off by 1e-7 to 1e-6, or 0.
VALUES = {
    "bessel_j0": {
        -7.2: 0.29507069140095793,
        0.001: 0.9999997500000156,
        0.7: 0.8812008886074053,
        3.3: -0.3442962603988846,
        5.4: -0.041210101244991186,
        12.6: 0.16260727174551062,
        87.5: 0.0267809277329982,
    },
    "bessel_j1": {
        -7.2: -0.05432742022236708,
        0.001: 0.0004999999375000026,
        0.7: 0.32899574154005895,
        3.3: 0.22066345298524115,
        5.4: -0.3453447907795863,
        12.6: -0.1487423434219602,
        87.5: -0.0808317338759746,
    },
    "bessel_y0": {
        0.001: -4.471416611375923,
        0.7: -0.19066492933739512,
        3.3: 0.26909199505453385,
        5.4: -0.34016787827588174,
        12.6: -0.15506412381725604,
        87.5: -0.0809834408448467,
    },
    "bessel_y1": {
        0.001: -636.6221672311394,
        0.7: -1.1032498719076334,
        3.3: 0.3878529310237099,
        5.4: 0.010127266682499378,
        12.6: -0.16887791860291362,
        87.5: -0.027244112298372734,
    },
    "airy_ai": {
        -40.3: 0.22220569428869305,
        -5.6: -0.06833069968616756,
        -2.0: 0.22740742820168558,
        -0.3: 0.43090309528558085,
        1.9: 0.0405944200315295,
        2.3: 0.02183199318062264,
        9.1: 1.8242282535640281e-09,
        60.0: 2.7831487094969354e-136,
    },
    "ndtr": {
        -33.13: 5.497374676114729e-241,
        -9.7: 1.507493168810205e-22,
        -1.2: 0.11506967022170828,
        0.4: 0.6554217416103242,
    },
}
# As by PyTorch, to a few units in the last place.
LIKE_PYTORCH = (
    "i0", "i0e", "i1", "i1e", "modified_bessel_k0", "modified_bessel_k1", "scaled_modified_bessel_k0",
    "scaled_modified_bessel_k1", "spherical_bessel_j0", "gammaln", "digamma",
)  # fmt: skip
SHARES = [1e-300, 1e-44, 1e-20, 1e-9, 0.02, 0.1353, 0.1354, 0.4, 0.5, 0.8, 0.97, 1 - 1e-9]


@pytest.mark.parametrize("name", VALUES)
def test_a_function_of_float64_has_its_digits(name: str) -> None:
    x = torch.tensor(list(VALUES[name]), dtype=torch.float64, device="cpu")
    expected = np.array(list(VALUES[name].values()))
    found = getattr(torch.special, name)(x).numpy()
    assert (np.abs(found / expected - 1) < 2e-13).all(), found / expected - 1


@pytest.mark.parametrize("name", LIKE_PYTORCH)
def test_a_function_of_float64_is_pytorchs(name: str) -> None:
    reference = pytest.importorskip("torch")
    x = np.array([1e-9, 0.02, 0.49, 0.51, 1.5, 1.9, 2.1, 4.9, 7.9, 8.1, 30.0, 88.0])
    expected = getattr(reference.special, name)(reference.tensor(x)).numpy()
    found = getattr(torch.special, name)(torch.tensor(x, device="cpu")).numpy()
    assert np.allclose(found, expected, rtol=4e-15, atol=4e-15), found - expected


def test_inverses_of_float64_are_pytorchs() -> None:
    reference = pytest.importorskip("torch")
    for name, given in (("ndtri", SHARES), ("erfinv", [-(1 - 1e-13), -0.51, 0.3, 0.97, 1 - 1e-9, 1 - 1e-15])):
        expected = getattr(reference.special, name)(reference.tensor(given, dtype=reference.float64)).numpy()
        found = getattr(torch.special, name)(torch.tensor(given, dtype=torch.float64, device="cpu")).numpy()
        assert np.allclose(found, expected, rtol=4e-15, atol=1e-16), found / expected - 1
