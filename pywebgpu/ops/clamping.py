"""Numbers held between bounds, `relu` among them. NaN stays; a bound that is NaN wins.

Apart from pointwise.py, since these are made of its comparisons, and nothing there is made of them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pywebgpu.dtypes import DType, Kind
from pywebgpu.ir.graph import Node, Pointwise
from pywebgpu.ops import pointwise, special

if TYPE_CHECKING:
    from types import ModuleType

    from numpy.typing import NDArray


def _kept(g: Node, condition: Node) -> Node:
    return pointwise.where(condition, g, pointwise.scalar(0.0, g.spec.dtype))


def _dropped(g: Node, condition: Node) -> Node:
    return pointwise.where(condition, pointwise.scalar(0.0, g.spec.dtype), g)


linear: Pointwise = Pointwise(
    "linear",  # the identity, for straight pieces: in torch their gradient has one, which is 0
    "{0}",
    "positive",
    vjp=(lambda g, out, x: pointwise.unmoved(g, out),),
)


def _relu_wgsl(dtype: DType) -> str:
    return "p_max({0}, 0.0)" if dtype.kind is Kind.FLOAT else "max({0}, 0)"


def _relu_vjp(g: Node, out: Node, x: Node) -> Node:
    """By the result, which is what torch saves. NaN passes it on."""
    zero = pointwise.scalar(0.0, g.spec.dtype)
    return pointwise.unmoved(pointwise.where(pointwise.le(out, zero), zero, g), out)


relu: Pointwise = Pointwise(
    "relu",
    wgsl=_relu_wgsl,
    reference=lambda xp, a: special.at_least(xp, a, xp.zeros((), a.dtype)),
    vjp=(_relu_vjp,),
    edges=(0.0, float("nan")),
    cost=3,
)

clamp_min: Pointwise = Pointwise(
    "clamp_min",
    wgsl="p_max({0}, {1})",
    reference=lambda xp, a, b: special.at_least(xp, a, b),
    vjp=(
        lambda g, out, x, low: _kept(g, pointwise.ge(x, low)),
        lambda g, out, x, low: _kept(g, pointwise.lt(x, low)),
    ),
    cost=3,
)

clamp_max: Pointwise = Pointwise(
    "clamp_max",
    wgsl="p_min({0}, {1})",
    reference=lambda xp, a, b: special.at_most(xp, a, b),
    vjp=(
        lambda g, out, x, high: _kept(g, pointwise.le(x, high)),
        lambda g, out, x, high: _kept(g, pointwise.gt(x, high)),
    ),
    cost=3,
)


def _clamped(xp: ModuleType, x: NDArray[Any], low: NDArray[Any], high: NDArray[Any]) -> NDArray[Any]:
    return special.at_most(xp, special.at_least(xp, x, low), high)


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
    "hardtanh",  # clamp, but that the gradient is 0 on the bounds too, and passes NaN
    wgsl=_CLAMP,
    reference=_clamped,
    vjp=(
        lambda g, out, x, low, high: _dropped(g, pointwise.bitwise_or(pointwise.le(x, low), pointwise.ge(x, high))),
        *clamp.vjp[1:],
    ),
    cost=6,
)
inside: Pointwise = replace(
    hardtanh,  # of which the gradient of NaN is 0: hardsigmoid's
    name="inside",
    vjp=(
        lambda g, out, x, low, high: _kept(g, pointwise.bitwise_and(pointwise.gt(x, low), pointwise.lt(x, high))),
        *clamp.vjp[1:],
    ),
)
