"""Activations, and the dropouts that follow them. All are pointwise but for `glu`; all are torch's formulas.

Where a branch is not taken its argument is replaced by 0 first, so that a branch that overflows gives no NaN gradient.
"""

from math import copysign, inf, isfinite, isinf, pi, sqrt

from pywebgpu import dtypes
from pywebgpu.composites import arithmetic, elementwise, precision, random, reduce, scan
from pywebgpu.composites.composite_op import composite
from pywebgpu.dtypes import Kind
from pywebgpu.errors import ShapeError
from pywebgpu.ir.graph import Node, Pointwise
from pywebgpu.ops import clamping, movement, pointwise
from pywebgpu.ops.random import Seed
from pywebgpu.support import numbers
from pywebgpu.support.shapes import axis as axis_of

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
        half, one = arithmetic.like(x, 0.5), arithmetic.like(x, 1)
        return pointwise.mul(pointwise.mul(x, half), pointwise.add(below, one))
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


@composite
@precision.upcasting
def mish(x: Node) -> Node:
    """x * tanh(softplus(x))"""
    return pointwise.mul(x, pointwise.tanh(_softplus(x, 1.0, 20.0)))


@composite
@precision.upcasting
def softplus(x: Node, beta: float = 1.0, threshold: float = 20.0) -> Node:
    """log(1 + exp(beta x)) / beta, and x itself where beta x > threshold."""
    return _softplus(x, beta, threshold)


@composite
@precision.upcasting
def logsigmoid(x: Node) -> Node:
    """log(sigmoid(x)) = min(x, 0) - log(1 + exp(-|x|))"""
    low, tail = elementwise.sigmoid_parts(x)
    return pointwise.sub(low, tail)


