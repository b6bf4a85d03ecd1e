"""What large blocks of products do with their sums: epilogues, stored four by four. Of sums over k: theirs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pywebgpu.ir.graph import Movement, Reduction
from pywebgpu.kernels import ir, neighbours
from pywebgpu.kernels.builder import Builder, element
from pywebgpu.kernels.intrinsics import rounded
from pywebgpu.kernels.ir import LANE, Expr, Var, construct
from pywebgpu.kernels.template import Computation
from pywebgpu.kernels.templates import matmul_kernel
from pywebgpu.kernels.templates.matmul_blocks import Block
from pywebgpu.kernels.templates.matmul_kernel import FULL, anchor_of
from pywebgpu.kernels.templates.matmul_operands import Side
from pywebgpu.support.symbolic import Sym, flatten

WRITTEN = 256  # results times nodes of an epilogue that are written out one by one
JOINED = 192  # the same where slices join them


class Sums:
    """Sums of an operand's rows (columns) over k, made of its tiles by the first workgroup along the other operand.

    Invocations have a four each, and a share of a tile's steps.
    """

    def __init__(self, side: Side, other: Side, block: Block, build: Builder) -> None:
        self._side, self._build = side, build
        groups = 1 << (min(block.lanes // side.fours, block.depth).bit_length() - 1)
        self._groups, self._steps, self._adding = groups, block.depth // groups, [other.block.eq(0)]
        if groups * side.fours < block.lanes:
            self._adding.append(groups * side.fours > LANE)
        self._group = build.let(LANE // side.fours, f"group_{side.letter}")
        self._four = build.let(LANE % side.fours, f"own_four_{side.letter}")
        self._total = build.var(construct(side.kind), f"sum_{side.letter}")

    def add(self) -> None:
        """What a tile has."""
        build, side = self._build, self._side
        with build.if_(*self._adding):
            for step in range(self._steps):
                build.assign(self._total, side.place(self._group * self._steps + step, self._four), "+=")

    def put(self) -> None:
        """Brings the shares together in the tile, which is free now."""
        with self._build.if_(*self._adding):
            self._build.assign(self._side.place(self._group, self._four), self._total)
        self._build.barrier()

    def store(self, work: Computation) -> None:
        build, side, levels = self._build, self._side, work.domain.levels
        shape = (side.source.spec.shape[0], side.size)
        build.gather([node for node in work.outputs if levels[id(node)] == side.level])
        with build.if_(self._adding[0], side.fours > LANE):
            total = build.var(side.place(0, LANE))
            for group in range(1, self._groups):
                build.assign(total, side.place(group, LANE), "+=")
            store_sums(total, LANE, side, shape, work, build)


class Summed(Protocol):
    """An operand whose rows (columns) are summed: `size` of them, `extent` a workgroup."""

    size: int
    extent: int
    letter: str
    level: str
    batch: Sym
    block: Var


def store_sums(total: Var, four: Expr, side: Summed, shape: Sequence[int], work: Computation, build: Builder) -> None:
    """Stores four sums over k, of the so-manieth four of a workgroup's rows (columns)."""
    levels = work.domain.levels
    with build.loop("at", 0, 4) as component:
        own = build.let(side.block * side.extent + (four * 4 + component), side.letter)
        with build.if_(*[own < side.size] if side.size % side.extent else ()):
            position = flatten((side.batch, own.within(side.size)), shape)
            for node in work.nodes:
                if levels[id(node)] == side.level and isinstance(node.op, Reduction):
                    build.define(node, position, build.let(rounded(total[component], node.spec.dtype)))
            matmul_kernel.store_level(side.level, position, work, build)


