"""Ops which work element by element. To add one: write its record here, and its method in tensor/.

A name in a WGSL expression that is not a builtin (`p_erf`, `p_max`) is a function of kernels/prelude.py. Inputs have
one dtype; composites/arithmetic.py promotes before it calls.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import copysign
from typing import Any

from pywebgpu import dtypes
from pywebgpu.dtypes import DType, Kind
from pywebgpu.ir.graph import Generator, Node, Pointwise, Spec, thread_state
from pywebgpu.ir.surface import Surface, Takes
from pywebgpu.ops import special


def full(value: float, like: Spec) -> Node:
    """A constant of a shape."""
    return const(spec=like, value=value)


def scalar(value: float, dtype: DType) -> Node:
    """A constant of shape (), which may stand beside operands of any shape. All who ask for it share one node."""
    return _scalar(value, copysign(1.0, value), type(value).__name__, dtype)


@lru_cache(4096)
def _scalar(value: float, sign: float, kind: str, dtype: DType) -> Node:
    """Sign and kind are there for the cache: 0.0 equals -0.0, and 1 equals True."""
    return const(spec=Spec((), dtype), value=value)


def _const(like: Node, value: float) -> Node:
    """An operand beside `like`."""
    return scalar(value, like.spec.dtype)


def _nothing(g: Node, *others: Node) -> Node:
    """The gradient of what has none."""
    return full(0.0, g.spec)


def unmoved(value: Node, source: Node) -> Node:
    """`value`; `source`, of its shape and dtype, has a gradient, which is 0."""
    if not (source.requires and thread_state.grad):
        return value
    return where(scalar(False, dtypes.bool_), source, value)


def _to_bool(*inputs: DType, **attrs: Any) -> DType:
    return dtypes.bool_


def _by_kind(floating: str, integer: str) -> Callable[..., str]:
    return lambda *inputs, **attrs: floating if inputs[-1].kind is Kind.FLOAT else integer


# Generators

const: Generator = Generator(
    "const",
    lambda xp, spec, value: xp.broadcast_to(xp.asarray(value, special.numpy_dtype(spec.dtype)), spec.shape),
)

iota: Generator = Generator(
    "iota",  # the coordinate along one axis
    lambda xp, spec, axis: xp.broadcast_to(
        xp.arange(spec.shape[axis], dtype=special.numpy_dtype(spec.dtype)).reshape(
            [-1 if a == axis else 1 for a in range(len(spec.shape))]
        ),
        spec.shape,
    ),
)

# Arithmetic

add: Pointwise = Pointwise(
    "add",
    wgsl=_by_kind("({0} + {1})", "({0} + {1})"),
    reference="add",
    vjp=(lambda g, out, a, b: g, lambda g, out, a, b: g),
)

sub: Pointwise = Pointwise(
    "sub", wgsl="({0} - {1})", reference="subtract", vjp=(lambda g, out, a, b: g, lambda g, out, a, b: neg(g))
)

mul: Pointwise = Pointwise(
    "mul",
    wgsl="({0} * {1})",
    reference="multiply",
    vjp=(lambda g, out, a, b: mul(g, b), lambda g, out, a, b: mul(g, a)),
)

div: Pointwise = Pointwise(
    "div",
    wgsl="({0} / {1})",
    reference="true_divide",
    vjp=(lambda g, out, a, b: div(g, b), lambda g, out, a, b: neg(mul(g, div(out, b)))),
    domain=(0.5, 3.0),
    cost=4,
)

floor_divide: Pointwise = Pointwise(
    "floor_divide",
    wgsl=lambda a, b: {"f32": "p_floordiv_f32({0}, {1})", "i32": "p_floordiv({0}, {1})", "u32": "p_quotient({0}, {1})"}[
        b.compute
    ],
    reference=lambda xp, a, b: special.floor_divide(xp, a, b),
    vjp=(_nothing, _nothing),
    cost=6,
)

trunc_divide: Pointwise = Pointwise(
    "trunc_divide",  # of floats
    wgsl="trunc({0} / {1})",
    reference=lambda xp, a, b: xp.trunc(special.upcast(xp, a) / special.upcast(xp, b)).astype(b.dtype),
    vjp=(_nothing, _nothing),
    cost=5,
)

remainder: Pointwise = Pointwise(
    "remainder",  # the sign of the divisor
    wgsl=lambda a, b: {"f32": "p_remainder({0}, {1})", "i32": "p_modulo({0}, {1})", "u32": "p_rest({0}, {1})"}[
        b.compute
    ],
    reference=lambda xp, a, b: special.remainder(xp, a, b),
    vjp=(lambda g, out, a, b: g, lambda g, out, a, b: neg(mul(g, floor_divide(a, b)))),
    domain=(0.5, 3.0),
    cost=6,
)

fmod: Pointwise = Pointwise(
    "fmod",  # the sign of the dividend
    wgsl=lambda a, b: {"f32": "p_fmod_f32({0}, {1})", "i32": "p_fmod({0}, {1})", "u32": "p_rest({0}, {1})"}[b.compute],
    reference=lambda xp, a, b: special.fmod(xp, a, b),
    vjp=(lambda g, out, a, b: g, lambda g, out, a, b: neg(mul(g, trunc_divide(a, b)))),
    domain=(0.5, 3.0),
    cost=6,
)

neg: Pointwise = Pointwise(
    "neg",
    wgsl=lambda a: "(0u - {0})" if a.compute == "u32" else "(-{0})",
    reference="negative",
    vjp=(lambda g, out, a: neg(g),),
)

pow_: Pointwise = Pointwise(
    "pow",
    wgsl=lambda a, b: f"p_pow_{b.compute}({{0}}, {{1}})",
    reference="power",
    vjp=(
        lambda g, out, a, b: where(
            eq(b, _const(b, 0.0)), _const(g, 0.0), mul(g, mul(b, pow_(a, sub(b, _const(b, 1.0)))))
        ),
        lambda g, out, a, b: where(
            bitwise_and(eq(a, _const(a, 0.0)), _not_below(b)), _const(g, 0.0), mul(g, mul(out, log(a)))
        ),
    ),
    domain=(0.5, 3.0),
    cost=24,
)


def _not_below(b: Node) -> Node:
    """Whether an exponent, or its real part, is not negative."""
    if b.spec.dtype.part is not None:
        b = cast(b, dtype=b.spec.dtype.part)
    return ge(b, _const(b, 0.0))


maximum: Pointwise = Pointwise(
    "maximum",
    wgsl=_by_kind("p_max({0}, {1})", "max({0}, {1})"),
    reference="maximum",
    vjp=(lambda g, out, a, b: mul(g, _share(a, b)), lambda g, out, a, b: mul(g, _share(b, a))),
    cost=3,
    surface=Surface("maximum", Takes.PAIR, in_place=False),
)

minimum: Pointwise = Pointwise(
    "minimum",
    wgsl=_by_kind("p_min({0}, {1})", "min({0}, {1})"),
    reference="minimum",
    vjp=(lambda g, out, a, b: mul(g, _share(b, a)), lambda g, out, a, b: mul(g, _share(a, b))),
    cost=3,
    surface=Surface("minimum", Takes.PAIR, in_place=False),
)

atan2: Pointwise = Pointwise(
    "atan2",
    wgsl="p_atan2({0}, {1})",
    reference="arctan2",
    vjp=(
        lambda g, out, a, b: mul(mul(g, b), _inverse_square(a, b)),
        lambda g, out, a, b: neg(mul(mul(g, a), _inverse_square(a, b))),
    ),
    cost=20,
)

hypot: Pointwise = Pointwise(
    "hypot",
    wgsl="p_hypot({0}, {1})",
    reference="hypot",
    vjp=(lambda g, out, a, b: mul(g, div(a, out)), lambda g, out, a, b: mul(g, div(b, out))),
    cost=12,
)


def _inverse_square(a: Node, b: Node) -> Node:
    """1 / (a^2 + b^2), 0 where both are 0."""
    square = add(mul(a, a), mul(b, b))
    return where(eq(square, _const(a, 0.0)), _const(a, 0.0), reciprocal(square))


def _share(a: Node, b: Node) -> Node:
    """0 where a < b, 1/2 where a == b, else 1: also where one of them is NaN."""
    rest = where(eq(a, b), _const(a, 0.5), _const(a, 1.0))
    return where(lt(a, b), _const(a, 0.0), rest)


# Comparison and choice


def _comparison(name: str, sign: str, ufunc: str, names: str) -> Pointwise:
    """Compilers assume that nothing is NaN, so its bits are asked for; no &&, a branch: drivers write out all paths."""
    integer = f"{{0}} {sign} {{1}}"
    floating = {
        "==": "!p_isnan({0}) & ({0} == {1})",
        "!=": "p_isnan({0}) | p_isnan({1}) | ({0} != {1})",
    }.get(sign, f"!p_isnan({{0}}) & !p_isnan({{1}}) & ({integer})")
    wgsl = _by_kind(f"u32({floating})", f"u32({integer})")
    result = _to_bool if sign in ("==", "!=") else dtypes.of_order
    return Pointwise(name, wgsl, ufunc, vjp=(None, None), result=result, surface=Surface(names, Takes.BINARY))


eq: Pointwise = _comparison("eq", "==", "equal", "eq")
ne: Pointwise = _comparison("ne", "!=", "not_equal", "ne not_equal")
lt: Pointwise = _comparison("lt", "<", "less", "lt less")
le: Pointwise = _comparison("le", "<=", "less_equal", "le less_equal")
gt: Pointwise = _comparison("gt", ">", "greater", "gt greater")
ge: Pointwise = _comparison("ge", ">=", "greater_equal", "ge greater_equal")

where: Pointwise = Pointwise(
    "where",
    wgsl="select({2}, {1}, {0} != 0u)",
    reference=lambda xp, mask, a, b: special.where(xp, mask, a, b),
    vjp=(
        None,
        lambda g, out, c, a, b: where(c, g, _const(g, 0.0)),
        lambda g, out, c, a, b: where(c, _const(g, 0.0), g),
    ),
    result=lambda c, a, b: b,
)

isnan: Pointwise = Pointwise("isnan", "u32(p_isnan({0}))", "isnan", vjp=(None,), result=_to_bool, edges=(float("nan"),))
isinf: Pointwise = Pointwise("isinf", "u32(p_isinf({0}))", "isinf", vjp=(None,), result=_to_bool, edges=(float("inf"),))


def _bits(name: str, sign: str) -> Pointwise:
    wgsl, surface = f"({{0}} {sign} {{1}})", Surface(name, Takes.BITS)
    return Pointwise(name, wgsl, name, vjp=(None, None), surface=surface)


bitwise_and: Pointwise = _bits("bitwise_and", "&")
bitwise_or: Pointwise = _bits("bitwise_or", "|")
bitwise_xor: Pointwise = _bits("bitwise_xor", "^")
bitwise_not: Pointwise = Pointwise(
    "bitwise_not",
    wgsl=lambda a: "(1u - {0})" if a is dtypes.bool_ else "(~{0})",
    reference="invert",
    vjp=(None,),
)


def _shift(name: str, function: str, ufunc: str) -> Pointwise:
    wgsl = lambda a, b: f"{function}_{b.compute}({{0}}, {{1}})"  # noqa: E731 - part of a record
    return Pointwise(name, wgsl, ufunc, vjp=(None, None), surface=Surface(f"bitwise_{ufunc}", Takes.SHIFT))


shift_left: Pointwise = _shift("shift_left", "p_shl", "left_shift")
shift_right: Pointwise = _shift("shift_right", "p_shr", "right_shift")

# Roots, exponentials, logarithms

sqrt: Pointwise = Pointwise(
    "sqrt",
    wgsl="sqrt({0})",
    reference="sqrt",
    vjp=(lambda g, out, a: div(mul(g, _const(g, 0.5)), out),),
    domain=(0.1, 3.0),
    edges=(0.0, -1.0),
    cost=4,
    surface=Surface("sqrt", Takes.REAL),
)
rsqrt: Pointwise = Pointwise(
    "rsqrt",
    wgsl="inverseSqrt({0})",
    reference=lambda xp, a: xp.reciprocal(xp.sqrt(a)),
    vjp=(lambda g, out, a: mul(mul(g, _const(g, -0.5)), pow_(out, _const(out, 3.0))),),
    domain=(0.1, 3.0),
    cost=4,
    surface=Surface("rsqrt", Takes.REAL, autocast="FLOAT32"),
)
reciprocal: Pointwise = Pointwise(
    "reciprocal",
    wgsl="(1.0 / {0})",
    reference="reciprocal",
    vjp=(lambda g, out, a: neg(mul(g, mul(out, out))),),
    domain=(0.5, 3.0),
    cost=4,
    surface=Surface("reciprocal", Takes.REAL, autocast="FLOAT32"),
)
exp: Pointwise = Pointwise(
    "exp",
    "p_exp({0})",
    "exp",
    vjp=(lambda g, out, a: mul(g, out),),
    edges=(-100.0, 0.0),
    cost=8,
    surface=Surface("exp", Takes.REAL, autocast="FLOAT32"),
)
expm1: Pointwise = Pointwise(
    "expm1",
    "p_expm1({0})",
    "expm1",
    vjp=(lambda g, out, a: mul(g, add(out, _const(g, 1.0))),),
    edges=(1e-7, 0.0),
    cost=16,
    surface=Surface("expm1", Takes.REAL, special="expm1", autocast="FLOAT32"),
)
log: Pointwise = Pointwise(
    "log",
    "p_log({0})",
    "log",
    vjp=(lambda g, out, a: div(g, a),),
    domain=(0.1, 3.0),
    edges=(0.0, -1.0),
    cost=8,
    surface=Surface("log", Takes.REAL, autocast="FLOAT32"),
)
log1p: Pointwise = Pointwise(
    "log1p",
    "p_log1p({0})",
    "log1p",
    vjp=(lambda g, out, a: div(g, add(a, _const(a, 1.0))),),
    domain=(-0.5, 3.0),
    edges=(1e-7, 0.0),
    cost=16,
    surface=Surface("log1p", Takes.REAL, special="log1p", autocast="FLOAT32"),
)
sigmoid: Pointwise = Pointwise(
    "sigmoid",
    "p_sigmoid({0})",
    lambda xp, a: special.sigmoid(xp, a),
    vjp=(lambda g, out, a: mul(g, mul(out, sub(_const(out, 1.0), out))),),
    edges=(-100.0, 100.0),
    cost=12,
    surface=Surface("sigmoid", Takes.REAL, special="expit"),
)

# Trigonometry


def _one_minus_square(a: Node) -> Node:
    return sub(_const(a, 1.0), mul(a, a))


def _one_plus_square(a: Node) -> Node:
    return add(_const(a, 1.0), mul(a, a))


def _slope_of_acosh(a: Node) -> Node:
    """One root of the product has another branch than the product of two."""
    ones = _const(a, 1.0)
    return rsqrt(sub(mul(a, a), ones)) if a.spec.dtype.part is None else mul(rsqrt(sub(a, ones)), rsqrt(add(a, ones)))


sin: Pointwise = Pointwise(
    "sin",
    "p_sin({0})",
    "sin",
    vjp=(lambda g, out, a: mul(g, cos(a)),),
    cost=8,
    surface=Surface("sin", Takes.REAL),
)
cos: Pointwise = Pointwise(
    "cos",
    "p_cos({0})",
    "cos",
    vjp=(lambda g, out, a: neg(mul(g, sin(a))),),
    cost=8,
    surface=Surface("cos", Takes.REAL),
)
tan: Pointwise = Pointwise(
    "tan",
    "p_tan({0})",
    "tan",
    vjp=(lambda g, out, a: mul(g, _one_plus_square(out)),),
    domain=(-1.0, 1.0),
    cost=16,
    surface=Surface("tan", Takes.REAL, autocast="FLOAT32"),
)
asin: Pointwise = Pointwise(
    "asin",
    "p_asin({0})",
    "arcsin",
    vjp=(lambda g, out, a: mul(g, rsqrt(_one_minus_square(a))),),
    domain=(-0.9, 0.9),
    cost=16,
    surface=Surface("asin arcsin", Takes.REAL, autocast="FLOAT32"),
)
acos: Pointwise = Pointwise(
    "acos",
    "p_acos({0})",
    "arccos",
    vjp=(lambda g, out, a: neg(mul(g, rsqrt(_one_minus_square(a)))),),
    domain=(-0.9, 0.9),
    cost=16,
    surface=Surface("acos arccos", Takes.REAL, autocast="FLOAT32"),
)
atan: Pointwise = Pointwise(
    "atan",
    "p_atan({0})",
    "arctan",
    vjp=(lambda g, out, a: div(g, _one_plus_square(a)),),
    cost=16,
    surface=Surface("atan arctan", Takes.REAL),
)
sinh: Pointwise = Pointwise(
    "sinh",
    "p_sinh({0})",
    "sinh",
    vjp=(lambda g, out, a: mul(g, cosh(a)),),
    cost=20,
    surface=Surface("sinh", Takes.REAL, autocast="FLOAT32"),
)
cosh: Pointwise = Pointwise(
    "cosh",
    "p_cosh({0})",
    "cosh",
    vjp=(lambda g, out, a: mul(g, sinh(a)),),
    cost=20,
    surface=Surface("cosh", Takes.REAL, autocast="FLOAT32"),
)
tanh: Pointwise = Pointwise(
    "tanh",
    "p_tanh({0})",  # The builtin is NaN far from 0 on some engines; near 1, logarithms of 1 - tanh^2 ask for all bits.
    "tanh",
    vjp=(lambda g, out, a: mul(g, _one_minus_square(out)),),
    edges=(0.0, 30.0, -1e30),
    cost=20,
    surface=Surface("tanh", Takes.REAL),
)
asinh: Pointwise = Pointwise(
    "asinh",
    "p_asinh({0})",
    "arcsinh",
    vjp=(lambda g, out, a: mul(g, rsqrt(_one_plus_square(a))),),
    cost=24,
    surface=Surface("asinh arcsinh", Takes.REAL),
)
acosh: Pointwise = Pointwise(
    "acosh",
    "p_acosh({0})",
    "arccosh",
    vjp=(lambda g, out, a: mul(g, _slope_of_acosh(a)),),
    domain=(1.5, 4.0),
    cost=24,
    surface=Surface("acosh arccosh", Takes.REAL),
)
atanh: Pointwise = Pointwise(
    "atanh",
    "p_atanh({0})",
    "arctanh",
    vjp=(lambda g, out, a: div(g, _one_minus_square(a)),),
    domain=(-0.9, 0.9),
    cost=24,
    surface=Surface("atanh arctanh", Takes.REAL),
)
erf: Pointwise = Pointwise(
    "erf",
    "p_erf({0})",
    lambda xp, a: special.erf(xp, a),
    vjp=(lambda g, out, a: mul(g, mul(_const(a, 1.1283791670955126), exp(neg(mul(a, a))))),),
    edges=(0.0, 1e-6, 10.0, -10.0),
    cost=24,
    surface=Surface("erf", Takes.REAL, special="erf"),
)
erfinv: Pointwise = Pointwise(
    "erfinv",
    "p_erfinv({0})",
    lambda xp, a: special.erfinv(xp, a),
    vjp=(lambda g, out, a: mul(g, mul(_const(a, 0.886226925452758), exp(mul(out, out)))),),
    domain=(-0.9, 0.9),
    edges=(0.0, 1.0, -1.0),
    cost=30,
    surface=Surface("erfinv", Takes.REAL, special="erfinv", autocast="FLOAT32"),
)

# Steps: no gradient, or one that is 0

abs_: Pointwise = Pointwise(
    "abs",
    wgsl=lambda a: "{0}" if a.compute == "u32" else "abs({0})",
    reference="absolute",
    vjp=(lambda g, out, a: mul(g, sign(a)),),
    edges=(0.0, -0.0),
)
sign: Pointwise = Pointwise(
    "sign",
    wgsl=lambda a: "min({0}, 1u)" if a.compute == "u32" else ("p_sign({0})" if a.compute == "f32" else "sign({0})"),
    reference=lambda xp, a: special.sign(xp, a),
    vjp=(_nothing,),
    edges=(0.0, float("nan")),
)
floor: Pointwise = Pointwise(
    "floor",
    "floor({0})",
    "floor",
    vjp=(_nothing,),
    surface=Surface("floor", Takes.WHOLE),
)
ceil: Pointwise = Pointwise(
    "ceil",
    "ceil({0})",
    "ceil",
    vjp=(_nothing,),
    surface=Surface("ceil", Takes.WHOLE),
)
trunc: Pointwise = Pointwise(
    "trunc",
    "trunc({0})",
    "trunc",
    vjp=(_nothing,),
    surface=Surface("trunc fix", Takes.WHOLE),
)
round_: Pointwise = Pointwise("round", "round({0})", "rint", vjp=(_nothing,), edges=(0.5, 1.5, 2.5, -0.5))

# Change of type


def _cast_wgsl(source: DType, dtype: DType) -> str:
    if dtype is dtypes.bool_:
        return {"f32": "u32(p_isnan({0}) || {0} != 0.0)", "i32": "u32({0} != 0)", "u32": "u32({0} != 0u)"}[
            str(source.compute)
        ]
    if source.kind is Kind.FLOAT and dtype.kind is Kind.INT and dtype.compute == "u32":
        wrapped = "bitcast<u32>(i32({0}))"  # Negative floats wrap as torch's do.
        return f"select({wrapped}, u32({{0}}), {{0}} >= 2147483648.0)" if dtype is dtypes.uint32 else wrapped
    return f"{dtype.compute}({{0}})"


cast: Pointwise = Pointwise(
    "cast",
    wgsl=_cast_wgsl,
    reference=lambda xp, *args, **attrs: special.cast(xp, *args, **attrs),
    vjp=(lambda g, out, a, dtype: cast(g, dtype=a.spec.dtype),),
    result=lambda source, dtype: dtype,
)

bitcast: Pointwise = Pointwise(
    "bitcast",  # the same 32 bits as another type
    wgsl=lambda source, dtype: f"bitcast<{dtype.compute}>({{0}})",
    reference=lambda xp, a, dtype: a.view(special.numpy_dtype(dtype)).copy(),
    vjp=(None,),
    result=lambda source, dtype: dtype,
)

index: Pointwise = Pointwise(
    # A row number, -1 the last row if `wrap`. Out of range is an error on every device.
    "index",
    wgsl=lambda source, size, wrap=True: f"p_index{'' if wrap else '_strict'}({{0}}, {size})",
    reference=lambda xp, *args, **attrs: special.index(xp, *args, **attrs),
    vjp=(None,),
    cost=3,
)

copy: Pointwise = Pointwise("copy", "{0}", "positive", vjp=(lambda g, out, a: g,))

graft: Pointwise = Pointwise(
    "graft",  # the first value with the second one's history: what a write outside of gradient mode leaves behind
    "{0}",
    lambda xp, a, b: a.copy(),
    vjp=(None, lambda g, out, a, b: g),
)
overwrite: Pointwise = Pointwise(
    "overwrite",  # the first value; the gradient of the second, which it replaced, is 0
    "{0}",
    lambda xp, a, b: a.copy(),
    vjp=(None, _nothing),
)
