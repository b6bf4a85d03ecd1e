"""torch.linalg: norms, products, and factorizations of matrices, computed on the host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from math import ceil, inf, log2, prod
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from pywebgpu import dtypes
from pywebgpu.composites import joining, reduce
from pywebgpu.dtypes import DType
from pywebgpu.errors import ShapeError
from pywebgpu.linalg import factorization
from pywebgpu.support import lazy, shapes
from pywebgpu.support.argument_types import typed
from pywebgpu.tensor import create, dispatch, limits, outputs
from pywebgpu.tensor.apply import apply, aten, called
from pywebgpu.tensor.base import TensorBase
from pywebgpu.tensor.formats import by_columns, columns
from pywebgpu.tensor.memory_format import laid_out
from pywebgpu.tensor.methods import also_named, named_by_numpy
from pywebgpu.tensor.pointwise import where
from pywebgpu.torch_api import return_types

P = ParamSpec("P")
R = TypeVar("R")

if TYPE_CHECKING:
    from pywebgpu.tensor.tensor import Tensor
    from pywebgpu.tensor.types import Dims

    Tolerance = float | Tensor | None

LinAlgError = factorization.LinAlgError


def writable(function: Callable[P, R]) -> Callable[P, R]:
    """Takes `out` as well: a tensor, or a tuple of them, that gets the result; and NumPy's names of arguments."""
    return named_by_numpy(outputs.writable(f"linalg.{function.__name__}")(function))


