"""The zeta function of Hurwitz, derivatives of digamma, and the incomplete gamma function."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import factorial, pi
from typing import TYPE_CHECKING, Any

from pywebgpu.autograd.function import Function, FunctionCtx
from pywebgpu.special.elementwise import finished, real, smooth, tensor_of
from pywebgpu.special.normal import INF, NAN
from pywebgpu.support.quadrature import gauss
from pywebgpu.tensor import create, dispatch, numeric
from pywebgpu.tensor.apply import aten, called
from pywebgpu.tensor.functions import where
from pywebgpu.tensor.methods import named_by_numpy

if TYPE_CHECKING:
    from pywebgpu.tensor.tensor import Tensor
    from pywebgpu.tensor.types import Operand

TERMS = 9  # of a sum that an integral and Bernoulli's numbers (over factorials of even numbers) complete
BERNOULLI = 1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160
POINTS = 32  # of Gauss's rule, and of series
NEAR, SERIES_UP_TO = 1.5, 6.0  # the x up to which series of so many terms are exact
LARGE = 12.0  # the `a` from which Stirling's formula is exact
EULER = 0.5772156649015329
ZETA_LESS_1 = (
    0.6449340668482266,
    0.2020569031595943,
    0.08232323371113821,
    0.03692775514336994,
    0.017343061984449137,
    0.008349277381922829,
    0.0040773561979443405,
    0.0020083928260822143,
    0.0009945751278180857,
    0.0004941886041194647,
    0.00024608655330804827,
    0.00012271334757848917,
    6.124813505870481e-05,
    3.058823630702049e-05,
    1.5282259408651864e-05,
)  # at 2, 3 …: zeta(n) - 1


def _zeta_above(s: Tensor, q: Tensor) -> Tensor:
    """The sum of (q + k)^-s over k = 0, 1 …, for q > 0: Euler and Maclaurin's formula."""
    terms = create.arange(TERMS, dtype=q.dtype, device=q.device)
    total: Any = (q.unsqueeze(-1) + terms).pow(-s.unsqueeze(-1)).sum(-1)
    end = q + TERMS
    power = end**-s
    total = total + power * end / (s - 1) + power / 2
    factor, inverse = s * power / end, 1 / end.square()
    for order, number in enumerate(BERNOULLI):
        total = total + factor * number
        factor = factor * (s + 2 * order + 1) * (s + 2 * order + 2) * inverse
    result: Tensor = total
    return result


def _zeta(s: Tensor, q: Tensor) -> Tensor:
    """Below 0 the terms before 0 are those above it, mirrored; their sign needs a whole s."""
    below = q <= 0
    part = q - q.floor()
    part = where(part == 0, 0.5, part)
    near = _zeta_above(s, where(below, part, q))
    mirrored = _zeta_above(s, 1 - part) - _zeta_above(s, 1 - q.clamp_max(0))
    odd = s - 2 * (s / 2).floor() == 1
    result = where(below, near + where(odd, -mirrored, mirrored), near)
    result = where(below, where(q == q.floor(), INF, where(s == s.floor(), result, NAN)), result)
    result = where(q == INF, 0.0, result)
    return where(s == 1, INF, where(s > 1, where(q == q, result, q), NAN))


class _Zeta(Function):
    @staticmethod
    def forward(ctx: FunctionCtx, s: Tensor, q: Tensor) -> Tensor:
        ctx.save_for_backward(s, q)
        return _zeta(s, q)

    @staticmethod
    def backward(ctx: FunctionCtx, g: Tensor) -> tuple[Tensor | None, ...]:
        s, q = ctx.saved_tensors
        if ctx.needs_input_grad[0]:
            raise NotImplementedError("zeta: the derivative by its first argument is not here")
        return None, -g * s * _Zeta.apply(s + 1, q)


