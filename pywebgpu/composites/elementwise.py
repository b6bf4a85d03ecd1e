"""Functions of one number a position, made of a few ops each; broadcasting and dtypes as torch's.

An operand is a node or a Python number. Half floats are computed in float32 and rounded once.
"""

from importlib import import_module
from math import log as natural_log
from math import pi
from types import ModuleType

from pywebgpu import dtypes
from pywebgpu.composites import arithmetic, logic, precision
from pywebgpu.composites.arithmetic import Operand
from pywebgpu.dtypes import DType, Kind
from pywebgpu.ir.graph import Node, Pointwise
from pywebgpu.ir.surface import Takes, shown
from pywebgpu.ops import clamping, pointwise
from pywebgpu.step_capture.free_number import Number
from pywebgpu.support import numbers

# One argument


@shown("neg negative", Takes.UNARY)
def neg(x: Node) -> Node:
    if x.spec.dtype is dtypes.bool_:
        raise RuntimeError(
            "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use "
            "the `~` or `logical_not()` operator instead."
        )
    return pointwise.neg(x)


@shown("abs absolute", Takes.UNARY)
def abs_(x: Node) -> Node:
    if x.spec.dtype is dtypes.bool_:
        raise NotImplementedError("\"abs_cpu\" not implemented for 'Bool'")
    if x.spec.dtype.part is not None:
        magnitude: Node = arithmetic.parts().modulus(x)
        return magnitude
    return pointwise.abs_(x)


@shown("sign", Takes.UNARY)
def sign(x: Node) -> Node:
    if x.spec.dtype.part is not None:
        raise NotImplementedError(
            "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead."
        )
    return pointwise.copy(x) if x.spec.dtype is dtypes.bool_ else pointwise.sign(x)


@shown("relu", Takes.UNARY)
def relu(x: Node) -> Node:
    arithmetic.require_field(clamping.relu, x.spec.dtype)
    if x.spec.dtype is dtypes.bool_:
        raise RuntimeError("Boolean inputs not supported for relu")
    return clamping.relu(x)


def whole(op: Pointwise, x: Node) -> Node:
    """floor, ceil, trunc, round: whole numbers stay as they are."""
    arithmetic.require_field(op, x.spec.dtype)
    if x.spec.dtype is dtypes.bool_:
        raise NotImplementedError(f"\"{op.name}\" not implemented for 'Bool'")
    return op(x) if x.spec.dtype.kind is Kind.FLOAT else pointwise.copy(x)


def round_(x: Node, decimals: int = 0) -> Node:
    """The nearest number with `decimals` digits, halves to even."""
    if decimals == 0 or x.spec.dtype.kind is not Kind.FLOAT:
        return whole(pointwise.round_, x)
    dtype, x = x.spec.dtype, precision.upcast(x)
    scale = arithmetic.like(x, 10.0 ** abs(decimals))
    there, back = (pointwise.mul, pointwise.div) if decimals > 0 else (pointwise.div, pointwise.mul)
    return arithmetic.cast(back(pointwise.round_(there(x, scale)), scale), dtype)


@shown("frac", Takes.UNARY, grad_fn="frac")
def frac(x: Node) -> Node:
    if x.spec.dtype.kind is not Kind.FLOAT:
        raise NotImplementedError(f'"frac_cpu" not implemented for {x.spec.dtype.title!r}')
    return pointwise.sub(x, pointwise.trunc(x))


@shown("square", Takes.UNARY, grad_fn="pow")
def square(x: Node) -> Node:
    x = arithmetic.cast(x, dtypes.int64) if x.spec.dtype is dtypes.bool_ else x
    return pointwise.mul(x, x)


def _scaled_log(x: Node, base: float) -> Node:
    dtype, (x,) = arithmetic.real(x)
    return arithmetic.cast(pointwise.mul(pointwise.log(x), arithmetic.like(x, 1 / natural_log(base))), dtype)


@shown("log2", Takes.UNARY, grad_fn="log2", autocast="FLOAT32")
def log2(x: Node) -> Node:
    return _scaled_log(x, 2.0)


@shown("log10", Takes.UNARY, autocast="FLOAT32")
def log10(x: Node) -> Node:
    return _scaled_log(x, 10.0)


