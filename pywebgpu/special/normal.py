"""Functions of the normal distribution, and of logarithms."""

from __future__ import annotations

from collections.abc import Callable
from math import exp, pi, sqrt
from typing import TYPE_CHECKING

from pywebgpu import dtypes
from pywebgpu.composites import error_functions
from pywebgpu.special import doubles
from pywebgpu.special.elementwise import between, finished, polynomial, real, unary
from pywebgpu.tensor import dispatch
from pywebgpu.tensor.apply import apply, aten
from pywebgpu.tensor.functions import where
from pywebgpu.tensor.methods import named_by_numpy

if TYPE_CHECKING:
    from pywebgpu.tensor.tensor import Tensor
    from pywebgpu.tensor.types import Operand

INF, NAN = float("inf"), float("nan")
# Of (p - 1/2)^2 up to where p is e^-2; then of 1 / sqrt(-2 log p).
NDTRI = (
    2.7124557, 0.24438895, 0.047736039, 0.011624507, 0.0031432767, 0.00088522362, 0.0002636168, 0.00010548697,
    3.3806769e-05,
)  # fmt: skip
NDTRI_FAR = (
    1.0230158, 0.08399476, -0.0030430471, -0.00051634756, 0.0006658103, -0.00056947834, 0.00037503196, -4.0601732e-05,
    -1.5449352e-05, -0.00015704783, 0.00010422976,
)  # fmt: skip
EDGE = exp(-2)


def _erfcx(x: Tensor) -> Tensor:
    return apply(error_functions.erfcx, x.detach())


def _ndtr(x: Tensor) -> Tensor:
    size = x.abs().clamp_max(1e4)  # The square of infinity times 0 is none.
    start = (size * 16).trunc() / 16  # Its square is exact: half an ulp of that of `size` counts in the result.
    factor = (-0.5 * start.square()).exp() * (-0.5 * (size - start) * (size + start)).exp()
    tail = _erfcx(size / sqrt(2)) * factor / 2
    return where(x == x, where(x < 0, tail, 1 - tail), x)


def _log_ndtr(x: Tensor) -> Tensor:
    low, high = x.clamp_max(-1), x.clamp_min(-1)
    below = (_erfcx(low / -sqrt(2)) / 2).log() - low.square() / 2
    size = high.clamp_max(1e4)
    above = (-_ndtr(-size)).log1p()
    return where(x == x, where(x < -1, below, above), x)


def _ndtri(p: Tensor) -> Tensor:
    if p.dtype is dtypes.float64:
        return doubles.ndtri(p)
    centred = p - 0.5
    middle = polynomial(between(centred.square(), 0, (0.5 - EDGE) ** 2), NDTRI) * centred
    least = where(p < 0.5, p, 1 - p)
    x = (-2 * least.clamp(1e-45, EDGE).log()).sqrt()
    inverse = 1 / x
    tail = x - x.log() * inverse - polynomial(between(inverse, 1 / 14, 0.5), NDTRI_FAR) * inverse
    result = where(least >= EDGE, middle, where(centred < 0, -tail, tail))
    result = where(p == 0, -INF, where(p == 1, INF, result))
    return where((p >= 0).logical_and(p <= 1), result, NAN)


def _entr(x: Tensor) -> Tensor:
    return where(x > 0, -x * where(x > 0, x, 1.0).log(), where(x == 0, 0.0, where(x < 0, -INF, x)))


erfcx: Callable[..., Tensor] = unary("erfcx", "exp(x^2) erfc(x)", _erfcx, lambda x: 2 * x * erfcx(x) - 2 / sqrt(pi))
ndtr = unary(
    "ndtr",
    "The share of a normal distribution below x.",
    _ndtr,
    lambda x: (-0.5 * x.square()).exp() / sqrt(2 * pi),
)
log_ndtr = unary("log_ndtr", "log(ndtr(x)), also far below 0.", _log_ndtr, lambda x: sqrt(2 / pi) / erfcx(x / -sqrt(2)))
ndtri = unary(
    "ndtri",
    "Below which x a share p of a normal distribution lies.",
    _ndtri,
    lambda p: (0.5 * _ndtri(p).square()).exp() * sqrt(2 * pi),
)
entr = unary("entr", "-x log(x): 0 at 0, -inf below.", _entr, lambda x: -(1 + x.log()))


@named_by_numpy
@aten("special_xlog1py")
def xlog1py(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
    """x log(1 + y), which is 0 where x is 0 and y is not NaN."""
    (x, y), dtype = real(input, other)
    idle = (x == 0).logical_and((y <= -1).logical_or(y == INF))
    result: Tensor = (x * where(idle, 0.0, y).log1p()).to(dtype)
    return finished("special.xlog1py", result, out, input, other)


globals().update(dispatch.all_public(globals(), __name__))
