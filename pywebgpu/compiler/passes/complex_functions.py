"""What functions of complex numbers are, by real and imaginary parts.

Source: Kahan 1987, Branch Cuts for Complex Elementary Functions; the branches are torch's and NumPy's.
"""

from __future__ import annotations

from collections.abc import Callable

from pywebgpu.ir.graph import Node, Op
from pywebgpu.ops import complex_parts, pointwise
from pywebgpu.ops.pointwise import (
    abs_,
    add,
    atan2,
    div,
    eq,
    ge,
    hypot,
    log1p,
    lt,
    maximum,
    minimum,
    mul,
    neg,
    sub,
    where,
)

Pair = tuple[Node, Node | None]  # real and imaginary part; None for 0


def whole(z: Pair) -> tuple[Node, Node]:
    """Both parts as nodes."""
    re, im = z
    return re, pointwise.full(0.0, re.spec) if im is None else im


def number(like: Node, value: float) -> Node:
    return pointwise.scalar(value, like.spec.dtype)


def summed(a: Pair, b: Pair) -> Pair:
    """a + b"""
    return add(a[0], b[0]), b[1] if a[1] is None else a[1] if b[1] is None else add(a[1], b[1])


def minus(a: Pair) -> Pair:
    """-a"""
    return neg(a[0]), None if a[1] is None else neg(a[1])


def conjugate(a: Pair) -> Pair:
    return a[0], None if a[1] is None else neg(a[1])


def turned(a: Pair) -> Pair:
    """i a"""
    re, im = whole(a)
    return neg(im), re


def turned_back(a: Pair) -> Pair:
    """-i a"""
    re, im = whole(a)
    return im, neg(re)


def product(a: Pair, b: Pair) -> Pair:
    """a b"""
    if b[1] is None:
        return mul(a[0], b[0]), None if a[1] is None else mul(a[1], b[0])
    if a[1] is None:
        return mul(a[0], b[0]), mul(a[0], b[1])
    return sub(mul(a[0], b[0]), mul(a[1], b[1])), add(mul(a[0], b[1]), mul(a[1], b[0]))


def quotient(a: Pair, b: Pair) -> Pair:
    """a / b, with b scaled to parts of at most 1, whose squares neither overflow nor vanish together."""
    re, im = b
    if im is None:
        return div(a[0], re), None if a[1] is None else div(a[1], re)
    size = maximum(abs_(re), abs_(im))
    re, im = div(re, size), div(im, size)
    square = add(mul(re, re), mul(im, im))
    top = product(a, (re, neg(im)))
    parts = [div(div(part, square), size) for part in whole(top)]
    return parts[0], parts[1]


def inverse(a: Pair) -> Pair:
    return quotient((number(a[0], 1.0), None), a)


def of_number(a: Pair, value: float) -> Pair:
    """a + value"""
    return add(a[0], number(a[0], value)), a[1]


def exponential(a: Pair) -> Pair:
    size = pointwise.exp(a[0])
    return size if a[1] is None else mul(size, pointwise.cos(a[1])), None if a[1] is None else mul(
        size, pointwise.sin(a[1])
    )


def exponential_less_one(a: Pair) -> Pair:
    re, im = whole(a)
    half = pointwise.sin(mul(im, number(im, 0.5)))
    rest = mul(number(im, 2.0), mul(half, half))
    return sub(mul(pointwise.expm1(re), pointwise.cos(im)), rest), mul(pointwise.exp(re), pointwise.sin(im))


def logarithm(a: Pair) -> Pair:
    """Near a size of 1 the logarithm of the size is that of its square's distance from 1."""
    re, im = whole(a)
    size, large, small = hypot(re, im), maximum(abs_(re), abs_(im)), minimum(abs_(re), abs_(im))
    ones = number(re, 1.0)
    above = add(mul(sub(large, ones), add(large, ones)), mul(small, small))
    is_near = lt(abs_(above), number(re, 0.5))
    near = mul(number(re, 0.5), log1p(where(is_near, above, number(re, 0.0))))
    return where(is_near, near, pointwise.log(size)), atan2(im, re)


def logarithm_of_one_more(a: Pair) -> Pair:
    re, im = whole(a)
    above = add(mul(re, add(re, number(re, 2.0))), mul(im, im))
    is_near = lt(abs_(above), number(re, 0.5))
    near = mul(number(re, 0.5), log1p(where(is_near, above, number(re, 0.0))))
    more = of_number(a, 1.0)
    return where(is_near, near, logarithm(more)[0]), atan2(im, more[0])


def root(a: Pair) -> Pair:
    re, im = whole(a)
    half = mul(add(hypot(re, im), abs_(re)), number(re, 0.5))
    main = pointwise.sqrt(half)
    is_zero = eq(main, number(re, 0.0))
    other = where(is_zero, number(re, 0.0), div(im, mul(number(re, 2.0), where(is_zero, number(re, 1.0), main))))
    right, below = ge(re, number(re, 0.0)), signed(im)
    return where(right, main, abs_(other)), where(right, other, where(below, neg(main), main))


