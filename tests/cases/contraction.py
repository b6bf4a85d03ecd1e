"""Products that sum: matrix products of every rank, einsum, tensordot."""

import math

from tests.cases.case import Case, Input, call, given, integers, method, randn, spiked, uniform

CASES: list[Case] = []


def case(name: str, fn, *inputs: Input, terms: int = 1, **options) -> None:
    CASES.append(Case(name, fn, inputs, tolerance="contraction", terms=terms, **options))


def text(*shapes: tuple[int, ...]) -> str:
    return "_".join("x".join(map(str, shape)) or "scalar" for shape in shapes)


# Every pair of ranks, and batches that broadcast.
PAIRS = [
    ((3,), (3,)), ((3,), (3, 4)), ((2, 3), (3,)), ((2, 3), (3, 4)), ((3,), (2, 3, 4)), ((5, 2, 3), (3,)),
    ((2, 3), (5, 3, 4)), ((5, 2, 3), (3, 4)), ((5, 2, 3), (5, 3, 4)), ((1, 2, 3), (5, 3, 4)), ((5, 2, 3), (1, 3, 4)),
    ((3,), (2, 5, 3, 4)), ((2, 5, 2, 3), (3,)), ((2, 1, 2, 3), (5, 3, 4)), ((2, 5, 2, 3), (2, 5, 3, 4)),
    ((2, 1, 2, 3), (1, 5, 3, 4)), ((2, 5, 2, 3), (3, 4)),
]  # fmt: skip
for a, b in PAIRS:
    case(f"matmul_{text(a, b)}", call("matmul"), randn(*a), randn(*b), terms=10)
    case(f"operator_{text(a, b)}", lambda torch, a, b: a @ b, randn(*a), randn(*b), terms=10)

# Sizes around tiles, vectors and splits: (rows, terms, columns).
SIZES = [
    (1, 1, 1), (1, 7, 1), (1, 64, 9), (9, 64, 1), (2, 2, 2), (7, 5, 3), (16, 16, 16), (17, 15, 19), (31, 33, 32),
    (64, 64, 64), (65, 63, 66), (1, 257, 65), (65, 300, 1), (33, 300, 17), (128, 3, 130), (3, 256, 5), (4, 100, 128),
]  # fmt: skip
for m, k, n in SIZES:
    case(f"mm_{m}_{k}_{n}", call("mm"), randn(m, k), randn(k, n), terms=max(m, k, n))
    case(f"linear_{m}_{k}_{n}", call("nn.functional.linear"), randn(m, k), randn(n, k), randn(n), terms=max(m, k, n))
    case(f"bmm_{m}_{k}_{n}", call("bmm"), randn(3, m, k), randn(3, k, n), terms=max(m, k, n))

# Operands that are views.
TRANSPOSED = {
    "left": lambda torch, a, b: a.t() @ b[:7],
    "right": lambda torch, a, b: a @ b.t()[:6],
    "both": lambda torch, a, b: a.t() @ b.t()[:7],
    "product": lambda torch, a, b: (a @ b[:6]).t(),
    "gram": lambda torch, a, b: a.t() @ a,
    "sliced": lambda torch, a, b: a[::2, 1:] @ b[:5, ::3],
    "flipped": lambda torch, a, b: a.flip(1) @ b[:6].flip(0),
    "expanded": lambda torch, a, b: a[:1].expand(4, 6) @ b[0, :6],
    "permuted_batch": lambda torch, a, b: torch.matmul(a.view(7, 2, 3).permute(1, 0, 2), b[:6, :3].reshape(2, 3, 3)),
    "broadcast_batch": lambda torch, a, b: a.expand(3, 7, 6) @ b[:6],
}
for name, fn in TRANSPOSED.items():
    case(f"matmul_of_{name}", fn, randn(7, 6), randn(9, 9), terms=10)
case("matmul_heads", lambda torch, q, k: q.view(2, 9, 3, 4).transpose(1, 2) @ k.view(2, 9, 3, 4).permute(0, 2, 3, 1),
     randn(2, 9, 12), randn(2, 9, 12), terms=10)  # fmt: skip

# Dimensions of no size.
for a, b in [((0, 3), (3, 4)), ((2, 0), (0, 4)), ((2, 3), (3, 0)), ((0, 2, 3), (0, 3, 4)), ((5, 2, 0), (0, 4)),
             ((0,), (0,)), ((2, 0), (0,))]:  # fmt: skip
    case(f"matmul_empty_{text(a, b)}", call("matmul"), randn(*a), randn(*b))
case("mm_empty", call("mm"), randn(2, 0), randn(0, 4))
case("bmm_empty", call("bmm"), randn(0, 2, 3), randn(0, 3, 4))
case("addmm_empty", call("addmm"), randn(2, 4), randn(2, 0), randn(0, 4))

