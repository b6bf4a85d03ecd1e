"""Axes that fold: sums, extremes, statistics, norms, scans, and the row functions made of them."""

import itertools
import math

from tests.cases.case import Case, Input, bools, call, distinct, given, integers, method, randn, spiked, uniform

CASES: list[Case] = []


def case(name: str, fn, *inputs: Input, tolerance: str = "reduction", **options) -> None:
    CASES.append(Case(name, fn, inputs, tolerance=tolerance, **options))


SIZES = (1, 2, 7, 64, 65, 257, 1000)
DIMS = {
    "dim0": {"dim": 0}, "dim1": {"dim": 1}, "last": {"dim": -1}, "middle_keep": {"dim": -2, "keepdim": True},
    "pair": {"dim": (0, 2)}, "pair_negative_keep": {"dim": (-1, 0), "keepdim": True}, "all_keep": {
        "dim": (0, 1, 2), "keepdim": True},
}  # fmt: skip
SEVERAL = {
    "sum": randn, "mean": randn, "amax": distinct, "amin": distinct, "var": randn, "std": randn, "logsumexp": randn,
    "any": bools, "all": bools, "nansum": randn,
}  # fmt: skip
SINGLE = {"prod": randn, "max": distinct, "min": distinct, "argmax": distinct, "argmin": distinct, "median": distinct}
SCANS = {"cumsum": randn, "cumprod": randn, "softmax": randn, "log_softmax": randn, "logcumsumexp": randn}

for name, draw in SEVERAL.items():
    for kind, options in DIMS.items():
        case(f"{name}_{kind}", call(name, **options), draw(3, 4, 5))
SUBSETS = [axes for count in range(1, 5) for axes in itertools.combinations(range(4), count)]
for name in ("sum", "mean", "amax", "amin"):
    case(
        f"{name}_of_every_subset",
        lambda torch, x, name=name: [getattr(torch, name)(x, axes) for axes in SUBSETS],
        distinct(2, 3, 4, 5),
    )
for name, draw in SINGLE.items():
    for kind in ("dim0", "dim1", "last", "middle_keep"):
        case(f"{name}_{kind}", call(name, **DIMS[kind]), draw(3, 4, 5))
for name, draw in SCANS.items():
    for dim in (0, 1, -1):
        case(f"{name}_dim{dim}", call(name, dim=dim), draw(3, 4, 5))

# Sizes on both sides of a workgroup and of a vector.
for name in ("sum", "mean", "amax", "prod", "var", "argmax", "cumsum", "softmax", "log_softmax", "logsumexp", "any"):
    for size in SIZES:
        draw = {"amax": distinct, "argmax": distinct, "any": bools}.get(name, randn)
        if name == "prod":
            draw = lambda *shape: uniform(*shape, low=0.9, high=1.1)  # noqa: E731
        if name == "var" and size == 1:
            continue
        case(f"{name}_rows_of_{size}", call(name, -1), draw(3, size))
case("softmax_rows_of_50257", call("softmax", -1), randn(3, 50257))
for size in SIZES:
    case(f"sum_columns_of_{size}", call("sum", 0), randn(size, 3))
    case(f"sum_all_{size}", call("sum"), randn(size))
    case(f"max_all_{size}", method("max"), distinct(size))

WHOLE = {
    "sum": randn, "mean": randn, "prod": randn, "max": distinct, "min": distinct, "amax": distinct, "amin": distinct,
    "argmax": distinct, "argmin": distinct, "any": bools, "all": bools, "var": randn, "std": randn, "median": distinct,
}  # fmt: skip
for name, draw in WHOLE.items():
    case(f"{name}_method", method(name), draw(3, 5))
    case(f"{name}_of_transposed", lambda torch, a, name=name: getattr(a.t(), name)(), draw(3, 5))
    case(f"{name}_of_slice", lambda torch, a, name=name: getattr(a[1:, ::2], name)(), draw(4, 7))
    case(f"{name}_of_expanded", lambda torch, a, name=name: getattr(a.expand(3, 4), name)(), draw(4), grad=False)
    if name not in ("var", "std", "median"):
        case(f"{name}_of_zero_dim", method(name), draw())
        case(f"{name}_of_zero_dim_dim0", method(name, 0 if name in ("max", "min") else -1), draw())