@shown("exp2", Takes.UNARY, special="exp2", grad_fn="exp2")
def exp2(x: Node) -> Node:
    dtype, (x,) = arithmetic.real(x)
    if x.spec.dtype.part is not None:
        return arithmetic.cast(pointwise.exp(pointwise.mul(x, arithmetic.like(x, natural_log(2.0)))), dtype)
    # A product with log(2) is rounded, and powers of two would be off.
    return arithmetic.cast(pointwise.pow_(arithmetic.like(x, 2.0), x), dtype)


def logarithms() -> ModuleType:
    """ops/logarithms.py, which few programs need."""
    return import_module("pywebgpu.ops.logarithms")


def logit(x: Node, eps: float | None = None) -> Node:
    """log(x / (1 - x)), with x held in [eps, 1 - eps]."""
    dtype, (x,) = arithmetic.real(x)
    if eps is not None:
        x = clamp(clamp(x, None, 1 - eps), eps, None)  # The lower end counts where it is above the upper one.
    return arithmetic.cast(logarithms().logit(x), dtype)


@shown("sinc", Takes.UNARY, special="sinc", grad_fn="sinc")
def sinc(x: Node) -> Node:
    """sin(pi x) / (pi x), 1 at 0."""
    dtype, (x,) = arithmetic.real(x)
    zero = pointwise.eq(pointwise.mul(x, x), arithmetic.like(x, 0.0))  # The gradient divides by the square.
    angle = pointwise.mul(pointwise.where(zero, arithmetic.like(x, 1.0), x), arithmetic.like(x, pi))
    out = pointwise.where(zero, arithmetic.like(x, 1.0), pointwise.div(pointwise.sin(angle), angle))
    return arithmetic.cast(out, dtype)


def sigmoid_parts(x: Node) -> tuple[Node, Node]:
    """min(x, 0) and log(1 + exp(-|x|)), whose difference is log(sigmoid(x)): by one comparison, so that it can be
    differentiated twice at 0."""
    zero = arithmetic.like(x, 0)
    below = pointwise.lt(x, zero)
    size = pointwise.where(below, pointwise.neg(x), x)
    return pointwise.where(below, x, zero), pointwise.log1p(pointwise.exp(pointwise.neg(size)))


@shown("deg2rad", Takes.UNARY, grad_fn="deg2rad")
def deg2rad(x: Node) -> Node:
    dtype, (x,) = arithmetic.real(x)
    return arithmetic.cast(pointwise.mul(x, arithmetic.like(x, pi / 180)), dtype)


@shown("rad2deg", Takes.UNARY, grad_fn="rad2deg")
def rad2deg(x: Node) -> Node:
    dtype, (x,) = arithmetic.real(x)
    return arithmetic.cast(pointwise.mul(x, arithmetic.like(x, 180 / pi)), dtype)


def nan_to_num(x: Node, nan: float | None = None, posinf: float | None = None, neginf: float | None = None) -> Node:
    """x with NaN and the infinities replaced; by 0 and by the largest numbers of the dtype where none is given."""
    dtype = x.spec.dtype
    if dtype.kind is not Kind.FLOAT:
        return pointwise.copy(x)
    if dtype.part is not None:
        parts = arithmetic.parts()
        joined: Node = parts.complex_(
            *(nan_to_num(part, nan, posinf, neginf) for part in (parts.real(x), parts.imag(x)))
        )
        return joined
    high, low = (dtype.high if posinf is None else posinf), (dtype.low if neginf is None else neginf)
    infinities = pointwise.isinf(x)
    above = pointwise.gt(x, arithmetic.like(x, 0.0))
    ends = pointwise.where(above, arithmetic.like(x, high), arithmetic.like(x, low))
    out = pointwise.where(infinities, ends, x)
    return pointwise.where(pointwise.isnan(x), arithmetic.like(x, nan or 0.0), out)


# Two arguments


def rsub(a: Operand, b: Operand, alpha: Number = 1) -> Node:
    return arithmetic.sub(b, a, alpha)


@shown("remainder", Takes.BINARY)
def remainder(a: Operand, b: Operand) -> Node:
    """a mod b with the sign of b."""
    return _divided("remainder", pointwise.remainder, a, b)


