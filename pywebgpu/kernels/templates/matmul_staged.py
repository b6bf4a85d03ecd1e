"""Batched matrix product by large blocks, for GPUs: the next tiles are loaded while the present ones are multiplied.

Each invocation keeps up to 16 x 8 results in registers, in fours of columns. Tiles of both operands lie in workgroup
memory as [k][fours of rows or columns], whatever way the operands lie, so that a step of k reads whole vectors; what is
contiguous in k has its rows set apart by one vector, so that invocations that write neighbours do not wait for one
another. Four or eight steps of k lie together: an index of its own for which of these and for the vector leaves bounds
checks that do not depend on k, and drivers move them out. Where a result fills too few workgroups to keep a device's
cores busy, invocations share its k in slices. Neighbouring invocations are 8 x 4 of a block, as far as it goes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Protocol

from pywebgpu.ir.graph import Movement, Node, Reduction
from pywebgpu.kernels import ir, neighbours
from pywebgpu.kernels.builder import Builder, element
from pywebgpu.kernels.intrinsics import rounded
from pywebgpu.kernels.ir import GROUP, LANE, Expr, Operand, Type, Var, call, construct, scalar, smaller
from pywebgpu.kernels.kernel import Kernel
from pywebgpu.kernels.launch import Launch
from pywebgpu.kernels.template import Computation
from pywebgpu.kernels.templates import matmul_kernel
from pywebgpu.kernels.templates.matmul_blocks import WAY, Block
from pywebgpu.kernels.templates.matmul_kernel import FULL, LEFT, RIGHT, anchor_of, is_contiguous_in_k
from pywebgpu.symbolic import ZERO, Sym, flatten

PART = "part"  # the end of the name of a kernel whose results are parts of a product's
WRITTEN = 256  # results times nodes of an epilogue that are written out one by one


def write(work: Computation, launch: Launch, build: Builder) -> Kernel:
    nodes, levels = work.nodes, work.domain.levels
    anchor = anchor_of(nodes)
    (*parts, batches, m, n), depth = anchor.spec.shape, anchor.inputs[0].spec.shape[2]
    block, kind = Block.of(launch), scalar(anchor.spec.dtype)
    down, across = -(-m // block.rows), -(-n // block.columns)
    steps = Steps(-(-depth // block.depth), anchor.attrs["span"] // block.depth if parts else 0)
    whole = build.let(GROUP // (across * down), "batch")
    batch = build.let(whole % batches, "own_batch").within(batches) if parts else whole.within(batches)
    place = (build.let(whole // batches, "part").within(parts[0]), batch) if parts else (batch,)
    own: Var = build.let(LANE % block.of_slice, "own_of_slice") if block.slices > 1 else LANE
    mine = build.let(LANE // block.of_slice, "slice") if block.slices > 1 else None
    y, x = _own_place(own, block, build)
    summed = {level for level in levels.values() if level != FULL}
    left = _Side(anchor.inputs[0], "m", m, (block.rows, block.high), GROUP // across % down, y, batch, block, build)
    right = _Side(anchor.inputs[1], "n", n, (block.columns, block.wide), GROUP % across, x, batch, block, build)
    for side in (left, right):
        side.prepare(is_summed=side.level in summed)
    results = [build.var(construct(_four(kind)), f"r{at}") for at in range(block.high * block.wide // 4)]
    if depth:
        multiply((left, right), steps, place[0], lambda: _step(left, right, results, block, build), build)
    for side in (left, right):
        side.gather_sums()
        if mine is not None and side.loaded is None:
            for total in side.sums:
                build.assign(total, _joined([total], ir.Const(ir.U32, 0), mine, own, block, build))
                build.barrier()
    if mine is not None:
        _join_slices(left, right, results, place, (mine, own), block, work, build)
    else:
        _finish(left, right, results, place, work, build)
    for side, other in ((left, right), (right, left)):
        if side.sums:
            side.finish_sums(other, work, *[mine.eq(0)] if mine is not None else ())
    ways = [WAY, *["sum"] * len(summed), *[PART] * len(parts)]
    name = "_".join(["matmul", f"{block.rows}x{block.columns}", *ways])
    return build.kernel(name, block.lanes, prod((*parts, batches)) * across * down, vector=4)


def _own_place(own: Var, block: Block, build: Builder) -> tuple[Var, Var]:
    """Row and column of an invocation among those of its slice: 32 neighbours are 4 x 8, or 8 x 4, where that fits."""
    columns = next((n for n in (8, 4) if block.across % n == 0 and block.down % (32 // n) == 0), 0)
    if not columns:
        return build.let(own // block.across, "y"), build.let(own % block.across, "x")
    inner, outer, wide = build.let(own % 32, "inner"), build.let(own // 32, "outer"), block.across // columns
    y = build.let(outer // wide * (32 // columns) + inner // columns, "y")
    return y, build.let(outer % wide * columns + inner % columns, "x")


def _four(kind: Type) -> Type:
    return Type(kind.kind, 4)


@dataclass(frozen=True, slots=True)
class Steps:
    """How many blocks of k there are, and how many of them are of a part; 0: there are no parts."""

    count: int
    each: int


@dataclass(frozen=True, slots=True)
class _Part:
    """What an invocation loads of a tile at a time: a step of k, or four, of four rows (columns)."""

    k: Var
    four: Var
    rows: list[Sym]
    coming: list[Var]
    guard: list[Expr]


class _Side:
    """An operand: `size` rows (columns), `extent` of them a workgroup, `each` an invocation, in fours.

    block: the how-manieth workgroup along it.  lane: the invocation's place among the `lanes` along it.
    sums: over k, where somebody wants them.
    """

    def __init__(
        self,
        source: Node,
        letter: str,
        size: int,
        extents: tuple[int, int],
        at: Expr,
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
        self.fours, self.threads, self.loaders = self.extent // 4, block.lanes, block.lanes
        self.block = build.let(at, f"block_{letter}")
        self.lane, self.lanes = lane, self.extent // self.each
        self.kind = _four(scalar(source.spec.dtype))
        pitch = self.fours + self.is_along_k
        self.tile = build.workgroup_array(f"tile_{letter}", self.kind, pitch, block.steps, block.depth // block.steps)
        self.steps = block.steps
        self.sums: list[Var] = []
        self.loaded: Var | None = None
        self._parts: list[_Part] = []

    @property
    def _at(self) -> Sym:
        return self.block.within(-(-self.size // self.extent))

    def prepare(self, *, is_summed: bool) -> None:
        """What each invocation loads of a tile: which k, which four, and where its rows are."""
        build, letter = self._build, self.letter
        span = self.span // 4 if self.is_turned else self.span
        total = self.fours * span
        if is_summed and not self.is_along_k and self.fours < self.threads:
            self.loaders = min(self.threads // self.fours * self.fours, total)  # Who loads has one four.
        for part in range(-(-total // self.loaders)):
            at = build.let(LANE + part * self.loaders if part else LANE, f"at_{letter}{part}")
            k, four = self._divided(at, span)
            k, four = build.let(k, f"k_{letter}{part}"), build.let(four, f"four_{letter}{part}")
            names = [f"coming_{letter}{part}_{i}" for i in range(4 if self.is_turned else 1)]
            coming = [build.var(construct(self.kind), name) for name in names]
            guard: list[Expr] = [self.loaders > LANE] if self.loaders < self.threads else []
            guard += [at < total] if (part + 1) * self.loaders > total else []
            self._parts.append(_Part(k, four, self._rows(four), coming, guard))
        if is_summed and self._loads_one_four(total):
            self.loaded = build.var(construct(self.kind), f"loaded_{letter}")
        elif is_summed:
            self.sums = [build.var(construct(self.kind), f"sum_{letter}{at}") for at in range(self.each // 4)]

    def _loads_one_four(self, total: int) -> bool:
        """Whether all that an invocation loads is of the same four rows (columns)."""
        if self.is_along_k:
            along = min(8, self.span // 4) if self.is_turned else self.threads + 1
            return total % self.threads == 0 and self.threads % (self.fours * along) == 0
        return self.loaders % self.fours == 0

    def gather_sums(self) -> None:
        """Adds up what was loaded of the invocation's fours, through the tile, which is free now."""
        if self.loaded is None:
            return
        build, part = self._build, self._parts[0]
        with build.if_(*[self.loaders > LANE] if self.loaders < self.threads else ()):
            build.assign(self._place(part.k, part.four), self.loaded)
        build.barrier()
        for at in range(self.each // 4):
            total = build.var(construct(self.kind), f"sum_{self.letter}{at}")
            place = self.lane + at * self.lanes if at else self.lane
            for row in range(self.loaders // self.fours):
                build.assign(total, self._place(row, place), "+=")
            self.sums.append(total)

    def _divided(self, at: Var, span: int) -> tuple[Expr, Expr]:
        """Which k (or four of k) and which four of rows: neighbours read neighbours, and write to other banks.

        What is turned is read along k by 4 or 8 neighbours; of the 8 that write at a time each has banks of its own.
        """
        if self.is_turned:
            along = min(8, span)
            number = at % (along * self.fours)
            own = number % 8 if along == 8 else number // 2 % 4
            four = number // 8 ^ own // 2 if along == 8 else (number // 8 * 2 + number % 2) ^ (own & 2)
            return at // (along * self.fours) * along + own, four
        return (at % span, at // span) if self.is_along_k else (at // self.fours, at % self.fours)

    def _rows(self, four: Var) -> list[Sym]:
        """The rows of a four; past the end the last ones again, whose results nobody stores."""
        build, first = self._build, self.block * self.fours + four
        if self.size % self.extent == 0:
            return [self._at * self.extent + four.within(self.fours) * 4 + i for i in range(4)]
        if self.size % 4 == 0:
            last = build.let(smaller(first, self.size // 4 - 1), build.fresh("four"))
            return [last.within(self.size // 4) * 4 + i for i in range(4)]
        ats = [smaller(first * 4 + i, self.size - 1) for i in range(4)]
        return [build.let(at, build.fresh(self.letter)).within(self.size) for at in ats]

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
        at = self._build.let(ir.Index(block * (self.span // each)) + own, self._build.fresh("k"))
        return [at.within(self.depth // each) * each + i for i in range(each)], [at < self.depth // each]

    def _four(self, places: Sequence[tuple[Sym, Sym]]) -> Expr:
        """Elements by row (column) and k."""
        ats = [(self.batch, row, k) if self.letter == "m" else (self.batch, k, row) for row, k in places]
        found = neighbours.value(self._build, self.source, ats)
        return found if found.type == self.kind else call(str(self.kind), self.kind, found)

    def put(self) -> None:
        """Stores what was fetched into the tile."""
        build = self._build
        for part in self._parts:
            with build.if_(*part.guard):
                if not self.is_turned:
                    build.assign(self._place(part.k, part.four), part.coming[0])
                    self._add(part.coming[0])
                for i in range(4 if self.is_turned else 0):
                    turned = build.let(construct(self.kind, *[coming[i] for coming in part.coming]))
                    build.assign(self._place_of_four(part.k, i, part.four), turned)
                    self._add(turned)

    def _place(self, k: Expr | int, four: Expr) -> Expr:
        """Where a four of a step of k is in the tile."""
        if isinstance(k, int):
            return self.tile.in_plane(ir.Const(ir.U32, k // self.steps), ir.Const(ir.U32, k % self.steps), four)
        return self.tile.in_plane(k // self.steps, k % self.steps, four)

    def _place_of_four(self, fourth: Var, i: int, four: Expr) -> Expr:
        """The same of step `i` of four that lie together: which in the tile."""
        if self.steps == 4:
            return self.tile.in_plane(fourth, ir.Const(ir.U32, i), four)
        return self.tile.in_plane(fourth // 2, fourth % 2 * 4 + i, four)

    def _add(self, four: Expr) -> None:
        if self.loaded is not None:
            self._build.assign(self.loaded, four, "+=")

    def take(self, plane: Expr, step: int) -> list[Var]:
        """The invocation's fours of the tile at a step of k: of which four steps, and which of these."""
        build = self._build
        places = [self.lane + at * self.lanes if at else self.lane for at in range(self.each // 4)]
        found = [build.let(self.tile.in_plane(plane, ir.Const(ir.U32, step), place)) for place in places]
        for total, four in zip(self.sums, found, strict=False):
            build.assign(total, four, "+=")
        return found

    def own_four(self, at: int) -> tuple[list[Sym], list[list[Expr]]]:
        """The rows (columns) of one of the invocation's fours, and for each what has to hold for it to be there."""
        build, four = self._build, self.lane + at * self.lanes if at else self.lane
        if self.size % self.extent == 0:
            first = self._at * self.extent + (self.lane.within(self.lanes) + at * self.lanes) * 4
            return [first + i for i in range(4)], [[]] * 4
        if self.size % 4 == 0:
            place = build.let(self.block * self.fours + four, build.fresh("four"))
            return [place.within(self.size // 4) * 4 + i for i in range(4)], [[place < self.size // 4]] * 4
        ats = [build.let((self.block * self.fours + four) * 4 + i, build.fresh(self.letter)) for i in range(4)]
        return [at.within(self.size) for at in ats], [[at < self.size] for at in ats]

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
        return [at.within(self.size) for at in ats], [[at < self.size] for at in ats]

    def own(self, i: Expr) -> tuple[Sym, list[Expr]]:
        """The same of any of its rows (columns)."""
        four = self.block * self.fours + (i // 4 * self.lanes + self.lane)
        at = self._build.let(four * 4 + i % 4, self._build.fresh(self.letter))
        return at.within(self.size), [at < self.size] if self.size % self.extent else []

    def finish_sums(self, other: _Side, work: Computation, *chosen: Expr) -> None:
        """Stores the sums over k: those do it who have the first column (row) of the result."""
        build, nodes, levels = self._build, work.nodes, work.domain.levels
        shape = (self.source.spec.shape[0], self.size)
        many = build.local_array(f"sums_{self.letter}", self.sums)
        build.gather([node for node in work.outputs if levels[id(node)] == self.level])
        with build.if_(other.block.eq(0), other.lane.eq(0), *chosen), build.loop("at", 0, self.each) as at:
            own, inside = self.own(at)
            with build.if_(*inside):
                position = flatten((self.batch, own), shape)
                for node in nodes:
                    if levels[id(node)] == self.level and isinstance(node.op, Reduction):
                        build.define(node, position, build.let(rounded(many[at // 4][at % 4], node.spec.dtype)))
                matmul_kernel.store_level(self.level, position, work, build)


class Tiled(Protocol):
    """An operand whose tiles go through workgroup memory."""

    def fetch(self, block: Sym) -> None:
        """Loads the invocation's part of the tile of a block of k into registers."""

    def put(self) -> None:
        """Stores what was fetched into the tile."""


def multiply(sides: Sequence[Tiled], steps: Steps, part: Sym, step: Callable[[], None], build: Builder) -> None:
    """Goes along k, or the part of it: `step` multiplies the tiles, while the next ones are on their way."""
    count = steps.count
    first: Operand = 0
    last: Operand = count
    if steps.each:
        first = build.let(ir.Index(part * steps.each), "first")
        last = build.let(smaller(first + steps.each, count), "last")
    for side in sides:
        side.fetch(first.within(count) if isinstance(first, Var) else ZERO)
    with build.loop("at", first, last) as at:
        for side in sides:
            side.put()
        build.barrier()
        if count > 1:
            following = build.let(at + 1, "following")
            with build.if_(following < last):
                for side in sides:
                    side.fetch(following.within(count))
        step()
        build.barrier()


def _step(left: _Side, right: _Side, results: Sequence[Var], block: Block, build: Builder) -> None:
    """Multiplies the tiles: of the steps of k those of the invocation's slice."""
    planes = block.depth // block.steps // block.slices
    first = build.let(LANE // block.of_slice * planes, build.fresh("first_plane")) if block.slices > 1 else None

    def multiply_plane(plane: Expr) -> None:
        for step in range(block.steps):
            with build.scope():
                a, b = left.take(plane, step), right.take(plane, step)
                for number, result in enumerate(results):
                    i, j = divmod(number, len(b))
                    one = call(str(result.type), result.type, a[i // 4][i % 4])
                    build.assign(result, call("fma", result.type, one, b[j], result))

    if build.limits.unrolls and planes > 1:
        with build.loop("plane", 0, planes) as plane:
            multiply_plane(plane if first is None else first + plane)
        return
    for at in range(planes):
        multiply_plane(ir.Const(ir.U32, at) if first is None else first + at if at else first)


def _join_slices(
    left: _Side,
    right: _Side,
    results: Sequence[Var],
    place: Sequence[Sym],
    lane: tuple[Var, Var],
    block: Block,
    work: Computation,
    build: Builder,
) -> None:
    """Adds what the slices have found, and stores it: each slice one of as many fours at a time. lane: slice, place."""
    (mine, own), slices, wide = lane, block.slices, right.each // 4
    build.gather([node for node in work.outputs if work.domain.levels[id(node)] == FULL])
    totals: list[Var] = []
    for first in range(0, len(results), slices):
        if first:
            build.barrier()
        totals.append(build.let(_joined(results[first : first + slices], mine, mine, own, block, build)))
    for at, total in enumerate(totals):  # No barrier comes between these: what an epilogue loads is waited for once.
        number = build.let(mine + at * slices if at else mine, build.fresh("number"))
        _store_any(left, right, number, wide, total, place, work, build)


def _joined(given: Sequence[Var], which: Expr, mine: Var, own: Var, block: Block, build: Builder) -> Expr:
    """The sum of one of some values over the slices, in their order."""
    shared = build.workgroup_array("slices", given[0].type, block.of_slice, block.slices, block.slices)
    for at, one in enumerate(given):
        build.assign(shared.in_plane(ir.Const(ir.U32, at), mine, own), one)
    build.barrier()
    total: Expr = build.let(shared.in_plane(which, ir.Const(ir.U32, 0), own))
    for at in range(1, block.slices):
        total = build.let(total + shared.in_plane(which, ir.Const(ir.U32, at), own))
    return total


def _store_any(
    left: _Side,
    right: _Side,
    number: Var,
    wide: int,
    found: Var,
    place: Sequence[Sym],
    work: Computation,
    build: Builder,
) -> None:
    """Stores a four of an invocation's through the epilogue, whichever it is."""
    row, row_is_there = left.own(number // wide)
    fours, there = right.any_four(number % wide)
    if there[0] is there[3]:
        with build.if_(*row_is_there, *there[0]):
            store([found[at] for at in range(4)], row, fours, place, work, build)
        return
    for at, (column, is_there) in enumerate(zip(fours, there, strict=True)):
        with build.if_(*row_is_there, *is_there):
            store([found[at]], row, [column], place, work, build)


def _finish(
    left: _Side, right: _Side, results: Sequence[Var], place: Sequence[Sym], work: Computation, build: Builder
) -> None:
    """Stores an invocation's results through the epilogue, four by four: written out where it is short."""
    levels, wide = work.domain.levels, right.each
    build.gather([node for node in work.outputs if levels[id(node)] == FULL])
    computed = [node for node in work.nodes if levels[id(node)] == FULL and not isinstance(node.op, Movement)]
    if len(computed) * left.each * wide <= WRITTEN:
        columns = [right.own_four(at) for at in range(wide // 4)]
        for at in range(left.each // 4):
            for i, (row, row_is_there) in enumerate(zip(*left.own_four(at), strict=True)):
                for j, (fours, there) in enumerate(columns):
                    found = results[(at * 4 + i) * (wide // 4) + j]
                    if there[0] is there[3]:  # All of a four are there, or none is: one store.
                        with build.if_(*row_is_there, *there[0]):
                            store([found[at] for at in range(4)], row, fours, place, work, build)
                        continue
                    for at_column, (column, is_there) in enumerate(zip(fours, there, strict=True)):
                        with build.if_(*row_is_there, *is_there):
                            store([found[at_column]], row, [column], place, work, build)
        return
    many = build.local_array("results", results)
    with build.loop("at", 0, len(results)) as own:
        _store_any(left, right, own, wide // 4, build.let(many[own]), place, work, build)


def store(
    found: Sequence[Expr],
    row: Sym,
    columns: Sequence[Sym],
    place: Sequence[Sym],
    work: Computation,
    build: Builder,
) -> None:
    """place: the result's coordinates before row and column: the part, where there are some, and the batch."""
    anchor = anchor_of(work.nodes)
    positions = [flatten((*place, row, column), anchor.spec.shape) for column in columns]
    positions = [matmul_kernel.known_by_all(position, work, build) for position in positions]
    for position, one in zip(positions, found, strict=True):
        result = matmul_kernel.as_result(one, anchor, work, build)
        build.define(anchor, position, result if result is one else build.let(result))
    nodes = [node for node in work.nodes if work.domain.levels[id(node)] == FULL]
    # After every load, as in `store_level`.
    values = {id(node): neighbours.value(build, node, [element(at, node) for at in positions]) for node in nodes}
    for node in [node for node in work.outputs if id(node) in values]:
        whole = values[id(node)]
        for number, position in enumerate(positions):
            build.store(node, position, whole[number] if whole.type.width > 1 else whole)