def join_slices(
    left: Side,
    right: Side,
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
    shared = build.workgroup_array("slices", results[0].type, block.of_slice, slices, block.meeting)
    totals: list[Var] = []
    for first, result in enumerate(results):
        owner = first % block.meeting
        if first and not owner:
            build.barrier()
        build.assign(shared.in_plane(ir.Const(ir.U32, owner), mine, own), result)
        if owner < block.meeting - 1:
            continue
        build.barrier()
        if first % slices < block.meeting:
            totals.append(build.var(construct(result.type), build.fresh("total")))
        turn = first % slices // block.meeting
        with build.if_(*[(mine // block.meeting).eq(turn)] if slices > block.meeting else ()):
            for other in range(slices):
                build.assign(totals[-1], shared.in_plane(mine % block.meeting, ir.Const(ir.U32, other), own), "+=")
    levels = work.domain.levels
    computed = [node for node in work.nodes if levels[id(node)] == FULL and not isinstance(node.op, Movement)]
    if len(computed) * 4 * len(totals) > JOINED:
        many = build.local_array("totals", totals)
        with build.loop("at", 0, len(totals)) as each:
            number = build.let(mine + each * slices, "number")
            _store_any(left, right, number, wide, build.let(many[each]), place, work, build)
        return
    for owner, total in enumerate(totals):  # No barrier comes between these: what an epilogue loads is waited for once.
        number = build.let(mine + owner * slices if owner else mine, build.fresh("number"))
        _store_any(left, right, number, wide, total, place, work, build)


def _store_any(
    left: Side,
    right: Side,
    number: Var,
    wide: int,
    result: Var,
    place: Sequence[Sym],
    work: Computation,
    build: Builder,
) -> None:
    """Stores a four of an invocation's through the epilogue, whichever it is."""
    _store_four(result, left.own(number // wide), right.any_four(number % wide), place, work, build)


def _store_four(
    result: Var,
    own: tuple[Sym, Sequence[Expr]],
    four: tuple[Sequence[Sym], Sequence[Sequence[Expr]]],
    place: Sequence[Sym],
    work: Computation,
    build: Builder,
) -> None:
    """own: a row, and what must hold for it to be there. four: columns, and what must hold for each."""
    (row, row_is_there), (columns, there) = own, four
    if there[0] is there[3]:  # All of a four are there, or none is: one store.
        with build.if_(*row_is_there, *there[0]):
            store([result[component] for component in range(4)], row, columns, place, work, build)
        return
    for component, (column, is_there) in enumerate(zip(columns, there, strict=True)):
        with build.if_(*row_is_there, *is_there):
            store([result[component]], row, [column], place, work, build)


def finish(
    left: Side, right: Side, results: Sequence[Var], place: Sequence[Sym], work: Computation, build: Builder
) -> None:
    """Stores an invocation's results through the epilogue, four by four: written out where it is short."""
    levels, wide = work.domain.levels, right.each
    build.gather([node for node in work.outputs if levels[id(node)] == FULL])
    computed = [node for node in work.nodes if levels[id(node)] == FULL and not isinstance(node.op, Movement)]
    if len(computed) * left.each * wide <= WRITTEN:
        columns = [right.own_four(index) for index in range(wide // 4)]
        for vector_index in range(left.each // 4):
            for i, own_row in enumerate(zip(*left.own_four(vector_index), strict=True)):
                for j, four in enumerate(columns):
                    result = results[(vector_index * 4 + i) * (wide // 4) + j]
                    _store_four(result, own_row, four, place, work, build)
        return
    many = build.local_array("results", results)
    with build.loop("at", 0, len(results)) as own:
        _store_any(left, right, own, wide // 4, build.let(many[own]), place, work, build)


def store(
    elements: Sequence[Expr],
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
    for position, value in zip(positions, elements, strict=True):
        result = matmul_kernel.as_result(value, anchor, work, build)
        build.define(anchor, position, result if result is value else build.let(result))
    nodes = [node for node in work.nodes if work.domain.levels[id(node)] == FULL]
    # After every load, as in `store_level`.
    values = {
        id(node): neighbours.value(build, node, [element(position, node) for position in positions]) for node in nodes
    }
    for node in [node for node in work.outputs if id(node) in values]:
        vector = values[id(node)]
        for number, position in enumerate(positions):
            build.store(node, position, vector[number] if vector.type.width > 1 else vector)