case("mv", call("mv"), randn(5, 7), randn(7), terms=7)
case("dot", call("dot"), randn(65), randn(65), terms=65)
case("dot_one", call("dot"), randn(1), randn(1))
case("vdot", call("vdot"), randn(9), randn(9), terms=9)
case("inner", call("inner"), randn(3, 5), randn(4, 5), terms=5)
case("outer", call("outer"), randn(5), randn(7), terms=7)
case("ger", call("outer"), randn(1), randn(3))
case("kron", call("kron"), randn(2, 3), randn(3, 2), terms=9)
case("matmul_method", method("matmul"), randn(3, 4), randn(4, 5), terms=5)
case("mm_method", method("mm"), randn(3, 4), randn(4, 5), terms=5)
case("bmm_method", method("bmm"), randn(2, 3, 4), randn(2, 4, 5), terms=5)
case("multi_dot", lambda torch, a, b, c: torch.linalg.multi_dot([a, b, c]), randn(3, 9), randn(9, 4), randn(4, 5),
     terms=36)  # fmt: skip
case("matrix_power", lambda torch, a: torch.linalg.matrix_power(a / 3, 3), randn(4, 4), terms=16)
case("cross", lambda torch, a, b: torch.linalg.cross(a, b), randn(4, 3), randn(4, 3))

for kind, options in {"plain": {}, "scaled": {"beta": 0.5, "alpha": 2.0}, "no_input": {"beta": 0}}.items():
    case(f"addmm_{kind}", call("addmm", **options), randn(3, 5), randn(3, 4), randn(4, 5), terms=5)
    case(f"addmv_{kind}", call("addmv", **options), randn(3), randn(3, 4), randn(4), terms=5)
    case(f"baddbmm_{kind}", call("baddbmm", **options), randn(2, 3, 5), randn(2, 3, 4), randn(2, 4, 5), terms=5)
    case(f"addbmm_{kind}", call("addbmm", **options), randn(3, 5), randn(2, 3, 4), randn(2, 4, 5), terms=8)
case("addmm_broadcast_bias", call("addmm"), randn(5), randn(3, 4), randn(4, 5), terms=5)
case("baddbmm_broadcast", call("baddbmm"), randn(1, 5), randn(2, 3, 4), randn(2, 4, 5), terms=6)
case("addr", call("addr"), randn(3, 4), randn(3), randn(4))
case("addmm_in_place", lambda torch, c, a, b: c.clone().addmm_(a, b), randn(3, 5), randn(3, 4), randn(4, 5), terms=5)

EINSUM = {
    "ij,jk->ik": ((2, 3), (3, 4)), "ij,jk": ((2, 3), (3, 4)), "ij->ji": ((2, 3),), "ij->": ((2, 3),),
    "ij->j": ((2, 3),),
    "ii->i": ((3, 3),), "ii": ((3, 3),), "i,j->ij": ((3,), (4,)), "i,i->": ((5,), (5,)), "i,i->i": ((5,), (5,)),
    "bij,bjk->bik": ((2, 3, 4), (2, 4, 5)), "bij,jk->bik": ((2, 3, 4), (4, 5)),
    "bhqd,bhkd->bhqk": ((2, 2, 3, 4), (2, 2, 5, 4)),
    "bhqk,bhkd->bhqd": ((2, 2, 3, 5), (2, 2, 5, 4)), "btd,dhe->bhte": ((2, 3, 4), (4, 2, 3)),
    "bhwc,hkc->bhwk": ((2, 3, 4, 2), (3, 5, 2)), "bqhd,bkhd->bhqk": ((2, 3, 2, 4), (2, 5, 2, 4)),
    "...ij,...jk->...ik": ((2, 3, 4), (4, 5)), "...d,d->...": ((2, 3, 4), (4,)), "...ij->...ji": ((2, 3, 4),),
    "ij,kj->ik": ((3, 4), (5, 4)), "ijk,k->ij": ((2, 3, 4), (4,)), "ij,ij->": ((3, 4), (3, 4)),
    "ij,ij->ij": ((3, 4), (3, 4)),
    "i,ij,j->": ((3,), (3, 4), (4,)), "ij,jk,kl->il": ((2, 3), (3, 4), (4, 5)),
    "bn,anm,bm->ba": ((2, 3), (5, 3, 4), (2, 4)),
    "ab,cd->abcd": ((2, 3), (4, 5)), "abc->cab": ((2, 3, 4),), "bij,bij->b": ((2, 3, 4), (2, 3, 4)),
    "bi , bj -> b i j": ((2, 3), (2, 4)), "ij,j": ((1, 3), (3,)),
}  # fmt: skip
for equation, shapes in EINSUM.items():
    contract = lambda torch, *tensors, equation=equation: torch.einsum(equation, *tensors)  # noqa: E731
    case("einsum_" + equation.replace(" ", ""), contract, *(randn(*shape) for shape in shapes), terms=20)

