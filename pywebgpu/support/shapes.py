"""Arithmetic on shapes. Pure functions of tuples: no node, no tensor, no device."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import prod
from operator import index
from typing import TypeVar

from pywebgpu.errors import RangeError, ShapeError

Shape = tuple[int, ...]
T = TypeVar("T")


@lru_cache(4096)
def broadcast(a: Shape, b: Shape) -> Shape:
    """(4, 1), (3,) -> (4, 3). Raises ShapeError when an axis differs and neither side is 1."""
    if a == b:
        return a
    rank = max(len(a), len(b))
    pa, pb = (1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b
    out = []
    for m, n in zip(pa, pb, strict=True):
        if m != n and m != 1 and n != 1:
            axis, m, n = max(
                (d, m, n) for d, (m, n) in enumerate(zip(pa, pb, strict=True)) if m != n and 1 not in (m, n)
            )
            raise ShapeError(
                f"The size of tensor a ({m}) must match the size of tensor b ({n}) at non-singleton dimension {axis}: "
                f"cannot broadcast {a} with {b}"
            )
        out.append(n if m == 1 else m)
    return tuple(out)


def broadcast_all(shapes: Iterable[Shape]) -> Shape:
    out: Shape = ()
    for shape in shapes:
        out = broadcast(out, shape)
    return out


def strides(shape: Shape) -> Shape:
    """(2, 3, 4) -> (12, 4, 1)."""
    out, step = [], 1
    for n in reversed(shape):
        out.append(step)
        step *= max(n, 1)
    return tuple(reversed(out))


def plain(value: T) -> T | int:
    """A whole number of NumPy's as Python's: attributes of nodes are told apart by value, and printed."""
    if type(value).__module__ != "numpy" or hasattr(value, "__len__") or not hasattr(value, "__index__"):
        return value
    return index(value)


def axis(dim: int, rank: int) -> int:
    """A possibly negative axis -> 0..rank-1. Raises RangeError with torch's text."""
    dim = index(dim)
    bound = max(rank, 1)
    if not -bound <= dim < bound:
        raise RangeError(f"Dimension out of range (expected to be in range of [{-bound}, {bound - 1}], but got {dim})")
    return dim + bound if dim < 0 else dim


def axes(dim: int | Sequence[int] | None, rank: int) -> Shape:
    """An axis, several, or None for all -> sorted distinct axes."""
    dim = plain(dim)
    if dim is None or (not isinstance(dim, int) and len(dim) == 0):
        return tuple(range(rank))
    if isinstance(dim, int):
        dim = (dim,)
    resolved = [axis(d, rank) for d in dim]
    if len(set(resolved)) != len(resolved):
        raise ShapeError(f"dim {tuple(dim)} appears multiple times in the list of dims")
    return tuple(sorted(resolved)) if rank else ()


def resolve(shape: Sequence[int], numel: int) -> Shape:
    """Fills one -1 so that the shape holds `numel` elements. Raises ShapeError when it cannot."""
    sizes = tuple([index(n) for n in shape])
    if prod(sizes) == numel and (not sizes or min(sizes) >= 0):
        return sizes
    known = prod(n for n in sizes if n != -1)
    holes = sizes.count(-1)
    if any(n < -1 for n in sizes):
        raise ShapeError(f"invalid shape dimension {min(sizes)}")
    if holes > 1:
        raise ShapeError("only one dimension can be inferred")
    if holes == 1:
        if known == 0:
            raise ShapeError(
                f"cannot reshape tensor of 0 elements into shape {list(sizes)} because the unspecified dimension size "
                "-1 can be any value and is ambiguous"
            )
        if numel % known == 0:
            return tuple(numel // known if n == -1 else n for n in sizes)
    if holes or known != numel:
        raise ShapeError(f"shape '{list(sizes)}' is invalid for input of size {numel}")
    return sizes


_PLAIN = frozenset((int, type(None)))


def row(item: int, axis: int, size: int) -> int:
    """The row of an axis that a number names, which may count from the end. Raises RangeError where there is none."""
    if not -size <= item < size:
        raise RangeError(f"index {item} is out of bounds for dimension {axis} with size {size}")
    return item % size


def rows(item: slice, size: int) -> range:
    """The rows of an axis that a slice names."""
    start, stop, step = item.start, item.stop, item.step
    if not (type(start) in _PLAIN and type(stop) in _PLAIN and type(step) in _PLAIN):
        start, stop, step = (
            part if part is None or isinstance(part, int) else _whole(part) for part in (start, stop, step)
        )
    if step is not None and step <= 0:
        raise ValueError("slice step cannot be zero" if step == 0 else "step must be greater than zero")
    return range(size)[start:stop:step]


def _whole(part: object) -> int:
    if not hasattr(part, "__index__"):
        raise TypeError("slice indices must be integers or None or have an __index__ method")
    return index(part)