for name in ("sum", "mean", "prod", "any", "all"):
    case(f"{name}_of_nothing", call(name), randn(0))
    case(f"{name}_of_empty_rows", call(name, 1), bools(2, 0, 3) if name in ("any", "all") else randn(2, 0, 3))
    case(f"{name}_of_no_rows", call(name, -1), bools(0, 3) if name in ("any", "all") else randn(0, 3))
for name in ("amax", "argmax", "softmax", "logsumexp", "max", "cumsum"):
    case(f"{name}_of_no_rows", call(name, -1), randn(0, 3))
for name in ("cumsum", "cumprod", "softmax", "logsumexp"):
    case(f"{name}_of_empty_rows", call(name, 1), randn(2, 0, 3))

for name in ("sum", "mean", "amax", "argmax", "max", "var", "norm", "cumsum", "softmax"):
    rows = lambda torch, a, name=name: getattr(a.permute(2, 0, 1)[::2], name)(dim=1)  # noqa: E731
    case(f"{name}_of_permuted_slice", rows, distinct(4, 5, 6))
for name in ("sum", "mean", "std", "prod"):
    case(f"{name}_axis_alias", method(name, axis=0), randn(3, 4))
for name in ("sum", "prod", "amax", "amin", "max", "min", "cumsum", "cumprod"):
    case(f"{name}_int64", method(name, dim=-1), distinct(3, 4, dtype="int64") if name[1] != "u" else integers(3, 4))
    case(f"{name}_int32", method(name, dim=0), distinct(3, 4, dtype="int32"))
for name in ("sum", "prod", "any", "all", "argmax", "cumsum", "amax"):
    case(f"{name}_uint8", method(name, dim=-1), integers(3, 4, low=0, high=9, dtype="uint8"))
for name in ("any", "all"):
    case(f"{name}_float", method(name, dim=0), integers(4, 5, low=0, high=2, dtype="float32"))
    case(f"{name}_int64", method(name), integers(9, low=0, high=2))
    case(f"{name}_nan", method(name), spiked(3), grad=False)
case("sum_bool", method("sum"), bools(65))
case("sum_bool_dim", method("sum", dim=1), bools(3, 65))
case("mean_of_comparison", lambda torch, a, b: (a == b).float().mean(), integers(40, high=1), integers(40, high=1))
case("sum_empty_dim", method("sum", dim=()), randn(3, 4))
case("mean_none_dim", method("mean", dim=None), randn(3, 4))
case("sum_none_dim_keep", method("sum", dim=None, keepdim=True), randn(3, 4))

for name in ("sum", "mean", "amax", "softmax", "logsumexp", "norm", "var"):
    for dtype in ("float16", "bfloat16"):
        case(f"{name}_{dtype}", method(name, dim=-1), uniform(3, 33, low=0.1, high=1, dtype=dtype))

# Extremes: ties, NaN, infinities.
TIES = given([[1.0, 3.0, 3.0, 2.0], [5.0, 5.0, 5.0, 5.0], [2.0, 1.0, 0.0, 1.0]])
for name in ("amax", "amin"):
    case(f"{name}_ties_share_gradient", call(name, dim=1), TIES)
    case(f"{name}_ties_over_all", call(name, dim=(0, 1)), TIES)
for name in ("max", "min"):
    case(f"{name}_ties", lambda torch, a, name=name: getattr(a, name)(), TIES)
    case(f"{name}_named_results", lambda torch, a, n=name: (getattr(a, n)(1).values, getattr(a, n)(1).indices), TIES)
    case(f"{name}_of_two", call(name), randn(3, 4), randn(4))
for name in ("argmax", "argmin"):
    case(f"{name}_keepdim", method(name, dim=1, keepdim=True), distinct(3, 4))
    case(f"{name}_first_of_ties", method(name, dim=1), TIES)
    case(f"{name}_int64", method(name, dim=0), distinct(3, 4, dtype="int64"))