TENSORDOT = {
    "number": (2, (3, 4, 5), (4, 5, 6)), "one": (1, (3, 4), (4, 5)), "none": (0, (2, 3), (4,)),
    "lists": (([0, 1], [1, 0]), (3, 4, 5), (4, 3, 2)), "negative": (([-1], [0]), (2, 5), (5, 3)),
}  # fmt: skip
for name, (dims, a, b) in TENSORDOT.items():
    case(f"tensordot_{name}", call("tensordot", dims=dims), randn(*a), randn(*b), terms=20)

for dtype in ("float16", "bfloat16"):
    case(f"matmul_{dtype}", call("matmul"), randn(7, 33, dtype=dtype), randn(33, 9, dtype=dtype), terms=33)
    case(f"bmm_{dtype}", call("bmm"), randn(2, 7, 5, dtype=dtype), randn(2, 5, 9, dtype=dtype), terms=9)
    one, rows = randn(1, 130, dtype=dtype), randn(37, 130, dtype=dtype)
    case(f"linear_one_row_{dtype}", call("nn.functional.linear"), one, rows, terms=130)
case("matmul_float16_of_4096", call("matmul"), uniform(3, 4096, low=-0.1, high=0.1, dtype="float16"),
     uniform(4096, 5, low=-0.1, high=0.1, dtype="float16"), terms=4096)  # fmt: skip
for dtype in ("int64", "int32"):
    case(f"matmul_{dtype}", call("matmul"), integers(5, 7, dtype=dtype), integers(7, 3, dtype=dtype))
case("matmul_float64", call("matmul"), randn(7, 9, dtype="float64"), randn(9, 5, dtype="float64"), terms=9,
     devices=("cpu",))  # fmt: skip
case("matmul_nan_stays_in_row", call("matmul"), spiked(3, 4, spikes=(math.nan,)), randn(4, 5), grad=False)
case("ormqr_of_no_matrices", lambda torch, a, b, c: torch.ormqr(a, b, c) + (a + c).sum() + b.sum(), randn(0, 5, 5),
     randn(0, 5), randn(0, 5, 5))  # fmt: skip
case("matmul_inf", call("matmul"), given([[math.inf, 1.0], [1.0, 1.0]]), given([[1.0, 2.0], [3.0, -1.0]]), grad=False)
case("matmul_large_values", lambda torch, a, b: (a * 1e15) @ (b * 1e15), randn(3, 4), randn(4, 5), terms=5)

# Work around the product.
case("linear_no_bias", call("nn.functional.linear"), randn(2, 3, 4), randn(5, 4), terms=6)
case("linear_vector", call("nn.functional.linear"), randn(4), randn(5, 4), randn(5), terms=5)
case("linear_relu", lambda torch, x, w, b: torch.relu(x @ w.t() + b), randn(9, 33), randn(5, 33), randn(5), terms=33)
case("linear_gelu_residual", lambda torch, x, w, b: x + torch.nn.functional.gelu(x @ w + b), randn(9, 17),
randn(17, 17),
     randn(17), terms=17)  # fmt: skip
case("prologue", lambda torch, x, w: (x * 2 + 1).sigmoid() @ w.exp(), randn(5, 9), randn(9, 4), terms=90)
case("scaled_scores", lambda torch, q, k: (q @ k.transpose(-2, -1) / 2).softmax(-1), randn(2, 5, 4), randn(2, 5, 4),
     terms=20)  # fmt: skip
case("chain_of_products", lambda torch, a, b, c: a @ b @ c, randn(3, 9), randn(9, 5), randn(5, 4), terms=45)
case("two_layers", lambda torch, x, a, b: (x @ a).tanh() @ b, randn(8, 20), randn(20, 30), randn(30, 10), terms=600)
case("product_sum", lambda torch, a, b: (a @ b).sum(-1), randn(5, 33), randn(33, 7), terms=300)
case("same_operand_twice", lambda torch, a: a @ a + a.t() @ a, randn(6, 6), terms=36)
case("shared_left_operand", lambda torch, x, a, b: (x @ a, x @ b), randn(5, 9), randn(9, 3), randn(9, 4), terms=9)

# Sums that no invocation takes alone: a batch of parts, with zeros behind them where they do not divide.
for size in (50_000, 70_001):
    for dtype in ("float32", "float16", "int64"):
        case(
            f"bmm_of_long_k_{size}_{dtype}",
            call("bmm"),
            integers(2, 3, size, dtype=dtype),
            integers(2, size, 2, dtype=dtype),
            grad=False,
        )
