"""Shapes as tensors report them."""

from __future__ import annotations

from typing import SupportsIndex, overload


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
