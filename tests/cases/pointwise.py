"""One result per element: unary and binary functions, operators, in-place forms, edges."""

from tests.cases.case import (
    EDGES,
    Case,
    Input,
    bools,
    call,
    edge_pairs,
    edges,
    given,
    in_place,
    integers,
    method,
    randn,
    spiked,
    uniform,
)

CASES: list[Case] = []


def case(name: str, fn, *inputs: Input, **options) -> None:
    CASES.append(Case(name, fn, inputs, **options))


# name: the range in which values and gradients are compared.
UNARY = {
    "abs": (-3, 3), "neg": (-3, 3), "exp": (-3, 3), "exp2": (-3, 3), "expm1": (-2, 2), "log": (0.1, 5),
    "log2": (0.1, 5), "log10": (0.1, 5), "log1p": (-0.7, 4), "sqrt": (0.1, 5), "rsqrt": (0.1, 5),
    "square": (-3, 3), "reciprocal": (0.3, 3), "sin": (-3, 3), "cos": (-3, 3), "tan": (-1.2, 1.2),
    "asin": (-0.9, 0.9), "acos": (-0.9, 0.9), "atan": (-3, 3), "sinh": (-3, 3), "cosh": (-3, 3),
    "tanh": (-3, 3), "asinh": (-3, 3), "acosh": (1.2, 4), "atanh": (-0.9, 0.9), "sigmoid": (-5, 5),
    "logit": (0.1, 0.9), "erf": (-2, 2), "erfc": (-2, 2), "erfinv": (-0.9, 0.9), "floor": (-3, 3),
    "ceil": (-3, 3), "round": (-3, 3), "trunc": (-3, 3), "frac": (-3, 3), "sign": (-3, 3), "relu": (-3, 3),
    "deg2rad": (-180, 180), "rad2deg": (-3, 3),
}  # fmt: skip
WITHOUT_INTEGERS = {"frac", "erfinv", "logit", "log", "rsqrt", "reciprocal"}  # outside their range, or refused
NO_GRADIENT = {"asinh", "acosh", "atanh"}  # in place
ODD_AT_EDGES = {"logit"}  # torch's gradient at -0.0 is that at 0.0

for name, (low, high) in UNARY.items():
    case(name, call(name), uniform(3, 7, low=low, high=high))
    case(f"{name}_method", method(name), uniform(5, low=low, high=high))
    case(f"{name}_in_place", in_place(f"{name}_"), uniform(2, 3, 4, low=low, high=high, grad=name not in NO_GRADIENT))
    case(f"{name}_edges", call(name), edges(), grad=name not in ODD_AT_EDGES)
    for dtype in ("float16", "bfloat16"):
        case(f"{name}_edges_{dtype}", call(name), edges(dtype), grad=False)
    case(f"{name}_empty", call(name), uniform(0, 3))
    if name not in WITHOUT_INTEGERS:
        case(f"{name}_int64", call(name), integers(6, low=1, high=2 if name in ("asin", "acos", "atanh") else 6))

for name in ("exp", "log", "sqrt", "sin", "tanh", "sigmoid", "relu", "abs", "square", "reciprocal", "rsqrt", "erf"):
    low, high = UNARY[name]
    for dtype in ("float16", "bfloat16"):
        case(f"{name}_{dtype}", call(name), uniform(3, 5, low=max(low, -2), high=min(high, 2), dtype=dtype))

