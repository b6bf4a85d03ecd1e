"""torch.sparse.check_sparse_tensor_invariants: whether constructors read the indices they are given."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from pywebgpu.tensor.tensor import Tensor

F = TypeVar("F", bound=Callable[..., Any])
_checked = [False]


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
            raise RuntimeError("This context manager instance is already activated: nest another one")
        self.saved_state, _checked[0] = _checked[0], self.state

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
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


def check_rows(begins: Tensor, columns: Tensor, size: Sequence[int], check: bool | None) -> None:
    """Raises RuntimeError where a matrix of rows would not be one."""
    if not (_checked[0] if check is None else check):
        return
    ends, along, n_columns = begins.tolist(), columns.tolist(), size[1]
    if ends[0] != 0:
        raise RuntimeError("`crow_indices[..., 0] == 0` is not satisfied.")
    if ends[-1] != len(along):
        raise RuntimeError("`crow_indices[..., -1] == nnz` is not satisfied.")
    if any(not 0 <= end - begin <= n_columns for begin, end in itertools.pairwise(ends)):
        text = "`0 <= crow_indices[..., 1:] - crow_indices[..., :-1] <= ncols` is not satisfied."
        raise RuntimeError(text)
    if any(not 0 <= column < n_columns for column in along):
        raise RuntimeError("`0 <= col_indices < ncols` is not satisfied.")
    for begin, end in itertools.pairwise(ends):
        row = along[begin:end]
        if any(first >= second for first, second in itertools.pairwise(row)):
            raise RuntimeError(
                "`col_indices[..., crow_indices[..., i - 1]:crow_indices[..., i]] for all i = 1, ..., nrows are sorted "
                "and distinct along the last dimension values` is not satisfied."
            )
