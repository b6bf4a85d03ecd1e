"""Logarithms beside other arithmetic, as one op each: at 0 and at 1 they are not what their parts would make."""

from __future__ import annotations

from math import nan
from typing import TYPE_CHECKING, Any

from pywebgpu.ir.graph import Node, Pointwise
from pywebgpu.ops import clamping, pointwise

if TYPE_CHECKING:
    from types import ModuleType

    from numpy.typing import NDArray

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


def _cross_entropy(xp: ModuleType, x: NDArray[Any], t: NDArray[Any]) -> NDArray[Any]:
    hit, miss = (xp.maximum(logs, -100).astype(x.dtype, copy=False) for logs in (xp.log(x), xp.log1p(-x)))
    return (t - 1) * miss - t * hit


def _cross_entropy_vjp(g: Node, out: Node, x: Node, t: Node) -> Node:
    """(x - t) / (x (1 - x)), whose divisor is held away from 0."""
    spread = pointwise.mul(x, pointwise.sub(pointwise.scalar(1.0, x.spec.dtype), x))
    spread = clamping.clamp_min(spread, pointwise.scalar(1e-12, x.spec.dtype))
    return pointwise.mul(g, pointwise.div(pointwise.sub(x, t), spread))


cross_entropy: Pointwise = Pointwise(
    "cross_entropy",  # of a probability and its target: -(t log(x) + (1 - t) log(1 - x)), each held at -100 or more
    wgsl="(({1} - 1.0) * p_max(p_log1p(-{0}), -100.0) - {1} * p_max(p_log({0}), -100.0))",
    reference=_cross_entropy,
    vjp=(
        _cross_entropy_vjp,
        lambda g, out, x, t: pointwise.mul(g, pointwise.sub(pointwise.log1p(pointwise.neg(x)), pointwise.log(x))),
    ),
    domain=(0.1, 0.9),
    cost=26,
)
