"""How a kernel of rows walks them: which invocation visits which columns, and what a row keeps in registers.

Each row has `lanes` invocations, which visit strips side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import NamedTuple

from pywebgpu.kernels.builder import Builder
from pywebgpu.kernels.ir import GROUP, LANE, U32, Const, Expr, Index, Var, smaller
from pywebgpu.kernels.iteration_space import IterationSpace
from pywebgpu.kernels.launch import Launch
from pywebgpu.support.symbolic import ZERO, Sym, variable

FULL, OUTER, BLOCK = "full", "outer", "block"  # levels: see rows.py
SHUFFLED = "shuffled"
HELD = 16  # columns of one invocation that it keeps in registers from pass to pass,
HELD_ALONE = 32  # and where a subgroup has a row for itself and waits for no other
WRITTEN = 128  # columns times nodes that are written out side by side,
WRITTEN_ONCE = 640  # and where they are a whole row's, which is then read once for all passes
ONE_BY_ONE = 1 << 13  # columns that one invocation visits alone where no load is waited for: adapters may end loops


class Place(NamedTuple):
    """A column that an invocation visits: the element's flat index, and the column's number, also as a symbol.

    inside: what must hold for the column to be there; where it does not, another one is read.
    """

    full: Sym
    column: Expr
    inside: Expr | None = None
    at: Sym = ZERO


Visit = Callable[[Sequence[Place]], None]


class Rows:
    """How a kernel walks rows: which invocation belongs to which row and column.

    Lanes visit strips side by side, each of `vector` neighbours. strips: how many of one lane are written out together,
    0 where columns are visited one by one: all of a row where `is_held`, so that a pass finds what another one read.
    """

    def __init__(self, space: IterationSpace, launch: Launch, each: int = 1) -> None:
        """each: rows that the same lanes walk, one after the other."""
        self.space, self.each = space, each
        self.vector, self.strips, self.is_held = 1, 0, False
        self._held: list[Place] = []
        self.rows, self.columns = space.rows, space.columns
        self.full: Sym = space.full()
        self.row = variable("row", self.rows)
        self.along = is_along(space)
        self.lanes, self.size = launch.split, launch.threads
        self.shuffled = launch.each[0] if launch.variant == SHUFFLED else 1
        self.group_rows = self.size // self.lanes  # rows of one workgroup
        self.blocks = -(-self.rows // each)
        self.groups = -(-self.blocks // self.group_rows)

    @contextmanager
    def open(self, build: Builder) -> Iterator[None]:
        """inside: whether there is a row. position: an invocation's number among its row's lanes. Else the last row."""
        own: Expr = LANE
        position: Expr = Const(U32, 0)
        if self.lanes > 1:
            down, along = LANE // self.lanes, LANE % self.lanes
            own, position = (down, along) if self.along else (LANE % self.group_rows, LANE // self.group_rows)
        self.own = own
        if self.each == 1:
            self._choose(GROUP * self.group_rows + own, build)
            self.position = build.let(position, "position")
            yield
            return
        block = build.let(GROUP * self.group_rows + own, "block")
        self.position = build.let(position, "position")
        with build.loop("turn", 0, self.each) as turn:
            if self.lanes > self.shuffled > 1:
                build.barrier()  # What a row shares is written anew in each turn.
            self._choose(block * self.each + turn, build)
            yield

    @contextmanager
    def all(self, build: Builder) -> Iterator[None]:
        """The same in a kernel each of whose workgroups walks all rows, one after the other."""
        self.own = Const(U32, 0)
        rows = build.scope() if self.rows == 1 else build.loop("row", 0, self.rows)
        with rows:
            if self.rows > 1:
                build.barrier()  # What a row shares is written anew for each.
            self.position = build.let(LANE, "position")
            yield

    def _choose(self, number: Expr, build: Builder) -> None:
        wanted = build.let(number, "wanted")
        self.inside = build.let(wanted < self.rows, "inside")
        build.let(smaller(wanted, max(self.rows - 1, 0)), "row")

    def plan(self, nodes: int, each: int, build: Builder) -> None:
        """Decides how columns are visited. nodes: of the kernel.  each: elements of a word of what it stores."""
        if build.limits.emulated and self.columns <= ONE_BY_ONE * self.lanes:
            return  # No load is waited for there, and a longer text takes longer to compile.
        vector = 4 if self.along and self.columns % 4 == 0 and self.columns > 2 * self.lanes else 1
        if vector % each:
            return
        n_vectors = -(-self.columns // (self.lanes * vector))
        held = HELD_ALONE if self.lanes == self.shuffled else HELD
        self.is_held = self.each > 1 or n_vectors * vector <= min(held, WRITTEN_ONCE // nodes)
        self.strips = n_vectors if self.is_held else min(HELD, WRITTEN // nodes) // vector
        self.vector = vector if self.strips else 1

    def each_column(self, build: Builder, visit: Visit, each: int = 1) -> None:
        """Has `visit` write what is done at some columns, for all that are the invocation's. each: see `plan`."""
        if self.is_held:
            self._held = self._held or self.places(build)
            visit(self._held)
            return
        stride = self.lanes * self.vector
        step = stride * self.strips
        count = self.columns // step if step else 0
        if count:
            with build.loop("strip", 0, count) as strip:
                first = strip.within(count) * step + self.position.within(self.lanes) * self.vector
                visit(
                    [
                        self._place(first + index * stride + n)
                        for index in range(self.strips)
                        for n in range(self.vector)
                    ]
                )
        start = count * step
        if start == self.columns:
            return
        if each == 1:
            with build.loop("column", self.position + start if start else self.position, self.columns, self._stride):
                visit([Place(self.full, Var(U32, "column"))])
            return
        every = build.loop("at", self.position * each + start, self.columns, self.lanes * each)
        with every as lower, build.loop("column", lower, lower + each) as column:
            visit([Place(self.full, column)])

    def places(self, build: Builder) -> list[Place]:
        """All of a row, where it is held."""
        return [place for strip in range(self.strips) for place in self._strip(strip, build)]

    @property
    def _stride(self) -> int:
        return 1 if self.columns == 1 else self.lanes

    def _place(self, column: Sym, inside: Expr | None = None) -> Place:
        return Place(self.space.full_at(column), Index(column), inside, column)

    def _strip(self, number: int, build: Builder) -> list[Place]:
        """Of a whole row: the neighbours that a lane has in one of its strips."""
        vectors, first = self.columns // self.vector, number * self.lanes
        number_of_vector, inside = self.position.within(self.lanes) + first, None
        if first + self.lanes > vectors:
            wanted = self.position + first if first else self.position
            inside = build.let(wanted < vectors, f"inside_{number}")
            number_of_vector = build.let(smaller(wanted, vectors - 1), f"strip_{number}").within(vectors)
        return [self._place(number_of_vector * self.vector + n, inside) for n in range(self.vector)]


def groups(places: Sequence[Place]) -> list[tuple[list[Expr], list[int]]]:
    """Numbers of neighbours that one condition, or none, is for."""
    runs = groupby(range(len(places)), lambda index: id(places[index].inside))
    numbers = [list(of) for _, of in runs]
    return [([inside] if (inside := places[of[0]].inside) is not None else [], of) for of in numbers]


def is_along(space: IterationSpace) -> bool:
    """Whether neighbours in memory lie in one row."""
    axes = [axis for axis, n in enumerate(space.shape) if n > 1]
    return not axes or axes[-1] in space.axes
