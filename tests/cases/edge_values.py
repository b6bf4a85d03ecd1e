"""Values and gradients where a function has a kink or its input is no number: NaN, infinities, zeros, nothing."""

from math import inf, nan

from tests.cases.autograd import leaf
from tests.cases.case import Case, Function, Input, call, given, resolve

CASES: list[Case] = []


def case(name: str, fn: Function, *inputs: Input, **options) -> None:
    CASES.append(Case(name, fn, inputs, tolerance="reduction", **options))


def functional(name: str, *args, **options) -> Function:
    return lambda torch, *tensors: resolve(torch.nn.functional, name)(*tensors, *args, **options)


# Zeros keep their sign. On webgpu a driver chooses it.
ZEROS = given([-0.0, 0.0, 1.0, -1.0] * 9, grad=False)
SIGNED = {
    "relu": lambda torch, x: x.relu(), "relu_in_place": lambda torch, x: x.relu_(),
    "clamp_below": lambda torch, x: x.clamp(min=0.0), "clamp_above": lambda torch, x: x.clamp(max=0.0),
    "clamp_both": lambda torch, x: x.clamp(0, 1), "clamp_at_minus_zero": lambda torch, x: x.clamp(min=-0.0),
    "relu6": lambda torch, x: torch.nn.functional.relu6(x),
    "hardtanh": lambda torch, x: torch.nn.functional.hardtanh(x, 0, 2),
    "remainder": lambda torch, x: torch.remainder(x, 1), "remainder_below": lambda torch, x: x % -2.0,
}  # fmt: skip
for name, fn in SIGNED.items():
    for dtype in ("float32", "float64", "float16", "bfloat16"):
        signed = lambda torch, x, f=fn, d=dtype: f(torch, x.to(resolve(torch, d))).signbit()  # noqa: E731
        case(f"sign_of_zero_{name}_{dtype}", signed, ZEROS, devices=("cpu",))

# What is taken from itself is 0, or NaN.
STRANGE = given([1.0, nan, inf, -inf, -2.0], grad=False)
for name, fn in {
    "x": lambda torch, x: x - x, "product": lambda torch, x: x * 2 - x * 2, "opposite": lambda torch, x: -x + x,
    "copy": lambda torch, x: x - x.clone(), "in_place": lambda torch, x: x.sub_(x),
    "isnan": lambda torch, x: (x - x).isnan(),
}.items():  # fmt: skip
    case(f"difference_of_itself_{name}", fn, STRANGE)
for name in ("var", "std"):
    for shape in ([2.0], [[2.0], [3.0]], 2.0):
        fn = lambda torch, x, n=name: resolve(torch, n)(x, dim=-1)  # noqa: E731
        case(f"{name}_of_one_{len(str(shape))}", fn, given(shape))
    case(f"{name}_of_too_few", call(name, correction=2), given([2.0, 3.5], grad=False))

# Equal elements share the gradient of what all of them have; so do those that are NaN.
for name in ("max", "min", "median", "nanmedian"):
    for at, row in enumerate(([1.0, nan, 2.0], [nan, nan, 1.0], [2.0, 2.0, 1.0], [inf, inf, -inf, -inf], [[3.0, 1.0]])):
        case(f"gradient_of_{name}_{at}", call(name), given(row))
for p in (0.5, 1.0, 2.0, inf):
    points = given([[1.0, 2.0], [3.0, 0.0], [1.0, 2.5]]), given([[1.0, 2.0], [5.0, 2.0], [0.0, 1.0]])
    case(f"cdist_{p}_ties", lambda torch, x, y, p=p: torch.cdist(x, y, p), *points)
case("pdist_inf_ties", lambda torch, x: torch.pdist(x, inf), given([[1.0, 2.0], [3.0, 0.0], [1.0, 2.5]]))
case("cdist_inf_of_no_columns", lambda torch: torch.cdist(torch.zeros(2, 0), torch.zeros(3, 0), inf))