case("sgn", call("sgn"), randn(7, grad=False))
case("positive", call("positive"), randn(7))
case("clone", method("clone"), randn(3, 4))
case("isnan", call("isnan"), edges())
case("isinf", call("isinf"), edges())
case("isfinite", call("isfinite"), edges())
case("isnan_int64", call("isnan"), integers(4))
case("signbit", call("signbit"), given([1.0, -1.0, 2.0, -3.0]))
case("nan_to_num", call("nan_to_num", nan=1.0, posinf=2.0, neginf=-2.0), spiked(6))
case("logical_not", call("logical_not"), given([0.0, 1.0, -2.0]))
case("bitwise_not", call("bitwise_not"), integers(6))
case("invert_bool", lambda torch, a: ~a, bools(6))
case("invert_int32", lambda torch, a: ~a, integers(6, dtype="int32"))
case("neg_operator", lambda torch, a: -a, randn(5))
case("pos_operator", lambda torch, a: +a, randn(5))
case("abs_operator", lambda torch, a: abs(a), randn(5))
case("abs_int32", call("abs"), integers(9, dtype="int32"))
case("neg_uint8", call("neg"), integers(5, low=0, high=9, dtype="uint8"))
case("relu_at_zero", call("relu"), given([-1.0, 0.0, 1.0]))
case("abs_at_zero", call("abs"), given([-1.0, 0.0, 1.0]))
case("round_half_to_even", call("round"), given([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 3.5]))
case("round_decimals", call("round", decimals=2), uniform(6, low=-3, high=3))
for dtype in ("float16", "bfloat16"):
    for decimals in (1, 5, -1):
        near = given([-0.54980469, 0.45019531, 0.349, 2.449, 14.9375], dtype)
        case(f"round_decimals_{decimals}_{dtype}", call("round", decimals=decimals), near)
case("sigmoid_far", call("sigmoid"), given([-1000.0, -90.0, 90.0, 1000.0]))
case("tanh_far", call("tanh"), given([-1000.0, -20.0, 20.0, 1000.0]))
case("tanh_near_1", lambda torch, x: torch.log(1 - torch.tanh(x) ** 2), given([-6.75, 5.25, 6.25, 7.625, 8.3125]),
     devices=("webgpu",), grad=False)  # fmt: skip
case("logit_eps", call("logit", eps=1e-3), given([0.0, 0.2, 1.0]))

# name: the ranges of both sides.
BINARY = {
    "add": ((-3, 3), (-3, 3)), "sub": ((-3, 3), (-3, 3)), "mul": ((-3, 3), (-3, 3)), "div": ((-3, 3), (0.5, 3)),
    "pow": ((0.3, 3), (-2, 2)), "maximum": ((-3, 3), (-3, 3)), "minimum": ((-3, 3), (-3, 3)),
    "atan2": ((-3, 3), (0.5, 3)), "hypot": ((0.5, 3), (0.5, 3)), "fmod": ((-5, 5), (0.7, 2)),
    "remainder": ((-5, 5), (0.7, 2)), "fmax": ((-3, 3), (-3, 3)), "fmin": ((-3, 3), (-3, 3)),
    "logaddexp": ((-3, 3), (-3, 3)), "xlogy": ((0.5, 3), (0.5, 3)), "copysign": ((-3, 3), (-3, 3)),
    "true_divide": ((-3, 3), (0.5, 3)), "subtract": ((-3, 3), (-3, 3)), "multiply": ((-3, 3), (-3, 3)),
}  # fmt: skip
SHAPES = {"same": ((3, 5), (3, 5)), "broadcast": ((3, 1), (1, 4)), "rank": ((2, 3, 4), (4,)), "scalar": ((2, 3), ())}

for name, ((low_a, high_a), (low_b, high_b)) in BINARY.items():
    for kind, (shape_a, shape_b) in SHAPES.items():
        case(
            f"{name}_{kind}",
            call(name),
            uniform(*shape_a, low=low_a, high=high_a),
            uniform(*shape_b, low=low_b, high=high_b),
            tolerance="reduction",
        )
IN_PLACE = ("add", "sub", "mul", "div", "pow", "fmod", "remainder", "atan2", "hypot", "copysign", "true_divide")
for name in IN_PLACE:
    (low_a, high_a), (low_b, high_b) = BINARY[name]
    case(
        f"{name}_in_place",
        in_place(f"{name}_"),
        uniform(3, 4, low=low_a, high=high_a),
        uniform(4, low=low_b, high=high_b),
        tolerance="reduction",
    )

