"""Operands of products by large blocks (matmul_staged.py): their tiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pywebgpu.ir.graph import Node
from pywebgpu.kernels import ir, neighbours
from pywebgpu.kernels.builder import Builder
from pywebgpu.kernels.ir import LANE, Expr, Type, Var, call, construct, scalar, smaller
from pywebgpu.kernels.templates.matmul_blocks import Block
from pywebgpu.kernels.templates.matmul_kernel import LEFT, RIGHT, is_contiguous_in_k
from pywebgpu.support.symbolic import Sym


def four_of(kind: Type) -> Type:
    return Type(kind.kind, 4)


@dataclass(frozen=True, slots=True)
class _Part:
    """What an invocation loads of a tile at a time: a step of k, or four, of four rows (columns)."""

    k: Var
    four: Var
    rows: list[Sym]
    coming: list[Var]
    guard: list[Expr]


class Side:
    """An operand: `size` rows (columns), `extent` of them a workgroup, `each` an invocation, in fours.

    block: the how-manieth workgroup along it.  lane: the invocation's place among the `lanes` along it.
    """

    def __init__(
        self,
        source: Node,
        letter: str,
        size: int,
        extents: tuple[int, int],
        number: Expr,
        lane: Var,
        batch: Sym,
        block: Block,
        build: Builder,
    ) -> None:
        self.source, self.letter, self.size, self.batch, self._build = source, letter, size, batch, build
        self.extent, self.each = extents
        self.level = LEFT if letter == "m" else RIGHT
        self.depth, self.span = source.spec.shape[2 if letter == "m" else 1], block.depth
        self.is_along_k = is_contiguous_in_k(source, letter)
        self.is_turned = self.is_along_k and self.depth % 4 == 0
        self.fours, self.threads = self.extent // 4, block.lanes
        self.block = build.let(number, f"block_{letter}")
        self.lane, self.lanes = lane, self.extent // self.each
        self.kind = four_of(scalar(source.spec.dtype))
        pitch = self.fours + self.is_along_k
        self.tile = build.workgroup_array(f"tile_{letter}", self.kind, pitch, block.steps, block.depth // block.steps)
        self.steps = block.steps
        self._parts: list[_Part] = []

    @property
    def _at(self) -> Sym:
        return self.block.within(-(-self.size // self.extent))

    def prepare(self) -> None:
        """What each invocation loads of a tile: which k, which four, and where its rows are."""
        build, letter = self._build, self.letter
        span = self.span // 4 if self.is_turned else self.span
        total = self.fours * span
        for part in range(-(-total // self.threads)):
            position = build.let(LANE + part * self.threads if part else LANE, f"at_{letter}{part}")
            k, four = self._divided(position, span)
            k, four = build.let(k, f"k_{letter}{part}"), build.let(four, f"four_{letter}{part}")
            names = [f"coming_{letter}{part}_{i}" for i in range(4 if self.is_turned else 1)]
            coming = [build.var(construct(self.kind), name) for name in names]
            guard: list[Expr] = [position < total] if (part + 1) * self.threads > total else []
            self._parts.append(_Part(k, four, self._rows(four), coming, guard))

    def _divided(self, position: Var, span: int) -> tuple[Expr, Expr]:
        """Which k (or four of k) and which four of rows: neighbours read neighbours, and write to other banks.

        What is turned is read along k by 4 or 8 neighbours; of the 8 that write at a time each has banks of its own.
        """
        if self.is_turned:
            along = min(8, span)
            number = position % (along * self.fours)
            own = number % 8 if along == 8 else number // 2 % 4
            four = number // 8 ^ own // 2 if along == 8 else (number // 8 * 2 + number % 2) ^ (own & 2)
            return position // (along * self.fours) * along + own, four
        return (
            (position % span, position // span) if self.is_along_k else (position // self.fours, position % self.fours)
        )

    def _rows(self, four: Var) -> list[Sym]:
        """The rows of a four; past the end the last ones again, whose results nobody stores."""
        build, first = self._build, self.block * self.fours + four
        if self.size % self.extent == 0:
            return [self._at * self.extent + four.within(self.fours) * 4 + i for i in range(4)]
        if self.size % 4 == 0:
            last = build.let(smaller(first, self.size // 4 - 1), build.fresh("four"))
            return [last.within(self.size // 4) * 4 + i for i in range(4)]
        ats = [smaller(first * 4 + i, self.size - 1) for i in range(4)]
        return [build.let(position, build.fresh(self.letter)).within(self.size) for position in ats]

    def fetch(self, block: Sym) -> None:
        """Loads the invocation's part of the tiles of a block of k into registers."""
        build, zeros = self._build, construct(self.kind)
        for part in self._parts:
            ks, inside = self._steps(block, part.k)
            if inside:
                for coming in part.coming:
                    build.assign(coming, zeros)
            with build.if_(*part.guard, *inside):
                if self.is_turned:
                    for coming, row in zip(part.coming, part.rows, strict=True):
                        build.assign(coming, self._four([(row, k) for k in ks]))
                else:
                    build.assign(part.coming[0], self._four([(row, ks[0]) for row in part.rows]))

    def _steps(self, block: Sym, own: Var) -> tuple[list[Sym], list[Expr]]:
        """The steps of k that an invocation loads, and what has to hold for them to be there."""
        each = 4 if self.is_turned else 1
        if self.depth % self.span == 0:
            return [block * self.span + own.within(self.span // each) * each + i for i in range(each)], []
        position = self._build.let(ir.Index(block * (self.span // each)) + own, self._build.fresh("k"))
        return [position.within(self.depth // each) * each + i for i in range(each)], [position < self.depth // each]

    def _four(self, places: Sequence[tuple[Sym, Sym]]) -> Expr:
        """Elements by row (column) and k."""
        ats = [(self.batch, row, k) if self.letter == "m" else (self.batch, k, row) for row, k in places]
        vector = neighbours.value(self._build, self.source, ats)
        return vector if vector.type == self.kind else call(str(self.kind), self.kind, vector)

    def put(self) -> None:
        """Stores what was fetched into the tile."""
        build = self._build
        for part in self._parts:
            with build.if_(*part.guard):
                if not self.is_turned:
                    build.assign(self.place(part.k, part.four), part.coming[0])
                for i in range(4 if self.is_turned else 0):
                    turned = build.let(construct(self.kind, *[coming[i] for coming in part.coming]))
                    build.assign(self._place_of_four(part.k, i, part.four), turned)

    def place(self, k: Expr | int, four: Expr) -> Expr:
        """Where a four of a step of k is in the tile."""
        if isinstance(k, int):
            return self.tile.in_plane(ir.Const(ir.U32, k // self.steps), ir.Const(ir.U32, k % self.steps), four)
        return self.tile.in_plane(k // self.steps, k % self.steps, four)

    def _place_of_four(self, fourth: Var, i: int, four: Expr) -> Expr:
        """The same of step `i` of four that lie together: which in the tile."""
        if self.steps == 4:
            return self.tile.in_plane(fourth, ir.Const(ir.U32, i), four)
        return self.tile.in_plane(fourth // 2, fourth % 2 * 4 + i, four)

    def take(self, plane: Expr, step: Expr) -> list[Var]:
        """The invocation's fours of the tile at a step of k: of which four steps, and which of these."""
        build = self._build
        places = [self.lane + index * self.lanes if index else self.lane for index in range(self.each // 4)]
        return [build.let(self.tile.in_plane(plane, step, place)) for place in places]

    def own_four(self, index: int) -> tuple[list[Sym], list[list[Expr]]]:
        """The rows (columns) of one of the invocation's fours, and for each what has to hold for it to be there."""
        build, four = self._build, self.lane + index * self.lanes if index else self.lane
        if self.size % self.extent == 0:
            first = self._at * self.extent + (self.lane.within(self.lanes) + index * self.lanes) * 4
            return [first + i for i in range(4)], [[]] * 4
        if self.size % 4 == 0:
            place = build.let(self.block * self.fours + four, build.fresh("four"))
            return [place.within(self.size // 4) * 4 + i for i in range(4)], [[place < self.size // 4]] * 4
        ats = [build.let((self.block * self.fours + four) * 4 + i, build.fresh(self.letter)) for i in range(4)]
        return [position.within(self.size) for position in ats], [[position < self.size] for position in ats]

    def any_four(self, number: Expr) -> tuple[list[Sym], list[list[Expr]]]:
        """The same as `own_four` of any of them."""
        build = self._build
        if self.each == 4:
            return self.own_four(0)
        place = build.let(self.block * self.fours + (number * self.lanes + self.lane), build.fresh("four"))
        if self.size % self.extent == 0 or self.size % 4 == 0:
            n = -(-self.size // 4)
            inside: list[Expr] = [place < n] if self.size % self.extent else []
            return [place.within(n) * 4 + i for i in range(4)], [inside] * 4
        ats = [build.let(place * 4 + i, build.fresh(self.letter)) for i in range(4)]
        return [position.within(self.size) for position in ats], [[position < self.size] for position in ats]

    def own(self, i: Expr) -> tuple[Sym, list[Expr]]:
        """The same of any of its rows (columns)."""
        four = self.block * self.fours + (i // 4 * self.lanes + self.lane)
        position = self._build.let(four * 4 + i % 4, self._build.fresh(self.letter))
        return position.within(self.size), [position < self.size] if self.size % self.extent else []