@writable
def vector_norm(
    x: Tensor, ord: float | str = 2, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Tensor:
    """(sum of |x|^ord)^(1/ord) over `dim`, or over all elements."""
    return apply(reduce.norm, x, ord, dim, keepdim, dtype=dtype)


@writable
def norm(
    A: Tensor, ord: float | str | None = None, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Tensor:
    """The norm of a vector, or of matrices where `dim` names two axes or is left out for a matrix."""
    axes = tuple(range(A.ndim)) if dim is None else ((dim,) if isinstance(dim, int) else tuple(dim))
    if ord is None or (len(axes) == 1 and not isinstance(ord, str)):
        return vector_norm(A, 2 if ord is None else ord, dim, keepdim, dtype=dtype)
    return matrix_norm(A, ord, axes, keepdim, dtype=dtype)


@writable
def matrix_norm(
    A: Tensor,
    ord: float | str | None = "fro",
    dim: Sequence[int] = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
) -> Tensor:
    """ "fro", or the largest (inf, 1) or smallest (-inf, -1) sum of sizes over rows or columns."""
    if A.ndim < 2:
        raise ShapeError("linalg.matrix_norm: The input tensor A must have at least 2 dimensions.")
    if isinstance(dim, int) or len(dim) != 2:
        raise ShapeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {dim}")
    rows, columns = (shapes.axis(axis, A.ndim) for axis in dim)
    if rows == columns:
        raise ShapeError(f"linalg.matrix_norm: dims must be different. Got ({dim[0]}, {dim[1]})")
    if ord == "fro":
        return vector_norm(A, 2, tuple(dim), keepdim, dtype=dtype)
    if ord in (1, -1, float("inf"), float("-inf")):
        A = A if dtype is None else A.to(dtype)
        summed, folded = (columns, rows) if abs(ord) != 1 else (rows, columns)
        sums = A.abs().sum(summed, keepdim=True)
        norms = sums.amax(folded, keepdim=True) if ord > 0 else sums.amin(folded, keepdim=True)
        return norms if keepdim else norms.squeeze((rows, columns))
    if ord not in ("nuc", 2, -2):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    A = A if dtype is None else A.to(dtype)
    values = svdvals(A.movedim((rows, columns), (-2, -1)))
    norms = values.sum(-1) if ord == "nuc" else values.amax(-1) if ord == 2 else values.amin(-1)
    for axis in sorted((rows, columns)) if keepdim else ():
        norms = norms.unsqueeze(axis)
    return norms


@writable
def matmul(input: Tensor, other: Tensor) -> Tensor:
    """The matrix product."""
    return input.matmul(other)


@writable
def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """Sums of products along one axis, of the conjugates of the first one's numbers."""
    if x.dtype is not y.dtype:
        raise ShapeError(f"linalg.vecdot: Expected x and y to have the same dtype, but found {x.dtype} and {y.dtype}")
    if not (x.dtype.is_floating_point or x.dtype.is_complex):
        raise ShapeError(f"linalg.vecdot: Expected a floating point or complex tensor as input. Got {x.dtype}")
    turned: Tensor = x.conj()
    return turned.mul(y).sum(dim)


@writable
def cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    """The vector product along an axis of size 3."""
    if input.ndim != other.ndim:
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    if input.shape[dim] != 3 or other.shape[dim] != 3:
        raise RuntimeError(
            f"linalg.cross: inputs dimension {dim} must have length 3. Got {input.shape[dim]} and {other.shape[dim]}"
        )
    return input.cross(other, dim)


@writable
def multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    """The product of several matrices, in the order that takes the fewest multiplications."""
    parts = list(tensors)
    if len(parts) < 2:
        raise RuntimeError("multi_dot(): expected at least 2 tensors")
    for index, part in enumerate(parts):
        is_end = index in (0, len(parts) - 1)
        if part.ndim != 2 and not (is_end and part.ndim == 1):
            ranks = "1D or 2D" if is_end else "2D"
            raise ShapeError(f"multi_dot(): tensor {index} must be {ranks} but got {part.ndim}D")
    while len(parts) > 1:
        sizes = [part.shape[0] if part.ndim == 2 else 1 for part in parts]
        sizes.append(parts[-1].shape[1] if parts[-1].ndim == 2 else 1)
        index = max(range(1, len(parts)), key=lambda i: sizes[i])  # The largest inner size goes first.
        parts[index - 1 : index + 1] = [parts[index - 1].matmul(parts[index])]
    return called(parts[0], "aten::view") if len(tensors) > 2 else parts[0]


@writable
def matrix_power(A: Tensor, n: int) -> Tensor:
    """The n-fold product of a square matrix with itself, or with its inverse."""
    if A.ndim < 2 or A.shape[-1] != A.shape[-2]:
        raise RuntimeError(f"linalg.matrix_power: A must be batches of square matrices, but they are {list(A.shape)}")
    if n < 0:
        return matrix_power(inv(A), -n)
    if n == 0:
        return factorization.eye_like(A).expand(A.shape).contiguous()
    power = A
    result: Tensor | None = None
    while n:
        if n & 1:
            result = power if result is None else result.matmul(power)
        n >>= 1
        power = power.matmul(power) if n else power
    assert result is not None
    return result


def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The diagonal of the last two axes."""
    return A.diagonal(offset, dim1, dim2)


# What needs a factorisation: computed on the host, see factorization.py


@writable
@by_columns
def cholesky(A: Tensor, *, upper: bool = False) -> Tensor:
    """The lower triangular L of A = L L^H, or its conjugate transpose."""
    factorization.require("linalg.cholesky", A, square=True)
    try:
        factor = factorization.run(factorization.Cholesky, A, upper)
    except LinAlgError:
        raise _failure("linalg.cholesky", A.mH if upper else A) from None
    return factor.mH if upper else factor


@writable
@aten("linalg_inv_ex")
@by_columns
def inv(A: Tensor) -> Tensor:
    """The inverse of a square matrix."""
    factorization.require("linalg.inv", A, square=True)
    try:
        return factorization.inverse(A)
    except LinAlgError:
        raise _failure("linalg.inv", A) from None


def _failure(name: str, A: Tensor) -> LinAlgError:
    return import_module("pywebgpu.linalg.checked_factors").failure(name, A)  # type: ignore[no-any-return]


@writable
def det(A: Tensor) -> Tensor:
    """The determinant."""
    factorization.require("linalg.det", A, square=True)
    return factorization.run(factorization.Det, A)


@writable
def slogdet(A: Tensor) -> tuple[Tensor, ...]:
    """Sign and logarithm of the size of the determinant."""
    factorization.require("linalg.slogdet", A, square=True)
    return return_types.of("linalg_slogdet", factorization.run_all(factorization.Slogdet, A))


@writable
@aten("linalg_solve_ex")
def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    """X of A X = B, or of X A = B. Shapes: A (..., n, n), B (..., n, k) or (..., n)."""
    factorization.require("linalg.solve", A, square=True)
    if A.dtype is not B.dtype:
        raise RuntimeError(f"linalg.solve: Expected A and B to have the same dtype, got {A.dtype} and {B.dtype}")
    is_vector = B.ndim == 1 or (A.ndim - 1 == B.ndim and tuple(B.shape) == tuple(A.shape[:-1]))
    if is_vector and not left:
        raise RuntimeError("linalg.solve: Vector broadcasting of the left hand side is not supported for left=False")
    right: Tensor = B.unsqueeze(-1) if is_vector else B
    if right.shape[-2 if left else -1] != A.shape[-1]:
        raise RuntimeError(f"linalg.solve: Incompatible shapes of A and B: {list(A.shape)} and {list(B.shape)}")
    lead = shapes.broadcast(tuple(A.shape[:-2]), tuple(right.shape[:-2]))
    a, b = A.expand(*lead, *A.shape[-2:]), right.expand(*lead, *right.shape[-2:])
    solve_left = partial(factorization.run, factorization.Solve)
    try:
        solution = solve_left(a, b) if left else solve_left(a.mT, b.mT).mT
    except LinAlgError:
        raise _failure("linalg.solve", a) from None
    return columns(solution.squeeze(-1) if is_vector else solution, by_rows=not left)


@writable
@by_columns
def solve_triangular(A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Tensor:
    """As solve, for a triangular A."""
    factorization.require("linalg.solve_triangular", A, square=True)
    if B.ndim < 2 or B.shape[-2 if left else -1] != A.shape[-1]:
        raise RuntimeError(
            f"linalg.solve_triangular: Incompatible shapes of A and B: {list(A.shape)} and {list(B.shape)}"
        )
    lead = shapes.broadcast(tuple(A.shape[:-2]), tuple(B.shape[:-2]))
    a, b = A.expand(*lead, *A.shape[-2:]), B.expand(*lead, *B.shape[-2:])
    if left:
        return factorization.run(factorization.SolveTriangular, a, b, upper, unitriangular)
    return factorization.run(factorization.SolveTriangular, a.mT, b.mT, not upper, unitriangular).mT


@writable
@by_columns
def qr(A: Tensor, mode: str = "reduced") -> tuple[Tensor, ...]:
    """Q and R; mode "complete" has a square Q, mode "r" no Q at all."""
    factorization.require("linalg.qr", A)
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(f"qr received unrecognized mode '{mode}' but expected one of 'reduced', 'r', or 'complete'")
    Q, R = factorization.run_all(factorization.QR, A, "reduced" if mode == "r" else mode)
    if mode == "r":
        if R.requires_grad:
            raise RuntimeError("The derivative of linalg.qr depends on Q, which mode='r' does not compute")
        Q = create.zeros(0, dtype=A.dtype, device=A.device)
    return return_types.of("linalg_qr", (Q, R))


@writable
@by_columns
@typed
def svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None) -> tuple[Tensor, ...]:
    """U, S and V^H."""
    factorization.require("linalg.svd", A)
    return return_types.of("linalg_svd", factorization.run_all(factorization.SVD, A, full_matrices))


@writable
def svdvals(A: Tensor, *, driver: str | None = None) -> Tensor:
    """The singular values, the largest first."""
    factorization.require("linalg.svdvals", A)
    return factorization.run(factorization.SingularValues, A)


@writable
@by_columns
def eigh(A: Tensor, UPLO: str = "L") -> tuple[Tensor, ...]:
    """Eigenvalues, ascending, and eigenvectors of a symmetric or Hermitian matrix."""
    factorization.require("linalg.eigh", A, square=True)
    if UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    return return_types.of("linalg_eigh", factorization.run_all(factorization.Eigh, A, UPLO.upper()))


@writable
def eigvalsh(A: Tensor, UPLO: str = "L") -> Tensor:
    """The eigenvalues of a symmetric matrix, ascending."""
    return eigh(A, UPLO)[0]


@writable
def pinv(
    A: Tensor,
    rcond: Tolerance = None,
    hermitian: bool = False,
    *,
    atol: Tolerance = None,
    rtol: Tolerance = None,
) -> Tensor:
    """The Moore-Penrose inverse."""
    if A.ndim < 2:
        raise ShapeError(f"linalg.pinv: expected a tensor with 2 or more dimensions, but got {list(A.shape)}")
    factorization.require("linalg.pinv", A, square=hermitian)
    rtol = rcond if rtol is None else rtol
    default = max(A.shape[-2:]) * limits.finfo(A.dtype).eps if atol is None else 0.0
    bounds = [_bound(value, other) for value, other in ((atol, 0.0), (rtol, default))]
    return factorization.run(factorization.Pinv, A, *bounds, hermitian)


def _bound(value: Tolerance, default: float) -> object:
    if value is None:
        return default
    if isinstance(value, TensorBase) and value.is_complex():
        raise RuntimeError("linalg.pinv: rcond tensor of complex type is not supported.")
    return value.detach().cpu().unsqueeze(-1).numpy() if isinstance(value, TensorBase) else value


@writable
def matrix_rank(
    A: Tensor, tol: Tolerance = None, hermitian: bool = False, *, atol: Tolerance = None, rtol: Tolerance = None
) -> Tensor:
    """How many singular values are larger than a tolerance."""
    values = svdvals(A.detach())
    if not values.numel():
        return create.zeros(A.shape[:-2], dtype=dtypes.int64, device=A.device)
    atol = tol if atol is None else atol
    default = max(A.shape[-2:]) * limits.finfo(A.dtype).eps if atol is None else 0.0
    relative = values.amax(-1, keepdim=True) * (default if rtol is None else rtol)
    if isinstance(atol, TensorBase):
        atol = atol.unsqueeze(-1)
    bound = relative if atol is None else relative.clamp(min=atol)
    return (values > bound).sum(-1)


@named_by_numpy
@aten("linalg_matrix_exp")
def matrix_exp(A: Tensor) -> Tensor:
    """e^A: a polynomial of A over a power of two, squared as often."""
    if A.dtype.is_floating_point and A.dtype.itemsize == 2:
        return matrix_exp(A.float()).to(A.dtype)
    factorization.require("matrix_exp", A, square=True)
    if A.numel() == 0:
        return A.clone()
    size = 0.0 if A.is_meta else float(A.detach().abs().sum(-2).amax().item())
    times = max(0, ceil(log2(size / 0.5))) if 0 < size < inf else 0
    scaled: Tensor = A / 2.0**times
    identity = factorization.eye_like(A)
    total: Tensor = identity.expand(A.shape)
    for order in range(18 if A.dtype is dtypes.float64 else 10, 0, -1):
        total = identity + scaled @ total / order
    for _ in range(times):
        total = total @ total
    return total


@also_named(b="B")
@named_by_numpy
@outputs.writable("linalg.lstsq")
@aten("linalg_lstsq")
def lstsq(A: Tensor, B: Tensor, rcond: float | None = None, *, driver: str | None = None) -> tuple[Tensor, ...]:
    """X that makes |A X - B| least, by the pseudoinverse.

    rcond: what is smaller than this share of the largest counts as 0: of singular values, or of the diagonal of a QR
    with pivots, which is what `gelsy`, the default, looks at. `gels` knows none.
    """
    driver = driver or "gelsy"
    if driver not in ("gels", "gelsy", "gelsd", "gelss"):
        raise RuntimeError(
            "torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss), but got: " + driver
        )
    if not 0 <= A.ndim - B.ndim <= 1:
        raise RuntimeError(
            "torch.linalg.lstsq: input.dim() must be greater or equal to other.dim() and "
            f"(input.dim() - other.dim()) <= 1, got {A.ndim} and {B.ndim}"
        )
    is_vector = B.ndim == 1 or (A.ndim - 1 == B.ndim and tuple(B.shape) == tuple(A.shape[:-1]))
    right = B.unsqueeze(-1) if is_vector else B
    _check_lstsq(A, B, is_vector=is_vector)
    if rcond is not None and (driver == "gels" or rcond < 0 or (driver == "gelsd" and rcond >= 1)):
        rcond = None
    if rcond is not None and driver == "gelsy":
        onto, rank = factorization.host("linalg.lstsq", partial(factorization.leading, rcond=rcond), A)
        solution = pinv(onto @ A) @ (onto @ right)
    else:
        solution, rank = pinv(A, rcond) @ right, matrix_rank(A, rtol=rcond)
    none = create.zeros(0, dtype=A.dtype.part or A.dtype, device=A.device)
    values = svdvals(A.detach()) if driver in ("gelsd", "gelss") else none
    rank = none.long() if driver == "gels" else rank.long()
    extra, rest = A.shape[-2] - A.shape[-1], none
    if extra > 0:  # LAPACK writes it over the right side, which has more rows.
        solution = apply(joining.pad_constant, solution.mT, (0, extra))[..., : A.shape[-1]].mT
    if extra > 0 and driver != "gelsy" and (rank == A.shape[-1]).all():
        rest = (A @ solution - right).abs().square().sum(-2)
    solution = solution.squeeze(-1) if is_vector else solution if extra > 0 else columns(solution)
    return return_types.of("linalg_lstsq", (solution, rest, rank, values))


def _check_lstsq(A: Tensor, B: Tensor, *, is_vector: bool) -> None:
    if A.ndim < 2:
        raise ShapeError("torch.linalg.lstsq: input must have at least 2 dimensions.")
    if B.ndim < 1:
        raise ShapeError("torch.linalg.lstsq: other must have at least 1 dimension.")
    if A.dtype is not B.dtype:
        raise RuntimeError(
            f"torch.linalg.lstsq: Expected input and other to have the same dtype, but got {A.dtype} and {B.dtype}"
        )
    axis = -1 if B.ndim == 1 or is_vector else -2
    if A.shape[-2] != B.shape[axis]:
        raise ShapeError(
            f"torch.linalg.lstsq: input.size(-2) should match other.size({axis}), got {list(A.shape)} and "
            f"{list(B.shape)}"
        )


@writable
def cond(A: Tensor, p: float | str | None = None) -> Tensor:
    """The condition number by a norm; None is the 2-norm."""
    if A.ndim >= 2 and A.shape[-1] == A.shape[-2] == 0:
        return create.zeros(A.shape[:-2], dtype=A.dtype.part or A.dtype, device=A.device)
    if p not in (None, "fro", "nuc", 1, -1, 2, -2, inf, -inf):
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p}")
    if p in (None, 2, -2):
        values = svdvals(A)
        return values[..., -1] / values[..., 0] if p == -2 else values[..., 0] / values[..., -1]
    if p == "nuc":
        factorization.require("linalg.cond", A, square=True)
        values = svdvals(A)
        return values.sum(-1) * values.reciprocal().sum(-1)
    inverse, info = import_module("pywebgpu.linalg.checked_factors").inv_ex(A)
    inverse = inverse.masked_fill((info != 0).unsqueeze(-1).unsqueeze(-1), inf)
    return (matrix_norm(A, p) * matrix_norm(inverse, p)).nan_to_num(inf, inf, -inf)


@writable
@aten("reshape_alias")
def tensorinv(A: Tensor, ind: int = 2) -> Tensor:
    """The inverse of tensordot with A, whose first `ind` axes are rows."""
    if ind <= 0:
        raise RuntimeError("Expected a strictly positive integer for 'ind'")
    n = prod(A.shape[ind:])
    if prod(A.shape[:ind]) != n:
        raise ShapeError(
            "Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got "
            f"{prod(A.shape[:ind])} != {n}"
        )
    return inv(A.reshape(n, n)).reshape(*A.shape[ind:], *A.shape[:ind])


@writable
def tensorsolve(A: Tensor, B: Tensor, dims: Sequence[int] | None = None) -> Tensor:
    """X of tensordot(A, X) = B."""
    if dims is not None:
        axes = [axis % A.ndim for axis in dims]
        A = A.permute(*(axis for axis in range(A.ndim) if axis not in axes), *axes)
    rest = A.shape[B.ndim :]
    return solve(A.reshape(B.numel(), prod(rest)), B.reshape(-1)).reshape(rest)


@aten("cat")
def vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """Powers 0, 1, … of the elements of x as rows."""
    x = x.reshape(1) if x.ndim == 0 else x
    count = x.shape[-1] if N is None else N
    powers = create.arange(count, device=x.device)
    return laid_out(x.unsqueeze(-1).expand(*x.shape, count).pow(powers), None)


@writable
@by_columns
def eig(A: Tensor) -> tuple[Tensor, ...]:
    """Eigenvalues and eigenvectors of any square matrix: complex64, or complex128 of double precision."""
    factorization.require("linalg.eig", A, square=True)
    return return_types.of("linalg_eig", factorization.run_all(factorization.Eig, A))


@writable
def eigvals(A: Tensor) -> Tensor:
    """The eigenvalues of any square matrix, complex, in no order."""
    return eig(A)[0]


_FACTORS = {name: ("lu_factors", name) for name in ("lu_factor", "lu_factor_ex", "householder_product")}
_FACTORS |= {"lu": ("lu_factors", "triangles"), "lu_solve": ("lu_factors", "solve_factored")}
_FACTORS |= {name: ("checked_factors", name) for name in ("cholesky_ex", "inv_ex", "solve_ex")}
_FACTORS |= {name: ("ldl_factors", name) for name in ("ldl_factor", "ldl_factor_ex", "ldl_solve")}


def __getattr__(name: str) -> Any:
    """Functions of factors and reflections that few programs need; and why others are not here."""
    if name in _FACTORS:
        file, attribute = _FACTORS[name]
        return getattr(import_module(f"pywebgpu.linalg.{file}"), attribute)
    return lazy.absent(__name__)(name)


# What torch has in its own namespace


@also_named(input2="L")
@named_by_numpy
@outputs.writable()
@aten("cholesky_solve")
@by_columns
def cholesky_solve(B: Tensor, L: Tensor, upper: bool = False) -> Tensor:
    """X of A X = B by A's Cholesky factor."""
    for name, part in (("B", B), ("L", L)):
        if part.ndim < 2:
            raise ShapeError(f"cholesky_solve: {name} should have at least 2 dimensions, but has {part.ndim}")
    factorization.require("cholesky_solve", L, square=True)
    if B.shape[-2] != L.shape[-1]:
        raise ShapeError(f"Incompatible matrix sizes for cholesky_solve: {list(L.shape)} and {list(B.shape)}")
    if B.dtype is not L.dtype:
        raise RuntimeError(f"cholesky_solve: expected one dtype, got {B.dtype} and {L.dtype}")
    lead = shapes.broadcast(tuple(L.shape[:-2]), tuple(B.shape[:-2]))
    b, a = B.expand(*lead, *B.shape[-2:]), L.expand(*lead, *L.shape[-2:])
    return factorization.run(factorization.CholeskySolve, b, a, upper)


@named_by_numpy
@outputs.writable()
@aten("cholesky_inverse")
@by_columns
@typed
def cholesky_inverse(L: Tensor, upper: bool = False) -> Tensor:
    """The inverse of A by its Cholesky factor."""
    factorization.require("cholesky_inverse", L, square=True)
    zero = (L.diagonal(0, -2, -1) == 0).detach()
    if not L.is_meta and bool(zero.any()):
        first = zero.reshape(-1, L.shape[-1]).any(0).tolist().index(True) + 1
        raise LinAlgError(
            f"cholesky_inverse: The diagonal element {first} is zero, the inversion "
            "could not be completed because the input matrix is singular."
        )
    return cholesky_solve(factorization.eye_like(L).expand(L.shape), L, upper)


@named_by_numpy
def logdet(A: Tensor) -> Tensor:
    """The logarithm of the determinant; NaN where that is below 0."""
    factorization.require("logdet", A, square=True)
    sign, size = slogdet(A)
    if sign.is_complex():
        return sign.log() + size
    return where(sign < 0, float("nan"), size)


inverse, pinverse = inv, pinv


globals().update(dispatch.all_public(globals(), __name__))