for name in ("amax", "amin", "sum", "mean", "prod", "argmax", "argmin", "max", "min", "nansum", "logsumexp", "cumsum"):
    method_of_rows = method(name, -1)
    case(f"{name}_nan", method_of_rows, spiked(2, 4, spikes=(1.0, math.nan)), grad=False)
    if name != "nansum":
        case(f"{name}_inf", method_of_rows, spiked(2, 4, spikes=(1.0, math.inf)), grad=False)
        case(f"{name}_minus_inf", method_of_rows, spiked(2, 4, spikes=(-math.inf,)), grad=False)
case("max_all_infinite", method("max"), given([-math.inf, -math.inf]), grad=False)
case("aminmax", lambda torch, a: tuple(torch.aminmax(a, dim=1)), distinct(3, 4))
case("aminmax_all", lambda torch, a: tuple(torch.aminmax(a)), distinct(3, 4))
case("count_nonzero", call("count_nonzero", dim=1), integers(4, 5, low=0, high=2))
case("count_nonzero_all", call("count_nonzero"), integers(4, 5, low=0, high=2))

# Statistics.
for options in ({"unbiased": False}, {"correction": 0}, {"correction": 2}, {"unbiased": True, "keepdim": True}):
    text = "_".join(f"{key}_{value}" for key, value in options.items())
    case(f"var_{text}", call("var", dim=1, **options), randn(3, 9))
    case(f"std_{text}", call("std", dim=1, **options), randn(3, 9))
case("var_unbiased_positional", call("var", 1, False), randn(3, 9))
case("var_mean", call("var_mean", dim=-1), randn(3, 9))
case("std_mean", call("std_mean", dim=0, keepdim=True), randn(3, 9))
case("var_of_offset", lambda torch, a: (a + 1000).var(-1), integers(3, 65, dtype="float32"), tolerance="model")
case("var_of_one", call("var", unbiased=False), randn(1))

# Products with zeros: the gradient at a zero is the product of the others.
case("prod_one_zero", call("prod"), given([2.0, 0.0, 3.0]))
case("prod_two_zeros", call("prod"), given([2.0, 0.0, 0.0]))
case("prod_dim_zeros", call("prod", dim=1), given([[2.0, 0.0, 3.0], [1.0, 2.0, 3.0], [0.0, 0.0, 1.0]]))
case("prod_of_zero_among_many", call("prod"), given([0.0] + [1.0 - i / 64 for i in range(40)]))
case("prod_axes_zeros", call("prod", dim=0), given([[[0.0, 2.0], [3.0, 0.0]], [[0.0, 1.0], [2.0, 5.0]]]))
case("cumprod_zeros", call("cumprod", dim=0), given([2.0, 0.0, 3.0, 0.0, 4.0]))

# Norms.
for p in (1, 2, 3, 0.5, math.inf, -math.inf, 0):
    case(f"norm_p_{p}", method("norm", p=p), distinct(3, 4), grad=p != 0)
    case(f"norm_p_{p}_dim", method("norm", p=p, dim=1), uniform(3, 4, low=0.2, high=1), grad=p != 0)
case("norm_default", method("norm"), randn(3, 4))
case("norm_of_zeros", method("norm"), given([0.0, 0.0, 0.0]))
case("norm_keepdim", method("norm", dim=-1, keepdim=True), randn(3, 4))
case("norm_dims", method("norm", dim=(0, 1)), randn(3, 4, 2))
case("norm_fro", call("norm", p="fro"), randn(3, 4))
case("linalg_norm", call("linalg.norm"), randn(3, 4))
case("linalg_vector_norm", call("linalg.vector_norm", ord=2, dim=1), randn(3, 4))
case("dist", call("dist"), randn(3, 4), randn(3, 4))

# Row functions.
for name in ("softmax", "log_softmax"):
    case(f"{name}_large", call(name, -1), given([[1000.0, 0.0, -1000.0], [90.0, 90.0, 90.0]]))
    case(f"{name}_masked", call(name, -1), given([[1.0, -math.inf, 2.0]]), grad=False)
    case(f"{name}_all_masked", call(name, -1), given([[-math.inf, -math.inf]]), grad=False)
    case(f"{name}_of_zero_dim", call(name, 0), randn())
    case(f"{name}_4d", call(name, 1), randn(2, 3, 4, 5))
    case(f"{name}_method", method(name, -1), randn(65))
    case(f"{name}_scaled_rows", lambda torch, a, name=name: getattr(torch, name)(a / 3 + 1, -1).exp(), randn(9, 33))