@precision.upcasting
def elu(x: Node, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Node:
    """scale * x where x > 0, else scale * alpha * (exp(input_scale * x) - 1)."""
    zero = arithmetic.like(x, 0)
    below = (pointwise.le if isfinite(alpha) else pointwise.lt)(x, zero)  # 0 stays 0, though inf * 0 is NaN.
    low = _times(pointwise.where(below, x, zero), input_scale)
    return pointwise.where(below, _times(pointwise.expm1(low), alpha * scale), _times(x, scale))


def selu(x: Node) -> Node:
    """elu with the constants that keep mean 0 and variance 1 (Klambauer et al. 2017, arXiv 1706.02515)."""
    return elu(x, SELU_ALPHA, SELU_SCALE)


def celu(x: Node, alpha: float = 1.0) -> Node:
    """x where x > 0, else alpha * (exp(x / alpha) - 1)."""
    if alpha == 0:
        raise ShapeError("celu: alpha cannot be 0")
    return elu(x, alpha, 1.0, 1.0 / alpha)


@precision.upcasting
def leaky_relu(x: Node, negative_slope: float = 0.01) -> Node:
    """x where x > 0, else negative_slope * x."""
    x = clamping.linear(x)
    return pointwise.where(pointwise.gt(x, arithmetic.like(x, 0)), x, _times(x, negative_slope))


def prelu(x: Node, weight: Node) -> Node:
    """x where x > 0, else weight * x. Shapes: x (n, c, ...), weight (c,) or of one element."""
    precision.require_floating("prelu", x, weight)
    precision.require_same("prelu", x, weight)
    channels = x.spec.shape[1] if len(x.spec.shape) > 1 else 1
    if len(weight.spec.shape) > 1 or (weight.spec.shape not in ((), (1,)) and weight.spec.shape != (channels,)):
        raise ShapeError(
            f"prelu: needs a weight of 1 or {channels} elements for input {x.spec.shape}, got {weight.spec.shape}"
        )
    if weight.spec.shape == (1,):
        weight = movement.reshape(weight, shape=())
    elif weight.spec.shape:
        weight = per_channel(weight, x)
    zero, x = arithmetic.like(x, 0), clamping.linear(x)
    positive = pointwise.gt(x, zero)
    return pointwise.where(positive, x, arithmetic.mul(pointwise.where(positive, zero, x), weight))


def rrelu(x: Node, lower: float, upper: float, seed: Seed) -> Node:
    """x where x >= 0, else x times a slope drawn from [lower, upper)."""
    precision.require_floating("rrelu", x)
    slope = _times(random.uniform(seed, x.spec.shape, x.spec.dtype), upper - lower)
    slope, x = pointwise.add(slope, arithmetic.like(x, lower)), clamping.linear(x)
    return pointwise.where(pointwise.ge(x, arithmetic.like(x, 0)), x, pointwise.mul(x, slope))


def hardtanh(x: Node, min_val: float = -1.0, max_val: float = 1.0) -> Node:
    """x held in [min_val, max_val]; the gradient is 0 on the bounds and outside."""
    if x.spec.dtype is dtypes.bool_:
        raise ShapeError("Bool inputs not supported for hardtanh")
    if min_val > max_val:
        raise ValueError(f"min_val cannot be greater than max_val, got {min_val} and {max_val}")
    for value in (min_val, max_val):
        numbers.check(value, x.spec.dtype)
    return _held(x, min_val, max_val)


def relu6(x: Node) -> Node:
    """x held in [0, 6]."""
    return hardtanh(x, 0, 6)


@precision.upcasting
def hardsigmoid(x: Node) -> Node:
    """x / 6 + 1/2 held in [0, 1]; the gradient is 0 outside -3 < x < 3."""
    inner = pointwise.add(_held(x, -3, 3, clamping.inside), arithmetic.like(x, 3))
    return pointwise.div(inner, arithmetic.like(x, 6))


@precision.upcasting
def hardswish(x: Node) -> Node:
    """x * (x + 3 held in [0, 6]) / 6"""
    held = _held(pointwise.add(x, arithmetic.like(x, 3)), 0, 6)
    return pointwise.div(pointwise.mul(x, held), arithmetic.like(x, 6))


@precision.upcasting
def hardshrink(x: Node, lambd: float = 0.5) -> Node:
    """x where |x| > lambd, else 0."""
    inside = pointwise.le(pointwise.abs_(x), arithmetic.chosen(x, lambd))
    return pointwise.where(inside, arithmetic.like(x, 0), clamping.linear(x))


@precision.upcasting
def softshrink(x: Node, lambd: float = 0.5) -> Node:
    """x moved towards 0 by lambd, and 0 where |x| <= lambd."""
    if lambd < 0:
        raise ShapeError(f"lambda must be greater or equal to 0, but found to be {lambd}.")
    x = clamping.linear(x)
    return pointwise.sub(x, clamping.clamp(x, arithmetic.like(x, -lambd), arithmetic.like(x, lambd)))


def tanhshrink(x: Node) -> Node:
    """x - tanh(x)"""
    precision.refuse_bool("tanhshrink", x)
    x = arithmetic.cast(x, arithmetic.floating(x))
    return pointwise.sub(x, pointwise.tanh(x))


def softsign(x: Node) -> Node:
    """x / (1 + |x|)"""
    return arithmetic.div(x, arithmetic.add(elementwise.abs_(x), 1))


def threshold(x: Node, bound: float, value: float) -> Node:
    """x where x > bound, else value."""
    precision.refuse_bool("threshold", x)
    below = pointwise.le(x, arithmetic.chosen(x, bound))
    return pointwise.where(below, arithmetic.chosen(x, value), clamping.linear(x))


@precision.upcasting
def glu(x: Node, dim: int = -1) -> Node:
    """The first half of axis `dim` times the sigmoid of the second half."""
    if not x.spec.shape:
        raise ShapeError("glu does not support 0-dimensional tensors")
    axis = axis_of(dim, len(x.spec.shape))
    size = x.spec.shape[axis]
    if size % 2:
        raise ShapeError(f"Halving dimension must be even, but dimension {axis} is size {size} of {x.spec.shape}")
    values, gates = scan.part(x, axis, 0, size // 2), scan.part(x, axis, size // 2, size)
    return pointwise.mul(values, pointwise.sigmoid(gates))


# Dropout


def dropout(x: Node, p: float, seed: Seed) -> Node:
    """Each element is 0 with probability p, and else divided by 1 - p. The mask is a function of the seed."""
    _require_probability(p)
    if p == 1:
        return pointwise.mul(x, arithmetic.like(x, 0))
    return pointwise.where(kept(x.spec.shape, p, seed), _times(x, 1 / (1 - p)), arithmetic.like(x, 0))


def feature_dropout(x: Node, p: float, seed: Seed, *, channel_axis: int = 1) -> Node:
    """Dropout of whole channels: one draw for all elements after `channel_axis`."""
    _require_probability(p)
    if p == 1:
        return pointwise.mul(x, arithmetic.like(x, 0))
    shape = tuple(n if axis <= channel_axis else 1 for axis, n in enumerate(x.spec.shape))
    mask = arithmetic.broadcast_to(kept(shape, p, seed), x.spec.shape)
    return pointwise.where(mask, _times(x, 1 / (1 - p)), arithmetic.like(x, 0))


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
    return pointwise.add(_times(out, scale), arithmetic.like(x, -scale * low * p))


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


def _times(x: Node, factor: float) -> Node:
    return x if factor == 1 else pointwise.mul(x, arithmetic.chosen(x, factor))


def _held(x: Node, low: float, high: float, op: Pointwise = clamping.hardtanh) -> Node:
    bounds = arithmetic.chosen(x, low), arithmetic.chosen(x, high)
    return op(clamping.linear(x), *bounds) if x.spec.dtype.kind is Kind.FLOAT else elementwise.clamp(x, *bounds)


def _softplus(x: Node, beta: float, threshold: float) -> Node:
    scaled = _times(x, beta)
    if beta == 0:  # log(2) / 0, whose derivative is 1/2 by the formula of all others.
        slope = pointwise.mul(x, arithmetic.like(x, 0.5))
        return x if threshold < 0 else pointwise.graft(pointwise.full(copysign(inf, beta), x.spec), slope)
    if isinf(beta):
        scaled = reduce.stop_gradient(scaled)  # A step: what is not x itself has no slope.
    linear = pointwise.gt(scaled, arithmetic.chosen(x, threshold))
    curve = pointwise.log1p(pointwise.exp(pointwise.where(linear, arithmetic.like(x, 0), scaled)))
    return pointwise.where(linear, x, _times(curve, 1 / beta))
