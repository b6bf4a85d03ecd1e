"""erfc, and erfcx, which is erfc without its factor exp(-x^2): far from 0 1 - erf(x) has no digits left."""

from math import pi, sqrt

from pywebgpu import dtypes
from pywebgpu.composites import arithmetic
from pywebgpu.ir.graph import Node
from pywebgpu.ir.surface import Takes, shown
from pywebgpu.ops import pointwise

# Of y = 4 / (4 + x) in [0, 1].
ERFCX = (
    0.27399916, 0.24413732, 0.19330224, 0.13521358, 0.082712235, 0.043500744, 0.019097605, 0.0065998709, 0.0015240553,
    5.6396689e-05, -0.00011152777, -3.1683533e-05,
)  # fmt: skip
MOST = 1e4  # exp(MOST^2) is infinity.
NEAR, TERMS = 2.0, 40  # From NEAR on so many terms of the continued fraction give all digits of a float64.


@shown("erfc", Takes.UNARY, special="erfc", grad_fn="erfc")
def erfc(x: Node) -> Node:
    """1 - erf(x), with all its digits where that is small."""
    dtype, (x,) = arithmetic.real(x)
    arithmetic.require_field(pointwise.erf, dtype)
    plain = pointwise.sub(arithmetic.like(x, 1.0), pointwise.erf(x))
    far = pointwise.gt(x, arithmetic.like(x, 1.0))
    held = pointwise.where(far, x, arithmetic.like(x, 1.0))
    tail = pointwise.mul(_gaussian(held, -1.0), _of_positive(held))
    return arithmetic.cast(pointwise.graft(pointwise.where(far, tail, plain), plain), dtype)


def erfcx(x: Node) -> Node:
    """exp(x^2) erfc(x) of real numbers, without a gradient."""
    value = _of_positive(pointwise.abs_(x))
    below = pointwise.lt(x, arithmetic.like(x, 0.0))
    least = pointwise.where(below, x, arithmetic.like(x, 0.0))
    mirrored = pointwise.sub(_times(_gaussian(least, 1.0), 2.0), value)
    value = pointwise.where(below, mirrored, value)
    return pointwise.where(pointwise.eq(x, x), value, x)


def _of_positive(x: Node) -> Node:
    if x.spec.dtype is dtypes.float64:
        return _exact(x)
    y = pointwise.div(arithmetic.like(x, 4.0), pointwise.add(x, arithmetic.like(x, 4.0)))
    t = pointwise.sub(_times(y, 2.0), arithmetic.like(x, 1.0))
    total = arithmetic.like(x, ERFCX[-1])
    for factor in ERFCX[-2::-1]:
        total = pointwise.add(pointwise.mul(total, t), arithmetic.like(x, factor))
    return pointwise.mul(total, y)


def _exact(x: Node) -> Node:
    """The same of float64: by erf near 0, else by Laplace's continued fraction."""
    edge = arithmetic.like(x, NEAR)
    is_near = pointwise.lt(x, edge)
    near = pointwise.where(is_near, x, edge)
    direct = pointwise.mul(_gaussian(near, 1.0), pointwise.sub(arithmetic.like(x, 1.0), pointwise.erf(near)))
    far = pointwise.where(is_near, edge, x)
    rest = far
    for term in range(TERMS, 0, -1):
        rest = pointwise.add(far, pointwise.div(arithmetic.like(x, term / 2), rest))
    return pointwise.where(is_near, direct, pointwise.div(arithmetic.like(x, 1 / sqrt(pi)), rest))


def _gaussian(x: Node, sign: float) -> Node:
    """exp(sign x^2), in two factors, the first of a number whose square is exact: half an ulp of that of x counts."""
    x = pointwise.maximum(pointwise.minimum(x, arithmetic.like(x, MOST)), arithmetic.like(x, -MOST))
    start = _times(pointwise.trunc(_times(x, 16.0)), 1 / 16)
    rest = pointwise.mul(pointwise.sub(x, start), pointwise.add(x, start))
    return pointwise.mul(*(pointwise.exp(_times(part, sign)) for part in (pointwise.mul(start, start), rest)))


def _times(x: Node, factor: float) -> Node:
    return pointwise.mul(x, arithmetic.like(x, factor))