case("logsumexp_large", call("logsumexp", dim=1), given([[1000.0, 1000.0], [-1000.0, 0.0]]))
case("logsumexp_infinite", call("logsumexp", dim=1), given([[-math.inf, -math.inf], [0.0, math.inf]]), grad=False)
case(
    "logcumsumexp_large",
    call("logcumsumexp", dim=1),
    given([[1000.0, 1000.0, -1000.0], [-1000.0, 0.0, 0.5]]),
    grad=False,
)
case("logcumsumexp_infinite", call("logcumsumexp", dim=1), given([[-math.inf, 1.0, -math.inf], [0.0, math.inf, 1.0]]),
     grad=False)  # fmt: skip
case("cumsum_reversed", lambda torch, a: a.flip(0).cumsum(0).flip(0), randn(9))
case("cumsum_in_place", lambda torch, a: a.clone().cumsum_(1), randn(3, 9))
case("cummax", lambda torch, a: tuple(a.cummax(1)), distinct(3, 9))
# Rows that one workgroup walks in several turns, and that several share.
for size in (5000, 40_003):
    case(f"cumsum_of_long_rows_{size}", call("cumsum", dim=1), randn(2, size))
    case(f"cumprod_of_long_rows_{size}", lambda torch, a: a.sign().cumprod(0), randn(size), grad=False)
    case(f"cummax_of_long_rows_{size}", lambda torch, a: tuple(a.cummax(0)), distinct(size))
    case(f"cumsum_of_long_columns_{size}", call("cumsum", dim=0), integers(size, 2))
    case(f"logcumsumexp_of_long_rows_{size}", call("logcumsumexp", dim=1), randn(2, size), tolerance="reduction")
    case(f"masked_of_long_rows_{size}", lambda torch, a: (a[a > 1], (a > 1).nonzero()), randn(size))
case("cummin", lambda torch, a: tuple(a.cummin(1)), distinct(3, 9))
# Sums that are cut in parts with a rest behind them, and along axes that are joined for that.
for name in ("sum", "amax", "prod"):
    case(f"{name}_of_a_prime", lambda torch, a, name=name: getattr(a.sign(), name)(0), randn(65_537, 2), grad=False)
case("sum_of_axes_apart", call("sum", dim=(0, 2, 3)), integers(16, 2, 101, 103, dtype="float32"))
case("diff", call("diff", dim=1), randn(3, 9))
case("trapezoid", call("trapezoid", dim=1), randn(3, 9))
case("quantile", call("quantile", 0.3, dim=1), distinct(3, 9))

# Work before and after the fold, and several folds of one value.
case("sum_of_product", lambda torch, a, b: (a * b + 1).sum(-1), randn(5, 65), randn(65))
case("mean_then_chain", lambda torch, a: (a.mean(1) * 2 + 1).tanh(), randn(5, 65))
case("centered", lambda torch, a: a - a.mean(-1, keepdim=True), randn(5, 65))
case("normalised", lambda torch, a: (a - a.mean(-1, keepdim=True)) / (a.var(-1, keepdim=True) + 1e-5).sqrt(),
     randn(5, 65))  # fmt: skip
case("softmax_by_hand", lambda torch, a: (e := (a - a.amax(-1, keepdim=True)).exp()) / e.sum(-1, keepdim=True),
     randn(5, 65))  # fmt: skip
case("sum_of_sums", lambda torch, a: a.sum(0).sum(), randn(7, 65))
case("sum_over_broadcast", lambda torch, a, b: (a + b).sum((0, 2)), randn(3, 1, 5), randn(4, 1))
case("several_folds", lambda torch, a: (a.sum(), a.mean(0), a.amax(1), a.std()), distinct(6, 9))
case("variance_by_hand", lambda torch, a: (a * a).mean(-1) - a.mean(-1) ** 2, randn(4, 33))
