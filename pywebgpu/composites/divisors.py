"""Divisors and multiples of whole numbers."""

from pywebgpu import dtypes
from pywebgpu.composites import arithmetic
from pywebgpu.dtypes import Kind
from pywebgpu.ir.graph import Node
from pywebgpu.ops import divisors, pointwise


def gcd(a: Node, b: Node) -> Node:
    """The greatest common divisor of whole numbers."""
    dtype = arithmetic.result_type(a, b)
    if dtype.kind is not Kind.INT:
        raise NotImplementedError(f'"gcd_cpu" not implemented for {dtype.title!r}')
    divisor = arithmetic.binary(divisors.gcd, a, b, dtype)
    return pointwise.abs_(divisor) if dtype is dtypes.int64 else divisor  # That of 0 and the least number may not fit.


def lcm(a: Node, b: Node) -> Node:
    """The least common multiple of whole numbers; 0 where one is 0."""
    divisor = gcd(a, b)
    zero, unit = arithmetic.like(divisor, 0), arithmetic.like(divisor, 1)
    safe = pointwise.where(pointwise.eq(divisor, zero), unit, divisor)
    part = arithmetic.div(arithmetic.cast(a, divisor.spec.dtype), safe, "trunc")
    dtype = divisor.spec.dtype
    if dtype.low == 0:
        return arithmetic.mul(part, b)
    wide = dtypes.int32 if dtype.itemsize < 4 else dtype  # The sign is taken of the whole product, as PyTorch does.
    return arithmetic.cast(pointwise.abs_(arithmetic.mul(arithmetic.cast(part, wide), b)), dtype)
