"""Activations, and the dropouts that follow them. All are pointwise but for `glu`; all are torch's formulas.

Where a branch is not taken its argument is replaced by 0 first, so that a branch that overflows gives no NaN gradient.
"""

from math import pi, sqrt

from pywebgpu import dtypes
from pywebgpu.composites import arithmetic, precision, random
from pywebgpu.composites.composite_op import composite
from pywebgpu.errors import ShapeError
from pywebgpu.ir.graph import Node
from pywebgpu.ops import clamping, movement, pointwise
from pywebgpu.ops.random import Seed

SELU_ALPHA, SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


def relu(x: Node) -> Node:
    """max(x, 0)"""
    if x.spec.dtype is dtypes.bool_:
        raise ShapeError("Boolean inputs not supported for relu")
    return clamping.relu(x)


@composite
@precision.upcasting
def gelu(x: Node, approximate: str = "none") -> Node:
    """x * P(normal < x): by erf, or with approximate="tanh" by its tanh form.

    Source: Hendrycks, Gimpel 2016 (arXiv 1606.08415).
    """
    if approximate == "none":
        below = pointwise.erf(pointwise.mul(x, arithmetic.like(x, sqrt(0.5))))
        half, unit = arithmetic.like(x, 0.5), arithmetic.like(x, 1)
        return pointwise.mul(pointwise.mul(x, half), pointwise.add(below, unit))
    if approximate != "tanh":
        raise ShapeError(f"approximate argument must be either none or tanh, got {approximate!r}")
    factor = sqrt(8 / pi)  # (1 + tanh(y)) / 2 is sigmoid(2 y).
    slope = pointwise.mul(pointwise.mul(x, x), arithmetic.like(x, 0.044715 * factor))
    inner = pointwise.mul(x, pointwise.add(slope, arithmetic.like(x, factor)))
    return pointwise.mul(x, pointwise.sigmoid(inner))


@composite
@precision.upcasting
def silu(x: Node) -> Node:
    """x * sigmoid(x)"""
    return pointwise.mul(x, pointwise.sigmoid(x))


def dropout(x: Node, p: float, seed: Seed) -> Node:
    """Each element is 0 with probability p, and else divided by 1 - p. The mask is a function of the seed."""
    _require_probability(p)
    if p == 1:
        return pointwise.mul(x, arithmetic.like(x, 0))
    return pointwise.where(kept(x.spec.shape, p, seed), times(x, 1 / (1 - p)), arithmetic.like(x, 0))


def feature_dropout(x: Node, p: float, seed: Seed, *, channel_axis: int = 1) -> Node:
    """Dropout of whole channels: one draw for all elements after `channel_axis`."""
    _require_probability(p)
    if p == 1:
        return pointwise.mul(x, arithmetic.like(x, 0))
    shape = tuple(n if axis <= channel_axis else 1 for axis, n in enumerate(x.spec.shape))
    mask = arithmetic.broadcast_to(kept(shape, p, seed), x.spec.shape)
    return pointwise.where(mask, times(x, 1 / (1 - p)), arithmetic.like(x, 0))


def alpha_dropout(x: Node, p: float, seed: Seed, *, channel_axis: int | None = None) -> Node:
    """Dropout to selu's lower bound, then scaled so that mean and variance stay; by channel with `channel_axis`."""
    _require_probability(p)
    if p == 1:
        return pointwise.mul(x, arithmetic.like(x, 0))
    low = -SELU_ALPHA * SELU_SCALE
    scale = 1 / sqrt((low * low * p + 1) * (1 - p))
    shape = tuple(n if channel_axis is None or axis <= channel_axis else 1 for axis, n in enumerate(x.spec.shape))
    mask = arithmetic.broadcast_to(kept(shape, p, seed), x.spec.shape)
    out = pointwise.where(mask, x, arithmetic.like(x, low))
    return pointwise.add(times(out, scale), arithmetic.like(x, -scale * low * p))


def kept(shape: tuple[int, ...], p: float, seed: Seed) -> Node:
    """True with probability 1 - p."""
    words = random.words(seed, shape)
    return pointwise.ge(words, arithmetic.like(words, min(round(p * 2**32), 2**32 - 1)))


def per_channel(weight: Node, x: Node, axis: int = 1) -> Node:
    """(c,) -> the shape of x, along `axis`."""
    shape = tuple(n if a == axis else 1 for a, n in enumerate(x.spec.shape))
    return arithmetic.broadcast_to(movement.reshape(weight, shape=shape), x.spec.shape)


def _require_probability(p: float) -> None:
    if not 0 <= p <= 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def times(x: Node, factor: float) -> Node:
    return x if factor == 1 else pointwise.mul(x, arithmetic.chosen(x, factor))
