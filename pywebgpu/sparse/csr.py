"""Sparse matrices by rows (CSR): for each row where its values begin, and their columns. Products are those of COO."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pywebgpu import dtypes
from pywebgpu.errors import ShapeError
from pywebgpu.sparse import SparseTensor, invariants, to_sparse
from pywebgpu.support import closed_types
from pywebgpu.tensor import create, functions, show, sorting
from pywebgpu.tensor.tensor import Tensor

if TYPE_CHECKING:
    from pywebgpu.dtypes import DType
    from pywebgpu.tensor.factory_options import DeviceLike


class SparseRows(SparseTensor):
    """A matrix of layout torch.sparse_csr."""

    __slots__ = ()

    is_sparse = property(lambda self: False)
    is_sparse_csr = property(lambda self: True)
    layout = property(lambda self: closed_types.sparse_csr)

    def crow_indices(self) -> Tensor:
        """Where the values of each row begin, and the end of all."""
        return self.__dict__["_begins"]  # type: ignore[no-any-return]

    def col_indices(self) -> Tensor:
        """The columns of the values, row after row."""
        return self._indices()[1]

    def indices(self) -> Tensor:
        raise RuntimeError("indices expected sparse coordinate tensor layout but got SparseCsr")

    def coalesce(self) -> SparseTensor:
        return self

    def _like(self, values: Tensor) -> SparseRows:
        return _made(self.crow_indices(), self._indices(), values, self.shape)

    def to(self, *args: Any, **options: Any) -> SparseRows:
        """The same on another device, or in another dtype."""
        values = self._values().to(*args, **options)
        begins, at = self.crow_indices().to(values.device), self._indices().to(values.device)
        return _made(begins, at, values, self.shape)

    def to_sparse(self, *args: object, **options: object) -> SparseTensor:
        """The same as coordinates and values."""
        if options.get("layout") is closed_types.sparse_csr:
            return self
        return super()._like(self._values())

    def to_sparse_csr(self, dense_dim: int | None = None) -> SparseRows:
        return self

    def transpose(self, dim0: int, dim1: int) -> SparseTensor:
        """As coordinates, the axes exchanged."""
        return self.to_sparse().transpose(dim0, dim1)

    def __repr__(self) -> str:
        parts = [show.part(self.crow_indices(), "crow_indices=tensor(", 7)]
        parts += [
            show.part(self.col_indices(), "col_indices=tensor(", 7),
            show.part(self._values(), "values=tensor(", 7),
        ]
        told = {"device": self.device.type != "cpu" and repr(str(self.device)), "size": tuple(self.shape)}
        told |= {"nnz": self._nnz(), "dtype": not show.is_usual(self.dtype) and self.dtype}
        told |= {"layout": self.layout, "requires_grad": self.requires_grad}
        suffixes = [f"{name}={value}" for name, value in told.items() if value is not False]
        return show.with_suffixes("tensor(" + ",\n       ".join(parts), suffixes, newline=False)


def _made(begins: Tensor, at: Tensor, values: Tensor, shape: Sequence[int]) -> SparseRows:
    made = SparseRows.__new__(SparseRows)
    made._path, made._base, made._accumulator, made._cached = (), None, None, None
    made._flag, made._history, made._grad = False, None, None
    made.__dict__.update(_begins=begins, _at=at, _held=values, _size=tuple(shape), _is_coalesced=True)
    return made


def sparse_csr_tensor(
    crow_indices: object,
    col_indices: object,
    values: object,
    size: Sequence[int] | None = None,
    *,
    dtype: DType | None = None,
    device: DeviceLike = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> SparseRows:
    """A matrix of rows: where the values of each begin, the columns of the values, and the values.

    Raises: ShapeError when they do not fit.
    """
    held = values if isinstance(values, Tensor) else create.tensor(values, device=device)
    held = held.to(device=device or held.device, dtype=dtype or held.dtype)
    begins, columns = (
        (given if isinstance(given, Tensor) else create.tensor(given)).to(held.device).to(dtypes.int64)
        for given in (crow_indices, col_indices)
    )
    if begins.ndim != 1 or columns.ndim != 1:
        raise NotImplementedError("sparse_csr_tensor: batches of matrices are not here: make one of each matrix")
    if columns.shape[0] != held.shape[0]:
        raise ShapeError(
            f"number of elements in columns ({columns.shape[0]}) and values ({held.shape[0]}) must be the same"
        )
    if size is None:
        size = (begins.shape[0] - 1, int(columns.max().item()) + 1 if columns.shape[0] else 0)
    if begins.shape[0] != size[0] + 1:
        raise ShapeError(f"crow_indices.numel() must be size(0) + 1, but got: {begins.shape[0]} and {size[0]}")
    invariants.check_rows(begins, columns, size, check_invariants)
    places = create.arange(columns.shape[0], device=str(held.device))
    rows = sorting.searchsorted(begins, places, right=True) - 1
    made = _made(begins, functions.stack([rows, columns]), held, (*size, *held.shape[1:]))
    return made.requires_grad_() if requires_grad else made  # type: ignore[return-value]


def to_sparse_csr(tensor: Tensor, dense_dim: int | None = None) -> SparseRows:
    """The elements of a matrix that are not 0, by rows; where they are is read."""
    if tensor.ndim != 2 or dense_dim:
        raise NotImplementedError("to_sparse_csr: only matrices, without dense axes, are kept by rows")
    found = tensor.coalesce() if isinstance(tensor, SparseTensor) else to_sparse(tensor)
    rows = found._indices()[0]
    begins = sorting.searchsorted(rows.contiguous(), create.arange(tensor.shape[0] + 1, device=str(rows.device)))
    return _made(begins, found._indices(), found._values(), tensor.shape)


def reduced(rows: SparseRows, dense: Tensor, reduce: str) -> Tensor:
    """As a product, where what a row sums up is averaged, or its largest or smallest part taken instead."""
    if reduce not in ("sum", "mean", "amax", "amin"):
        raise RuntimeError(f"reduce argument must be either sum, mean, amax or amin, got {reduce}")
    at, columns = rows._indices()
    parts = rows._values().unsqueeze(1) * dense.index_select(0, columns)
    zeros = parts.new_zeros(rows.shape[0], dense.shape[1])
    index = at.unsqueeze(1).expand(parts.shape)
    return zeros.scatter_reduce(0, index, parts, reduce, include_self=False)


def sampled_addmm(
    input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1.0, alpha: float = 1.0, out: Tensor | None = None
) -> SparseRows:
    """alpha mat1 @ mat2 + beta input, at the places of `input` alone."""
    if not isinstance(input, SparseRows):
        raise RuntimeError("sampled_addmm: Expected self to have layout sparse_csr")
    rows, columns = input._indices()
    products = (mat1.index_select(0, rows) * mat2.t().index_select(0, columns)).sum(1)
    return input._like(beta * input._values() + alpha * products)


def crow_indices(tensor: Tensor) -> Tensor:
    raise RuntimeError(f"crow_indices expected sparse row compressed tensor layout but got {tensor.layout}")


def ccol_indices(tensor: Tensor) -> Tensor:
    raise RuntimeError(f"ccol_indices expected sparse column compressed tensor layout but got {tensor.layout}")


def row_indices(tensor: Tensor) -> Tensor:
    raise RuntimeError(f"row_indices expected sparse column compressed tensor layout but got {tensor.layout}")


def col_indices(tensor: Tensor) -> Tensor:
    raise RuntimeError(f"col_indices expected sparse row compressed tensor layout but got {tensor.layout}")
