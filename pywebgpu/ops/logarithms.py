"""Logarithms beside other arithmetic, as one op each: at 0 and at 1 they are not what their parts would make."""

from math import nan

from pywebgpu.ir.graph import Node, Pointwise
from pywebgpu.ops import pointwise

xlogy: Pointwise = Pointwise(
    "xlogy",  # a log(b), which is 0 where a is 0 and b is not NaN
    wgsl="select({0} * p_log({1}), 0.0, {0} == 0.0 && !p_isnan({1}))",
    reference=lambda xp, a, b: xp.where((a == 0) & ~xp.isnan(b), xp.zeros((), b.dtype), a * xp.log(b)),
    vjp=(
        lambda g, out, a, b: pointwise.where(
            pointwise.bitwise_and(
                pointwise.eq(a, pointwise.scalar(0.0, a.spec.dtype)),
                pointwise.le(b, pointwise.scalar(0.0, b.spec.dtype)),
            ),
            pointwise.scalar(0.0, g.spec.dtype),
            xlogy(g, b),
        ),
        lambda g, out, a, b: pointwise.div(pointwise.mul(g, a), b),
    ),
    domain=(0.5, 3.0),
    cost=10,
)

logit: Pointwise = Pointwise(
    "logit",
    "p_log({0} / (1.0 - {0}))",
    lambda xp, a: xp.log(a / (1 - a)),
    vjp=(
        lambda g, out, a: pointwise.div(
            g, _inside_unit(pointwise.mul(a, pointwise.sub(pointwise.scalar(1.0, a.spec.dtype), a)))
        ),
    ),
    domain=(0.1, 0.9),
    edges=(0.0, 1.0),
    cost=13,
)


def _inside_unit(product: Node) -> Node:
    """a (1 - a), NaN where a is outside of [0, 1]."""
    return pointwise.where(
        pointwise.ge(product, pointwise.scalar(0.0, product.spec.dtype)),
        product,
        pointwise.scalar(nan, product.spec.dtype),
    )
