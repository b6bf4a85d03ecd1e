"""Tensors that show the same elements; and writes that would change other elements of what they read.

torch refuses such writes, because what it reads would depend on how far it came.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pywebgpu import dtypes
from pywebgpu.support.shapes import Shape
from pywebgpu.tensor.base import TensorBase
from pywebgpu.tensor.layout import strides_of

if TYPE_CHECKING:
    from pywebgpu.tensor.tensor import Tensor

OVERLAP = (
    "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory "
    "location. Please clone() the tensor before performing the operation."
)


def shows_same(first: TensorBase, other: TensorBase) -> bool:
    """Whether both show the same elements of one memory in the same order."""
    if first._storage is not other._storage:
        return False
    first._settle()
    return first._path == other._path or (first.shape == other.shape and strides_of(first) == strides_of(other))


def check(written: TensorBase, read: object) -> None:
    """Raises RuntimeError where a write, element by element, would change other elements that it reads.

    As in torch, a tensor with gaps is looked at no further.
    """
    if not isinstance(read, TensorBase) or read._storage is not written._storage or read._path == written._path:
        return
    first_range, other = _stretch(written), _stretch(read)
    if first_range is None or other is None:
        return
    if first_range[:2] == other[:2]:
        overlaps = first_range != other
    else:
        overlaps = first_range[0] < other[1] and other[0] < first_range[1]
    if overlaps:
        raise RuntimeError(OVERLAP)


def check_rows(written: TensorBase, read: object) -> None:
    """As check; a single number is read before anything is written."""
    if isinstance(read, TensorBase) and read.ndim:
        check(written, read)


def check_apart(written: TensorBase, read: object) -> None:
    """As check, for what reads at other positions than it writes: it may not read its own elements either."""
    if isinstance(read, TensorBase) and read._storage is written._storage:
        if _stretch(written) is not None and shows_same(written, read):
            raise RuntimeError(OVERLAP)
        check(written, read)


def read_while_written(written: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """The source of a masked_scatter_ as PyTorch reads it, one element after another, from memory that it writes.

    The source's element `rank` goes to the place of that rank under the mask. Where it lies in such a place of a lower
    rank, it is what was written there: followed back to an element that was not written, in steps that double.
    """
    count, (steps, begin), (_, first) = source.numel(), strides_of(written), strides_of(source)
    end = max(first + count, begin + 1 + sum(step * (n - 1) for step, n in zip(steps, written.shape, strict=True)))
    addresses = written.new_full((), begin, dtype=dtypes.int64)
    for axis, step in enumerate(steps):
        own = _numbers(written, written.shape[axis]).mul(step)
        addresses = addresses + own.reshape(-1, *(1,) * (written.ndim - axis - 1))
    chosen = mask.expand(written.shape).reshape(-1)
    unwritten = addresses.new_full((end,), count)
    rank_of = unwritten.put(addresses.reshape(-1), chosen.cumsum(0).sub(1).where(chosen, unwritten[0]))
    ranks, earlier = _numbers(written, count), rank_of[first : first + count]
    origin = earlier.where(earlier < ranks, ranks)
    for _ in range((count - 1).bit_length()):
        origin = origin[origin]
    return source.reshape(-1)[origin]


def _numbers(tensor: Tensor, count: int) -> Tensor:
    return tensor.new_ones((count,), dtype=dtypes.int64).cumsum(0).sub(1)


def _stretch(tensor: TensorBase) -> tuple[int, int, list[tuple[int, int]]] | None:
    """Begin and end of the memory that a tensor fills, and how: None where it has gaps, or shows an element twice."""
    shape: Shape = tensor.shape
    steps, begin = strides_of(tensor)
    axes = [(step, n) for step, n in zip(steps, shape, strict=True) if n != 1]
    filled = 1
    for step, n in sorted(axes):
        if step != filled:
            return None
        filled *= n
    return (begin, begin + filled, axes) if filled else None
