"""Sparse matrices by rows or columns, of numbers or of blocks (CSR, CSC, BSR, BSC), of batches and with dense axes.

Along the compressed axis it is known where the values of each row begin; of each value its place along the plain axis.
All conversions go through coordinates.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from pywebgpu import dtypes
from pywebgpu.ir.graph import used
from pywebgpu.sparse import SparseTensor, coordinates, invariants, made, shown
from pywebgpu.support import closed_types, shapes
from pywebgpu.tensor import create, dispatch, functions, sorting
from pywebgpu.tensor.tensor import Tensor

if TYPE_CHECKING:
    from pywebgpu.dtypes import DType
    from pywebgpu.tensor.factory_options import DeviceLike

Layout = closed_types.Layout


class Kind(NamedTuple):
    """What a layout is: its title, the names of its indices, whether rows are compressed, whether values are blocks."""

    title: str
    compressed: str
    plain: str
    by_rows: bool
    blocks: bool


KINDS: dict[Any, Kind] = {
    closed_types.sparse_csr: Kind("SparseCsr", "crow_indices", "col_indices", True, False),
    closed_types.sparse_csc: Kind("SparseCsc", "ccol_indices", "row_indices", False, False),
    closed_types.sparse_bsr: Kind("SparseBsr", "crow_indices", "col_indices", True, True),
    closed_types.sparse_bsc: Kind("SparseBsc", "ccol_indices", "row_indices", False, True),
}
BY_NAME = {str(layout).rpartition("_")[2]: layout for layout in KINDS}


def title(tensor: Tensor) -> str:
    """What PyTorch calls a tensor's layout in errors."""
    if tensor.layout is closed_types.sparse_coo:
        return "Sparse"
    return KINDS[tensor.layout].title if tensor.layout in KINDS else "Strided"


