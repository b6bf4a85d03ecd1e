"""Complex numbers: made, taken apart, computed with, moved and written. A complex input or result is a real one with an
axis of two numbers more, so that gradients are compared as well."""

import io
from collections.abc import Callable
from typing import Any

from tests.cases.case import Case, Function, Input, given, randn, resolve, uniform

CASES: list[Case] = []


def over(fn: Function, count: int) -> Function:
    """The function, of which the first `count` inputs are complex, and with the parts of complex results."""

    def call(torch: Any, *inputs: Any) -> list[Any]:
        given = [torch.view_as_complex(x) if at < count else x for at, x in enumerate(inputs)]
        found = fn(torch, *given)
        return [shown(torch, one) for one in (found if isinstance(found, (list, tuple)) else [found])]

    return call


def shown(torch: Any, one: Any) -> Any:
    is_complex = isinstance(one, torch.Tensor) and one.is_complex()
    return torch.view_as_real(one.resolve_conj()) if is_complex else one


def case(name: str, fn: Function, *inputs: Input, count: int | None = None, **options: Any) -> None:
    whole = over(fn, len(inputs) if count is None else count)
    CASES.append(Case(name, whole, inputs, tolerance=options.pop("tolerance", "reduction"), **options))


def function(name: str) -> Function:
    return lambda torch, *inputs: resolve(torch, name)(*inputs)


Z, W, R = randn(3, 4, 2), randn(3, 4, 2), randn(3, 4)
M = randn(4, 5, 2)
ZEROS = given([[[0.0, 0.0], [1.0, 0.0]], [[0.0, -2.0], [-3.0, 4.0]]])
UNARY = [
    "abs", "acos", "acosh", "angle", "asin", "asinh", "atan", "atanh", "conj", "conj_physical", "cos", "cosh",
    "exp", "exp2", "expm1", "log", "log10", "log1p", "log2", "neg", "positive", "reciprocal", "rsqrt", "sgn",
    "sigmoid", "sin", "sinc", "sinh", "sqrt", "square", "tan", "tanh", "imag", "real", "view_as_real",
]  # fmt: skip
for name in UNARY:
    case(name, function(name), Z)
for name in ("abs", "angle", "sgn", "sqrt", "exp", "tanh"):
    case(f"{name}_zeros", function(name), ZEROS, grad=name in ("abs", "sgn"))
for name in ("log", "log1p", "sqrt", "tanh", "exp", "atan", "asin", "reciprocal"):
    case(f"{name}_far", function(name), uniform(30, 2, low=-60, high=60))
    case(f"{name}_near", function(name), uniform(30, 2, low=-1e-3, high=1e-3), grad=False)
for name in ("angle", "conj", "isreal", "real", "sgn", "is_complex"):
    case(f"{name}_of_real", function(name), R, count=0, grad=name != "angle")

# Arithmetic, with real tensors and Python's numbers on either side.
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "div": lambda a, b: a / b,
    "pow": lambda a, b: a**b,
}  # fmt: skip
for name, op in BINARY.items():
    case(f"{name}", lambda torch, a, b, op=op: op(a, b), Z, W)
    case(f"{name}_real", lambda torch, a, b, op=op: op(a, b), Z, R, count=1)
    case(f"real_{name}", lambda torch, a, b, op=op: op(b, a), Z, uniform(3, 4, low=0.5, high=2), count=1)
    case(f"{name}_rows", lambda torch, a, b, op=op: op(a, b[0]), Z, W)
    for title, number in (("complex", 1.5 - 2j), ("float", 2.5), ("int", 2)):
        case(f"{name}_{title}", lambda torch, a, op=op, n=number: op(a, n), Z)
        case(f"{title}_{name}", lambda torch, a, op=op, n=number: op(n, a), Z)
    case(f"real_{name}_complex_number", lambda torch, a, op=op: op(a, 1 - 2j), uniform(5, low=0.5, high=2), count=0)
