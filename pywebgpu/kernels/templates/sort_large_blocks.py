"""A block of keys that is too large for one workgroup, ordered by many.

Each has a few elements, whose ranks its lanes count in parts. Apart from sort.py because training has small blocks.
"""

from collections.abc import Sequence
from math import prod

from pywebgpu.ir.graph import Node
from pywebgpu.kernels.builder import Builder
from pywebgpu.kernels.ir import GROUP, I32, LANE, U32, Const, Expr, Index, Var, construct, select, smaller
from pywebgpu.kernels.kernel import Kernel
from pywebgpu.kernels.launch import Launch
from pywebgpu.support.symbolic import flatten, unflatten

SIDES = (32, 16, 8, 4)  # elements that one workgroup finds the ranks of
COUNTED = 128  # keys that a lane looks at for one of them, at most, where there are few enough
UNROLLED = 4  # keys, or vectors of them, that are loaded side by side


class Ranking:
    """The kernel of a node `sort_block`: an element's rank is the number of keys before its own."""

    def __init__(self, node: Node, launch: Launch, build: Builder) -> None:
        self.node, self.build, self.lanes = node, build, launch.threads
        self.rows, self.columns = prod(node.spec.shape[:-1]), node.spec.shape[-1]
        self.size: int = node.attrs["size"]
        fits = (side for side in SIDES if min(self.size, self.columns) * side <= COUNTED * self.lanes)
        self.side = next(fits, SIDES[-1])
        self.parts, self.vector = self.lanes // self.side, 4 if self.columns % 4 == 0 else 1
        self.groups = -(-self.columns // self.side)  # A block begins where a workgroup does: both are powers of two.

    def write(self) -> Kernel:
        build, side, parts = self.build, self.side, self.parts
        counts = build.workgroup_array("counts", U32, side * parts)
        row = build.let(GROUP // self.groups, "row")
        part = build.let(LANE // side, "part")
        own = build.let(GROUP % self.groups * side + LANE % side, "own")
        column = build.let(smaller(own, self.columns - 1), "column")
        first = build.let(column // self.size * self.size, "first")
        end = build.let(smaller(first + self.size, self.columns), "end")
        self.lead = unflatten(row.within(self.rows), self.node.spec.shape[:-1])
        self.key = build.let(build.value(self.node.inputs[0], (*self.lead, column.within(self.columns))), "key")
        self.own_vector = build.let(column // self.vector, "mine")
        self.rank = build.var(Const(U32, 0), "rank")
        if self.vector > 1:
            self._count_beside(part, own)
        next_vector = build.var(first // self.vector + part, "at")
        with build.if_(part < parts):
            with build.while_((next_vector + (UNROLLED - 1) * parts) * self.vector < end):
                self._count([next_vector + step * parts for step in range(UNROLLED)])
                build.assign(next_vector, UNROLLED * parts, "+=")
            with build.while_(next_vector * self.vector < end):
                self._count([next_vector])
                build.assign(next_vector, parts, "+=")
            build.assign(counts[LANE], self.rank)
        build.barrier()
        with build.if_(side > LANE, own < self.columns):
            total = build.var(first, "total")
            with build.loop("step", 0, parts) as side_rows:
                build.assign(total, counts[side_rows * side + LANE], "+=")
            build.store(
                self.node, flatten((*self.lead, total.within(self.columns)), self.node.spec.shape), construct(I32, own)
            )
        return build.kernel("sort_block", self.lanes, self.rows * self.groups, vector=self.vector)

    def _loaded(self, vector: Var) -> list[tuple[Expr, Expr]]:
        """The columns of a vector of keys, and the keys."""
        columns = [vector.within(self.columns // self.vector) * self.vector + number for number in range(self.vector)]
        return [(Index(column), self.build.value(self.node.inputs[0], (*self.lead, column))) for column in columns]

    def _count_if(self, is_before: Expr) -> None:
        self.build.assign(self.rank, select(0, Const(U32, 1), is_before), "+=")

    def _count_beside(self, part: Var, own: Var) -> None:
        """Equal keys of the element's own vector: those of vectors before it count by their bound."""
        for column, other in self._loaded(self.own_vector):
            self._count_if(part.eq(0) & other.eq(self.key) & (column < own))

    def _count(self, vectors: Sequence[Expr]) -> None:
        """All are loaded before one is compared, by a bound that a whole vector has."""
        build, key = self.build, self.key
        indices = [build.let(vector, build.fresh("k")) for vector in vectors]
        for index, others in zip(indices, [self._loaded(index) for index in indices], strict=True):
            bound = build.let(key + select(0, Const(U32, 1), index < self.own_vector), build.fresh("bound"))
            all_are = build.let(bound < key, build.fresh("all_are"))  # The largest number has none above it.
            for _, other in others:
                self._count_if((other < bound) | all_are)
