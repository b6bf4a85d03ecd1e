"""LU factors with row exchanges, Householder's reflections, and what is computed with them.

Factors come from the host (see factorization.py); their gradients, and all else, are tensors.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pywebgpu import dtypes
from pywebgpu.autograd.function import Function, FunctionCtx
from pywebgpu.errors import ShapeError
from pywebgpu.linalg import factorization, writable
from pywebgpu.support.argument_types import typed
from pywebgpu.tensor import create, dispatch, functions, outputs
from pywebgpu.tensor.apply import aten
from pywebgpu.tensor.formats import by_columns, columns
from pywebgpu.tensor.methods import also_named, named_by_numpy
from pywebgpu.torch_api import return_types

if TYPE_CHECKING:
    from types import ModuleType

    from pywebgpu.tensor.tensor import Tensor

    Array = factorization.Array


def _factor(np: ModuleType, a: Array, *, pivot: bool) -> tuple[Array, Array]:
    """Both triangles in one matrix, and with which row each was exchanged, counted from 1."""
    m, n = a.shape[-2:]
    k = min(m, n)
    rows = np.zeros((math.prod(a.shape[:-2]), k))
    factors = a.reshape(len(rows), m, n).copy()
    for x, row in zip(factors, rows, strict=True):
        for i in range(k):
            sizes = np.abs(x[i:, i].real) + np.abs(x[i:, i].imag)  # LAPACK's, which decide for complex numbers
            best = i + int(sizes.argmax()) if pivot else i
            row[i] = best + 1
            if best != i:
                x[[i, best]] = x[[best, i]]
            if x[i, i] != 0:
                x[i + 1 :, i] /= x[i, i]
                x[i + 1 :, i + 1 :] -= np.outer(x[i + 1 :, i], x[i, i + 1 :])
    return factors.reshape(a.shape), rows.reshape(*a.shape[:-2], k)


class _LU(Function):
    @staticmethod
    def forward(ctx: FunctionCtx, A: Tensor, pivot: bool) -> tuple[Tensor, ...]:
        factors, rows = factorization.host("linalg.lu_factor", lambda np, a: _factor(np, a, pivot=pivot), A)
        pivots = rows.int()
        ctx.save_for_backward(factors, pivots)
        ctx.mark_non_differentiable(pivots)
        return factors, pivots

    @staticmethod
    def backward(ctx: FunctionCtx, g: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        grad, pivots = ctx.saved_tensors
        P, L, U = lu_unpack(grad, pivots)
        k = pivots.shape[-1]
        gL, gU = g[..., :k].tril(-1), g[..., :k, :].triu()
        L1, U1 = L[..., :k, :], U[..., :k]
        lower = L1.mH @ gL[..., :k, :] - gU[..., k:] @ U[..., k:].mH
        upper = gU[..., :k] @ U1.mH - L[..., k:, :].mH @ gL[..., k:, :]
        inner = lower.tril(-1) + upper.triu()
        right = functions.cat([_over(inner, U1), gU[..., k:]], -1)
        grad = _under(L1, right)
        if gL.shape[-2] > k:
            grad = functions.cat([grad, _over(gL[..., k:, :], U1)], -2)
        return P @ grad, None


def _under(L: Tensor, x: Tensor) -> Tensor:
    """L^-T x of a lower triangle with a diagonal of 1."""
    return factorization.run(factorization.SolveTriangular, L.mH, x, True, True)


def _over(x: Tensor, U: Tensor) -> Tensor:
    """x U^-T of an upper triangle."""
    return factorization.run(factorization.SolveTriangular, U, x.mH, True, False).mH


@writable
@aten("linalg_lu_factor_ex")
@by_columns
def lu_factor(A: Tensor, *, pivot: bool = True) -> tuple[Tensor, ...]:
    """L below the diagonal and U above in one matrix, and the exchanges of rows. A pivot of 0 is a RuntimeError."""
    *factors, info = lu_factor_ex(A, pivot=pivot)
    if not info.is_meta and bool(info.any()):
        raise RuntimeError(
            "torch.linalg.lu_factor: a diagonal element of U is zero and using it on lu_solve would result in a "
            "division by zero. To factor nonetheless, call linalg.lu or linalg.lu_factor_ex"
        )
    return return_types.of("linalg_lu_factor", tuple(factors))


@outputs.writable("linalg.lu_factor_ex")
@by_columns
def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> tuple[Tensor, ...]:
    """As lu_factor, with the number of the first pivot that is 0, or 0."""
    factorization.require("linalg.lu_factor", A)
    factors, pivots = factorization.run_all(_LU, A, pivot)
    zero = factors.detach().diagonal(0, -2, -1).eq(0)
    place = create.arange(1, zero.shape[-1] + 1, device=A.device)
    first = functions.where(zero, place, zero.shape[-1] + 1)
    info = first.amin(-1) if zero.shape[-1] else zero.sum(-1)
    info = functions.where(info > zero.shape[-1], 0, info).int()
    if check_errors and not info.is_meta and bool(info.any()):
        raise factorization.LinAlgError("linalg.lu_factor_ex: a diagonal element of U is zero")
    return return_types.of("linalg_lu_factor_ex", (factors, pivots, info))


@outputs.writable("linalg.lu")
@aten("linalg_lu")
def triangles(A: Tensor, *, pivot: bool = True) -> tuple[Tensor, ...]:
    """linalg.lu: P, L and U of A = P L U."""
    factors, pivots, _ = lu_factor_ex(A, pivot=pivot)
    P, L, U = lu_unpack(factors, pivots)
    return return_types.of("linalg_lu", (P if pivot else A.new_empty(0), L, U))


@outputs.writable()
def lu_unpack(
    LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True
) -> tuple[Tensor, ...]:
    """P, L and U of what lu_factor gives."""
    m, n = LU_data.shape[-2:]
    k = min(m, n)
    none = LU_data.new_empty(0)
    if LU_pivots.dtype is not dtypes.int32:
        raise RuntimeError("torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.")
    if unpack_pivots and not LU_pivots.is_meta and bool(((LU_pivots < 1) | (LU_pivots > m)).any()):
        raise RuntimeError("torch.lu_unpack: LU_pivots are expected to be between 1 and LU.size(-2).")
    P = _permutation(LU_pivots, m, LU_data) if unpack_pivots else none
    if not unpack_data:
        return return_types.of("lu_unpack", (P, none, none))
    L = LU_data[..., :k].tril(-1) + create.eye(m, k, dtype=LU_data.dtype, device=LU_data.device)
    return return_types.of("lu_unpack", (P, L, LU_data[..., :k, :].triu()))


def _permutation(pivots: Tensor, m: int, like: Tensor) -> Tensor:
    def compute(np: ModuleType, rows: Array) -> Array:
        matrices = np.zeros((math.prod(rows.shape[:-1]), m, m))
        for x, row in zip(matrices, rows.reshape(len(matrices), rows.shape[-1]).astype(int), strict=True):
            order = list(range(m))
            for i, other in enumerate(row):
                order[i], order[other - 1] = order[other - 1], order[i]
            x[order, range(m)] = 1
        return matrices.reshape(*rows.shape[:-1], m, m)

    return factorization.one("lu_unpack", compute, pivots).to(like.dtype)


@outputs.writable("linalg.lu_solve")
@aten("linalg_lu_solve")
def solve_factored(LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False) -> Tensor:
    """linalg.lu_solve: X of A X = B by A's LU factors, or of X A = B, or with the transpose of A."""
    if not pivots.is_meta and bool(((pivots < 1) | (pivots > LU.shape[-2])).any()):
        raise RuntimeError(
            "Pivots given to lu_solve must all be greater or equal to 1 and smaller or equal to LU.size(-2)"
        )
    if tuple(pivots.shape) != tuple(LU.shape[:-1]):
        raise RuntimeError(
            f"linalg.lu_solve: Expected LU.shape[:-1] and pivots.shape to be the same, but got {list(LU.shape[:-1])} "
            f"and {list(pivots.shape)}"
        )
    if not left:
        return columns(solve_factored(LU, pivots, B.mH, adjoint=not adjoint).mH, by_rows=True)
    P, L, U = lu_unpack(LU, pivots)
    lead = functions.broadcast_shapes(LU.shape[:-2], B.shape[:-2])
    P, L, U, B = (x.expand(*lead, *x.shape[-2:]) for x in (P, L, U, B))
    triangular = factorization.SolveTriangular
    if adjoint:
        inner = factorization.run(triangular, U.mH, B, False, False)
        return columns(P @ factorization.run(triangular, L.mH, inner, True, True))
    inner = factorization.run(triangular, L, P.mT @ B, False, True)
    return columns(factorization.run(triangular, U, inner, True, False))