OPERATORS = {
    "add": lambda torch, a, b: a + b, "sub": lambda torch, a, b: a - b, "mul": lambda torch, a, b: a * b,
    "truediv": lambda torch, a, b: a / b, "pow": lambda torch, a, b: a**b, "mod": lambda torch, a, b: a % b,
    "floordiv": lambda torch, a, b: a // b,
}  # fmt: skip
for name, fn in OPERATORS.items():
    smooth = name != "floordiv"
    a, b = uniform(2, 3, low=0.5, high=3, grad=smooth), uniform(3, low=0.6, high=2, grad=smooth)
    case(f"operator_{name}", fn, a, b, tolerance="reduction")
    case(f"operator_{name}_scalar", lambda torch, a, fn=fn: fn(torch, a, 2.5), a)
    case(f"operator_{name}_reflected", lambda torch, a, fn=fn: fn(torch, 2.5, a), a, grad=name != "mod")
    case(f"operator_{name}_int", lambda torch, a, b, fn=fn: fn(torch, a, b), integers(8), integers(8, low=1))
    case(f"operator_{name}_int_reflected", lambda torch, a, fn=fn: fn(torch, 7, a), integers(6, low=1))


def augmented(torch, a, b):
    a = a.clone()
    a += b
    a -= 0.5
    a *= b
    a /= 2
    a **= 2
    return a


def augmented_integers(torch, a, b):
    a = a.clone()
    a += b
    a *= 3
    a //= 2
    a %= 5
    a &= 6
    a |= 1
    a ^= b
    a <<= 2
    a >>= 1
    return a


case("augmented_assignment", augmented, randn(2, 3), randn(3))
case("augmented_assignment_int64", augmented_integers, integers(9), integers(9))

COMPARISONS = {
    "eq": lambda torch, a, b: a == b, "ne": lambda torch, a, b: a != b, "lt": lambda torch, a, b: a < b,
    "le": lambda torch, a, b: a <= b, "gt": lambda torch, a, b: a > b, "ge": lambda torch, a, b: a >= b,
}  # fmt: skip
for name, fn in COMPARISONS.items():
    case(name, call(name), integers(3, 4, dtype="float32"), integers(4, dtype="float32"))
    case(f"{name}_method", method(name), integers(9), integers(9))
    case(f"{name}_operator", fn, integers(9, dtype="int32"), integers(9, dtype="float32"))
    case(f"{name}_scalar", lambda torch, a, fn=fn: (fn(torch, a, 1), fn(torch, 1.5, a)), integers(9))
    case(f"{name}_nan", fn, given([1, float("nan"), float("inf")]), given([float("nan"), float("nan"), float("inf")]))
    case(f"{name}_bool", fn, bools(9), bools(9))
for alias in ("greater", "less", "greater_equal", "less_equal", "not_equal"):
    case(alias, call(alias), integers(7), integers(7))
case("equal", call("equal"), integers(3), given([1, 2, 3], "int64"))
case("equal_itself", lambda torch, a: torch.equal(a, a.clone()), randn(3))
case("equal_other_shape", lambda torch, a: torch.equal(a, a[None]), randn(3))
case("isclose", call("isclose"), given([1.0, 2.0, 0.0]), given([1.0 + 1e-6, 2.1, 1e-9]))
case("allclose", call("allclose", atol=0.2), given([1.0, 2.0]), given([1.1, 2.1]))

for name in ("logical_and", "logical_or", "logical_xor"):
    case(name, call(name), bools(3, 4), bools(4))
    case(f"{name}_float", call(name), given([0.0, 1.0, -2.0, 0.0]), given([0.0, 0.0, 3.0, 1.0]))
    case(f"{name}_int64", call(name), integers(9, low=-1, high=2), integers(9, low=-1, high=2))
