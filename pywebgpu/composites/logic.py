"""Questions about numbers and their bits: comparisons, finiteness, signs, logic; broadcasting and dtypes as torch's."""

from pywebgpu import dtypes
from pywebgpu.composites import arithmetic
from pywebgpu.composites.arithmetic import Operand
from pywebgpu.dtypes import Kind
from pywebgpu.ir.graph import Node, Pointwise
from pywebgpu.ir.surface import Takes, shown
from pywebgpu.ops import pointwise


@shown("signbit", Takes.UNARY, in_place=False)
def signbit(x: Node) -> Node:
    arithmetic.require_field(pointwise.sign, x.spec.dtype)
    if x.spec.dtype.kind is Kind.FLOAT:
        return _sign_bit(x)
    return pointwise.lt(x, arithmetic.like(x, 0))


@shown("isnan", Takes.UNARY, in_place=False)
def isnan(x: Node) -> Node:
    if x.spec.dtype.kind is Kind.FLOAT:
        return pointwise.isnan(x)
    return pointwise.ne(x, x)


@shown("isinf", Takes.UNARY, in_place=False)
def isinf(x: Node) -> Node:
    if x.spec.dtype.kind is Kind.FLOAT:
        return pointwise.isinf(x)
    return pointwise.ne(x, x)


@shown("isfinite", Takes.UNARY, in_place=False)
def isfinite(x: Node) -> Node:
    if x.spec.dtype.kind is Kind.FLOAT:
        return pointwise.bitwise_not(pointwise.bitwise_or(pointwise.isnan(x), pointwise.isinf(x)))
    return pointwise.eq(x, x)


@shown("isposinf", Takes.UNARY, in_place=False)
def isposinf(x: Node) -> Node:
    return _infinite(x, pointwise.gt)


@shown("isneginf", Takes.UNARY, in_place=False)
def isneginf(x: Node) -> Node:
    return _infinite(x, pointwise.lt)


# Comparison and logic


@shown("logical_not", Takes.UNARY)
def logical_not(x: Node) -> Node:
    return pointwise.bitwise_not(arithmetic.cast(x, dtypes.bool_))


def logical(op: Pointwise, a: Node, b: Node) -> Node:
    return arithmetic.binary(op, arithmetic.cast(a, dtypes.bool_), arithmetic.cast(b, dtypes.bool_))


def bitwise(op: Pointwise, a: Operand, b: Operand) -> Node:
    dtype = arithmetic.result_type(a, b)
    if dtype.kind is Kind.FLOAT:
        raise NotImplementedError(f'"{op.name}_cpu" not implemented for {dtype.title!r}')
    return arithmetic.binary(op, a, b, dtype)


@shown("bitwise_not", Takes.UNARY)
def bitwise_not(x: Node) -> Node:
    if x.spec.dtype.kind is Kind.FLOAT:
        raise TypeError("~ (operator.invert) is only implemented on integer and Boolean-type tensors")
    return pointwise.bitwise_not(x)


def shift(op: Pointwise, a: Operand, b: Operand) -> Node:
    dtype = arithmetic.result_type(a, b)
    if dtype.kind is not Kind.INT:
        raise NotImplementedError(f'"{op.name}_cpu" not implemented for {dtype.title!r}')
    return arithmetic.binary(op, a, b, dtype)


def isclose(a: Node, b: Node, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Node:
    """|a - b| <= atol + rtol |b|; equal infinities are close, and NaNs where `equal_nan`."""
    if a.spec.dtype is not b.spec.dtype:
        raise RuntimeError(f"{a.spec.dtype.title} did not match {b.spec.dtype.title}")
    for name, value in (("rtol", rtol), ("atol", atol)):
        if value < 0:
            raise RuntimeError(f"{name} must be greater than or equal to zero, but got {value}")
    same = arithmetic.binary(pointwise.eq, a, b)
    if a.spec.dtype is dtypes.bool_:
        return same
    dtype = arithmetic.floating(a)
    x, y = arithmetic.together(a, b, dtype=dtype)
    if a.spec.dtype.kind is Kind.FLOAT and equal_nan:
        same = pointwise.bitwise_or(same, pointwise.bitwise_and(pointwise.isnan(x), pointwise.isnan(y)))
    absolute = pointwise.abs_ if dtype.part is None else arithmetic.parts().modulus
    size, difference = absolute(y), absolute(pointwise.sub(x, y))
    allowed = pointwise.add(arithmetic.like(size, atol), pointwise.mul(size, arithmetic.like(size, rtol)))
    near = pointwise.bitwise_and(pointwise.le(difference, allowed), isfinite(difference))
    return pointwise.bitwise_or(same, near)


def _sign_bit(x: Node) -> Node:
    """True where the sign bit of a floating x is set, -0.0 included."""
    if x.spec.dtype is dtypes.float64:
        zero = arithmetic.like(x, 0.0)
        below = pointwise.lt(pointwise.reciprocal(x), zero)
        return pointwise.bitwise_or(pointwise.lt(x, zero), pointwise.bitwise_and(pointwise.eq(x, zero), below))
    bits = pointwise.bitcast(arithmetic.cast(x, dtypes.float32), dtype=dtypes.int32)
    return pointwise.lt(bits, arithmetic.like(bits, 0))


def _infinite(x: Node, side: Pointwise) -> Node:
    if x.spec.dtype.part is not None:
        raise RuntimeError("isposinf and isneginf do not support complex inputs.")
    if x.spec.dtype.kind is not Kind.FLOAT:
        return pointwise.ne(x, x)
    return pointwise.bitwise_and(pointwise.isinf(x), side(x, arithmetic.like(x, 0.0)))
