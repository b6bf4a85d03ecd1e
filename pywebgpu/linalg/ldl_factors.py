"""L D L^T of symmetric and Hermitian matrices by Bunch and Kaufman's exchanges, laid out as by LAPACK's sytf2.

D has blocks of one or two rows: a pivot p > 0 says that its row was exchanged with row p - 1, two of -p that the second
row of a block of two was. Computed by NumPy on the host, as in factorization.py; PyTorch has no gradients of them.
"""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, NoReturn

from pywebgpu import dtypes
from pywebgpu.autograd.function import Function, FunctionCtx
from pywebgpu.errors import ShapeError
from pywebgpu.linalg import factorization
from pywebgpu.tensor import dispatch, functions, outputs
from pywebgpu.tensor.formats import by_columns
from pywebgpu.tensor.methods import named_by_numpy
from pywebgpu.torch_api import return_types

if TYPE_CHECKING:
    from types import ModuleType

    from pywebgpu.tensor.tensor import Tensor

    Array = factorization.Array

_GROWTH = (1 + sqrt(17)) / 8  # Bunch and Kaufman 1977: the bound that lets entries grow least


class _Factor(Function):
    @staticmethod
    def forward(ctx: FunctionCtx, A: Tensor, hermitian: bool) -> tuple[Tensor, ...]:
        def compute(np: ModuleType, a: Array) -> tuple[Array, ...]:
            factors, pivots, info = np.tril(a), np.zeros(a.shape[:-1]), np.zeros(a.shape[:-2])
            for index in np.ndindex(info.shape):
                info[index] = _factor(np, factors[index], pivots[index], hermitian)
            return factors, pivots, info

        factors, pivots, info = factorization.host("linalg.ldl_factor", compute, A)
        pivots, info = pivots.int(), info.int()
        ctx.mark_non_differentiable(pivots, info)
        return factors, pivots, info

    @staticmethod
    def backward(ctx: FunctionCtx, *g: Tensor) -> NoReturn:
        raise RuntimeError("derivative for linalg_ldl_factor is not implemented")


class _Solve(Function):
    @staticmethod
    def forward(ctx: FunctionCtx, LD: Tensor, pivots: Tensor, B: Tensor, hermitian: bool) -> Tensor:
        def compute(np: ModuleType, ld: Array, rows: Array, b: Array) -> Array:
            solution: Array = b.copy()
            for index in np.ndindex(b.shape[:-2]):
                _solve(np, ld[index], rows[index], solution[index], hermitian)
            return solution

        return factorization.one("linalg.ldl_solve", compute, LD, pivots, B)

    @staticmethod
    def backward(ctx: FunctionCtx, *g: Tensor) -> NoReturn:
        raise RuntimeError("derivative for linalg_ldl_solve is not implemented")


@named_by_numpy
@outputs.writable("linalg.ldl_factor_ex")
@by_columns
def ldl_factor_ex(A: Tensor, *, hermitian: bool = False, check_errors: bool = False) -> tuple[Tensor, ...]:
    """L and D of A = L D L^T (or L^H) in one matrix, the exchanges, and the number of the first block that is 0."""
    factorization.require("torch.linalg.ldl_factor_ex", A, square=True)
    factored = factorization.run_all(_Factor, A, hermitian)
    if check_errors and not factored[2].is_meta and bool(factored[2].any()):
        raise factorization.LinAlgError("linalg.ldl_factor_ex: a block of D is zero")
    return return_types.of("linalg_ldl_factor_ex", factored)


@named_by_numpy
@outputs.writable("linalg.ldl_factor")
@by_columns
def ldl_factor(A: Tensor, *, hermitian: bool = False) -> tuple[Tensor, ...]:
    """As ldl_factor_ex; a block of D that is 0 raises."""
    factored = ldl_factor_ex(A, hermitian=hermitian, check_errors=True)[:2]
    return return_types.of("linalg_ldl_factor", factored)


@named_by_numpy
@outputs.writable("linalg.ldl_solve")
@by_columns
def ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: bool = False) -> Tensor:
    """X of A X = B by A's factors of ldl_factor. Shapes: LD (..., n, n), pivots (..., n), B (..., n, k)."""
    factorization.require("torch.linalg.ldl_solve", LD, square=True)
    if B.ndim < 2:
        raise ShapeError(f"torch.linalg.ldl_solve: Expected B to have at least 2 dimensions, but it has {B.ndim}")
    if pivots.shape != LD.shape[:-1]:
        raise ShapeError(
            f"torch.linalg.ldl_solve: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with "
            f"shape {list(pivots.shape)} for LD {list(LD.shape)}"
        )
    if pivots.dtype.kind is not dtypes.Kind.INT:
        raise RuntimeError(f"torch.linalg.ldl_solve: Expected pivots to be integers. Got {pivots.dtype}")
    if LD.dtype is not B.dtype:
        raise RuntimeError(f"torch.linalg.ldl_solve: LD dtype {LD.dtype} does not match b dtype {B.dtype}")
    lead = functions.broadcast_shapes(LD.shape[:-2], B.shape[:-2])
    n = LD.shape[-1]
    expanded = LD.expand(*lead, n, n), pivots.expand(*lead, n), B.expand(*lead, *B.shape[-2:])
    return factorization.run(_Solve, *expanded, hermitian)