BITWISE = {
    "and": lambda torch, a, b: a & b, "or": lambda torch, a, b: a | b, "xor": lambda torch, a, b: a ^ b,
}  # fmt: skip
for name, fn in BITWISE.items():
    case(f"bitwise_{name}", call(f"bitwise_{name}"), integers(3, 4, low=-40, high=40), integers(4, low=-40, high=40))
    case(f"operator_{name}_bool", fn, bools(9), bools(9))
    case(f"operator_{name}_scalar", lambda torch, a, fn=fn: fn(torch, a, 5), integers(9, low=-40, high=40))
    case(f"operator_{name}_uint8", fn, integers(9, low=0, high=200, dtype="uint8"), integers(9, low=0, dtype="uint8"))
case("shift_left", lambda torch, a, b: a << b, integers(9, dtype="int32"), integers(9, low=0, high=5, dtype="int32"))
case("shift_right", lambda torch, a, b: a >> b, integers(9, low=-99, high=99), integers(9, low=0, high=5))

# Quotients that float32 does not hold.
FAR = [1e38, -1e38, 3e38, 12345678.0, -16777215.0, 1e30, 7.0, 1e-30]
DIVIDED = [3.0, 0.1, 1e-30, 0.3, 7.0, 1e30, 1.1754944e-38, 3e-31]
# Signs, zeros and infinities where a definition must be chosen.
SIGNS = given([5.0, -5.0, 5.0, -5.0, 4.0, -4.0, 5.5, -0.5])
DIVISORS = given([3.0, 3.0, -3.0, -3.0, 2.0, 2.0, -2.0, 2.0])
for name in ("fmod", "remainder", "floor_divide"):
    case(f"{name}_signs", call(name), SIGNS, DIVISORS, grad=name != "floor_divide")
    case(f"{name}_signs_int64", call(name), given([7, -7, 7, -7, 6, -6], "int64"), given([3, 3, -3, -3, 3, 3], "int64"))
    case(f"{name}_by_three", call(name, 3), given([7.5, -7.5, 0.0, 3.0, -3.0]), grad=name != "floor_divide")
for mode in ("floor", "trunc"):
    case(f"div_{mode}", call("div", rounding_mode=mode), SIGNS, DIVISORS)
    case(f"div_{mode}_int64", call("div", rounding_mode=mode), integers(12), given([3, -3] * 6, "int64"))
case("div_by_zero", call("div"), given([1.0, -1.0, 0.0]), given([0.0, 0.0, 0.0]), grad=False)
case("fmod_by_zero", call("fmod"), given([1.0, -1.0, 0.0]), given([0.0, 0.0, 0.0]), grad=False)
case("remainder_by_zero", call("remainder"), given([1.0, -1.0, 0.0]), given([0.0, 0.0, 0.0]), grad=False)
case("maximum_nan", call("maximum"), spiked(5), randn(5), grad=False)
case("minimum_nan", call("minimum"), randn(5), spiked(5), grad=False)
case("fmax_nan", call("fmax"), spiked(5), randn(5), grad=False)
case("fmin_nan", call("fmin"), randn(5), spiked(5), grad=False)
case("maximum_ties", call("maximum"), given([1.0, 2.0, 3.0]), given([1.0, 2.0, 2.0]))
case("minimum_int32", call("minimum"), integers(7, dtype="int32"), integers(7, dtype="int32"))
case("maximum_bool", call("maximum"), bools(7), bools(7))
# torch's gradient of copysign is NaN at infinities. Those of pow and div overflow on the way in other places.
for name in (*BINARY, "floor_divide", "heaviside", "ldexp", "logaddexp2"):
    smooth = name not in ("copysign", "pow", "div", "true_divide", "floor_divide", "heaviside", "ldexp")
    torch_gives_up = (1e-10, -1e-10) if name in ("fmod", "remainder") else ()  # NaN where the quotient is 1e48
    case(f"{name}_edges", call(name), *edge_pairs(but=torch_gives_up), grad=smooth)
for name in COMPARISONS:
    case(f"{name}_edges", call(name), *edge_pairs())
for mode in ("floor", "trunc"):
    case(f"div_{mode}_edges", call("div", rounding_mode=mode), *edge_pairs(), grad=mode == "trunc")