def signed(x: Node) -> Node:
    """Whether the sign of a real number is negative, that of -0 too."""
    return lt(atan2(x, number(x, -1.0)), number(x, 0.0))


def sine(a: Pair) -> Pair:
    re, im = whole(a)
    return mul(pointwise.sin(re), pointwise.cosh(im)), mul(pointwise.cos(re), pointwise.sinh(im))


def cosine(a: Pair) -> Pair:
    re, im = whole(a)
    return mul(pointwise.cos(re), pointwise.cosh(im)), neg(mul(pointwise.sin(re), pointwise.sinh(im)))


def hyperbolic_tangent(a: Pair) -> Pair:
    """Beyond 20 the real part is 1 to the last bit."""
    re, im = whole(a)
    re = maximum(minimum(re, number(re, 20.0)), number(re, -20.0))
    sinh, cosh, sin, cos = pointwise.sinh(re), pointwise.cosh(re), pointwise.sin(im), pointwise.cos(im)
    below = add(mul(sinh, sinh), mul(cos, cos))
    return div(mul(sinh, cosh), below), div(mul(sin, cos), below)


def arc_sine(a: Pair) -> Pair:
    left, right = root(of_number(minus(a), 1.0)), root(of_number(a, 1.0))
    across = whole(product(conjugate(left), right))[1]
    return atan2(a[0], product(left, right)[0]), pointwise.asinh(across)


def arc_cosine(a: Pair) -> Pair:
    left, right = root(of_number(minus(a), 1.0)), root(of_number(a, 1.0))
    across = whole(product(conjugate(right), left))[1]
    return mul(number(a[0], 2.0), atan2(left[0], right[0])), pointwise.asinh(across)


def area_cosine(a: Pair) -> Pair:
    left, right = root(of_number(a, -1.0)), root(of_number(a, 1.0))
    angle = atan2(whole(left)[1], right[0])
    return pointwise.asinh(product(conjugate(left), right)[0]), mul(number(a[0], 2.0), angle)


def area_tangent(a: Pair) -> Pair:
    re, im = whole(a)
    ones, square = number(re, 1.0), mul(im, im)
    near = sub(ones, re)
    ratio = div(mul(number(re, 4.0), re), add(mul(near, near), square))
    angle = atan2(mul(number(re, 2.0), im), sub(mul(near, add(ones, re)), square))
    return mul(number(re, 0.25), log1p(ratio)), mul(number(re, 0.5), angle)


def power(a: Pair, b: Pair) -> Pair:
    """exp(b log a); of 0 it is 0, and 1 where b is 0."""
    re, im = whole(a)
    nothing, ones = number(re, 0.0), number(re, 1.0)
    is_zero = eq(hypot(re, im), nothing)
    safe = where(is_zero, ones, re), where(is_zero, nothing, im)
    result = whole(exponential(product(b, logarithm(safe))))
    other = whole(b)
    empty = pointwise.bitwise_and(eq(other[0], nothing), eq(other[1], nothing))
    return where(is_zero, where(empty, ones, nothing), result[0]), where(is_zero, nothing, result[1])


FUNCTIONS: dict[Op, Callable[..., Pair]] = {
    pointwise.add: summed,
    pointwise.sub: lambda a, b: summed(a, minus(b)),
    pointwise.neg: minus,
    pointwise.mul: product,
    pointwise.div: quotient,
    pointwise.reciprocal: inverse,
    pointwise.pow_: power,
    complex_parts.conj: conjugate,
    pointwise.sqrt: root,
    pointwise.rsqrt: lambda a: inverse(root(a)),
    pointwise.exp: exponential,
    pointwise.expm1: exponential_less_one,
    pointwise.log: logarithm,
    pointwise.log1p: logarithm_of_one_more,
    pointwise.sigmoid: lambda a: inverse(of_number(exponential(minus(a)), 1.0)),
    pointwise.sin: sine,
    pointwise.cos: cosine,
    pointwise.tan: lambda a: turned_back(hyperbolic_tangent(turned(a))),
    pointwise.sinh: lambda a: turned_back(sine(turned(a))),
    pointwise.cosh: lambda a: cosine(turned(a)),
    pointwise.tanh: hyperbolic_tangent,
    pointwise.asin: arc_sine,
    pointwise.acos: arc_cosine,
    pointwise.atan: lambda a: turned_back(area_tangent(turned(a))),
    pointwise.asinh: lambda a: turned_back(arc_sine(turned(a))),
    pointwise.acosh: area_cosine,
    pointwise.atanh: area_tangent,
}
