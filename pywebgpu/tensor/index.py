"""Python's subscripts: `x[1, ..., ::2]` is a view, `x[rows, mask]` a copy, and both can be assigned to.

Those of the first axis alone, as loops over data have them, are here; subscripts.py takes all others apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Self

from pywebgpu import dtypes
from pywebgpu.composites import indexing
from pywebgpu.ops import movement
from pywebgpu.support import shapes
from pywebgpu.support.shapes import Shape
from pywebgpu.tensor import overlap, subscripts
from pywebgpu.tensor.base import TensorBase
from pywebgpu.tensor.view import Path

if TYPE_CHECKING:
    from pywebgpu.tensor.tensor import Tensor
    from pywebgpu.tensor.types import Index, Operand


_REAL = frozenset((int, float, bool))


class Subscripts(TensorBase):
    """`x[...]` and `x[...] = value`."""

    __slots__ = ()

    def __getitem__(self, key: Index) -> Tensor:
        if isinstance(key, TensorBase):
            if key._storage.device is self._storage.device and self.ndim:
                rows = key._node
                if rows.spec.dtype is dtypes.int64 and rows.spec.shape:
                    selected = self._new(indexing.get(self._node, (0,), (rows,), 0), key._storage.device)
                    return subscripts.laid_out(selected, self, (0,), (rows,), 0) if self._path else selected
        elif type(key) is int or type(key) is slice:
            shape = self._spec_node().spec.shape
            if shape:
                return self._views(_of_first(key, shape) or ((movement.reshape, {"shape": shape}),))
        return subscripts.select(self, key)

    def __setitem__(self, key: Index, value: Operand) -> None:
        if type(value) in _REAL and import_module("pywebgpu.tensor.element_writes").put(self, key, value):
            return
        if (type(key) is int or type(key) is slice) and self.ndim:
            steps = _of_first(key, self._spec_node().spec.shape)
            if isinstance(value, TensorBase) and _is_there(self, steps, value):
                value._settle()
                value._check_writable()
                return
            subscripts.write_view(self._views(steps) if steps else self, value)
            return
        subscripts.write(self, key, value)

    def index_put(self, indices: Sequence[Tensor | None], values: Operand, accumulate: bool = False) -> Tensor:
        """A copy in which the positions that `indices` name are `values`, or with accumulate have them added."""
        return subscripts.with_values(self, indices, values, accumulate)

    def index_put_(self, indices: Sequence[Tensor | None], values: Operand, accumulate: bool = False) -> Self:
        """index_put, written into this tensor."""
        for read in (*indices, values):
            overlap.check_apart(self, read)
        return self._assign(self.index_put(indices, values, accumulate)._node)


def _is_there(tensor: TensorBase, steps: Path, value: TensorBase) -> bool:
    """Whether a value is what a subscript shows, as after `x[i] += y`, and neither has a history."""
    if value._storage is not tensor._storage or tensor._history is not None or value._history is not None:
        return False
    return value._path == (*tensor._path, *steps)


def _of_first(item: int | slice, shape: Shape) -> Path:
    """The views that a subscript of the first axis alone is; none where it is all of it."""
    size, rest = shape[0], shape[1:]
    rows = shapes.rows(item, size) if isinstance(item, slice) else range(shapes.row(item, 0, size), size)[:1]
    steps: Path = ()
    if len(rows) != size:
        zeros, ones = _ends(len(rest))
        cut = {"starts": (rows.start, *zeros), "sizes": (len(rows), *rest), "steps": (rows.step, *ones)}
        steps = ((movement.slice_, cut),)
    if not isinstance(item, slice):
        steps = (*steps, (movement.reshape, {"shape": rest}))
    return steps


@lru_cache
def _ends(rank: int) -> tuple[Shape, Shape]:
    """Starts and steps of axes that stay as they are."""
    return (0,) * rank, (1,) * rank


# What is assigned
