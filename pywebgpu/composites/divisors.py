"""Divisors and multiples of whole numbers."""

from pywebgpu.composites import arithmetic, logic
from pywebgpu.dtypes import Kind
from pywebgpu.ir.graph import Node
from pywebgpu.ops import divisors, pointwise


def gcd(a: Node, b: Node) -> Node:
    """The greatest common divisor of whole numbers."""
    dtype = arithmetic.result_type(a, b)
    if dtype.kind is not Kind.INT:
        raise NotImplementedError(f'"gcd_cpu" not implemented for {logic.title(dtype)!r}')
    return arithmetic.binary(divisors.gcd, a, b, dtype)


def lcm(a: Node, b: Node) -> Node:
    """The least common multiple of whole numbers; 0 where one is 0."""
    divisor = gcd(a, b)
    zero, one = arithmetic.like(divisor, 0), arithmetic.like(divisor, 1)
    safe = pointwise.where(pointwise.eq(divisor, zero), one, divisor)
    part = arithmetic.div(arithmetic.cast(a, divisor.spec.dtype), safe, "trunc")
    product = arithmetic.mul(part, b)
    return product if divisor.spec.dtype.low == 0 else pointwise.abs_(product)