@shown("fmod", Takes.BINARY)
def fmod(a: Operand, b: Operand) -> Node:
    """a mod b with the sign of a."""
    return _divided("fmod", pointwise.fmod, a, b)


@shown("floor_divide", Takes.BINARY, grad_fn="floor_divide")
def floor_divide(a: Operand, b: Operand) -> Node:
    dtype = arithmetic.result_type(a, b)
    if dtype is dtypes.bool_:
        raise NotImplementedError("\"div_floor_cpu\" not implemented for 'Bool'")
    if dtype.kind is Kind.INT and not isinstance(b, Node) and numbers.is_zero(b, dtype):
        raise RuntimeError("ZeroDivisionError")
    return arithmetic.div(a, b, "floor")


def _divided(name: str, op: Pointwise, a: Operand, b: Operand) -> Node:
    dtype = arithmetic.result_type(a, b)
    if dtype is dtypes.bool_:
        raise NotImplementedError(f"\"{name}_cpu\" not implemented for 'Bool'")
    if dtype.kind is Kind.INT and not isinstance(b, Node) and numbers.is_zero(b, dtype):
        raise RuntimeError("ZeroDivisionError")
    return arithmetic.binary(op, a, b, dtype)


def pow_(a: Operand, b: Operand) -> Node:
    """a to the power b. Raises RuntimeError for integers to a negative integer power."""
    dtype = arithmetic.result_type(a, b)
    if dtype is dtypes.bool_:
        if isinstance(a, Node) and not isinstance(b, Node):
            return pointwise.copy(a) if b else pointwise.full(1, a.spec)
        raise NotImplementedError("\"pow\" not implemented for 'Bool'")
    if not isinstance(b, Node) and (dtype.kind is Kind.INT or dtype.itemsize == 2):
        numbers.check(b, dtype)
    if dtype.kind is Kind.INT:
        return _integer_power(a, b, dtype)
    if isinstance(a, Node) and not isinstance(b, Node):
        known = _known_power(arithmetic.cast(a, dtype), b)
        return (arithmetic.binary(pointwise.pow_, a, b, dtype) if known is None else known).called("aten::pow")
    return arithmetic.binary(pointwise.pow_, a, b, dtype).called(
        "aten::pow.1" if isinstance(a, Node) else "aten::pow.2"
    )


def _known_power(x: Node, b: Number) -> Node | None:
    """Powers that are a product, a quotient or a root."""
    if b == 2:
        return pointwise.mul(x, x)
    if b == 3:
        return pointwise.mul(pointwise.mul(x, x), x)
    if b == 1:
        return pointwise.copy(x)
    if b == 0.5:
        return pointwise.sqrt(x)
    if b == -1:
        return pointwise.reciprocal(x)
    if b == -0.5:
        return pointwise.rsqrt(x)
    if b == -2:
        inverse = pointwise.reciprocal(x)  # Of the square, the gradient at 0 would be infinity times 0.
        return pointwise.mul(inverse, inverse)
    return None


def _integer_power(a: Operand, b: Operand, dtype: DType) -> Node:
    if not isinstance(b, Node):
        if b < 0:
            raise RuntimeError("Integers to negative integer powers are not allowed.")
        if b == 2 and isinstance(a, Node):
            x = arithmetic.cast(a, dtype)
            return pointwise.mul(x, x)
        return arithmetic.binary(pointwise.pow_, a, b, dtype)
    x, y = arithmetic.together(a, b, dtype=dtype)
    if dtype.low == 0:
        return pointwise.pow_(x, y)
    zero, unit, minus = arithmetic.like(x, 0), arithmetic.like(x, 1), arithmetic.like(x, -1)
    odd = pointwise.eq(pointwise.bitwise_and(y, unit), unit)
    alternating = pointwise.where(odd, minus, unit)
    inverse = pointwise.where(pointwise.eq(x, unit), unit, pointwise.where(pointwise.eq(x, minus), alternating, zero))
    power = pointwise.pow_(x, pointwise.maximum(y, zero))
    return pointwise.where(pointwise.lt(y, zero), inverse, power)


