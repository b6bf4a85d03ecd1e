"""Shapes as tensors report them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import index
from typing import Any, Self, SupportsIndex, overload


class Size(tuple[int, ...]):
    """A shape that prints and counts as torch.Size does."""

    __slots__ = ()

    def __new__(cls, sizes: Iterable[int] = ()) -> Self:
        size = tuple.__new__(cls, sizes)
        for position, n in enumerate(size):
            if type(n) is not int and (not hasattr(n, "__index__") or hasattr(n, "requires_grad")):
                raise TypeError(f"torch.Size() takes an iterable of 'int' (item {position} is '{type(n).__name__}')")
        return size

    def __repr__(self) -> str:
        return f"torch.Size({list(self)})"

    def numel(self) -> int:
        total = 1
        for n in self:
            total *= n
        return total

    def __mul__(self, count: SupportsIndex) -> Size:
        return of(tuple.__mul__(self, count))

    __rmul__ = __mul__

    def __add__(self, other: tuple[Any, ...]) -> Size:  # PyTorch's, of numbers alone
        return Size(tuple.__add__(self, other))

    def __radd__(self, other: tuple[Any, ...]) -> Size:
        return Size(other + tuple(self))

    @overload
    def __getitem__(self, key: SupportsIndex) -> int: ...
    @overload
    def __getitem__(self, key: slice) -> Size: ...
    def __getitem__(self, key: SupportsIndex | slice) -> int | Size:
        part = tuple.__getitem__(self, key)
        return of(part) if isinstance(part, tuple) else part


def of(shape: Iterable[int]) -> Size:
    """The Size of a shape that is known to be one."""
    return tuple.__new__(Size, shape)


def as_tuple(args: Sequence[Any], named: dict[str, Any] | None = None) -> tuple[int, ...]:
    """f(2, 3), f((2, 3)) and f(size=(2, 3)) -> (2, 3)."""
    if named:
        args = tuple(named.values())
    if len(args) == 1 and not hasattr(args[0], "__index__"):
        args = tuple(args[0])
    return tuple([index(n) for n in args])