case("pow_3", lambda torch, z: z**3, Z)
case("int_times_number", lambda torch: torch.tensor([1, 2]) * 2j, grad=False)
case("eq", lambda torch, a, b: [a == a.clone(), a == b, a != b, a == 1j], Z, W, grad=False)
case("isclose", lambda torch, a: [torch.isclose(a, a + 1e-9), torch.allclose(a, a * 2)], Z, grad=False)
case("isnan", lambda torch: [torch.isnan(torch.tensor([complex("nan"), 1j])),
                             torch.isfinite(torch.tensor([complex("inf"), 1j]))], grad=False)  # fmt: skip

# Made, taken apart, cast.
case("polar", lambda torch, a, b: torch.polar(a.abs(), b), R, randn(3, 4), count=0)
case("complex", lambda torch, a, b: torch.complex(a, b[0]) ** 2, R, randn(3, 4), count=0)
case("view_as_complex", lambda torch, x: torch.view_as_complex(x) * 1j, randn(3, 2), count=0)
case("halves", lambda torch, x: [
    torch.complex(x.half(), 2 * x.half()).real, (torch.view_as_complex(x.half()) * 3).cfloat(), x.chalf().imag,
], randn(3, 2), count=0, grad=False)  # fmt: skip
case("cast", lambda torch, x: [x.cfloat() * 1j, x.to(torch.complex64) + 1], R, count=0)
case("cast_back", lambda torch, z: [z.real.int(), z.bool()], Z, grad=False)
case("dtypes", lambda torch: [
    torch.tensor(1j).dtype, (torch.tensor([1]) * 1j).dtype, (torch.tensor([1.0]) * 1j).dtype, torch.cfloat,
    torch.promote_types(torch.float16, torch.complex64), torch.promote_types(torch.float64, torch.complex64),
    torch.result_type(torch.tensor([1]), torch.tensor(1j)), torch.result_type(torch.tensor([1.0]), 1j),
    torch.can_cast(torch.complex64, torch.float32), torch.can_cast(torch.float32, torch.complex64),
    torch.complex64.is_complex, torch.complex64.is_floating_point, torch.complex64.itemsize,
], grad=False)  # fmt: skip
case("made", lambda torch: [
    torch.zeros(2, dtype=torch.cfloat), torch.ones(2, dtype=torch.complex64), torch.full((2,), 1j),
    torch.eye(2, dtype=torch.cfloat), torch.tensor([1, 2j, 3.0]), torch.full((2,), 3, dtype=torch.cfloat),
    torch.ones(2).chalf().cfloat(), torch.full((2,), 1 + 0.5j, dtype=torch.complex32).tolist(), torch.chalf,
    torch.result_type(torch.ones(1).half(), 1j), torch.view_as_real(torch.tensor([0.5j, -70000], dtype=torch.chalf)),
    torch.zeros_like(torch.tensor([1j])), torch.tensor([[1 + 2j, 3]]).tolist(), torch.tensor(3 - 1j).item(),
], grad=False)  # fmt: skip


def drawn(torch: Any) -> list[Any]:
    found = torch.randn(9999, dtype=torch.cfloat)
    return [list(found.shape), bool(abs(found.std().item() - 1) < 0.05), bool(abs(found.mean().item()) < 0.05)]


def double(torch: Any) -> list[Any]:
    x = torch.tensor([1.0], dtype=torch.float64)
    return [x * 1j, torch.zeros(2, dtype=torch.cdouble) + 0.1j, torch.tensor([1j]).cdouble().exp()]


case("drawn", drawn, grad=False)
case("double", double, grad=False, devices=("cpu",))

# Folded, multiplied.
FOLDS: dict[str, Function] = {
    "sum": lambda torch, z: [z.sum(), z.sum(1)], "mean": lambda torch, z: z.mean(0), "prod": lambda torch, z: z.prod(1),
    "cumsum": lambda torch, z: z.cumsum(0), "cumprod": lambda torch, z: z.cumprod(1),
    "var": lambda torch, z: [z.var(0), z.std()], "norm": lambda torch, z: [z.norm(), torch.linalg.norm(z, dim=1)],
    "diff": lambda torch, z: z.diff(), "trace": lambda torch, z: torch.trace(z),
}  # fmt: skip
for name, fn in FOLDS.items():
    case(name, fn, Z)