def float_power(a: Operand, b: Operand) -> Node:
    """a to the power b, in float64, or complex128."""
    is_complex = arithmetic.result_type(a, b).part is not None
    return arithmetic.binary(pointwise.pow_, a, b, dtypes.complex128 if is_complex else dtypes.float64)


@shown("ldexp", Takes.PAIR)
def ldexp(a: Operand, b: Operand) -> Node:
    """a times 2 to the power b."""
    dtype, (x, y) = arithmetic.real(a, b)
    return arithmetic.cast(pointwise.mul(x, pointwise.pow_(arithmetic.like(y, 2.0), y)), dtype)


@shown("fmax", Takes.PAIR, in_place=False, grad_fn="fmax")
def fmax(a: Operand, b: Operand) -> Node:
    """The larger one; the number where the other is NaN."""
    x, y = arithmetic.together(a, b)
    return pointwise.where(pointwise.bitwise_or(pointwise.ge(x, y), logic.isnan(y)), x, y)


@shown("fmin", Takes.PAIR, in_place=False, grad_fn="fmin")
def fmin(a: Operand, b: Operand) -> Node:
    """The smaller one; the number where the other is NaN."""
    x, y = arithmetic.together(a, b)
    return pointwise.where(pointwise.bitwise_or(pointwise.le(x, y), logic.isnan(y)), x, y)


@shown("atan2 arctan2", Takes.PAIR, grad_fn="atan2")
def atan2(a: Operand, b: Operand) -> Node:
    dtype, (x, y) = arithmetic.real(a, b)
    arithmetic.require_field(pointwise.atan2, dtype)
    return arithmetic.cast(pointwise.atan2(x, y), dtype)


@shown("hypot", Takes.PAIR, grad_fn="hypot")
def hypot(a: Operand, b: Operand) -> Node:
    dtype, (x, y) = arithmetic.real(a, b)
    arithmetic.require_field(pointwise.hypot, dtype)
    _require_real("hypot", a, b)
    return arithmetic.cast(pointwise.hypot(x, y), dtype)


@shown("copysign", Takes.BINARY, grad_fn="copysign")
def copysign(a: Operand, b: Operand) -> Node:
    """The size of a with the sign of b."""
    dtype, (x, y) = arithmetic.real(a, b)
    size = pointwise.abs_(x)
    out = pointwise.where(logic.signbit(y), pointwise.neg(size), size)
    return arithmetic.cast(pointwise.unmoved(out, y), dtype)


def heaviside(a: Node, values: Node) -> Node:
    """0 below 0, 1 above, `values` at 0."""
    if a.spec.dtype is not values.spec.dtype:
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")
    x, at_zero = arithmetic.together(a, values)
    zero = arithmetic.like(x, 0)
    step = arithmetic.cast(pointwise.gt(x, zero), x.spec.dtype)
    return pointwise.where(pointwise.eq(x, zero), at_zero, step)


@shown("xlogy", Takes.BINARY, special="xlogy", grad_fn="xlogy")
def xlogy(a: Operand, b: Operand) -> Node:
    """a log(b), which is 0 where a is 0 and b is not NaN."""
    dtype, (x, y) = arithmetic.real(a, b)
    return arithmetic.cast(logarithms().xlogy(x, y), dtype)


@shown("logaddexp", Takes.PAIR, in_place=False, grad_fn="logaddexp")
def logaddexp(a: Operand, b: Operand, base: float | None = None) -> Node:
    """log(exp(a) + exp(b)), or the same with powers and logarithm of `base`."""
    _require_real("logaddexp", a, b)
    dtype, (x, y) = arithmetic.real(a, b)
    scale = 1.0 if base is None else natural_log(base)
    peak, difference = pointwise.maximum(x, y), pointwise.abs_(pointwise.sub(x, y))
    if base is not None:
        difference = pointwise.mul(difference, arithmetic.like(difference, scale))
    tail = pointwise.log1p(pointwise.exp(pointwise.neg(difference)))
    if base is not None:
        tail = pointwise.mul(tail, arithmetic.like(tail, 1 / scale))
    same = pointwise.bitwise_and(pointwise.eq(x, y), pointwise.isinf(x))
    out = pointwise.where(same, x, pointwise.add(peak, tail))
    return arithmetic.cast(out, dtype)


