"""Bessel's and Airy's functions: polynomials near 0, and of 1/x far from it."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from math import log, pi
from typing import TYPE_CHECKING

from pywebgpu import dtypes
from pywebgpu.special.elementwise import between, polynomial, unary
from pywebgpu.tensor import dispatch
from pywebgpu.tensor.functions import where

if TYPE_CHECKING:
    from pywebgpu.tensor.tensor import Tensor

    Factors = Sequence[float]

INF, NAN = float("inf"), float("nan")

# Each: its factors for t in [-1, 1]. Over |x| in [0, 8], then of 8/x.
I0E = (
    0.20700192, -0.11300431, 0.094515372, -0.089044151, 0.087350776, -0.084954058, 0.079194922, -0.0695916,
    0.057210219, -0.042866522, 0.028884006, -0.019752007, 0.014189214, -0.0070140031, 0.001443571, -0.0013501893,
    0.0019258831, -0.00070726231,
)  # fmt: skip
I0E_FAR = 0.40217651, 0.0033605556, 0.00013615604, 1.1112718e-05, 1.6391297e-06, 3.6221099e-07
I1E = (
    0.044687701, -0.061124308, 0.068057693, -0.068482957, 0.063764212, -0.055272139, 0.044700642, -0.03373307,
    0.023584693, -0.0153278, 0.009777991, -0.0060539531, 0.0028423429, -0.00093724757, 0.00075000283, -0.00068436253,
    0.00021837143,
)  # fmt: skip
I1E_FAR = 0.38939846, -0.0097495819, -0.00021916808, -1.5002033e-05, -2.0097929e-06, -4.2258095e-07
# Of x^2 in [0, 64]; of the second kind without the logarithm's part.
J0 = (
    0.045829665, 0.93030122, -0.64846928, -0.80808822, 1.0383794, -0.50747134, 0.14598913, -0.028465193, 0.0040575376,
    -0.00045105841, 3.8953798e-05,
)  # fmt: skip
J1 = (
    -0.058143824, 0.081058659, 0.15151647, -0.25959484, 0.15858524, -0.054745963, 0.012452696, -0.0020287085,
    0.00025419231, -2.4376281e-05,
)  # fmt: skip
Y0 = (
    -0.38225065, -0.82843583, 1.6470965, 0.14412517, -1.0775476, 0.67218353, -0.21895804, 0.046352307, -0.0070246487,
    0.00082087233, -7.3765034e-05,
)  # fmt: skip
Y1 = (
    0.070759852, -0.24337743, 0.023367926, 0.23507204, -0.19640123, 0.07854815, -0.019620821, 0.0034218439,
    -0.00045287129, 4.5326079e-05,
)  # fmt: skip
# Factors of cosine and sine far from 0, of 8/x.
P = (
    (0.99972702, -0.0005426224, -0.00026486081, 6.0572256e-06, 1.2670998e-06),
    (1.0004556, 0.00090690473, 0.00044511928, -7.8634282e-06, -1.6703845e-06),
)
Q = (
    (-0.015589624, 6.9851069e-05, 3.3061859e-05, -1.4512809e-06),
    (0.046825404, -9.8085206e-05, -4.6746277e-05, 1.7910588e-06),
)
# Of x^2 in [0, 4] without the logarithm's part, then of 2/x.
K0 = -0.30362077, 0.34049732, 0.071776976, 0.0050533921, 0.00018289697, 4.0556657e-06
K1 = -0.057455856, -0.10866451, -0.01325464, -0.00067291148, -1.9116907e-05
K0_FAR = 1.2185953, -0.031071736, 0.0030331203, -0.00047734643, 9.837521e-05, -2.9306781e-05, 8.815085e-06
K1_FAR = (
    1.363152, 0.1033496, -0.0055670282, 0.00073598972, -0.00013808539, 3.1983305e-05, -1.1206395e-05, 3.7258224e-06
)  # fmt: skip
# Over [-2.1, 2.1]; then of 1 / (2/3 |x|^1.5), below with factors of cosine and sine.
AIRY = (
    0.35502805, -0.54352069, 7.6116172e-07, 0.54798366, -0.41947404, 2.3221921e-05, 0.16923224, -0.092602476,
    -0.00018666517, 0.022031843, -0.0092705271, -0.00036107341, 0.0013887478, -0.00032044207,
)  # fmt: skip
AIRY_ABOVE = 0.98471766, -0.013770869, 0.0012638242, -0.00019350732, 3.9168689e-05, -1.1463256e-05, 3.4130046e-06
AIRY_COS = 0.99791421, -0.0038927699, -0.0014762006, 0.00033883234, -2.4156536e-05, -2.1704096e-05, 1.0467721e-05
AIRY_SIN = (
    0.067448474, -0.0035175433, -0.0010111152, 0.00046231459, -9.2123568e-05, -1.2054984e-05, 2.3161872e-05,
    -8.7688587e-06,
)  # fmt: skip
MIDDLE, MOST = 2.1, 1 / (2 / 3 * 2.1**1.5)


def _in_float64(name: str, x: Tensor, *degrees: int) -> Tensor | None:
    """A function of a tensor of float64; None of others."""
    if x.dtype is not dtypes.float64:
        return None
    result: Tensor = getattr(import_module("pywebgpu.special.doubles"), name)(x, *degrees)
    return result


def _scaled_i(x: Tensor, near: Factors, far: Factors) -> Tensor:
    """exp(-x) I(x) of x >= 0; of I1 divided by x where it is near."""
    large = x.clamp_min(8)
    return where(x <= 8, polynomial(between(x, 0, 8), near), polynomial(between(8 / large, 0, 1), far) * large.rsqrt())


def _i0e(x: Tensor) -> Tensor:
    exact = _in_float64("i0e", x)
    return _scaled_i(x.abs(), I0E, I0E_FAR) if exact is None else exact


def _i1e(x: Tensor) -> Tensor:
    exact = _in_float64("i1e", x)
    if exact is not None:
        return exact
    size = x.abs()
    result = _scaled_i(size, I1E, I1E_FAR)
    return where(size <= 8, result * x, result * x.sign())


def _i0(x: Tensor) -> Tensor:
    return _i0e(x) * x.abs().exp()


def _i1(x: Tensor) -> Tensor:
    return _i1e(x) * x.abs().exp()


def _i1_over(x: Tensor) -> Tensor:
    """exp(-|x|) I1(x) / x, 1/2 at 0."""
    return where(x == 0, 0.5, _i1e(x) / where(x == 0, 1.0, x))


i0e = unary("i0e", "exp(-|x|) I0(x)", _i0e, lambda x: _i1e(x) - x.sign() * _i0e(x))
i1e = unary("i1e", "exp(-|x|) I1(x)", _i1e, lambda x: _i0e(x) - _i1e(x) * x.sign() - _i1_over(x))
i0 = unary("i0", "The modified Bessel function of the first kind, of order 0.", _i0, _i1)
i1 = unary(
    "i1",
    "The modified Bessel function of the first kind, of order 1.",
    _i1,
    lambda x: _i0(x) - _i1_over(x) * x.abs().exp(),
)
modified_bessel_i0, modified_bessel_i1 = i0, i1


def _waves(x: Tensor, order: int) -> tuple[Tensor, Tensor]:
    """J and Y of x >= 8."""
    x = where(x == INF, NAN, x.clamp_min(8))  # As by PyTorch, they have no limit at infinity.
    t, phase = between(8 / x, 0, 1), x - (order * pi / 2 + pi / 4)
    a, b, size = polynomial(t, P[order]), polynomial(t, Q[order]) * 8 / x, (x * (pi / 2)).rsqrt()
    cosine, sine = phase.cos(), phase.sin()
    return size * (a * cosine - b * sine), size * (a * sine + b * cosine)


def _j(x: Tensor, order: int) -> Tensor:
    exact = _in_float64("j", x, order)
    if exact is not None:
        return exact
    size = x.abs()
    near = polynomial(between(size.clamp_max(8).square(), 0, 64), J1 if order else J0)
    near = near * size if order else near
    result = where(size <= 8, near, _waves(size, order)[0])
    return result.where(x >= 0, -result) if order else result.where(x == x, x)


def _y(x: Tensor, order: int) -> Tensor:
    exact = _in_float64("y", x, order)
    if exact is not None:
        return exact
    small = x.clamp(1e-38, 8)
    rest = polynomial(between(small.square(), 0, 64), Y1 if order else Y0)
    rest = rest * small - 2 / pi / small if order else rest
    near = rest + 2 / pi * small.log() * _j(small, order)
    result = where(x <= 8, near, _waves(x, order)[1])
    return where(x == 0, -INF, where(x >= 0, result, NAN))


def _j0(x: Tensor) -> Tensor:
    return _j(x, 0)


def _j1(x: Tensor) -> Tensor:
    return where(x == x, _j(x, 1), x)


bessel_j0 = unary("bessel_j0", "The Bessel function of the first kind, of order 0.", _j0)
bessel_j1 = unary("bessel_j1", "The Bessel function of the first kind, of order 1.", _j1)
bessel_y0 = unary("bessel_y0", "The Bessel function of the second kind, of order 0.", lambda x: _y(x, 0))
bessel_y1 = unary("bessel_y1", "The Bessel function of the second kind, of order 1.", lambda x: _y(x, 1))


def _scaled_k(x: Tensor, order: int) -> Tensor:
    """exp(x) K(x)"""
    exact = _in_float64("scaled_k", x, order)
    if exact is not None:
        return exact
    small, large = x.clamp(1e-38, 2), x.clamp_min(2)
    rest = polynomial(between(small.square(), 0, 4), K1 if order else K0)
    logarithm = (small.log() - log(2)) * (_i1(small) if order else _i0(small))
    near = (rest * small + logarithm + 1 / small if order else rest - logarithm) * small.exp()
    far = polynomial(between(2 / large, 0, 1), K1_FAR if order else K0_FAR) * large.rsqrt()
    return where(x == 0, INF, where(x >= 0, where(x <= 2, near, far), NAN))


def _k(x: Tensor, order: int) -> Tensor:
    return _scaled_k(x, order) * (-x.clamp_min(0)).exp()


modified_bessel_k0 = unary(
    "modified_bessel_k0", "The modified Bessel function of the second kind, of order 0.", lambda x: _k(x, 0)
)
modified_bessel_k1 = unary(
    "modified_bessel_k1", "The modified Bessel function of the second kind, of order 1.", lambda x: _k(x, 1)
)
scaled_modified_bessel_k0 = unary("scaled_modified_bessel_k0", "exp(x) K0(x)", lambda x: _scaled_k(x, 0))
scaled_modified_bessel_k1 = unary("scaled_modified_bessel_k1", "exp(x) K1(x)", lambda x: _scaled_k(x, 1))


def _spherical(x: Tensor) -> Tensor:
    square = x.clamp(-0.5, 0.5).square()
    near = x * 0 + 1
    for n in range(12, 0, -2):
        near = 1 - near * square / (n * (n + 1))
    far = where(x.abs() < 0.5, 1.0, x)
    return where(x.abs() < 0.5, near, where(x.isinf(), 0.0, far.sin() / far))


spherical_bessel_j0 = unary("spherical_bessel_j0", "sin(x) / x, 1 at 0.", _spherical)


def _airy(x: Tensor) -> Tensor:
    exact = _in_float64("airy_ai", x)
    if exact is not None:
        return exact
    size = x.abs().clamp(MIDDLE, 1e20)
    phase = 2 / 3 * size * size.sqrt()
    inverse = 1 / phase
    t, root = between(inverse, 0, MOST), (pi * size.sqrt()).rsqrt()
    above = polynomial(t, AIRY_ABOVE) * root * (-phase).exp() / 2
    angle = phase - pi / 4
    below = root * (polynomial(t, AIRY_COS) * angle.cos() + polynomial(t, AIRY_SIN) * inverse * angle.sin())
    middle = polynomial(between(x, -MIDDLE, MIDDLE), AIRY)
    result = where(x.abs() <= MIDDLE, middle, where(x > 0, above, below))
    return where(x.isinf(), NAN, where(x == x, result, x))


airy_ai = unary("airy_ai", "Airy's function Ai.", _airy)


globals().update(dispatch.all_public(globals(), __name__))