case("counted", lambda torch, z: [z.any(), z.all(), torch.count_nonzero(z)], ZEROS, grad=False)
PRODUCTS: dict[str, Function] = {
    "matmul": lambda torch, a, b: a @ b, "bmm": lambda torch, a, b: torch.bmm(a[None], b[None]),
    "adjoint": lambda torch, a, b: [a @ a.mH, b.H @ b, a.adjoint()],
    "einsum": lambda torch, a, b: torch.einsum("ij,jk->ki", a, b), "mv": lambda torch, a, b: a @ b[:, 0],
    "dot": lambda torch, a, b: [torch.dot(a[0], b[:, 0]), torch.vdot(a[0], b[:, 0])],
    "outer": lambda torch, a, b: torch.outer(a[0], b[0]),
    "addmm": lambda torch, a, b: torch.addmm(a @ b, a, b, beta=0.5, alpha=2),
}  # fmt: skip
for name, fn in PRODUCTS.items():
    case(name, fn, Z, M, tolerance="contraction", terms=16)
case("real_matmul", lambda torch, b, r: r.cfloat() @ b, M, R, count=1, tolerance="contraction", terms=16)

# Moved, chosen, written.
MOVES: dict[str, Function] = {
    "slice": lambda torch, z: z[1:, ::2] * 1j, "rows": lambda torch, z: z[[0, 2, 2]],
    "mask": lambda torch, z: z[z.real > 0],
    "cat": lambda torch, z: torch.cat([z, z.real]), "stack": lambda torch, z: torch.stack([z, z * 1j], 1),
    "reshape": lambda torch, z: z.reshape(2, 6).t(), "permute": lambda torch, z: z[None].permute(2, 0, 1).contiguous(),
    "flip": lambda torch, z: z.flip(0), "roll": lambda torch, z: z.roll(1, 1), "tril": lambda torch, z: z.tril(),
    "diag": lambda torch, z: torch.diag(z[0]), "repeat": lambda torch, z: z.repeat(2, 1),
    "pad": lambda torch, z: torch.nn.functional.pad(z, (1, 2)), "unfold": lambda torch, z: z.unfold(1, 2, 1),
    "where": lambda torch, z: [torch.where(z.real > 0, z, z * z), torch.where(z.real > 0, z, 1j)],
    "gather": lambda torch, z: z.gather(1, torch.tensor([[0, 1], [1, 0], [3, 3]])),
    "index_add": lambda torch, z: z.index_add(0, torch.tensor([0, 0]), z[1:]),
    "scatter_add": lambda torch, z: z.scatter_add(1, torch.tensor([[0, 1, 1, 2]] * 3), z * 1j),
    "masked_fill": lambda torch, z: z.masked_fill(z.real > 0, 2j), "lerp": lambda torch, z: torch.lerp(z, z * 1j, 0.3),
    "addcmul": lambda torch, z: torch.addcmul(z, z, z.conj(), value=0.5),
    "parts_of_a_graph": lambda torch, z: [(z.real * z.imag).sin(), torch.view_as_real(z * z).flatten()],
}  # fmt: skip
for name, fn in MOVES.items():
    case(name, fn, Z)
case("where_promoted", lambda torch, z: torch.where(z.real > 0, z.imag, z), Z, grad=False)


def changed(change: Callable[[Any, Any], Any]) -> Function:
    def call(torch: Any, z: Any) -> Any:
        z = z * 1
        change(torch, z)
        return z

    return call