@named_by_numpy
@aten("special_zeta")
def zeta(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
    """The sum of (q + k)^-s over k = 0, 1 …, where s is `input` and q is `other`."""
    (s, q), dtype = real(input, other)
    result: Tensor = _Zeta.apply(s, q).to(dtype)
    return finished("special.zeta", result, out, input, other)


def polygamma(n: int, input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The n-th derivative of digamma, by element."""
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    (x,), dtype = real(input)
    result = called(smooth(x, *_derivatives(n), "polygamma"), "aten::polygamma").to(dtype)
    return finished("polygamma", result, out, input)


def derivative_of_digamma(input: Tensor, n: int) -> Tensor:
    """polygamma as a method."""
    return polygamma(n, input)


@lru_cache(64)
def _derivatives(n: int) -> tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]:
    """polygamma of n and of n + 1."""
    return _polygamma(n), lambda x: polygamma(n + 1, x)


def _polygamma(n: int) -> Callable[[Tensor], Tensor]:
    if n < 2:
        return (numeric.digamma, numeric.trigamma)[n]
    scale = float(factorial(n)) if n <= 34 else INF
    return lambda x: _zeta(x * 0 + (n + 1), x) * (scale if n % 2 else -scale)


# The incomplete gamma function


def _incomplete(a: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """The shares of gamma(a) below and above x > 0.

    The smaller of both is computed, the other is what it leaves of 1. Up to x = 1.5 each has a series of its own:
    there the share above may be small too, where a is.
    """
    bounded = a.clamp_max(LARGE)
    log_gamma = _lgamma1p(bounded)
    density = _density(a, x, bounded * x.log() - x - log_gamma)
    above, near = x > a, (x <= NEAR).logical_and(a < LARGE)
    integral = (density * a * _integral(a, x, above)).clamp(0, 1)
    low = where(x <= SERIES_UP_TO, density * _series(a, x.clamp_max(SERIES_UP_TO)), integral).clamp_max(1)
    upper = where(near, _series_above(bounded, x.clamp_max(NEAR), log_gamma), where(above, integral, 1 - low))
    return where(near.logical_or(above.logical_not()), low, 1 - integral), upper


def _density(a: Tensor, x: Tensor, exponent: Tensor) -> Tensor:
    """x^a e^-x / gamma(a + 1), for a large `a` by Stirling's formula, whose parts do not cancel.

    exponent: its logarithm, where `a` is small.
    """
    high = a.clamp_min(LARGE)
    inverse = 1 / high
    correction = inverse * (
        1 / 12 - inverse.square() * (1 / 360 - inverse.square() * (1 / 1260 - inverse.square() / 1680))
    )
    far = high * _log1p_minus((x - high) / high, x / high) - correction
    return where(a < LARGE, exponent.exp(), far.exp() * (2 * pi * high).rsqrt())


def _lgamma1p(a: Tensor) -> Tensor:
    """The logarithm of gamma(1 + a), whose error shrinks with a."""
    near = a.clamp_max(0.25)
    series = near * 0
    for order, excess in reversed(list(enumerate(ZETA_LESS_1, 2))):
        series = excess / order - near * series
    return where(a == near, near * (1 - EULER + near * series) - near.log1p(), numeric.lgamma(1 + a))


def _series(a: Tensor, x: Tensor) -> Tensor:
    """The share below x over the density: 1 + x / (a + 1) + x^2 / ((a + 1) (a + 2)) …"""
    terms = create.arange(1, POINTS + 1, dtype=x.dtype, device=x.device)
    return 1 + (x.unsqueeze(-1) / (a.unsqueeze(-1) + terms)).cumprod(-1).sum(-1)


def _series_above(a: Tensor, x: Tensor, log_gamma: Tensor) -> Tensor:
    """The share above a small x: 1 - x^a / gamma(a + 1) (1 - a x / (a + 1) + a x^2 / (2 (a + 2)) …)."""
    terms = create.arange(1, POINTS + 1, dtype=x.dtype, device=x.device)
    series = ((-x.unsqueeze(-1) / terms).cumprod(-1) / (a.unsqueeze(-1) + terms)).sum(-1)
    exponent = a * x.log() - log_gamma
    return (-exponent.expm1() - exponent.exp() * a * series).clamp(0, 1)


def _integral(a: Tensor, x: Tensor, above: Tensor) -> Tensor:
    """The share above or below x over a times the density: of (1 + v)^(a - 1) e^(-x v) from v = 0 away from the peak.

    It goes as far as the integrand is e^-40 at most. Points of v = end s^2 are dense where x is near.
    """
    power = (a - 1).clamp_min(1e-30)
    slope = where(above, x - (a - 1).clamp_min(0), a - 1 - x).clamp_min(1e-30)
    ratio = 40 / power
    bend = (2 * ratio).sqrt()
    end = where(above, (bend + ratio).minimum(40 / slope), -bend.minimum(40 / slope).clamp_max(1)).unsqueeze(-1)
    points, weights = (create.tensor(part, dtype=x.dtype, device=x.device) for part in gauss(POINTS))
    v = end * points.square()
    exponent = (a - 1).unsqueeze(-1) * _log1p_minus(v, 1 + v) + (a - 1 - x).unsqueeze(-1) * v
    return (2 * weights * points * exponent.exp()).sum(-1) * end.squeeze(-1).abs()


def _log1p_minus(u: Tensor, ratio: Tensor) -> Tensor:
    """log(1 + u) - u, which is near -u^2 / 2 where u is small. ratio: 1 + u, which is exact near 0."""
    near = u.clamp(-0.1, 0.1)
    series = near * 0 + 1 / 16
    for order in range(15, 1, -1):
        series = 1 / order - near * series
    return where(u == near, -near.square() * series, ratio.clamp_min(1e-37).log() - u)


def _gamma_share(a: Tensor, x: Tensor, *, upper: bool) -> Tensor:
    safe_a = where((a > 0).logical_and(a < INF), a, 1.0)
    safe_x = where((x > 0).logical_and(x < INF), x, 1.0)
    result = _incomplete(safe_a, safe_x)[upper]
    low, high = (1.0, 0.0) if upper else (0.0, 1.0)
    result = where(x == INF, where(a == INF, NAN, high), where(a == INF, low, result))
    result = where(x == 0, where(a == 0, NAN, low), where(a == 0, high, result))
    return where((a >= 0).logical_and(x >= 0), result, NAN)


class _Gammainc(Function):
    @staticmethod
    def forward(ctx: FunctionCtx, a: Tensor, x: Tensor, upper: bool) -> Tensor:
        ctx.save_for_backward(a, x)
        ctx.upper = upper  # type: ignore[attr-defined]
        return _gamma_share(a, x, upper=upper)

    @staticmethod
    def backward(ctx: FunctionCtx, g: Tensor) -> tuple[Tensor | None, ...]:
        a, x = ctx.saved_tensors
        if ctx.needs_input_grad[0]:
            raise NotImplementedError("igamma: the derivative by its first argument is not here")
        slope = ((a - 1) * x.log() - x - numeric.lgamma(a)).exp()
        return None, -g * slope if ctx.upper else g * slope, None  # type: ignore[attr-defined]


@named_by_numpy
def gammainc(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The share of gamma(input) below `other`."""
    (a, x), dtype = real(tensor_of("igamma", input), tensor_of("igamma", other))
    result: Tensor = _Gammainc.apply(a, x, False).to(dtype)
    return finished("igamma", result, out, input, other)


@named_by_numpy
def gammaincc(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The share of gamma(input) above `other`."""
    (a, x), dtype = real(tensor_of("igammac", input), tensor_of("igammac", other))
    result: Tensor = _Gammainc.apply(a, x, True).to(dtype)
    return finished("igammac", result, out, input, other)


igamma, igammac = gammainc, gammaincc  # PyTorch's names of tensors' methods


globals().update(dispatch.all_public(globals(), __name__))
