"""The logarithm of the gamma function and its derivatives: asymptotic series, reached by recurrences and reflection."""

from __future__ import annotations

import math
from math import pi
from typing import TYPE_CHECKING, Any

from pywebgpu.ir.graph import Node, Pointwise
from pywebgpu.ops import pointwise

if TYPE_CHECKING:
    from types import ModuleType

    from numpy.typing import NDArray

START = 10.0  # where the series begin
LGAMMA = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400)
DIGAMMA = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)
TRIGAMMA = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)


def _series(z: NDArray[Any], factors: tuple[float, ...]) -> NDArray[Any]:
    total: Any = 0.0
    for factor in reversed(factors):
        total = total * z + factor
    return total


def _reached(xp: ModuleType, x: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
    """x + n >= START for x >= 0.5; the product, the sum of inverses and of their squares of what was passed."""
    product, inverses, squares = xp.ones_like(x), xp.zeros_like(x), xp.zeros_like(x)
    for _ in range(int(START)):
        low = x < START
        product = xp.where(low, product * x, product)
        inverses = xp.where(low, inverses + 1 / x, inverses)
        squares = xp.where(low, squares + 1 / (x * x), squares)
        x = xp.where(low, x + 1, x)
    return x, product, inverses, squares


def _exact_lgamma(x: float) -> float:
    try:
        return math.lgamma(x)
    except (OverflowError, ValueError):  # Too large for a float; a pole.
        return math.inf


def _lgamma(xp: ModuleType, a: NDArray[Any]) -> NDArray[Any]:
    if a.dtype == "float64":
        return xp.asarray(xp.frompyfunc(_exact_lgamma, 1, 1)(a), dtype="float64")
    v = a.astype("float64")
    with xp.errstate(all="ignore"):
        below = v < 0.5
        x, product, _, _ = _reached(xp, xp.where(below, 1 - v, v))
        out = (x - 0.5) * xp.log(x) - x + 0.9189385332046727 + _series(1 / (x * x), LGAMMA) / x - xp.log(product)
        mirrored = xp.log(pi / xp.abs(xp.sin(pi * (v - xp.floor(v))))) - out
        out = xp.where(below, mirrored, out)
        poles = ((v <= 0) & (v == xp.floor(v))) | xp.isinf(v)
        return xp.where(poles, xp.inf, out).astype(a.dtype)


def _digamma(xp: ModuleType, a: NDArray[Any]) -> NDArray[Any]:
    v = a.astype("float64")
    with xp.errstate(all="ignore"):
        below = v < 0.5
        x, _, inverses, _ = _reached(xp, xp.where(below, 1 - v, v))
        z = 1 / (x * x)
        out = xp.log(x) - 0.5 / x - z * _series(z, DIGAMMA) - inverses
        out = xp.where(below, out - pi / xp.tan(pi * (v - xp.floor(v))), out)
        out = xp.where((v < 0) & (v == xp.floor(v)), xp.nan, xp.where(v == 0, xp.copysign(xp.inf, -v), out))
        return xp.where(v == xp.inf, xp.inf, out).astype(a.dtype)


def _trigamma(xp: ModuleType, a: NDArray[Any]) -> NDArray[Any]:
    v = a.astype("float64")
    with xp.errstate(all="ignore"):
        below = v < 0.5
        x, _, _, squares = _reached(xp, xp.where(below, 1 - v, v))
        z = 1 / (x * x)
        out = 1 / x + 0.5 * z + z / x * _series(z, TRIGAMMA) + squares
        mirrored = (pi / xp.sin(pi * (v - xp.floor(v)))) ** 2 - out
        return xp.where(below, mirrored, out).astype(a.dtype)


def _no_gradient(g: Node, out: Node, a: Node) -> Node:
    raise NotImplementedError("polygamma: the derivative of trigamma is not here")


lgamma: Pointwise = Pointwise(
    "lgamma",
    "p_lgamma({0})",
    _lgamma,
    vjp=(lambda g, out, a: pointwise.mul(g, digamma(a)),),
    domain=(0.5, 5.0),
    cost=60,
)
digamma: Pointwise = Pointwise(
    "digamma",
    "p_digamma({0})",
    _digamma,
    vjp=(lambda g, out, a: pointwise.mul(g, trigamma(a)),),
    domain=(0.5, 5.0),
    cost=60,
)
trigamma: Pointwise = Pointwise(
    "trigamma", "p_trigamma({0})", _trigamma, vjp=(_no_gradient,), domain=(0.5, 5.0), cost=60
)
