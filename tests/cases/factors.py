"""torch.linalg's factorisations and what is made of them; all are computed on the host."""

from tests.cases.case import Case, Function, Input, call, randn

CASES: list[Case] = []


def case(name: str, fn: Function, *inputs: Input, **options) -> None:
    CASES.append(Case(name, fn, inputs, tolerance="model", **options))


def positive(x):
    """A symmetric positive definite matrix of any."""
    n = x.shape[-1]
    return x @ x.mT + n * x.new_ones(n).diag()


def symmetric(x):
    return x + x.mT


for shape in ((3, 3), (2, 3, 3)):
    name = f"{len(shape)}d"
    for function in ("linalg.det", "linalg.inv", "linalg.slogdet", "linalg.svdvals", "linalg.qr", "matrix_exp", "det"):
        case(f"{function}_{name}", call(function), randn(*shape))
    case(f"linalg.cholesky_{name}", lambda torch, x: torch.linalg.cholesky(positive(x)), randn(*shape))
    case(f"cholesky_upper_{name}", lambda torch, x: torch.cholesky(positive(x), upper=True), randn(*shape))
    case(f"logdet_{name}", lambda torch, x: torch.logdet(positive(x)), randn(*shape))
    case(f"linalg.eigvalsh_{name}", lambda torch, x: torch.linalg.eigvalsh(symmetric(x)), randn(*shape))
    case(f"linalg.eigh_{name}", lambda torch, x: torch.linalg.eigh(symmetric(x))[1].abs(), randn(*shape))
    case(f"linalg.solve_{name}", call("linalg.solve"), randn(*shape), randn(*shape[:-1], 2))
    case(f"linalg.solve_right_{name}", call("linalg.solve", left=False), randn(*shape), randn(*shape[:-2], 2, 3))
    for upper in (False, True):
        fn = call("linalg.solve_triangular", upper=upper)
        case(f"linalg.solve_triangular_{upper}_{name}", fn, randn(*shape), randn(*shape[:-1], 2))
for shape in ((3, 4), (4, 3), (2, 4, 3)):
    name = "_".join(map(str, shape))
    case(f"linalg.pinv_{name}", call("linalg.pinv"), randn(*shape))
    case(f"linalg.qr_{name}", call("linalg.qr"), randn(*shape))
    case(f"linalg.svd_{name}", lambda torch, x: [part.abs() for part in torch.linalg.svd(x, False)], randn(*shape))
    for order in ("nuc", 2, -2):
        case(f"linalg.matrix_norm_{order}_{name}", call("linalg.matrix_norm", ord=order), randn(*shape))
case("linalg.matrix_power_negative", call("linalg.matrix_power", n=-2), randn(3, 3))
case("norm_nuc", call("norm", "nuc"), randn(3, 4))
case("linalg.det_of_a_singular_matrix", lambda torch, x: torch.linalg.det(x.unsqueeze(1) * x), randn(3))
case("linalg.matrix_rank", lambda torch, x: torch.linalg.matrix_rank(x.unsqueeze(1) * x), randn(3, grad=False))


# Complex matrices, given as pairs of numbers.


def of_pairs(fn: Function, count: int = 1) -> Function:
    """The function of matrices whose elements are pairs, with the sizes of complex results."""

    def call(torch, *inputs):
        given = [torch.view_as_complex(x) if at < count else x for at, x in enumerate(inputs)]
        found = fn(torch, *given)
        parts = found if isinstance(found, (list, tuple)) else [found]
        return [torch.view_as_real(part.resolve_conj()) if part.is_complex() else part for part in parts]

    return call


def hermitian(x):
    return x @ x.mH + x.shape[-1] * x.new_ones(x.shape[-1]).diag()


C = randn(2, 3, 3, 2)
for function in ("inv", "det", "qr", "lu_factor", "lu", "slogdet", "svdvals", "pinv"):
    case(f"linalg.{function}_complex", of_pairs(call(f"linalg.{function}")), C)
for name, fn in {
    "solve": lambda torch, a, b: torch.linalg.solve(a, b), "vecdot": lambda torch, a, b: torch.linalg.vecdot(a, b),
    "solve_triangular": lambda torch, a, b: torch.linalg.solve_triangular(a, b, upper=True),
}.items():  # fmt: skip
    case(f"linalg.{name}_complex", of_pairs(fn, 2), C, C)
for name, fn in {
    "cholesky": lambda torch, a: torch.linalg.cholesky(hermitian(a)),
    "cholesky_upper": lambda torch, a: torch.linalg.cholesky(hermitian(a), upper=True),
    "eigvalsh": lambda torch, a: torch.linalg.eigvalsh(hermitian(a)),
    "eigh": lambda torch, a: torch.linalg.eigh(hermitian(a))[1].abs(),
    "svd": lambda torch, a: [part.abs() for part in torch.linalg.svd(a)],
    "logdet": lambda torch, a: torch.logdet(a),
}.items():
    case(f"linalg.{name}_complex", of_pairs(fn), C)
case("linalg.eig", lambda torch, x: [part.abs().sort(-1)[0] for part in torch.linalg.eig(x)], randn(2, 3, 3))
case("linalg.eigvals_complex", of_pairs(lambda torch, x: torch.linalg.eigvals(x).abs().sort(-1)[0]), C)
for twice in (False, True):
    fn = lambda torch, x, twice=twice: torch.linalg.ldl_factor(x, hermitian=twice)  # noqa: E731
    case(f"linalg.ldl_factor_complex_{twice}", of_pairs(fn), C, grad=False)
case("linalg.ldl_factor", call("linalg.ldl_factor"), randn(2, 5, 5), grad=False)
case(
    "linalg.ldl_solve", lambda torch, x, b: torch.linalg.ldl_solve(*torch.linalg.ldl_factor(x), b),
    randn(2, 5, 5), randn(2, 5, 3), grad=False,
)  # fmt: skip


def mixed(torch):
    """A batch of which one matrix has factors."""
    return torch.stack([torch.ones(3, 3), 2 * torch.eye(3), -torch.eye(3)])


for name, fn in {
    "cholesky_ex": lambda torch: [part[1:2] if part.is_floating_point() else part for part in torch.linalg.cholesky_ex(
        mixed(torch))],
    "cholesky_ex_begun": lambda torch: torch.linalg.cholesky_ex(torch.tensor([[4.0, 2, 2], [2, 1, 3], [2, 3, 9]])),
    "cholesky_ex_nan": lambda torch: torch.linalg.cholesky_ex(torch.full((2, 2), float("nan")))[1],
    "inv_ex": lambda torch: [part[1:] if part.is_floating_point() else part for part in torch.linalg.inv_ex(
        mixed(torch))],
    "solve_ex": lambda torch: [part[1:] if part.is_floating_point() else part for part in torch.linalg.solve_ex(
        mixed(torch), torch.ones(3, 3))],
    "lu_of_nothing": lambda torch: torch.linalg.lu(torch.zeros(0, 0)),
    "cond_of_nothing": lambda torch: torch.linalg.cond(torch.zeros(0, 0)),
    "qr_out": lambda torch: [part.abs() for part in torch.linalg.qr(
        torch.eye(3) * 2, out=(torch.empty(0), torch.empty(0)))],
    "det_out": lambda torch: torch.linalg.det(torch.eye(3) * 2, out=torch.empty(())),
}.items():  # fmt: skip
    case(f"linalg.{name}", fn, grad=False)
