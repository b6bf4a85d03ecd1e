"""Activations that few programs have, with torch's formulas: imported when one of them is called.

Where a branch is not taken its argument is replaced by 0 first, so that a branch that overflows gives no NaN gradient.
"""

from math import copysign, inf, isfinite, isinf

from pywebgpu import dtypes
from pywebgpu.composites import activation, arithmetic, elementwise, precision, random, reduce, slicing
from pywebgpu.composites.composite_op import composite
from pywebgpu.dtypes import Kind
from pywebgpu.errors import ShapeError
from pywebgpu.ir.graph import Node, Pointwise
from pywebgpu.ops import clamping, movement, pointwise
from pywebgpu.ops.random import Seed
from pywebgpu.support import numbers
from pywebgpu.support.shapes import axis as axis_of


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
    low = activation.times(pointwise.where(below, x, zero), input_scale)
    return pointwise.where(below, activation.times(pointwise.expm1(low), alpha * scale), activation.times(x, scale))


def selu(x: Node) -> Node:
    """elu with the constants that keep mean 0 and variance 1 (Klambauer et al. 2017, arXiv 1706.02515)."""
    return elu(x, activation.SELU_ALPHA, activation.SELU_SCALE)


def celu(x: Node, alpha: float = 1.0) -> Node:
    """x where x > 0, else alpha * (exp(x / alpha) - 1)."""
    if alpha == 0:
        raise ShapeError("celu: alpha cannot be 0")
    return elu(x, alpha, 1.0, 1.0 / alpha)


@precision.upcasting
def leaky_relu(x: Node, negative_slope: float = 0.01) -> Node:
    """x where x > 0, else negative_slope * x."""
    x = clamping.linear(x)
    return pointwise.where(pointwise.gt(x, arithmetic.like(x, 0)), x, activation.times(x, negative_slope))


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
        weight = activation.per_channel(weight, x)
    zero, x = arithmetic.like(x, 0), clamping.linear(x)
    positive = pointwise.gt(x, zero)
    return pointwise.where(positive, x, arithmetic.mul(pointwise.where(positive, zero, x), weight))


def rrelu(x: Node, lower: float, upper: float, seed: Seed) -> Node:
    """x where x >= 0, else x times a slope drawn from [lower, upper)."""
    precision.require_floating("rrelu", x)
    slope = activation.times(random.uniform(seed, x.spec.shape, x.spec.dtype), upper - lower)
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
    if not lambd >= 0:
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
    values, gates = slicing.part(x, axis, 0, size // 2), slicing.part(x, axis, size // 2, size)
    return pointwise.mul(values, pointwise.sigmoid(gates))


# Dropout


def _held(x: Node, low: float, high: float, op: Pointwise = clamping.hardtanh) -> Node:
    bounds = arithmetic.chosen(x, low), arithmetic.chosen(x, high)
    return op(clamping.linear(x), *bounds) if x.spec.dtype.kind is Kind.FLOAT else elementwise.clamp(x, *bounds)


def _softplus(x: Node, beta: float, threshold: float) -> Node:
    scaled = activation.times(x, beta)
    if beta == 0:  # log(2) / 0, whose derivative is 1/2 by the formula of all others.
        slope = pointwise.mul(x, arithmetic.like(x, 0.5))
        return x if threshold < 0 else pointwise.graft(pointwise.full(copysign(inf, beta), x.spec), slope)
    if isinf(beta):
        scaled = reduce.stop_gradient(scaled)  # A step: what is not x itself has no slope.
    linear = pointwise.gt(scaled, arithmetic.chosen(x, threshold))
    curve = pointwise.log1p(pointwise.exp(pointwise.where(linear, arithmetic.like(x, 0), scaled)))
    return pointwise.where(linear, x, activation.times(curve, 1 / beta))
