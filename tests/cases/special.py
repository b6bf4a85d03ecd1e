"""torch.special: functions that are fitted or summed here, where they change their formula and far from it."""

from tests.cases.case import Case, Function, Input, given, integers, resolve, uniform

CASES: list[Case] = []


def case(name: str, fn: Function, *inputs: Input, **options) -> None:
    CASES.append(Case(name, fn, inputs, tolerance="model", **options))


def special(name: str, *args) -> Function:
    return lambda torch, *tensors: resolve(torch.special, name)(*tensors, *args)


NAN, INF = float("nan"), float("inf")
ANYWHERE = given([-9.4, -8.0, -2.1, -1.0, -0.3, 0.0, 1e-3, 0.5, 2.0, 2.1, 4.7, 8.0, 8.5, 30.0, NAN])
# name: whether PyTorch has its gradient.
UNARY = {
    "airy_ai": False, "bessel_j0": False, "bessel_j1": False, "bessel_y0": False, "bessel_y1": False, "entr": True,
    "erfcx": True, "i0": True, "i0e": True, "i1": True, "i1e": True, "log_ndtr": True, "modified_bessel_i0": False,
    "modified_bessel_i1": False, "modified_bessel_k0": False, "modified_bessel_k1": False, "ndtr": True,
    "scaled_modified_bessel_k0": False, "scaled_modified_bessel_k1": False, "spherical_bessel_j0": False,
}  # fmt: skip
for name, has_gradient in UNARY.items():
    where = given([-6.0, -1.0, -0.3, 0.5, 2.0, 8.5, 12.0]) if has_gradient else ANYWHERE
    case(name, special(name), where, grad=has_gradient)
FAR = [-5.0, -0.7, 0.0, 0.3, 0.9, 1.1, 1.9, 2.1, 3.5, 6.6, 8.5]
for name in ("erfc", "erfcx", "ndtr", "log_ndtr"):
    CASES.append(Case(f"{name}_double", special(name), (given(FAR, "float64"),), devices=("cpu",)))
case("erfc_far", special("erfc"), given(FAR))
case("ndtri", special("ndtri"), given([1e-6, 0.02, 0.1353, 0.4, 0.5, 0.8, 0.97, 0.9999]))
case("ndtri_edges", special("ndtri"), given([0.0, 1.0, -0.1, 1.1, NAN], grad=False))
case("xlog1py", special("xlog1py"), given([0.0, 2.0, -1.5, 0.0]), given([-0.5, 0.5, 3.0, 2.0]))
case(
    "xlog1py_edges",
    special("xlog1py"),
    given([0.0, 0.0, 2.0, 0.0], grad=False),
    given([-1.0, INF, -1.0, NAN]),
    grad=False,
)
case("polygamma_of_orders", lambda torch, x: [torch.polygamma(n, x) for n in (0, 3)], uniform(9, low=0.3, high=8))
case("polygamma_below_0", lambda torch, x: [torch.polygamma(n, x) for n in (1, 2)], given([-0.5, -2.25, -7.6]))
case("zeta", special("zeta"), given([1.5, 2.0, 3.5, 8.0, 1.0, 0.5], grad=False), uniform(6, low=0.1, high=12))
AT = given([0.0, 0.02, 0.4, 1.0, 2.5, 6.0, 30.0, 200.0, INF], grad=False)
SHAPES = given([[0.01], [0.5], [1.0], [4.9], [5.1], [30.0], [190.0]], grad=False)
for name, upper in (("gammainc", False), ("gammaincc", True)):
    case(name, special(name), SHAPES, AT)
    # By their logarithms, since a share may be small.
    case(
        f"{name}_small_shares",
        lambda torch, a, x, name=name: resolve(torch.special, name)(a, x).log(),
        given([1e-4, 0.01, 0.1, 0.5, 4.9, 5.1, 30.0], grad=False),
        given([2.6, 3.2, 3.3, 12.0, 20.0, 22.0, 70.0] if upper else [1e-4, 1e-3, 0.1, 0.02, 0.3, 0.1, 8.0], grad=False),
    )
for kind in "tuvw":
    for shift in ("", "shifted_"):
        case(f"{shift}chebyshev_{kind}", special(f"{shift}chebyshev_polynomial_{kind}", 5), uniform(7, grad=False))
for name in ("hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p"):
    case(name, special(name), uniform(4, 1, low=-2, high=2, grad=False), integers(1, 6, low=-1, high=7))