# Three arguments


def clamp(x: Node, low: Operand | None = None, high: Operand | None = None) -> Node:
    """x held between `low` and `high`; NaN stays, and `high` wins where the two are crossed."""
    limits = [bound for bound in (low, high) if bound is not None]
    if not limits:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    dtype = arithmetic.result_type(x, *limits)
    if dtype.part is not None:
        raise NotImplementedError("clamp is not supported for complex types")
    if dtype is dtypes.bool_ and not all(isinstance(bound, Node) for bound in limits):
        raise NotImplementedError("\"clamp_scalar_cpu\" not implemented for 'Bool'")
    for bound in limits:
        if not isinstance(bound, Node):
            numbers.check(bound, dtype)
    x, *bounds = arithmetic.together(x, *limits, dtype=dtype)
    if dtype.kind is Kind.FLOAT:
        op = clamping.clamp_max if low is None else clamping.clamp_min if high is None else clamping.clamp
        return op(x, *bounds)
    if low is not None:  # A comparison may be with a number that not every device holds.
        x = pointwise.where(pointwise.lt(x, bounds[0]), bounds[0], x)
    return x if high is None else pointwise.where(pointwise.gt(x, bounds[-1]), bounds[-1], x)


def lerp(start: Node, end: Node, weight: Operand) -> Node:
    """start + weight (end - start), exact at both ends."""
    _same("lerp", start, end)
    if start.spec.dtype.kind is not Kind.FLOAT:
        raise NotImplementedError(f'"lerp" not implemented for {start.spec.dtype.title!r}')
    if isinstance(weight, Node):
        _same("lerp", start, weight)
        a, b, w = arithmetic.together(start, end, weight)
        difference = pointwise.sub(b, a)
        near = pointwise.add(a, pointwise.mul(w, difference))
        far = pointwise.sub(b, pointwise.mul(difference, pointwise.sub(arithmetic.like(w, 1.0), w)))
        return pointwise.where(pointwise.lt(abs_(w), arithmetic.like(abs_(w), 0.5)), near, far)
    numbers.check(weight, precision.compute_dtype(start.spec.dtype))
    a, b = arithmetic.together(start, end)
    difference = pointwise.sub(b, a)
    if abs(weight) < 0.5:
        return pointwise.add(a, arithmetic.mul(difference, weight))
    return pointwise.sub(b, arithmetic.mul(difference, 1.0 - weight))


def addcmul(x: Node, a: Node, b: Node, value: Number = 1) -> Node:
    """x + value * a * b"""
    dtype = arithmetic.result_type(x, a, b)
    if dtype is dtypes.bool_:
        raise NotImplementedError("\"addcmul\" not implemented for 'Bool'")
    weight = arithmetic.weight(value, dtype)
    product = arithmetic.mul(a, b)
    return arithmetic.add(x, product if value == 1 else arithmetic.mul(product, weight))


def addcdiv(x: Node, a: Node, b: Node, value: Number = 1) -> Node:
    """x + value * a / b. Raises RuntimeError for the division of integers."""
    if arithmetic.result_type(a, b).kind is not Kind.FLOAT:
        raise RuntimeError(
            "Integer division with addcdiv is no longer supported, and in a future release addcdiv will perform a true "
            "division of tensor1 and tensor2."
        )
    numbers.check(value, precision.compute_dtype(arithmetic.result_type(x, a, b)))
    quotient = arithmetic.div(a, b)
    return arithmetic.add(x, quotient if value == 1 else arithmetic.mul(quotient, value))


def _require_real(name: str, *operands: Operand) -> None:
    """Raises NotImplementedError for whole numbers alone."""
    dtype = arithmetic.result_type(*operands)
    if dtype.kind is not Kind.FLOAT:
        raise NotImplementedError(f'"{name}" not implemented for {dtype.title!r}: take x.float()')


def _same(name: str, a: Node, b: Node) -> None:
    if a.spec.dtype is not b.spec.dtype:
        raise RuntimeError(f"{name}: expected dtype {a.spec.dtype.name} but got dtype {b.spec.dtype.name}")
