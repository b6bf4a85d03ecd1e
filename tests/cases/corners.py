"""Calls at the corners of what functions take: whole numbers for floats, no elements, no axes, infinities, ties."""

from math import inf, nan

from tests.cases.case import Case, Function, Input, call, given, integers, randn, resolve, uniform

CASES: list[Case] = []
WHOLE = ("int64", "int32", "uint8", "bool")


def case(name: str, fn: Function, *inputs: Input, **options) -> None:
    CASES.append(Case(name, fn, inputs, tolerance="reduction", **options))


def functional(name: str, *args, **options) -> Function:
    return lambda torch, *tensors: resolve(torch.nn.functional, name)(*tensors, *args, **options)


# Losses of whole numbers: what torch promotes, and what it refuses, is in errors.py.
ROWS = ([[1, 2, 3], [4, 1, 0]], [[1, 0, 1], [1, 1, 0]])
for dtype in WHOLE:
    x, y = (given(rows, dtype) for rows in ROWS)
    if dtype != "bool":
        for options in ({}, {"full": True}, {"log_input": False}):
            text = "_".join(["", *options])
            case(f"poisson_nll_loss_{dtype}{text}", functional("poisson_nll_loss", **options), x, y)
        case(f"margin_ranking_loss_{dtype}", functional("margin_ranking_loss", margin=0.5), x, y, y)
        case(f"triplet_margin_loss_{dtype}", functional("triplet_margin_loss"), x, y, y)
        case(f"pairwise_distance_{dtype}", functional("pairwise_distance"), x, y)
        case(f"cov_{dtype}", call("cov"), x)
    case(f"cosine_embedding_loss_{dtype}", functional("cosine_embedding_loss"), x, y, given([1, 0], dtype))

for dtype in ("int64", "int32", "uint8", "float32"):
    classes = given([[1, 0, 1], [0, 1, 1]], dtype, grad=False)
    case(f"multilabel_soft_margin_loss_{dtype}", functional("multilabel_soft_margin_loss"), randn(2, 3), classes)

# Broadcasting, and axes under NumPy's names.
case("cosine_similarity_broadcast", call("cosine_similarity", dim=0), randn(3, 4), randn(1, 4))
case("cosine_similarity_grown", call("cosine_similarity", dim=1), randn(3, 4), randn(4))
AXES = {
    "linalg.norm": {}, "linalg.vector_norm": {}, "unbind": {}, "unsqueeze": {}, "select": {"index": 0},
    "narrow": {"start": 0, "length": 1}, "unflatten": {"sizes": (3, 1)}, "repeat_interleave": {"repeats": 2},
    "chunk": {"chunks": 2},
}  # fmt: skip
for name, options in AXES.items():
    case(f"axis_of_{name}", call(name, axis=1, **options), randn(2, 3, 4))
case("axis_of_squeeze", call("squeeze", axis=0), randn(1, 3))
case("squeeze_no_axes", call("squeeze", ()), randn(1, 2, 1))

# Bytes: torch rounds after each axis.
BYTES = integers(2, 3, 5, 4, low=0, high=256, dtype="uint8")
for size in ((7, 7), (3, 5), (5, 9), (2, 2), (10, 4)):
    for corners in (False, True):
        fn = functional("interpolate", size=size, mode="bilinear", align_corners=corners)
        case(f"interpolate_bytes_{size[0]}_{size[1]}{'_corners' * corners}", fn, BYTES)

# A number divided by a tensor, and rounded.
for mode in ("floor", "trunc"):
    for name in ("div", "divide"):
        fn = lambda torch, x, n=name, m=mode: resolve(torch, n)(7, x, rounding_mode=m)  # noqa: E731
        case(f"{name}_of_a_number_{mode}", fn, given([2.0, -2.0, 3.0], grad=False))
        case(f"{name}_of_a_number_{mode}_whole", fn, given([2, -2, 3], "int64"))

# Bounds that are no numbers.
for low, high in ((nan, None), (None, nan), (nan, 2.0), (0.0, nan)):
    case(f"clamp_{low}_{high}", call("clamp", low, high), given([1.0, 2.0, nan], grad=False))


def _statistics(module: str, *shape: int, **options) -> Function:
    def run(torch):
        layer = resolve(torch.nn, module)(3, **options)
        out = layer(torch.zeros(*shape))
        return out, layer.running_mean, layer.running_var, layer.num_batches_tracked

    return run


case("batch_norm_of_nothing", _statistics("BatchNorm1d", 0, 3), grad=False)
case("batch_norm_of_no_images", _statistics("BatchNorm2d", 0, 3, 2, 2), grad=False)
case("batch_norm_of_nothing_averaged", _statistics("BatchNorm1d", 0, 3, momentum=None), grad=False)

