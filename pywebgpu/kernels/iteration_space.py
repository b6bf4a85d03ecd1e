"""How a reduction sees its input: rows that give a result each, and the columns that are folded.

Apart from the schedule because two reductions share a kernel where their spaces agree, symbol by symbol.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import prod

from pywebgpu.ir.graph import Node
from pywebgpu.support.shapes import Shape
from pywebgpu.support.symbolic import Sym, flatten, unflatten, variable


@dataclass(frozen=True)
class IterationSpace:
    """Rows x columns of a reduction. `full` is the flat index of an element from row and column."""

    shape: Shape
    axes: Shape

    @property
    def rows(self) -> int:
        return prod(n for axis, n in enumerate(self.shape) if axis not in self.axes)

    @property
    def columns(self) -> int:
        return prod(n for axis, n in enumerate(self.shape) if axis in self.axes)

    @property
    def outer(self) -> Shape:
        return tuple(1 if axis in self.axes else n for axis, n in enumerate(self.shape))

    def coords(self) -> tuple[Sym, ...]:
        return _coords(self.shape, self.axes)

    def full(self) -> Sym:
        return _full(self.shape, self.axes)

    def full_at(self, column: Sym) -> Sym:
        """The same at a given column."""
        return flatten(_at(self.shape, self.axes, column), self.shape)


def folded(node: Node) -> IterationSpace:
    """Of a reduction."""
    return IterationSpace(node.inputs[0].spec.shape, node.attrs["axes"])


@lru_cache(4096)
def _coords(shape: Shape, axes: Shape) -> tuple[Sym, ...]:
    return _at(shape, axes, variable("column", IterationSpace(shape, axes).columns))


@lru_cache(4096)
def _full(shape: Shape, axes: Shape) -> Sym:
    return flatten(_coords(shape, axes), shape)


def _at(shape: Shape, axes: Shape, column: Sym) -> tuple[Sym, ...]:
    space = IterationSpace(shape, axes)
    row = unflatten(variable("row", space.rows), space.outer)
    within = iter(unflatten(column, tuple(shape[axis] for axis in axes)))
    return tuple(next(within) if axis in axes else row[axis] for axis in range(len(shape)))