WRITES: dict[str, Callable[[Any, Any], Any]] = {
    "row": lambda torch, z: z.__setitem__(0, 1j),
    "column": lambda torch, z: z.__setitem__((slice(None), 1), z[:, 0] * 2),
    "real": lambda torch, z: z.real.mul_(3), "imag": lambda torch, z: z.imag[1].fill_(2),
    "through_parts": lambda torch, z: torch.view_as_real(z)[1, :, 0].add_(1), "mul_": lambda torch, z: z.mul_(1j),
    "assigned_part": lambda torch, z: setattr(z, "real", z.imag * 2), "fill_": lambda torch, z: z[1].fill_(2 - 1j),
    "in_place": lambda torch, z: z.add_(z.real * 2).conj_physical_(),
}  # fmt: skip
for name, change in WRITES.items():
    case(f"written_{name}", changed(change), Z)


def shared(torch: Any, x: Any) -> list[Any]:
    x = x.clone()
    z = torch.view_as_complex(x)
    z.mul_(1j)
    z[0] = 2 - 1j
    y = torch.view_as_real(z)
    y[1, 0, 1] = 7
    return [x, z, list(z.stride()), list(y.stride()), z.imag.storage_offset(), y.data_ptr() == x.data_ptr()]


def along_ones(torch: Any, z: Any) -> list[Any]:
    """Gradients of equal elements, which are seen as pairs, and of a modulus that was written to."""
    z = z.detach().requires_grad_()
    w = z * z
    (pairs,) = torch.autograd.grad(torch.view_as_real(w).sum(), z)
    size = z.abs()
    with torch.no_grad():
        size.copy_(size * 2)
    (written,) = torch.autograd.grad(size.sum(), z)
    return [pairs, written]


case("along_ones", along_ones, Z, grad=False)
case("shared_memory", shared, randn(3, 2, 2), count=0, grad=False)

# As text, in files, with NumPy.
TEXTS: dict[str, Function] = {
    "row": lambda torch: torch.tensor([1 + 2j, 3 - 1.5j]), "number": lambda torch: torch.tensor(1 + 2j),
    "nan": lambda torch: torch.tensor([1e10 + 2j, complex("nan"), complex(0, float("-inf"))]),
    "matrix": lambda torch: torch.arange(1.0, 13.0).view(3, 4) * (0.5 - 0.25j),
    "empty": lambda torch: torch.zeros(0, 2).cfloat(),
    "long": lambda torch: torch.zeros(40, 50, dtype=torch.cfloat),
}  # fmt: skip
for name, fn in TEXTS.items():
    case(f"text_{name}", lambda torch, fn=fn: repr(fn(torch).cpu()), grad=False)


def saved(torch: Any, z: Any) -> list[Any]:
    """A file has one dtype for a memory, so each has its own."""
    found = []
    for one in (z, z.clone().t()[1:], z.clone().imag[1], torch.view_as_complex(z.clone().real[..., :2] + 1)):
        file = io.BytesIO()
        torch.save({"one": [one, one]}, file)
        file.seek(0)
        found += torch.load(file)["one"]
    return found


case("saved", saved, Z, grad=False)
case("numpy", lambda torch, z: [torch.from_numpy(z.cpu().numpy()), str(z.cpu().numpy().dtype)], Z, grad=False)


def rotated(torch: Any, q: Any, k: Any) -> list[Any]:
    """Rotary embeddings as they are written."""
    frequencies = 1.0 / (10000.0 ** (torch.arange(0, 8, 2)[:4].float() / 8))
    angles = torch.outer(torch.arange(q.shape[1]), frequencies).float()
    turns = torch.polar(torch.ones_like(angles), angles).view(1, q.shape[1], 1, 4)
    found = [torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2)) for x in (q, k)]
    return [torch.view_as_real(x * turns).flatten(3).type_as(q) for x in found]


case("rotary", rotated, randn(2, 6, 3, 8), randn(2, 6, 3, 8), count=0)
case("rotary_half", rotated, randn(2, 6, 3, 8, dtype="float16"), randn(2, 6, 3, 8, dtype="float16"), count=0)