LINE = given([[1.0, -2.0, 3.0, -4.0, 0.0, -6.0]], grad=False)
for p in (1, 2, 3, 0.5, -1, inf, -inf):
    case(f"lp_pool1d_{p}", functional("lp_pool1d", p, 2), LINE)
    case(f"lp_pool1d_{p}_gradient", functional("lp_pool1d", p, 2), uniform(1, 6, low=0.5, high=2.0))

# What stands for "less than any" of a dtype: around what is pooled, where ties with it are no choice; under a mask.
for dtype in ("int64", "int32", "uint8", "float32", "float16"):
    least = {"int64": -(2**31), "int32": -(2**31), "uint8": 0}.get(dtype, -inf)
    for options in ({"stride": 2}, {"stride": 2, "dilation": 2}, {"ceil_mode": True, "stride": 3}):
        fn = functional("max_pool2d", 3, padding=1, return_indices=True, **options)
        name = f"max_pool2d_{dtype}_{'_'.join(options)}"
        case(f"{name}_least", fn, given([[[least] * 5] * 6], dtype), grad=False)
        case(name, fn, integers(2, 6, 5, low=0, dtype=dtype), grad=False)
    if least != -inf:
        fn = functional("max_pool3d", 2, padding=1, return_indices=True)
        case(f"max_pool3d_{dtype}", fn, integers(1, 3, 4, 5, low=0, dtype=dtype))
        rows = given([[5, -7, 9], [2, 4, 4], [1, 1, 2**31 - 2]] if dtype != "uint8" else [[5, 7, 255]] * 3, dtype)
        mask = given([[False, True, True], [True, True, False], [False, False, True]], "bool")
        for name in ("amax", "amin", "argmax", "argmin"):
            fn = lambda torch, x, m, n=name: getattr(torch.masked, n)(x, 1, mask=m)  # noqa: E731
            case(f"masked_{name}_{dtype}", fn, rows, mask)
        none = given([[False, False, True]] * 3, "bool")
        for name in ("softmax", "log_softmax", "softmin", "logsumexp"):
            fn = lambda torch, x, m, n=name: getattr(torch.masked, n)(x, 0, dtype=torch.float32, mask=m)  # noqa: E731
            case(f"masked_{name}_{dtype}", fn, rows, none)

for dtype in (*WHOLE, "int8"):
    for equation in ("ij->ji", "ij->i", "ij->", "ii->i", "ii->"):
        name = equation.replace("->", "_to_")
        case(
            f"einsum_{name}_{dtype}",
            lambda torch, x, e=equation: torch.einsum(e, x),
            integers(3, 3, low=0, dtype=dtype),
        )

# Ranges of whole numbers by steps that are none.
for at, (start, end, step) in enumerate(((1, 7, 1.5), (0, 5.5, 1), (5, -5, -1.5), (0.7, 9.2, 1.7))):
    for dtype in ("int64", "int32", "uint8"):
        if dtype != "uint8" or step > 0:
            fn = lambda torch, r=(start, end, step), d=dtype: torch.arange(*r, dtype=getattr(torch, d))  # noqa: E731
            case(f"arange_{dtype}_{at}", fn)

for reduce in ("prod", "mean", "amax", "amin"):
    for kept in (True, False):
        name = f"{reduce}{'' if kept else '_not_itself'}"
        options = {"include_self": kept}
        fn = lambda torch, x, i, s, r=reduce, o=options: x.index_reduce(0, i, s, r, **o)  # noqa: E731
        case(f"index_reduce_of_0d_{name}", fn, given(3.0), given(0, "int64"), given(5.0))
        pair = given([1.0, 0.0, 3.0, 4.0]), given([0, 0, 1, 3], "int64"), given([2.0, 0.5, 3.0, -1.0])
        case(f"index_reduce_zero_{name}", fn, *pair)
        fn = lambda torch, x, i, s, r=reduce, o=options: x.scatter_reduce(0, i, s, r, **o)  # noqa: E731
        case(f"scatter_reduce_zero_{name}", fn, *pair)

# Whole numbers with factors that are none: cut off, or refused (errors.py).
for dtype in ("int64", "uint8"):
    shapes = {"addmm": ((2, 2), (2, 3), (3, 2)), "addmv": ((2,), (2, 3), (3,)), "addr": ((2, 3), (2,), (3,)),
              "addbmm": ((2, 2), (2, 2, 3), (2, 3, 2)), "baddbmm": ((2, 2, 2), (2, 2, 3), (2, 3, 2))}  # fmt: skip
    for name, sizes in shapes.items():
        inputs = [integers(*size, low=0, dtype=dtype) for size in sizes]
        case(f"{name}_factors_{dtype}", call(name, beta=2, alpha=3), *inputs)
        if name != "addr":
            case(f"{name}_fractions_{dtype}", call(name, beta=1.5, alpha=2.5), *inputs)
    case(f"addcmul_fraction_{dtype}", call("addcmul", value=2.5), *[integers(3, low=0, dtype=dtype)] * 3)