for number in (0.0, 3.0, -2.5):
    for name in ("floor_divide", "fmod", "remainder", "div", "mul"):
        case(f"{name}_by_{number}_edges", call(name, number), edges(), grad=name != "floor_divide")
for number in (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, -1.0, -2.0, -3.0):
    smooth = number not in (0.5, 1.5)  # At -infinity torch is of two minds about the root.
    case(f"pow_{number}_edges", call("pow", number), edges(), grad=smooth)
for base in (0.0, 0.5, 1.0, 2.0):
    case(f"pow_of_{base}_edges", lambda torch, a, base=base: torch.pow(base, a), edges())
case("where_edges", lambda torch, a, b: torch.where(a > b, a, -b), *edge_pairs())
case("lerp_edges", call("lerp", 0.3), *edge_pairs())
case("addcmul_edges", lambda torch, a, b: torch.addcmul(b, a, a, value=0.5), edges(), randn(len(EDGES)))
case("sinc_edges", call("sinc"), edges())
case("logit_eps_edges", call("logit", eps=1e-3), edges(), grad=False)
case("nan_to_num_edges", call("nan_to_num"), edges())
case("signbit_edges", call("signbit"), edges())
case("clamp_edges", call("clamp", -0.5, 0.5), edges())
case("clamp_to_infinities", call("clamp", float("-inf"), float("inf")), edges())
case("clamp_to_nan", call("clamp", min=float("nan")), edges())
case("clamp_min_edges", lambda torch, a, b: torch.clamp(a, b), *edge_pairs())
case("clamp_max_edges", lambda torch, a, b: torch.clamp(a, max=b), *edge_pairs())
case("clamp_tensors_edges", lambda torch, a, b: torch.clamp(a, b, b.flip(0)), *edge_pairs())
case("fmod_far", call("fmod"), given(FAR), given(DIVIDED))
case("remainder_far", call("remainder"), given(FAR), given(DIVIDED))
case("add_alpha", call("add", alpha=0.5), randn(3, 4), randn(4))
case("sub_alpha", call("sub", alpha=3), integers(5), integers(5))
case("rsub", call("rsub"), randn(4), randn(4))
case("add_method_alpha", in_place("add_", alpha=-2.0), randn(3), randn(3))
case("xlogy_zero", call("xlogy"), given([0.0, 0.0, 2.0]), given([0.0, 1.0, 2.0]), grad=False)

case("pow_square", call("pow", 2), randn(6))
case("pow_cube", call("pow", 3), randn(6))
case("pow_half", call("pow", 0.5), uniform(6, low=0.1, high=3))
case("pow_minus_one", call("pow", -1), uniform(6, low=0.4, high=3))
case("pow_zero", call("pow", 0), randn(6))
case("pow_one", call("pow", 1), randn(6))
case("pow_int64", call("pow"), integers(8), integers(8, low=0, high=4))
case("pow_int64_scalar", call("pow", 3), integers(8))
case("pow_scalar_base", lambda torch, a: torch.pow(2.0, a), randn(6))
case("pow_negative_base", call("pow"), given([-2.0, -2.0, -1.5, -3.0]), given([2.0, 3.0, -1.0, -2.0]), grad=False)
case("pow_negative_base_fraction", call("pow"), given([-2.0, -4.0]), given([0.5, 1.5]), grad=False)
case("pow_negative_base_scalar", call("pow", 3.0), given([-2.0, -1.5, 0.5]))
case("pow_zero_base", call("pow"), given([0.0, 0.0, 0.0]), given([0.0, 2.0, -1.0]), grad=False)
case("square_root_of_negative", call("sqrt"), given([-1.0, 4.0]), grad=False)
case("log_of_negative", call("log"), given([-1.0, 1.0]), grad=False)

CLAMPS = {"both": (-0.5, 0.5), "low": (-0.5, None), "high": (None, 0.5), "integers": (-1, 1), "crossed": (1.0, -1.0)}
for name, (low, high) in CLAMPS.items():
    case(f"clamp_{name}", call("clamp", min=low, max=high), randn(4, 5))
    case(f"clamp_{name}_in_place", in_place("clamp_", low, high), randn(9))