def _factor(np: ModuleType, a: Array, pivots: Array, hermitian: bool) -> int:
    """Replaces the lower triangle by L and D; returns the number of the first block that is 0, or 0."""
    n, k, trouble = len(a), 0, 0
    while k < n:
        if hermitian:
            a[range(n), range(n)] = a.diagonal().real
        kp, size = _pivot(a, k, np)
        if size == 0:
            trouble, size = trouble or k + 1, 1
        else:
            kk = k + size - 1
            if kp != kk:
                _exchange(a, k, kk, kp, size, hermitian)
            _eliminate(np, a, k, size, hermitian)
        pivots[k : k + size] = kp + 1 if size == 1 else -(kp + 1)
        k += size
    return trouble


def _size(np: ModuleType, x: Array) -> Array:
    """LAPACK's cheap absolute value."""
    return np.abs(x.real) + np.abs(x.imag)


def _pivot(a: Array, k: int, np: ModuleType) -> tuple[int, int]:
    """The row to exchange, and the rows of the block; 0 for a column of zeros."""
    own = _size(np, a[k, k])
    below = _size(np, a[k + 1 :, k])
    largest = below.max(initial=0.0)
    if max(own, largest) == 0:
        return k, 0
    if own >= _GROWTH * largest:
        return k, 1
    row = k + 1 + int(below.argmax())
    of_row = max(_size(np, a[row, k:row]).max(initial=0.0), _size(np, a[row + 1 :, row]).max(initial=0.0))
    if own >= _GROWTH * largest * (largest / of_row):
        return k, 1
    return (row, 1) if _size(np, a[row, row]) >= _GROWTH * of_row else (row, 2)


def _exchange(a: Array, k: int, kk: int, kp: int, size: int, hermitian: bool) -> None:
    """Swaps rows and columns kk and kp of the part that is left, of which the lower triangle is there."""
    a[kp + 1 :, [kk, kp]] = a[kp + 1 :, [kp, kk]]
    column, row = a[kk + 1 : kp, kk].copy(), a[kp, kk + 1 : kp].copy()
    a[kk + 1 : kp, kk], a[kp, kk + 1 : kp] = (row.conj(), column.conj()) if hermitian else (row, column)
    a[[kk, kp], [kk, kp]] = a[[kp, kk], [kp, kk]]
    if hermitian:
        a[kp, kk] = a[kp, kk].conj()
    if size == 2:
        a[[k + 1, kp], k] = a[[kp, k + 1], k]


def _eliminate(np: ModuleType, a: Array, k: int, size: int, hermitian: bool) -> None:
    """Takes a block out of the rows below it, and leaves L's columns."""
    rest = slice(k + size, None)
    block = _block(a, k, size, hermitian)
    columns = a[rest, k : k + size].copy()
    if not len(columns):
        return
    factors = np.linalg.solve(block.T, columns.T).T
    a[rest, rest] -= np.tril(factors @ (columns.conj() if hermitian else columns).T)
    a[rest, k : k + size] = factors


def _block(a: Array, k: int, size: int, hermitian: bool) -> Array:
    """A block of D, with its upper triangle."""
    block = a[k : k + size, k : k + size].copy()
    if size == 2:
        block[0, 1] = block[1, 0].conj() if hermitian else block[1, 0]
    if hermitian:
        block[range(size), range(size)] = block.diagonal().real
    return block


def _solve(np: ModuleType, ld: Array, pivots: Array, x: Array, hermitian: bool) -> None:
    """Turns B into X: down through L and D, up through L^T."""
    n, k, blocks = len(ld), 0, []
    while k < n:
        size = 1 if pivots[k] > 0 else 2
        kp, kk = abs(int(pivots[k])) - 1, k + size - 1
        if kp != kk:
            x[[kk, kp]] = x[[kp, kk]]
        blocks.append((k, size, kk, kp))
        x[k + size :] -= ld[k + size :, k : k + size] @ x[k : k + size]
        x[k : k + size] = np.linalg.solve(_block(ld, k, size, hermitian), x[k : k + size])
        k += size
    for k, size, kk, kp in reversed(blocks):
        columns = ld[k + size :, k : k + size]
        x[k : k + size] -= (columns.conj() if hermitian else columns).T @ x[k + size :]
        if kp != kk:
            x[[kk, kp]] = x[[kp, kk]]


globals().update(dispatch.all_public(globals(), __name__))