# No power, no axis, one row.
case("matrix_power_0", lambda torch, x: torch.linalg.matrix_power(x, 0), randn(2, 3, 3, grad=False))
case("prelu_of_0d", functional("prelu"), given(-2.0), given([0.25]))
case("prelu_of_0d_by_0d", functional("prelu"), given(-2.0), given(0.25))
case("cov_of_one_row", call("cov"), randn(1, 4))
case("corrcoef_of_one_row", call("corrcoef"), randn(1, 4))
WEIGHTS = given([1, 2, 1, 3], "int64"), given([0.1, 0.2, 0.3, 0.4], grad=False)
for correction in (0, 1):
    options = {"correction": correction}
    case(
        f"cov_weights_{correction}",
        lambda torch, x, f, o=options: torch.cov(x, fweights=f, **o),
        randn(2, 4),
        WEIGHTS[0],
    )
    case(
        f"cov_both_weights_{correction}",
        lambda torch, x, f, a, o=options: torch.cov(x, fweights=f, aweights=a, **o),
        randn(2, 4),
        *WEIGHTS,
    )

# Large and small.
case("sinh_far", call("sinh"), given([-20.0, -17.0, -9.0, -8.0, -0.5, -1e-5, 0.0, 9.0, 17.0, 20.0, 88.0], grad=False))
case(
    "hypot_far",
    call("hypot"),
    *(given(v, grad=False) for v in ([3e38, 1e-30, inf, nan, 0.0], [1e38, 1e-30, nan, inf, -0.0])),
)
case("sign_of_nan", lambda torch: torch.copysign(torch.ones(2), torch.tensor([nan, -nan])).signbit(), grad=False)

# In place: what the gradient needs is the value before.
for name, args in {"lgamma": (), "digamma": (), "i0": (), "sgn": (), "polygamma": (1,), "renorm": (2, 0, 1.0)}.items():
    fn = lambda torch, x, n=name, a=args: resolve(torch.Tensor, f"{n}_")(x * 1, *a)  # noqa: E731
    case(f"{name}_in_place", fn, uniform(2, 3, low=1.2, high=3.0))

# The absolute value of a multiple is taken before a narrow dtype wraps it.
for dtype in ("int8", "int16", "uint8", "int32"):
    pair = [given(values, dtype) for values in ([100, 77, 96, 0, 6, 64], [3, 101, 101, 7, 4, 127])]
    case(f"lcm_{dtype}", call("lcm"), *pair)
    if dtype != "uint8":
        case(f"lcm_negative_{dtype}", lambda torch, x, y: torch.lcm(-x, y), *pair)

# Gradients: of equal positions, of a share, of how many there are.
case("index_fill_twice", lambda torch, x, v: x.index_fill(0, torch.tensor([0, 0, 2]), v), randn(4), given(7.0))
case(
    "index_fill_columns_twice", lambda torch, x, v: x.index_fill(1, torch.tensor([0, 2, 0]), v), randn(3, 4), given(7.0)
)
for name in ("quantile", "nanquantile"):
    case(f"{name}_of_share", lambda torch, x, q, n=name: resolve(torch, n)(x, q), randn(7), given([0.3, 0.6]))
    case(
        f"{name}_of_share_by_rows",
        lambda torch, x, q, n=name: resolve(torch, n)(x, q, dim=1),
        randn(3, 7),
        given([0.3, 0.6]),
    )
case("cdist_0", lambda torch, x, y: torch.cdist(x, y, 0.0), randn(3, 2), randn(4, 2))

for at, (step, extra, size, cut, apart) in enumerate(
    ((1, 1, 3, 0, 2), (2, 2, 3, 0, 3), (1, 2, 2, 0, 3), (2, 3, 3, 1, 4), (1, 1, 3, 3, 2), (2, 1, 3, 1, 1))
):
    options = {"stride": step, "output_padding": extra, "padding": cut, "dilation": apart}
    fn = functional("conv_transpose1d", **options)
    case(
        f"conv_transpose1d_padded_output_{at}",
        lambda torch, x, w, f=fn: f(torch, x, w),
        randn(1, 2, 5),
        randn(2, 3, size),
    )
    fn = functional("conv_transpose2d", **options)
    case(
        f"conv_transpose2d_padded_output_{at}",
        lambda torch, x, w, f=fn: f(torch, x, w),
        randn(1, 2, 5, 6),
        randn(2, 3, size, size),
    )
