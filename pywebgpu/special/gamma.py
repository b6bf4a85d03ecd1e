"""The zeta function of Hurwitz, derivatives of digamma, and the incomplete gamma function."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import cos, factorial, pi
from typing import TYPE_CHECKING, Any

from pywebgpu.autograd.function import Function, FunctionCtx
from pywebgpu.special.elementwise import finished, real, smooth, tensor_of
from pywebgpu.special.normal import INF, NAN
from pywebgpu.tensor import create, numeric
from pywebgpu.tensor.apply import aten, called
from pywebgpu.tensor.functions import where

if TYPE_CHECKING:
    from pywebgpu.tensor.tensor import Tensor
    from pywebgpu.tensor.types import Operand

TERMS = 9  # of a sum that an integral and Bernoulli's numbers (over factorials of even numbers) complete
BERNOULLI = 1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160
POINTS = 24  # of Gauss's rule


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
    found: Tensor = total
    return found


def _zeta(s: Tensor, q: Tensor) -> Tensor:
    """Below 0 the terms before 0 are those above it, mirrored; their sign needs a whole s."""
    below = q <= 0
    part = q - q.floor()
    part = where(part == 0, 0.5, part)
    near = _zeta_above(s, where(below, part, q))
    mirrored = _zeta_above(s, 1 - part) - _zeta_above(s, 1 - q.clamp_max(0))
    odd = s - 2 * (s / 2).floor() == 1
    found = where(below, near + where(odd, -mirrored, mirrored), near)
    found = where(below, where(q == q.floor(), INF, where(s == s.floor(), found, NAN)), found)
    found = where(q == INF, 0.0, found)
    return where(s == 1, INF, where(s > 1, where(q == q, found, q), NAN))


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


@aten("special_zeta")
def zeta(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
    """The sum of (q + k)^-s over k = 0, 1 …, where s is `input` and q is `other`."""
    (s, q), dtype = real(input, other)
    return finished(_Zeta.apply(s, q).to(dtype), out)


def polygamma(n: int, input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The n-th derivative of digamma, by element."""
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    (x,), dtype = real(input)
    return finished(called(smooth(x, *_derivatives(n), "polygamma"), "aten::polygamma").to(dtype), out)


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


@lru_cache(1)
def _gauss() -> tuple[list[float], list[float]]:
    """Gauss's points and weights over [0, 1]."""
    points, weights = [], []
    for i in range(POINTS):
        x = cos(pi * (i + 0.75) / (POINTS + 0.5))
        for _ in range(9):
            before, value = 1.0, x
            for k in range(2, POINTS + 1):
                before, value = value, ((2 * k - 1) * x * value - (k - 1) * before) / k
            slope = POINTS * (x * value - before) / (x * x - 1)
            x -= value / slope
        points.append((1 - x) / 2)
        weights.append(1 / ((1 - x * x) * slope * slope))
    return points, weights


def _incomplete(a: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """The shares of gamma(a) below and above x > 0. The integral of a small a is that of a + 3, which is smooth."""
    small = a < 5
    high = where(small, a + 3, a)
    peak = high - 1
    width = peak.sqrt()
    above = x > peak
    end = where(
        above,
        (peak + 12 * width).maximum(x + 6 * width + 12),
        (peak - 7.5 * width).minimum(x - 5 * width).clamp_min(0),
    )
    span = end - x
    points, weights = (create.tensor(part, dtype=x.dtype, device=x.device) for part in _gauss())
    u = ((x - peak).unsqueeze(-1) + span.unsqueeze(-1) * points) / peak.unsqueeze(-1)
    total = (weights * (peak.unsqueeze(-1) * _log1p_minus(u.clamp_min(-1 + 1e-7))).exp()).sum(-1)
    inverse = 1 / peak
    correction = inverse * (1 / 12 - inverse.square() * (1 / 360 - inverse.square() / 1260))
    area = (total * span.abs() * (-correction).exp() * (2 * pi * peak).rsqrt()).clamp(0, 1)
    lower, upper = where(above, 1 - area, area), where(above, area, 1 - area)
    low = a.clamp_max(5)
    term = (low * x.log() - x - numeric.lgamma(low + 1)).exp()
    steps = where(small, term + term * x / (low + 1) + term * x / (low + 1) * x / (low + 2), 0.0)
    return (lower + steps).clamp_max(1), (upper - steps).clamp_min(0)


def _log1p_minus(u: Tensor) -> Tensor:
    """log(1 + u) - u, which is near -u^2 / 2 where u is small."""
    near = u.clamp(-0.1, 0.1)
    series = near * 0 + 1 / 9
    for order in range(8, 1, -1):
        series = 1 / order - near * series
    return where(u == near, -near.square() * series, u.log1p() - u)


def _gamma_share(a: Tensor, x: Tensor, *, upper: bool) -> Tensor:
    safe_a = where((a > 0).logical_and(a < INF), a, 1.0)
    safe_x = where((x > 0).logical_and(x < INF), x, 1.0)
    found = _incomplete(safe_a, safe_x)[upper]
    low, high = (1.0, 0.0) if upper else (0.0, 1.0)
    found = where(x == INF, where(a == INF, NAN, high), where(a == INF, low, found))
    found = where(x == 0, where(a == 0, NAN, low), where(a == 0, high, found))
    return where((a >= 0).logical_and(x >= 0), found, NAN)


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


def gammainc(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The share of gamma(input) below `other`."""
    (a, x), dtype = real(tensor_of("igamma", input), tensor_of("igamma", other))
    return finished(_Gammainc.apply(a, x, False).to(dtype), out)


def gammaincc(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The share of gamma(input) above `other`."""
    (a, x), dtype = real(tensor_of("igammac", input), tensor_of("igammac", other))
    return finished(_Gammainc.apply(a, x, True).to(dtype), out)


igamma, igammac = gammainc, gammaincc  # PyTorch's names of tensors' methods
