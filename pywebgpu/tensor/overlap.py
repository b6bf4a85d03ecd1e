"""Tensors that show the same elements; and writes that would change other elements of what they read.

torch refuses such writes, because what it reads would depend on how far it came.
"""

from pywebgpu.support.shapes import Shape
from pywebgpu.tensor.base import TensorBase
from pywebgpu.tensor.layout import strides_of

OVERLAP = (
    "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory "
    "location. Please clone() the tensor before performing the operation."
)


def shows_same(first: TensorBase, other: TensorBase) -> bool:
    """Whether both show the same elements of one memory in the same order."""
    if first._storage is not other._storage:
        return False
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
