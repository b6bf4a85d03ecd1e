"""Tensors from pieces of raw memory that steps describe, as files of other libraries store views."""

from __future__ import annotations

import array
import itertools
import math
from typing import TYPE_CHECKING, NamedTuple

from pywebgpu import dtypes
from pywebgpu.support.documents import EXACT, MAX_RANK, count, is_size
from pywebgpu.tensor import create, tensor

if TYPE_CHECKING:
    from pywebgpu.tensor.factory_options import DeviceLike

CODES = {1: "B", 2: "H", 4: "I", 8: "Q"}  # Of unsigned items by their size; the bits are not looked at.


class View(NamedTuple):
    """Item (i, j) stands at offset + i * strides[0] + j * strides[1], counted in items."""

    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def problem(self, n_items: int) -> str:
        """Why this is no view of `n_items` items; "" when it is one."""
        numbers = (self.offset, *self.shape, *self.strides)
        if len(self.shape) > MAX_RANK or len(self.shape) != len(self.strides) or not all(map(is_size, numbers)):
            return "offset, shape and strides describe no view"
        if count(self.shape) > EXACT:
            return f"shape {self.shape} has more elements than can be counted"
        last = self.offset + sum((n - 1) * step for n, step in zip(self.shape, self.strides, strict=True))
        if 0 not in self.shape and last >= n_items:
            return (
                f"shape {self.shape} with strides {self.strides} at {self.offset} leaves a storage of {n_items} items"
            )
        if self.n_items() > n_items:
            return f"shape {self.shape} with strides {self.strides} reads the same items again and again"
        return ""

    def n_items(self) -> int:
        """How many items it reads, each once."""
        return math.prod(self.shape[axis] for axis in self.moving())

    def moving(self) -> list[int]:
        """The axes along which the offset changes."""
        return [axis for axis, n in enumerate(self.shape) if n != 1 and self.strides[axis] != 0]


def read(data: bytes, dtype: dtypes.DType, view: View, device: DeviceLike) -> tensor.Tensor:
    """The tensor that `view` describes of items of `dtype`. Transposed and repeated axes stay views."""
    if 0 in view.shape:
        return create.frombytes(b"", dtype, view.shape, device)
    axes = view.moving()
    sizes = tuple(n if axis in axes else 1 for axis, n in enumerate(view.shape))
    stored = sorted(axes, key=lambda axis: -view.strides[axis])
    if not _is_dense(view, stored):
        elements = create.frombytes(_gathered(data, dtype.itemsize, view, axes), dtype, sizes, device)
    else:
        begin = view.offset * dtype.itemsize
        piece = data[begin : begin + math.prod(sizes) * dtype.itemsize]
        if stored == axes:
            elements = create.frombytes(piece, dtype, sizes, device)
        else:
            elements = create.frombytes(piece, dtype, tuple(view.shape[axis] for axis in stored), device)
            elements = elements.permute([stored.index(axis) for axis in axes]).reshape(sizes)
    return elements if sizes == view.shape else elements.expand(view.shape)


def _is_dense(view: View, stored: list[int]) -> bool:
    """Whether the items stand side by side, in the order of the axes `stored`."""
    step = 1
    for axis in reversed(stored):
        if view.strides[axis] != step:
            return False
        step *= view.shape[axis]
    return True


def _gathered(data: bytes, itemsize: int, view: View, axes: list[int]) -> bytes:
    """The items in the order of the axes `axes`, copied row by row."""
    items = memoryview(data).cast(CODES[itemsize])  # type: ignore[call-overload]
    out = array.array(CODES[itemsize])
    *outer, inner = axes
    step = view.strides[inner]
    for coordinates in itertools.product(*(range(view.shape[axis]) for axis in outer)):
        begin = view.offset + sum(i * view.strides[axis] for i, axis in zip(coordinates, outer, strict=True))
        out.frombytes(items[begin : begin + (view.shape[inner] - 1) * step + 1 : step].tobytes())
    return out.tobytes()
