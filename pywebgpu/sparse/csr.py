"""Products with sparse matrices that PyTorch has for rows (CSR): reduced in other ways than by a sum, and sampled."""

from __future__ import annotations

from pywebgpu.sparse import SparseTensor
from pywebgpu.sparse.compressed import SparseCompressed, compressed
from pywebgpu.support import closed_types, shapes
from pywebgpu.tensor.tensor import Tensor


def reduced(rows: SparseTensor, dense: Tensor, reduce: str) -> Tensor:
    """As a product, where what a row sums up is averaged, or its largest or smallest part taken instead."""
    if reduce not in ("sum", "mean", "amax", "amin"):
        raise RuntimeError(f"reduce argument must be either sum, mean, amax or amin, got {reduce}")
    coo = rows._as_coo()
    rows_of_values, columns = coo._indices()
    parts = coo._values().unsqueeze(1) * dense.index_select(0, columns)
    zeros = parts.new_zeros(rows.shape[0], dense.shape[1])
    index = rows_of_values.unsqueeze(1).expand(parts.shape)
    return zeros.scatter_reduce(0, index, parts, reduce, include_self=False)


def sampled_addmm(
    input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1.0, alpha: float = 1.0, out: SparseTensor | None = None
) -> SparseTensor:
    """alpha mat1 @ mat2 + beta input, at the places of `input` alone."""
    if not isinstance(input, SparseCompressed) or input.layout is not closed_types.sparse_csr:
        raise RuntimeError("sampled_addmm: Expected self to have layout sparse_csr")
    for name, part in (("mat1", mat1), ("mat2", mat2)):
        if part.ndim < 2:
            raise RuntimeError(f"sampled_addmm: Expected {name} to be a matrix, got {part.ndim}-D tensor")
        if part.dtype is not input.dtype:
            raise RuntimeError(
                f"sampled_addmm: Expected {name} and self to have the same dtype, but got {part.dtype} and "
                f"{input.dtype}"
            )
    if mat1.shape[-1] != mat2.shape[-2] or tuple(input.shape[-2:]) != (mat1.shape[-2], mat2.shape[-1]):
        raise RuntimeError(
            f"sampled_addmm: shapes {list(mat1.shape)} and {list(mat2.shape)} have no product of {list(input.shape)}"
        )
    batch = tuple(input.shape[:-2])
    for part in (mat1, mat2):
        batch = shapes.broadcast(batch, tuple(part.shape[:-2]))
    mat1, mat2 = (part.expand(*batch, *part.shape[-2:]) for part in (mat1, mat2))
    if batch != tuple(input.shape[:-2]):
        begins, along, values = (
            part.expand(*batch, -1).clone() for part in (input.compressed, input.plain, input._values())
        )
        input = compressed(input.layout, begins, along, values, (*batch, *input.shape[-2:]))
    positions = input._as_coo()._indices()
    left, right = mat1[tuple(positions[:-1])], mat2.transpose(-2, -1)[(*positions[:-2], positions[-1])]
    products = (left * right).sum(-1).reshape(input._values().shape)
    result = input._like(beta * input._values() + alpha * products)
    return result if out is None else out._become(result)
