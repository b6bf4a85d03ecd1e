"""torch.linalg: norms and products. What needs a factorisation (inverse, eigenvalues) is not here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pywebgpu.composites import reduce
from pywebgpu.dtypes import DType
from pywebgpu.tensor.apply import apply
from pywebgpu.tensor.methods import aliased

if TYPE_CHECKING:
    from pywebgpu.tensor.tensor import Tensor
    from pywebgpu.tensor.types import Dims


@aliased
def vector_norm(
    x: Tensor, ord: float | str = 2, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Tensor:
    """(sum of |x|^ord)^(1/ord) over `dim`, or over all elements."""
    return apply(reduce.norm, x, ord, dim, keepdim, dtype=dtype)


@aliased
def norm(
    A: Tensor, ord: float | str | None = None, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Tensor:
    """The norm of a vector, or of matrices where `dim` names two axes or is left out for a matrix."""
    axes = tuple(range(A.ndim)) if dim is None else ((dim,) if isinstance(dim, int) else tuple(dim))
    if ord is None or len(axes) == 1:
        return vector_norm(A, 2 if ord is None else ord, dim, keepdim, dtype=dtype)
    return matrix_norm(A, ord, axes, keepdim, dtype=dtype)


@aliased
def matrix_norm(
    A: Tensor,
    ord: float | str | None = "fro",
    dim: Sequence[int] = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
) -> Tensor:
    """ "fro", or the largest (inf, 1) or smallest (-inf, -1) sum of sizes over rows or columns."""
    if ord == "fro":
        return vector_norm(A, 2, tuple(dim), keepdim, dtype=dtype)
    if ord in (1, -1, float("inf"), float("-inf")):
        A = A if dtype is None else A.to(dtype)
        rows, columns = (axis % A.ndim for axis in dim)
        summed, folded = (columns, rows) if abs(ord) != 1 else (rows, columns)
        sums = A.abs().sum(summed, keepdim=True)
        found = sums.amax(folded, keepdim=True) if ord > 0 else sums.amin(folded, keepdim=True)
        return found if keepdim else found.squeeze((rows, columns))
    raise RuntimeError(f"linalg.matrix_norm: ord={ord!r} needs singular values, which are not computed here")


def matmul(input: Tensor, other: Tensor) -> Tensor:
    """The matrix product."""
    return input.matmul(other)


@aliased
def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """Sums of products along one axis."""
    return x.mul(y).sum(dim)


@aliased
def cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    """The vector product along an axis of size 3."""
    return input.cross(other, dim)


def multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    """The product of several matrices, in the order that takes the fewest multiplications."""
    parts = list(tensors)
    if len(parts) < 2:
        raise RuntimeError("multi_dot(): expected at least 2 tensors")
    while len(parts) > 1:
        sizes = [part.shape[0] if part.ndim == 2 else 1 for part in parts]
        sizes.append(parts[-1].shape[1] if parts[-1].ndim == 2 else 1)
        at = max(range(1, len(parts)), key=lambda i: sizes[i])  # The largest inner size goes first.
        parts[at - 1 : at + 1] = [parts[at - 1].matmul(parts[at])]
    return parts[0]


def matrix_power(A: Tensor, n: int) -> Tensor:
    """The n-fold product of a square matrix with itself."""
    return A.matrix_power(n)


def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The diagonal of the last two axes."""
    return A.diagonal(offset, dim1, dim2)