class SparseCompressed(SparseTensor):
    """A matrix, or a batch of them, of one of the layouts of KINDS."""

    __slots__ = ()

    is_sparse = property(lambda self: False)
    is_sparse_csr = property(lambda self: self.layout is closed_types.sparse_csr)
    layout = property(lambda self: self.__dict__["_layout"])

    @property
    def kind(self) -> Kind:
        return KINDS[self.layout]

    @property
    def compressed(self) -> Tensor:
        """Where the values of each row or column begin, and the end of all: (*batch, n + 1)."""
        return self.__dict__["_begins"]  # type: ignore[no-any-return]

    @property
    def plain(self) -> Tensor:
        """The place of each value along the other axis: (*batch, count)."""
        return self.__dict__["_along"]  # type: ignore[no-any-return]

    @property
    def n_batch(self) -> int:
        return self.compressed.ndim - 1

    @property
    def blocksize(self) -> tuple[int, int]:
        """The shape of a value; (1, 1) where values are no blocks."""
        shape = self._values().shape[self.n_batch + 1 :]
        return (int(shape[0]), int(shape[1])) if self.kind.blocks else (1, 1)

    def _named(self, name: str) -> Tensor:
        if name == self.kind.compressed:
            return self.compressed
        if name == self.kind.plain:
            return self.plain
        axis_name = "row" if name in ("crow_indices", "col_indices") else "column"
        raise RuntimeError(f"{name} expected sparse {axis_name} compressed tensor layout but got {self.kind.title}")

    def crow_indices(self) -> Tensor:
        return self._named("crow_indices")

    def col_indices(self) -> Tensor:
        return self._named("col_indices")

    def ccol_indices(self) -> Tensor:
        return self._named("ccol_indices")

    def row_indices(self) -> Tensor:
        return self._named("row_indices")

    def values(self) -> Tensor:
        return self._values()

    def _no_coordinates(self, name: str) -> Any:
        raise RuntimeError(f"{name} expected sparse coordinate tensor layout but got {self.kind.title}")

    def indices(self) -> Tensor:
        return self._no_coordinates("indices")  # type: ignore[no-any-return]

    def _indices(self) -> Tensor:
        return self._no_coordinates("_indices")  # type: ignore[no-any-return]

    def coalesce(self) -> SparseTensor:
        return self._no_coordinates("coalesce")  # type: ignore[no-any-return]

    def is_coalesced(self) -> bool:
        return self._no_coordinates("is_coalesced")  # type: ignore[no-any-return]

    def _nnz(self) -> int:
        return int(self.plain.shape[-1])

    def sparse_dim(self) -> int:
        return 2

    def dense_dim(self) -> int:
        return self._values().ndim - self.n_batch - (3 if self.kind.blocks else 1)

    def _as_coo(self) -> SparseTensor:
        """The same as coordinates: those of batches come first."""
        count, values, batch = self._nnz(), self._values(), tuple(self.shape[: self.n_batch])
        n_batches = prod(batch)
        begins = self.compressed.reshape(n_batches, self.compressed.shape[-1]).long()
        along = self.plain.reshape(n_batches, count).long()
        number = create.arange(count, device=self.device)
        outer = sorting.searchsorted(begins, number.expand(n_batches, count).contiguous(), right=True) - 1
        batches = create.arange(n_batches, device=self.device).unsqueeze(1).expand(n_batches, count)
        rows, columns = (outer, along) if self.kind.by_rows else (along, outer)
        parts = [part.reshape(-1) for part in (batches, rows, columns)]
        values = values.reshape(n_batches * count, *values.shape[self.n_batch + 1 :])
        if self.kind.blocks:
            height, width = self.blocksize
            shape = n_batches * count, height, width
            inside = create.arange(height, device=self.device).reshape(1, height, 1)
            across = create.arange(width, device=self.device).reshape(1, 1, width)
            cells = (
                parts[0].reshape(-1, 1, 1),
                parts[1].reshape(-1, 1, 1) * height + inside,
                parts[2].reshape(-1, 1, 1) * width + across,
            )
            parts = [cell.expand(shape).reshape(-1) for cell in cells]
            values = values.flatten(0, 2)
        leading = []
        for size in reversed(batch):
            leading.append(parts[0] % max(size, 1))
            parts[0] = parts[0].div(max(size, 1), rounding_mode="floor")
        positions = functions.stack([*leading[::-1], *parts[1:]])
        return made(positions, values, self.shape, is_coalesced=self.layout is closed_types.sparse_csr)

    def to_dense(self, dtype: DType | None = None, *, masked_grad: bool | None = None) -> Tensor:
        return self._as_coo().to_dense(dtype)

    def _like(self, values: Tensor) -> SparseCompressed:
        return compressed(self.layout, self.compressed, self.plain, values, self.shape)

    def _layout_options(self) -> dict[str, Any]:
        return {"layout": self.layout} | ({"blocksize": self.blocksize} if self.kind.blocks else {})

    def to(self, *args: Any, **options: Any) -> SparseCompressed:
        """The same on another device, or in another dtype."""
        values = self._values().to(*args, **options)
        begins, along = self.compressed.to(values.device), self.plain.to(values.device)
        if values.is_meta and not self._values().is_meta:
            batch = along.ndim - 1
            begins, along, values = begins.clone(), along.narrow(batch, 0, 0), values.narrow(batch, 0, 0)
        return compressed(self.layout, begins, along, values, self.shape)

    def transpose(self, dim0: int, dim1: int) -> SparseTensor:
        """Two axes of the matrix, or two of the batch, exchanged."""
        first, second = sorted(shapes.axis(dim, self.ndim) for dim in (dim0, dim1))
        if first == second:
            return self
        shape = list(self.shape)
        shape[first], shape[second] = shape[second], shape[first]
        count = self.n_batch
        if second < count:
            begins, along, values = (
                part.transpose(first, second) for part in (self.compressed, self.plain, self._values())
            )
            return compressed(self.layout, begins, along, values, shape)
        if first >= count + 2:
            extra = 2 if self.kind.blocks else 0
            values = self._values().transpose(first - 1 + extra, second - 1 + extra)
            return compressed(self.layout, self.compressed, self.plain, values, shape)
        if (first, second) != (count, count + 1):
            names = [f"{axis}({'Batch' if axis < count else 'Sparse' if axis < count + 2 else 'Dense'})"
                     for axis in (dim0 % self.ndim, dim1 % self.ndim)]  # fmt: skip
            raise RuntimeError(
                "transpose(): can only transpose dimensions of the same type (Batch, Sparse, Dense), got "
                f"{names[0]} and {names[1]}"
            )
        values = self._values().transpose(count + 1, count + 2) if self.kind.blocks else self._values()
        layouts = list(KINDS)
        return compressed(layouts[layouts.index(self.layout) ^ 1], self.compressed, self.plain, values, shape)

    def to_sparse(self, sparse_dim: int | None = None, **options: Any) -> SparseTensor:
        return converted(self, sparse_dim, **options)

    def select(self, dim: int, index: int) -> Tensor:
        """What has one index along an axis: of the layout where that is an axis of the batch or of values."""
        dim, count, own = shapes.axis(dim, self.ndim), self.n_batch, self._values()
        if not -self.shape[dim] <= index < self.shape[dim]:
            raise IndexError(f"select(): index {index} out of range for tensor of size {list(self.shape)} at dim {dim}")
        shape = [*self.shape[:dim], *self.shape[dim + 1 :]]
        if dim < count:
            begins, along, values = (part.select(dim, index) for part in (self.compressed, self.plain, own))
            return compressed(self.layout, begins, along, values, shape)
        if dim >= count + 2:
            values = own.select(dim - 1 + (2 if self.kind.blocks else 0), index)
            return compressed(self.layout, self.compressed, self.plain, values, shape)
        if count:
            raise RuntimeError(
                "select(): selecting sparse dimensions is not supported for batched sparse compressed tensors"
            )
        return self._as_coo().select(dim, index)

    select_copy = select

    def is_contiguous(self, memory_format: object = None) -> bool:
        raise RuntimeError("Sparse CSR tensors do not have is_contiguous")

    def stride(self, dim: int | None = None) -> Any:
        raise RuntimeError("Sparse CSR tensors do not have strides")

    def copy_(self, src: Any, non_blocking: bool = False) -> Self:
        """The indices and values of another one, of as many values."""
        if src.layout is not self.layout:
            raise RuntimeError(
                "copy of sparse compressed tensors having different layouts is not supported. self layout is "
                f"{self.kind.title} and src layout is {title(src)}"
            )
        if src._nnz() != self._nnz():
            raise RuntimeError(
                "copy_: only sparse compressed tensors with the same number of specified elements are supported."
            )
        for axis, (n, m) in enumerate(zip(self.shape, src.shape, strict=False)):
            if n != m:
                raise RuntimeError(
                    f"copy_: expected shapes of self and src to match along dimension {axis} for {self.kind.title} "
                    f"layout but the corresponding dimensions of self and src are {n} and {m}, respectively."
                )
        if src.blocksize != self.blocksize:
            raise RuntimeError("copy of sparse compressed tensors having different block sizes is not supported.")
        return self._become(src.to(self.dtype))

    def resize_(self, *sizes: Any, **options: Any) -> Any:
        shape = sizes[0] if len(sizes) == 1 and isinstance(sizes[0], tuple | list) else sizes
        if len(shape) < 2:
            raise RuntimeError(
                f"torch.resize_: Only batched sparse CSR matrices are supported, but got size {list(shape)}"
            )
        if shape[-1] < self.shape[-1]:
            raise RuntimeError(
                "torch.resize_: Resizing columns of sparse CSR tensors to a smaller value is not supported."
            )
        raise NotImplementedError("a sparse tensor is not resized here: make a new one of its indices and values")

    def zero_(self) -> Self:
        """All values become 0."""
        return self._become(self._like(create.zeros_like(self._values())))

    def resize_as_sparse_(self, other: SparseCompressed) -> SparseTensor:
        """Has the shape and the indices of another."""
        return self._become(other._like(other._values().to(self.dtype)))

    def __repr__(self) -> str:
        pairs = (self.kind.compressed, self.compressed), (self.kind.plain, self.plain), ("values", self._values())
        return shown(self, dict(pairs))