case("clamp_int64", call("clamp", -2, 2), integers(9))
case("clamp_int64_by_float", call("clamp", -1.5, 1.5), integers(9))
case("clamp_at_bound", call("clamp", -1.0, 1.0), given([-1.0, 0.0, 1.0]))
case("clamp_nan", call("clamp", -1.0, 1.0), spiked(5), grad=False)
case(
    "clamp_tensors_nan",
    lambda torch, a, b: (torch.clamp(a, b), torch.clamp(a, max=b), torch.clamp(a, b, -b)),
    randn(5),
    spiked(5),
    grad=False,
)
case("clamp_tensors", lambda torch, a, b: torch.clamp(a, b, b + 0.5), randn(3, 4), randn(4))
case("clip", call("clip", -0.3, 0.3), randn(6))
case("clamp_min", method("clamp_min", 0.1), randn(6))
case("clamp_max", method("clamp_max", 0.1), randn(6))
case("clamp_min_in_place", in_place("clamp_min_", 0.1), randn(6))
case("clamp_max_in_place", in_place("clamp_max_", 0.1), randn(6))

case("where", call("where"), bools(3, 4), randn(3, 4), randn(3, 4))
case("where_broadcast", call("where"), bools(3, 1), randn(4), randn(2, 1, 1))
case("where_scalars", lambda torch, c, a: (torch.where(c, a, 0.0), torch.where(c, -1.0, a)), bools(6), randn(6))
case("where_both_scalars", lambda torch, c: (torch.where(c, 1.0, 0.0), torch.where(c, 1, 2)), bools(6))
case("where_method", lambda torch, a, b: a.where(a > 0, b), randn(6), randn(6))
case("where_hides_nan", lambda torch, c, a: torch.where(c, a, torch.zeros_like(a)), bools(5), spiked(5))
case("lerp", call("lerp"), randn(3, 4), randn(4), uniform(3, 1, low=0, high=1))
case("lerp_scalar", call("lerp", 0.3), randn(4), randn(4))
case("lerp_scalar_high", call("lerp", 0.8), randn(4), randn(4))
case("lerp_in_place", in_place("lerp_", 0.25), randn(4), randn(4))
case("addcmul", call("addcmul", value=0.5), randn(3, 4), randn(4), randn(3, 1))
case("addcmul_in_place", in_place("addcmul_", value=-2.0), randn(4), randn(4), randn(4))
case("addcdiv", call("addcdiv", value=0.5), randn(3, 4), randn(4), uniform(3, 1, low=0.5, high=2))
case("addcdiv_in_place", in_place("addcdiv_", value=-2.0), randn(4), randn(4), uniform(4, low=0.5, high=2))
case("masked_chain", lambda torch, a: torch.where(a > 0, a.sqrt(), -a).exp().log1p(), uniform(65, low=0.1, high=2))
case("long_chain", lambda torch, a: (((a * 2 + 1).tanh() - 0.5).exp() * a.sigmoid()).sqrt(), randn(257))
case("several_uses", lambda torch, a, b: (a * b, a + b, (a * b + a).sin()), randn(7, 9), randn(7, 1))
case("out_argument", lambda torch, a, b: torch.add(a, b, out=torch.empty_like(a)), integers(4), integers(4))
case("float_power_of_bool", lambda torch, a: a.float().mul(3).add_(1), bools(5))
for name in ("zero_", "relu_", "sigmoid_"):
    case(f"{name}on_view", lambda torch, a, name=name: (getattr(a.clone()[:, 1], name)(), a), randn(3, 4))
case("fill", in_place("fill_", 2.5), randn(3, 4))
case("fill_int64", in_place("fill_", 3), integers(3, 4))
case("copy_broadcast", in_place("copy_"), randn(3, 4), randn(4))
case("copy_casts", in_place("copy_"), integers(5), uniform(5, low=-4, high=4))
