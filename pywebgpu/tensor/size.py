"""Shapes as tensors report them."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any, SupportsIndex, overload


class Size(tuple[int, ...]):
    """A shape that prints and counts as torch.Size does."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"torch.Size({list(self)})"

    def numel(self) -> int:
        total = 1
        for n in self:
            total *= n
        return total

    @overload
    def __getitem__(self, at: SupportsIndex) -> int: ...
    @overload
    def __getitem__(self, at: slice) -> Size: ...
    def __getitem__(self, at: SupportsIndex | slice) -> int | Size:
        found = tuple.__getitem__(self, at)
        return Size(found) if isinstance(found, tuple) else found


def as_tuple(args: Sequence[Any], named: dict[str, Any] | None = None) -> tuple[int, ...]:
    """f(2, 3), f((2, 3)) and f(size=(2, 3)) -> (2, 3)."""
    if named:
        args = tuple(named.values())
    if len(args) == 1 and not hasattr(args[0], "__index__"):
        args = tuple(args[0])
    return tuple([index(n) for n in args])