def compressed(layout: Any, begins: Tensor, along: Tensor, values: Tensor, shape: Sequence[int]) -> SparseCompressed:
    """A tensor of parts that fit."""
    result = SparseCompressed.__new__(SparseCompressed)
    result._path, result._base, result._accumulator, result._cached = (), None, None, None
    result._flag, result._history, result._grad = False, None, None
    result.__dict__.update(_layout=layout, _begins=begins, _along=along, _held=values, _size=tuple(map(int, shape)))
    return result


def of_coordinates(
    coo: SparseTensor, layout: Any, blocksize: Sequence[int] | None = None, index_dtype: DType = dtypes.int64
) -> SparseCompressed:
    """Coordinates as one of KINDS; sparse axes before the last two are batches, each of as many values."""
    coo, kind = coo.coalesce(), KINDS[layout]
    positions, values, count = coo._indices(), coo._values(), coo.sparse_dim()
    batch, (n_rows, n_columns), dense = (
        tuple(coo.shape[: count - 2]),
        tuple(coo.shape[count - 2 : count]),
        tuple(coo.shape[count:]),
    )
    height, width = _blocks(kind, blocksize, n_rows, n_columns)
    number = create.zeros(positions.shape[1], dtype=dtypes.int64, device=positions.device)
    for axis, size in enumerate(batch):
        number = number * size + positions[axis]
    rows, columns = positions[-2].div(height, rounding_mode="floor"), positions[-1].div(width, rounding_mode="floor")
    outer, inner, n_outer, n_inner = (
        (rows, columns, n_rows // height, n_columns // width)
        if kind.by_rows
        else (columns, rows, n_columns // width, n_rows // height)
    )
    key = (number * n_outer + outer) * n_inner + inner
    if kind.blocks:
        key, block_index = key.unique(return_inverse=True)
        blocks = values.new_zeros((key.shape[0], height, width, *dense))
        values = blocks.index_put((block_index, positions[-2] % height, positions[-1] % width), values)
    elif not kind.by_rows:
        order = key.argsort()
        key, values = key[order], values[order]
    line, inner = key.div(max(n_inner, 1), rounding_mode="floor"), key % max(n_inner, 1)
    counts = line.bincount(minlength=prod(batch) * n_outer).reshape(prod(batch), n_outer)
    totals = counts.sum(1).tolist()
    if len(set(totals)) > 1:
        raise RuntimeError("Expect the same number of specified elements per batch.")
    begins = functions.cat([counts.new_zeros(prod(batch), 1), counts.cumsum(1)], 1).reshape(*batch, n_outer + 1)
    each = totals[0] if totals else 0
    along, values = inner.reshape(*batch, each), values.reshape(*batch, each, *values.shape[1:])
    return compressed(layout, begins.to(index_dtype), along.to(index_dtype), values, coo.shape)


def _blocks(kind: Kind, blocksize: Sequence[int] | None, n_rows: int, n_columns: int) -> tuple[int, int]:
    if not kind.blocks:
        return 1, 1
    height, width = blocksize if blocksize is not None else (1, 1)
    if height <= 0 or width <= 0 or n_rows % height or n_columns % width:
        raise RuntimeError(
            f"tensor sparse size ({n_rows},{n_columns}) must be divisible by given blocksize ({height},{width})"
        )
    return height, width


def converted(
    tensor: Tensor,
    sparse_dim: int | None = None,
    *,
    layout: Any = None,
    blocksize: Sequence[int] | None = None,
    dense_dim: int | None = None,
) -> SparseTensor:
    """Tensor.to_sparse, of any layout to any other.

    Raises: RuntimeError where PyTorch has no such conversion.
    """
    own, layout = tensor.layout, layout or closed_types.sparse_coo
    if used.overrides is None:
        dispatch.start()  # From now on functions ask what they do with sparse tensors.
    if sparse_dim is not None and layout is not closed_types.sparse_coo:
        raise RuntimeError("to_sparse: layout argument must be torch.sparse_coo where sparse_dim is given")
    if layout is closed_types.strided:
        return tensor  # type: ignore[return-value]
    if blocksize is not None and not (layout in KINDS and KINDS[layout].blocks):
        raise RuntimeError(
            f"to_sparse for {title(tensor)} to {_title(layout)} conversion does not use specified blocksize"
        )
    _check_conversion(tensor, own, layout, sparse_dim, blocksize)
    if own is layout and (blocksize is None or tuple(blocksize) == tensor.blocksize):  # type: ignore[attr-defined]
        return tensor  # type: ignore[return-value]
    if isinstance(tensor, SparseCompressed):
        coo, index_dtype = tensor._as_coo(), tensor.plain.dtype
    elif isinstance(tensor, SparseTensor):
        coo, index_dtype = tensor, dtypes.int64
    else:
        if layout in KINDS and tensor.ndim - (dense_dim or 0) < 2:
            raise RuntimeError("to_sparse: Expected a tensor of at least 2 sparse dimensions")
        count = tensor.ndim - (dense_dim or 0) if sparse_dim is None else sparse_dim
        if not 0 <= count <= tensor.ndim:
            raise RuntimeError(f"to_sparse: sparse_dim is to be in [0, {tensor.ndim}], but {count} is given")
        coo, index_dtype = coordinates(tensor, count), dtypes.int64
    return coo if layout is closed_types.sparse_coo else of_coordinates(coo, layout, blocksize, index_dtype)


def _title(layout: Any) -> str:
    return KINDS[layout].title if layout in KINDS else "Sparse"


def _check_conversion(
    tensor: Tensor, own: Any, layout: Any, sparse_dim: int | None, blocksize: Sequence[int] | None
) -> None:
    source, target = KINDS.get(own), KINDS.get(layout)
    if source is not None and target is not None:
        if target.blocks and not source.blocks and tensor.n_batch:  # type: ignore[attr-defined]
            raise RuntimeError(f"conversion from {source.title} to {target.title} for batched inputs is not supported")
        if source.blocks and not target.blocks:
            short = target.title[-3:].lower()
            raise RuntimeError(
                f"sparse_compressed_to_sparse_{short}: expected Sparse{'Csc' if short == 'csr' else 'Csr'}, SparseBsr "
                f"or SparseBsc layout but got {source.title}".replace(", SparseBsr", ", SparseCsr", 1)
            )
        if source.blocks and blocksize is not None and tuple(blocksize) != tensor.blocksize:  # type: ignore[attr-defined]
            raise RuntimeError(
                f"conversion from {source.title} to {target.title} with blocksize changed from "
                f"{list(tensor.blocksize)} to {list(blocksize)} is not supported"  # type: ignore[attr-defined]
            )
    if own is closed_types.sparse_coo and target is not None and tensor.sparse_dim() != 2:
        raise RuntimeError(
            f"conversion from Sparse to {target.title} for input tensors with sparse_dim()!=2 is not supported"
        )
    if own is closed_types.sparse_coo and sparse_dim not in (None, tensor.sparse_dim()):
        raise RuntimeError(
            "to_sparse: conversion from Sparse to Sparse with sparse_dim argument !=self.sparse_dim() is not supported"
        )
    if source is not None and sparse_dim not in (None, 2):
        raise RuntimeError(
            f"to_sparse: conversion from {source.title} to Sparse with sparse_dim argument !=2 is not supported"
        )


def to_sparse_csr(tensor: Tensor, dense_dim: int | None = None) -> SparseTensor:
    """The same by rows; of a dense tensor the elements that are not 0, whose places are read."""
    return converted(tensor, layout=closed_types.sparse_csr, dense_dim=dense_dim)


def to_sparse_csc(tensor: Tensor, dense_dim: int | None = None) -> SparseTensor:
    """The same by columns."""
    return converted(tensor, layout=closed_types.sparse_csc, dense_dim=dense_dim)


def to_sparse_bsr(tensor: Tensor, blocksize: Sequence[int], dense_dim: int | None = None) -> SparseTensor:
    """The same by rows of blocks."""
    return converted(tensor, layout=closed_types.sparse_bsr, blocksize=blocksize, dense_dim=dense_dim)


def to_sparse_bsc(tensor: Tensor, blocksize: Sequence[int], dense_dim: int | None = None) -> SparseTensor:
    """The same by columns of blocks."""
    return converted(tensor, layout=closed_types.sparse_bsc, blocksize=blocksize, dense_dim=dense_dim)


def _size(kind: Kind, begins: Tensor, along: Tensor, values: Tensor) -> tuple[int, ...]:
    """The smallest size that all places are in. Reads them."""
    invariants.check_ranks(kind, begins, along, values)
    count = begins.ndim - 1
    block = values.shape[count + 1 : count + 3] if kind.blocks else (1, 1)
    dense = values.shape[count + (3 if kind.blocks else 1) :]
    outer = begins.shape[-1] - 1
    inner = int(along.max().item()) + 1 if along.numel() else 0
    pair = (outer, inner) if kind.by_rows else (inner, outer)
    return (*begins.shape[:-1], pair[0] * block[0], pair[1] * block[1], *dense)


def sparse_compressed_tensor(
    compressed_indices: object,
    plain_indices: object,
    values: object,
    size: Sequence[int] | None = None,
    *,
    dtype: DType | None = None,
    layout: Any = None,
    device: DeviceLike = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> SparseCompressed:
    """A tensor of one of KINDS: where the values of each row or column begin, their places on the other axis, values.

    Shapes: compressed_indices (*batch, n + 1), plain_indices (*batch, count), values (*batch, count, *block, *dense).
    Raises: RuntimeError when they do not fit, as far as shapes tell; with check_invariants as far as values do.
    """
    if layout not in KINDS:
        raise RuntimeError(
            "expected compressed sparse tensor layout (SparseCsr, SparseCsc, SparseBsr or SparseBsc) but got "
            f"{'nothing' if layout is None else layout}"
        )
    held = values if isinstance(values, Tensor) else create.tensor(values, device=device)
    held = held.to(device=device or held.device, dtype=dtype or held.dtype)
    begins, along = (
        numbers if isinstance(numbers, Tensor) else create.tensor(numbers, dtype=dtypes.int64)
        for numbers in (compressed_indices, plain_indices)
    )
    begins, along = begins.to(held.device), along.to(held.device)
    kind = KINDS[layout]
    held = held.detach() if requires_grad else held
    if used.overrides is None:
        dispatch.start()
    if size is None:
        size = _size(kind, begins, along, held)
    invariants.check_compressed(kind, begins, along, held, size, check_invariants)
    result = compressed(layout, begins, along, held, size)
    return result.requires_grad_() if requires_grad else result


def sparse_csr_tensor(crow_indices: object, col_indices: object, values: object, *args: Any, **options: Any) -> Any:
    """sparse_compressed_tensor of layout torch.sparse_csr."""
    return _of_layout(closed_types.sparse_csr, options)(crow_indices, col_indices, values, *args, **options)


def sparse_csc_tensor(ccol_indices: object, row_indices: object, values: object, *args: Any, **options: Any) -> Any:
    """sparse_compressed_tensor of layout torch.sparse_csc."""
    return _of_layout(closed_types.sparse_csc, options)(ccol_indices, row_indices, values, *args, **options)


def sparse_bsr_tensor(crow_indices: object, col_indices: object, values: object, *args: Any, **options: Any) -> Any:
    """sparse_compressed_tensor of layout torch.sparse_bsr."""
    return _of_layout(closed_types.sparse_bsr, options)(crow_indices, col_indices, values, *args, **options)


def sparse_bsc_tensor(ccol_indices: object, row_indices: object, values: object, *args: Any, **options: Any) -> Any:
    """sparse_compressed_tensor of layout torch.sparse_bsc."""
    return _of_layout(closed_types.sparse_bsc, options)(ccol_indices, row_indices, values, *args, **options)


def _of_layout(layout: Any, options: dict[str, Any]) -> Any:
    requested = options.setdefault("layout", layout) or layout
    if requested is not layout:
        raise RuntimeError(f"{str(layout).rpartition('.')[2]}_tensor: expected layout {layout} but got {requested}")
    return sparse_compressed_tensor


def _validate_sparse_compressed_tensor_args(
    compressed_indices: Tensor, plain_indices: Tensor, values: Tensor, size: Sequence[int], layout: Any, *args: Any
) -> None:
    """Raises RuntimeError for what makes no tensor of a layout."""
    invariants.check_compressed(KINDS[layout], compressed_indices, plain_indices, values, size, True)


def _validate_compressed_sparse_indices(
    is_crow: bool, compressed_idx: Tensor, plain_idx: Tensor, cdim: int, dim: int, nnz: int
) -> None:
    """Raises RuntimeError for indices that are those of no matrix with `dim` places along the plain axis."""
    invariants.check_lines(KINDS[closed_types.sparse_csr if is_crow else closed_types.sparse_csc], compressed_idx,
                           plain_idx, dim)  # fmt: skip


def _for_layout(layout: Any) -> tuple[Any, Any]:
    """The check and the unchecked maker of a layout."""

    def check(begins: Tensor, along: Tensor, values: Tensor, size: Sequence[int], *args: Any) -> None:
        _validate_sparse_compressed_tensor_args(begins, along, values, size, layout)

    def make(begins: Any, along: Any, values: Any, size: Sequence[int], **options: Any) -> SparseCompressed:
        return _sparse_compressed_tensor_unsafe(begins, along, values, size, **options | {"layout": layout})

    return check, make


def _sparse_compressed_tensor_unsafe(
    compressed_indices: Any, plain_indices: Any, values: Any, size: Sequence[int], **options: Any
) -> SparseCompressed:
    """sparse_compressed_tensor without a look at values of indices."""
    return sparse_compressed_tensor(
        compressed_indices, plain_indices, values, size, **options | {"check_invariants": False}
    )


_validate_sparse_csr_tensor_args, _sparse_csr_tensor_unsafe = _for_layout(closed_types.sparse_csr)
_validate_sparse_csc_tensor_args, _sparse_csc_tensor_unsafe = _for_layout(closed_types.sparse_csc)
_validate_sparse_bsr_tensor_args, _sparse_bsr_tensor_unsafe = _for_layout(closed_types.sparse_bsr)
_validate_sparse_bsc_tensor_args, _sparse_bsc_tensor_unsafe = _for_layout(closed_types.sparse_bsc)


def empty(layout: Any, shape: Sequence[int], dtype: DType, device: DeviceLike) -> SparseTensor:
    """A tensor of a layout that has no values. Raises RuntimeError for blocks, whose shape nobody said."""
    if layout is closed_types.sparse_coo:
        positions = create.zeros(len(shape), 0, dtype=dtypes.int64, device=device)
        return made(positions, create.zeros(0, dtype=dtype, device=device), shape, is_coalesced=True)
    return _empty(layout, shape, dtype, device, (), 0)


def made_as(tensor: Tensor, layout: Any, name: str) -> SparseTensor:
    """What a function that makes tensors gives of a sparse layout. Raises RuntimeError where PyTorch has none such."""
    if name.startswith(("empty", "zeros")):
        return empty(layout, tensor.shape, tensor.dtype, tensor.device)
    raise RuntimeError(f"{name}(...) is not implemented for sparse layout")


def _empty(
    layout: Any, shape: Sequence[int], dtype: DType, device: DeviceLike, block: Sequence[int], n_dense: int
) -> SparseCompressed:
    kind, count = KINDS[layout], len(shape) - 2 - n_dense
    if count < 0:
        raise RuntimeError(
            f"torch.empty: Only batched sparse compressed (non-block) tensors are supported, but got size {list(shape)}"
        )
    if kind.blocks and not block:
        raise RuntimeError(
            "torch.empty: Only batched sparse compressed (non-block) tensors are supported, but got layout "
            f"{kind.title}"
        )
    batch, axis = tuple(shape[:count]), count + (0 if kind.by_rows else 1)
    n = shape[axis] // (block[0 if kind.by_rows else 1] if block else 1)
    begins = create.zeros(*batch, n + 1, dtype=dtypes.int64, device=device)
    along = create.zeros(*batch, 0, dtype=dtypes.int64, device=device)
    values = create.zeros(*batch, 0, *block, *shape[len(shape) - n_dense :], dtype=dtype, device=device)
    return compressed(layout, begins, along, values, shape)


def cleared(source: SparseTensor, layout: Any, dtype: DType, device: DeviceLike) -> SparseTensor:
    """A tensor of the shape, batches and dense axes of another, without values: what zeros_like gives."""
    n_dense = source.dense_dim()
    if layout is closed_types.sparse_coo:
        count = source.ndim - n_dense
        positions = create.zeros(count, 0, dtype=dtypes.int64, device=device)
        values = create.zeros(0, *source.shape[count:], dtype=dtype, device=device)
        return made(positions, values, source.shape, is_coalesced=True)
    is_blocks = isinstance(source, SparseCompressed) and source.kind.blocks and KINDS[layout].blocks
    block = source.blocksize if is_blocks else ()  # type: ignore[attr-defined]
    return _empty(layout, source.shape, dtype, device, block, n_dense)


def _refusing(name: str, axis_name: str) -> Any:
    def refuse(tensor: Tensor) -> Tensor:
        if isinstance(tensor, SparseCompressed):  # Called by the class of all tensors.
            return getattr(tensor, name)()  # type: ignore[no-any-return]
        raise RuntimeError(f"{name} expected sparse {axis_name} compressed tensor layout but got {title(tensor)}")

    refuse.__name__ = refuse.__qualname__ = name
    return refuse


crow_indices, col_indices = _refusing("crow_indices", "row"), _refusing("col_indices", "row")
ccol_indices, row_indices = _refusing("ccol_indices", "column"), _refusing("row_indices", "column")
