"""torch.sparse.check_sparse_tensor_invariants: whether constructors read the indices they are given."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from math import prod
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from pywebgpu import dtypes
from pywebgpu.ir.observer import share

if TYPE_CHECKING:
    from pywebgpu.sparse.compressed import Kind
    from pywebgpu.tensor.tensor import Tensor

F = TypeVar("F", bound=Callable[..., Any])
_checked = share("invariants of sparse tensors", [False])


class check_sparse_tensor_invariants:
    """A switch, as a context manager, a decorator, or by enable and disable; off at first."""

    def __init__(self, enable: bool = True) -> None:
        self.state = enable
        self.saved_state: bool | None = None

    @staticmethod
    def is_enabled() -> bool:
        return _checked[0]

    @staticmethod
    def enable() -> None:
        _checked[0] = True

    @staticmethod
    def disable() -> None:
        _checked[0] = False

    def __enter__(self) -> None:
        if self.saved_state is not None:
            raise RuntimeError(
                "This context manager instance is already activated. Use a different context manager instance for "
                "context nesting"
            )
        self.saved_state, _checked[0] = _checked[0], self.state

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _checked[0], self.saved_state = bool(self.saved_state), None

    def __call__(self, function: F) -> F:
        @functools.wraps(function)
        def wrapped(*args: Any, **options: Any) -> object:
            with check_sparse_tensor_invariants(self.state):
                return function(*args, **options)

        return wrapped  # type: ignore[return-value]  # The wrapper has the function's signature.


def check_coordinates(indices: Tensor, size: Sequence[int], check: bool | None) -> None:
    """Raises RuntimeError for coordinates (axis, value) that are outside of the size."""
    if not (_checked[0] if check is None else check) or not indices.shape[1]:
        return
    for axis, (low, high) in enumerate(zip(indices.amin(1).tolist(), indices.amax(1).tolist(), strict=True)):
        if low < 0:
            raise RuntimeError(f"found negative index {low} for dim {axis}")
        if high >= size[axis]:
            text = f"for dim {axis}, size is {size[axis]} but found index {high}"
            raise RuntimeError(f"size is inconsistent with indices: {text}")


def check_coo(
    indices: Tensor, values: Tensor, size: Sequence[int], is_coalesced: bool | None = None, check_pinning: object = None
) -> None:
    """Raises RuntimeError for parts that make no tensor of coordinates, their values among them."""
    if indices.ndim != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(indices.shape)}")
    if indices.dtype is not dtypes.int64:
        raise RuntimeError(f"indices must be an int64 tensor, but got {indices.dtype.title}")
    if len(size) != indices.shape[0] + values.ndim - 1:
        raise RuntimeError(
            f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(size)}, sparse_dim = "
            f"{indices.shape[0]}, dense_dim = {values.ndim - 1}"
        )
    if indices.shape[1] != values.shape[0]:
        raise RuntimeError(
            f"indices and values must have same nnz, but got nnz from indices: {indices.shape[1]}, nnz from values: "
            f"{values.shape[0]}"
        )
    check_coordinates(indices, size, True)


_validate_sparse_coo_tensor_args = check_coo


def check_ranks(kind: Kind, begins: Tensor, along: Tensor, values: Tensor) -> None:
    """Raises RuntimeError where the parts of a compressed tensor have axes that do not fit together."""
    count, n_block = begins.ndim - 1, 2 if kind.blocks else 0
    begins_name, along_name = kind.compressed, kind.plain
    if not begins.is_contiguous() and not _rows_contiguous(begins):
        raise RuntimeError(f"expected {begins_name} to be a contiguous tensor per batch")
    if not along.is_contiguous() and not _rows_contiguous(along):
        raise RuntimeError(f"expected {along_name} to be a contiguous tensor per batch")
    if count < 0:
        raise RuntimeError(f"{begins_name} must have dimensionality >= 1 but got 0")
    if begins.ndim != along.ndim:
        raise RuntimeError(
            f"{begins_name} and {along_name} dimensionalities must be equal but got {begins.ndim} and {along.ndim}, "
            "respectively"
        )
    if values.ndim <= count + n_block:
        raise RuntimeError(
            f"values must have dimensionality > sum of batch and block dimensionalities (={count} + {n_block}) but got "
            f"{values.ndim}"
        )
    if begins.dtype is not along.dtype:
        raise RuntimeError(
            f"{begins_name} and {along_name} must have the same dtype, bot got {begins.dtype.title} and "
            f"{along.dtype.title}, respectively"
        )
    if begins.dtype not in (dtypes.int32, dtypes.int64):
        raise RuntimeError(f"{begins_name} and {along_name} dtype must be Int or Long, but got {begins.dtype.title}")


def _rows_contiguous(tensor: Tensor) -> bool:
    return tensor.ndim > 0 and (tensor.shape[-1] < 2 or tensor.stride(-1) == 1)


def _in_blocks(base: Sequence[int], block: Sequence[int]) -> list[int]:
    """How many blocks lie along each axis. Raises RuntimeError where they do not fill it."""
    for axis, (n, part) in enumerate(zip(base, block, strict=True)):
        if part == 0 or n % part:
            raise RuntimeError(
                f"tensor shape[{axis}] (={n}) must be divisible with blocksize[{axis}] (={part}) as defined by values "
                "shape"
            )
    return [n // part for n, part in zip(base, block, strict=True)]


def check_compressed(
    kind: Kind, begins: Tensor, along: Tensor, values: Tensor, size: Sequence[int], check: bool | None
) -> None:
    """Raises RuntimeError for parts that make no compressed tensor; their values are looked at where invariants are."""
    check_ranks(kind, begins, along, values)
    count, n_block = begins.ndim - 1, 2 if kind.blocks else 0
    n_dense = values.ndim - count - n_block - 1
    names = ("row", "column") if kind.by_rows else ("column", "row")
    what = f"{names[0]} blocks" if kind.blocks else f"{names[0]}s"
    if len(size) != count + 2 + n_dense:
        raise RuntimeError(
            "tensor dimensionality must be sum of batch, base, and dense dimensionalities "
            f"(={count} + 2 + {n_dense}) but got {len(size)}"
        )
    batches = [list(part.shape[:count]) for part in (begins, along, values)]
    if any(batch != list(size[:count]) for batch in batches):
        raise RuntimeError(
            f"all batch dimensions of {kind.compressed} (={batches[0]}), {kind.plain} (={batches[1]}), and values "
            f"(={batches[2]}) must be equal to tensor batch dimensions (={list(size[:count])})"
        )
    block = list(values.shape[count + 1 : count + 3]) if kind.blocks else [1, 1]
    lines = _in_blocks(size[count : count + 2], block)
    n_outer, n_inner = lines if kind.by_rows else lines[::-1]
    if begins.shape[-1] != n_outer + 1:
        raise RuntimeError(
            f"{kind.compressed}.shape[-1] must be equal to the number of {what} + 1 (={n_outer + 1}), but got "
            f"{begins.shape[-1]}"
        )
    if along.shape[-1] != values.shape[count]:
        raise RuntimeError(
            f"{kind.plain}.shape[-1] must be equal to nnz (={values.shape[count]}) as defined by "
            f"values.shape[{count}], but got {along.shape[-1]}"
        )
    if _checked[0] if check is None else check:
        check_lines(kind, begins, along, n_inner)


def check_lines(kind: Kind, begins: Tensor, along: Tensor, n_inner: int) -> None:
    """Raises RuntimeError where the indices of a matrix of a batch are not in order, or outside of it."""
    ends, places = (part.reshape(prod(part.shape[:-1]), part.shape[-1]).tolist() for part in (begins, along))
    for of_matrix, where in zip(ends, places, strict=True):
        _check_lines(kind, of_matrix, where, n_inner)


def _check_lines(kind: Kind, ends: list[int], along: list[int], n_inner: int) -> None:
    begins, plain = kind.compressed, kind.plain
    n_lines, n_along = ("nrows", "ncols") if kind.by_rows else ("ncols", "nrows")
    if ends[0] != 0:
        raise RuntimeError(f"`{begins}[..., 0] == 0` is not satisfied.")
    if ends[-1] != len(along):
        raise RuntimeError(f"`{begins}[..., -1] == nnz` is not satisfied.")
    if any(not 0 <= end - begin <= n_inner for begin, end in itertools.pairwise(ends)):
        text = f"`0 <= {begins}[..., 1:] - {begins}[..., :-1] <= {n_along}` is not satisfied."
        raise RuntimeError(text)
    if any(not 0 <= place < n_inner for place in along):
        raise RuntimeError(f"`0 <= {plain} < {n_along}` is not satisfied.")
    for begin, end in itertools.pairwise(ends):
        line = along[begin:end]
        if any(first >= second for first, second in itertools.pairwise(line)):
            raise RuntimeError(
                f"`{plain}[..., {begins}[..., i - 1]:{begins}[..., i]] for all i = 1, ..., {n_lines} are sorted "
                "and distinct along the last dimension values` is not satisfied."
            )