@named_by_numpy
@outputs.writable()
def lu_solve(b: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    """torch's old name of linalg.lu_solve, with its arguments in another order."""
    return solve_factored(LU_data, LU_pivots, b)


@named_by_numpy
@outputs.writable()
@aten("triangular_solve")
@by_columns
def triangular_solve(
    b: Tensor, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> tuple[Tensor, Tensor]:
    """torch's old name of linalg.solve_triangular: X, and a copy of A."""
    for name, part in (("b", b), ("A", A)):
        if part.ndim < 2:
            raise RuntimeError(
                f"torch.triangular_solve: Expected {name} to have at least 2 dimensions, but it has {part.ndim} "
                "dimensions instead"
            )
    lead = functions.broadcast_shapes(b.shape[:-2], A.shape[:-2])
    a, right = A.expand(*lead, *A.shape[-2:]), b.expand(*lead, *b.shape[-2:])
    operands = (a.mT, right, not upper) if transpose else (a, right, upper)
    solution = factorization.run(factorization.SolveTriangular, *operands, unitriangular), a.clone()
    return return_types.of("triangular_solve", solution)


@typed
def lu(
    A: Tensor, pivot: bool = True, get_infos: bool = False, out: tuple[Tensor, ...] | None = None
) -> tuple[Tensor, ...]:
    """torch's old name of linalg.lu_factor and lu_factor_ex."""
    factors = lu_factor_ex(A, pivot=pivot) if get_infos else lu_factor(A, pivot=pivot)
    for target, part in zip(out or (), factors, strict=out is not None):
        target.resize_as_(part).copy_(part)
    return out or factors


# Reflections


@named_by_numpy
@outputs.writable()
@by_columns
def geqrf(input: Tensor) -> tuple[Tensor, Tensor]:
    """R above the diagonal, the vectors of Householder's reflections below; and their factors."""

    def compute(np: ModuleType, a: Array) -> tuple[Array, Array]:
        if not a.size:
            return a, np.zeros((*a.shape[:-2], min(a.shape[-2:])), a.dtype)
        reflectors, factors = np.linalg.qr(a, mode="raw")
        return reflectors.swapaxes(-1, -2), factors

    factorization.require("geqrf", input)
    return return_types.of("geqrf", factorization.host("geqrf", compute, input))


@also_named(input2="tau", input3="other")
@named_by_numpy
@outputs.writable()
@by_columns
def ormqr(input: Tensor, tau: Tensor, other: Tensor, left: bool = True, transpose: bool = False) -> Tensor:
    """The product of the Q of reflections, or its transpose, and a matrix."""
    side = -2 if left else -1
    if input.ndim < 2 or other.ndim < 2:
        raise ShapeError("torch.ormqr: input and other must have at least 2 dimensions.")
    if tau.ndim != input.ndim - 1 or other.ndim != input.ndim:
        raise ShapeError(
            f"torch.ormqr: Expected tau of {input.ndim - 1} and other of {input.ndim} dimensions, got {tau.ndim} and "
            f"{other.ndim}"
        )
    if tau.shape[-1] != min(other.shape[side], input.shape[-1]):
        raise ShapeError(f"torch.ormqr: tau.shape[-1] must be equal to min(other.shape[{side}], input.shape[-1])")
    if not left:
        return _reflected(input, tau, other.mH, transpose=not transpose).mH
    return _reflected(input, tau, other, transpose=transpose)


def _reflected(input: Tensor, tau: Tensor, other: Tensor, *, transpose: bool) -> Tensor:
    m, k = input.shape[-2], tau.shape[-1]
    below = input[..., :k].tril(-1) + create.eye(m, k, dtype=input.dtype, device=input.device)
    order = range(k) if transpose else range(k - 1, -1, -1)
    for i in order:
        v = below[..., i : i + 1]
        factor = tau[..., i : i + 1].unsqueeze(-1)
        other = other - (factor.conj() if transpose else factor) * v @ (v.mH @ other)
    return other


@named_by_numpy
@outputs.writable("linalg.householder_product")
@aten("linalg_householder_product")
@by_columns
def householder_product(A: Tensor, tau: Tensor) -> Tensor:
    """The first columns of the Q of reflections."""
    if A.ndim < 2 or A.shape[-2] < A.shape[-1] or A.shape[-1] < tau.shape[-1] or A.shape[:-2] != tau.shape[:-1]:
        raise RuntimeError(
            f"torch.linalg.householder_product: input {list(A.shape)} and tau {list(tau.shape)} do not fit: "
            "input.shape[-2] must be greater than or equal to input.shape[-1], and that to tau.shape[-1]"
        )
    if A.dtype is not tau.dtype:
        raise RuntimeError(f"torch.linalg.householder_product: tau dtype {tau.dtype} does not match {A.dtype}")
    identity = create.eye(A.shape[-2], A.shape[-1], dtype=A.dtype, device=A.device)
    return _reflected(A, tau, identity.expand(*A.shape[:-2], *identity.shape), transpose=False)


orgqr = householder_product


# Few of the singular values


def svd_lowrank(A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None) -> tuple[Tensor, ...]:
    """U, S and V of the q largest singular values of A, or of A - M: exact here."""
    if q is not None and q < 0:
        raise ShapeError(f"svd_lowrank: q is to be 0 or more, got {q}")
    x = A if M is None else A - M
    U, S, Vh = factorization.run_all(factorization.SVD, x, False)
    q = min(6 if q is None else q, *x.shape[-2:])
    return U[..., :q].contiguous(), S[..., :q].contiguous(), Vh.mH[..., :q].contiguous()


def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> tuple[Tensor, ...]:
    """svd_lowrank of rows, without their mean if `center`."""
    if q is not None and not 0 <= q <= min(A.shape[-2:]):
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(A.shape[-2:])}")
    return svd_lowrank(A - A.mean(-2, keepdim=True) if center else A, q)


globals().update(dispatch.all_public(globals(), __name__))