# Quantiles beside infinities.
ROWS = given([[-inf, 0.0, 1.0], [5.0, inf, inf], [inf, inf, inf], [-inf, inf, 0.0], [nan, 1.0, -inf]], grad=False)
for name in ("quantile", "nanquantile"):
    for mode in ("linear", "midpoint", "lower", "higher", "nearest"):
        for q in (0.1, 0.4, 0.9):
            case(f"{name}_{mode}_of_infinities_{q}", call(name, q, dim=1, interpolation=mode), ROWS)

# A probability of 0 or 1, and logits of 0.
ENDS = given([0.0, 1.0, 0.0, 1.0, 0.5, 1e-20]), given([0.0, 1.0, 1.0, 0.0, 0.3, 1.0])
for reduction in ("none", "mean", "sum"):
    case(f"bce_at_its_ends_{reduction}", functional("binary_cross_entropy", reduction=reduction), *ENDS)


def twice(function: Function) -> Function:
    def run(torch):
        x = leaf(torch, 0.0, 1.0, -1.0, 20.0, -20.0)
        y = function(torch, x)
        (first,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        (second,) = torch.autograd.grad((first * first).sum() if first.requires_grad else x.sum(), x)
        return y, first, second

    return run


for name in ("logsigmoid", "softplus", "gelu", "silu", "tanhshrink", "softsign"):
    case(f"second_derivative_at_0_{name}", twice(functional(name)), grad=False)
case("second_derivative_at_0_bce_logits", twice(lambda torch, x: torch.nn.functional.binary_cross_entropy_with_logits(
    x, torch.tensor([0.0, 1.0, 0.5, 1.0, 0.0]))), grad=False)  # fmt: skip
# Of straight pieces the second derivative is 0, not absent.
PIECES = {
    "relu": (), "leaky_relu": (), "relu6": (), "hardtanh": (), "softshrink": (), "hardshrink": (),
    "threshold": (0.1, 0.0),
}  # fmt: skip
for name, values in PIECES.items():
    case(f"second_derivative_of_{name}", twice(lambda torch, x, n=name, v=values: resolve(
        torch.nn.functional, n)(x * 0.3, *v)), grad=False)  # fmt: skip
case(
    "second_derivative_of_prelu", twice(lambda torch, x: torch.nn.functional.prelu(x, torch.tensor([0.25]))), grad=False
)

# NaN passes the gradient of some straight pieces, and not of others.
for name in ("hardtanh", "relu6", "hardsigmoid", "relu", "hardshrink", "leaky_relu"):
    case(f"gradient_at_nan_of_{name}", functional(name), given([nan, 0.5, -3.0, 3.0, 7.0]))

for number in (0, 2, -1.5):
    case(f"xlogy_of_{number}", lambda torch, x, n=number: torch.xlogy(n, x), given([0.0, 1.0, 2.5, nan], grad=False))
case("nan_to_num_complex", lambda torch, x: torch.view_as_real(torch.view_as_complex(x).nan_to_num(2.0, 3.0)),
     given([[nan, 1.0], [inf, -inf], [0.5, nan]], grad=False))  # fmt: skip
case("frequencies_of_nothing", lambda torch: torch.fft.fftfreq(0))
case("sparse_of_a_size", lambda torch: torch.sparse_coo_tensor(size=(2, 3)).to_dense())

# Nothing: no elements, no axes.
for dtype in ("int64", "uint8", "bool", "float32"):
    for name in ("softmax", "log_softmax") if dtype == "bool" else ("softmax", "log_softmax", "softmin"):
        case(
            f"{name}_of_no_{dtype}",
            functional(name, dim=-1),
            Input((2, 0), dtype, lambda random, shape: random.random(shape)),
        )
for name in ("all", "any"):
    case(f"{name}_over_no_axes", call(name, dim=()), given([[1.0, 0.0], [2.0, 3.0]], grad=False))
case("unique_rows_of_nothing", lambda torch: torch.unique(torch.zeros(0, 2), dim=0))
for dtype in ("int64", "uint8"):
    case(f"logspace_{dtype}_between_fractions",
         lambda torch, d=dtype: torch.logspace(0.5, 2.9, 3, dtype=resolve(torch, d)))  # fmt: skip
case("trapezoid_along_axis", call("trapezoid", axis=0), given([[1.0, 2.0], [3.0, 5.0]]))
