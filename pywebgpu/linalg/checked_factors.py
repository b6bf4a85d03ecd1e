"""linalg.cholesky_ex, inv_ex and solve_ex: they say of each matrix whether it has factors, where others raise.

Few programs ask for them. What a matrix without factors gets is not defined, as in PyTorch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pywebgpu import dtypes, linalg
from pywebgpu.linalg import factorization, lu_factors
from pywebgpu.tensor import create, dispatch, outputs
from pywebgpu.tensor.formats import by_columns, columns
from pywebgpu.tensor.methods import named_by_numpy
from pywebgpu.tensor.pointwise import where
from pywebgpu.torch_api import return_types

if TYPE_CHECKING:
    from types import ModuleType

    from pywebgpu.tensor.tensor import Tensor

    Array = factorization.Array


@named_by_numpy
@outputs.writable("linalg.cholesky_ex")
@by_columns
def cholesky_ex(A: Tensor, *, upper: bool = False, check_errors: bool = False) -> tuple[Tensor, ...]:
    """As cholesky, with 0 for each matrix, or the order of its first leading minor that is not positive definite."""
    try:
        factor, info = linalg.cholesky(A, upper=upper), _zeros(A)
    except factorization.LinAlgError:
        if check_errors:
            raise
        matrix = A.detach().mH if upper else A.detach()
        begun, order = factorization.host("linalg.cholesky_ex", _begun, matrix)
        info = order.int()
        has_none = _matrices(info)
        sound = linalg.cholesky(where(has_none, factorization.eye_like(A), A), upper=upper)
        factor = where(has_none, begun.mH if upper else begun, sound)
    return return_types.of("linalg_cholesky_ex", (factor, info))


@named_by_numpy
@outputs.writable("linalg.inv_ex")
@by_columns
def inv_ex(A: Tensor, *, check_errors: bool = False) -> tuple[Tensor, ...]:
    """The inverse, with 0 for each matrix, or the number of its first pivot that is 0."""
    try:
        inverse, info = linalg.inv(A), _zeros(A)
    except factorization.LinAlgError:
        if check_errors:
            raise
        info = _pivot(A)
        is_singular = _matrices(info)
        inverse = where(is_singular, float("nan"), linalg.inv(where(is_singular, factorization.eye_like(A), A)))
    return return_types.of("linalg_inv_ex", (inverse, info))


@named_by_numpy
@outputs.writable("linalg.solve_ex")
def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> tuple[Tensor, ...]:
    """As solve, with 0 for each matrix, or the number of its first pivot that is 0."""
    try:
        solution, info = linalg.solve(A, B, left=left), _zeros(A)
    except factorization.LinAlgError:
        if check_errors:
            raise
        info = _pivot(A)
        solution = linalg.solve(where(_matrices(info), factorization.eye_like(A), A), B, left=left)
        is_vector = solution.ndim == A.ndim - 1
        solution = where((info != 0).unsqueeze(-1) if is_vector else _matrices(info), float("nan"), solution)
        solution = columns(solution, by_rows=not left)
    return return_types.of("linalg_solve_ex", (solution, info))


def failure(name: str, A: Tensor) -> factorization.LinAlgError:
    """The error of linalg.inv, solve or cholesky, which says which matrix has no factors and where they end."""
    if name == "linalg.cholesky":
        info = factorization.host("linalg.cholesky_ex", _begun, A.detach())[1]
        cause = (
            "The factorization could not be completed because the input is not positive-definite (the leading minor of "
            "order {} is not positive-definite)."
        )
    else:
        info = _pivot(A)
        cause = (
            "The diagonal element {} is zero, the inversion could not be completed because the input matrix is "
            "singular."
            if name == "linalg.inv"
            else "The solver failed because the input matrix is singular."
        )
    numbers = info.flatten().tolist()
    first = next((index for index, number in enumerate(numbers) if number), 0)
    batch = f"(Batch element {first}): " if info.ndim else ""
    return factorization.LinAlgError(f"{name}: {batch}{cause.format(int(numbers[first]))}")


def _begun(np: ModuleType, a: Array) -> tuple[Array, Array]:
    """Lower factors up to where they end, and the order of the minor that has none, or 0."""
    n = a.shape[-1]
    lower, order = np.tril(a).reshape(-1, n, n), np.zeros(a.shape[:-2]).reshape(-1)
    for index, x in enumerate(lower):
        for i in range(n):
            square = (x[i, i] - (abs(x[i, :i]) ** 2).sum()).real
            if not 0 < square < np.inf:
                x[i, i] = square
                order[index] = i + 1
                break
            x[i, i] = square**0.5
            x[i + 1 :, i] = (x[i + 1 :, i] - x[i + 1 :, :i] @ x[i, :i].conj()) / x[i, i]
    return lower.reshape(a.shape), order.reshape(a.shape[:-2])


def _pivot(A: Tensor) -> Tensor:
    return lu_factors.lu_factor_ex(A.detach())[2]


def _matrices(info: Tensor) -> Tensor:
    """Whether a matrix has no factors, in the shape of matrices."""
    mask: Tensor = (info != 0).unsqueeze(-1).unsqueeze(-1)
    return mask


def _zeros(A: Tensor) -> Tensor:
    return create.zeros(A.shape[:-2], dtype=dtypes.int32, device=A.device)


globals().update(dispatch.all_public(globals(), __name__))
