"""Floats held between bounds. NaN stays and gets no gradient; a bound that is NaN wins.

Apart from pointwise.py, since these are made of its comparisons, and nothing there is made of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pywebgpu.ir.graph import Node, Pointwise
from pywebgpu.ops import pointwise

if TYPE_CHECKING:
    from types import ModuleType

    from numpy.typing import NDArray


def _kept(g: Node, condition: Node) -> Node:
    return pointwise.where(condition, g, pointwise.scalar(0.0, g.spec.dtype))


clamp_min: Pointwise = Pointwise(
    "clamp_min",
    wgsl="p_max({0}, {1})",
    reference="maximum",
    vjp=(lambda g, out, x, low: _kept(g, pointwise.ge(x, low)), lambda g, out, x, low: _kept(g, pointwise.lt(x, low))),
    cost=3,
)

clamp_max: Pointwise = Pointwise(
    "clamp_max",
    wgsl="p_min({0}, {1})",
    reference="minimum",
    vjp=(
        lambda g, out, x, high: _kept(g, pointwise.le(x, high)),
        lambda g, out, x, high: _kept(g, pointwise.gt(x, high)),
    ),
    cost=3,
)


def _clamped(xp: ModuleType, x: NDArray[Any], low: NDArray[Any], high: NDArray[Any]) -> NDArray[Any]:
    return xp.minimum(xp.maximum(x, low), high)


_CLAMP = "p_min(p_max({0}, {1}), {2})"

clamp: Pointwise = Pointwise(
    "clamp",  # The upper bound wins where the two are crossed.
    wgsl=_CLAMP,
    reference=_clamped,
    vjp=(
        lambda g, out, x, low, high: _kept(g, pointwise.bitwise_and(pointwise.ge(x, low), pointwise.le(x, high))),
        lambda g, out, x, low, high: _kept(g, pointwise.bitwise_and(pointwise.lt(x, low), pointwise.lt(low, high))),
        lambda g, out, x, low, high: _kept(g, pointwise.bitwise_or(pointwise.gt(x, high), pointwise.lt(high, low))),
    ),
    cost=6,
)

hardtanh: Pointwise = Pointwise(
    "hardtanh",  # clamp, but that the gradient is 0 on the bounds too
    wgsl=_CLAMP,
    reference=_clamped,
    vjp=(
        lambda g, out, x, low, high: _kept(g, pointwise.bitwise_and(pointwise.gt(x, low), pointwise.lt(x, high))),
        *clamp.vjp[1:],
    ),
    cost=6,
)
