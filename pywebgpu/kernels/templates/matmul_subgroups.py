"""Batched product of float16 on subgroup matrices: a subgroup multiplies 16 x 16 by 16 x 16 as one, in float32.

Tiles of both operands lie in workgroup memory in the order of their own memory, eight numbers a vector, so nothing is
turned on the way: what is transposed is loaded by columns. Rows are set apart by one vector. The next tiles are loaded
while the present ones are multiplied. Results pass through workgroup memory to the invocations that store them.
Tried and slower: two tiles in turn, results of more than 4 x 4 matrices a subgroup, loads straight from memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import prod

from pywebgpu.ir.graph import Node
from pywebgpu.kernels import ir
from pywebgpu.kernels.access import below
from pywebgpu.kernels.builder import Builder
from pywebgpu.kernels.ir import GROUP, LANE, Expr, Type, Var, call, construct, smaller, unknown
from pywebgpu.kernels.kernel import Kernel
from pywebgpu.kernels.launch import SUBGROUP, Launch
from pywebgpu.kernels.template import Computation
from pywebgpu.kernels.templates import matmul_results, matmul_staged
from pywebgpu.kernels.templates.matmul_blocks import is_aligned
from pywebgpu.kernels.templates.matmul_kernel import FULL, LEFT, RIGHT, anchor_of, is_contiguous_in_k
from pywebgpu.kernels.templates.matmul_staged import Steps
from pywebgpu.ops import movement
from pywebgpu.support import formats
from pywebgpu.support.symbolic import Sym

SIDE = 16  # of a matrix
EIGHT = Type("u32", 4)  # eight numbers of two bytes
_TWO, _FOUR = Type("f32", 2), Type("f32", 4)


@dataclass(frozen=True, slots=True)
class Block:
    """A workgroup's part of the result: rows x columns, `high` x `wide` matrices a subgroup, `depth` of k at a time.

    lanes: of a subgroup.  parts: how many workgroups share k.
    """

    rows: int
    columns: int
    depth: int
    high: int
    wide: int
    lanes: int
    parts: int = 1

    @property
    def across(self) -> int:
        return self.columns // (SIDE * self.wide)

    @property
    def subgroups(self) -> int:
        return self.rows // (SIDE * self.high) * self.across

    @property
    def threads(self) -> int:
        return self.lanes * self.subgroups

    @property
    def launch(self) -> Launch:
        return Launch(SUBGROUP, self.threads, (self.rows, self.columns, self.depth), (self.high, self.wide), self.parts)

    @staticmethod
    def of(launch: Launch) -> Block:
        (rows, columns, depth), (high, wide) = launch.tile, launch.each
        subgroups = rows // (SIDE * high) * (columns // (SIDE * wide))
        return Block(rows, columns, depth, high, wide, launch.threads // subgroups, launch.split)

    def at_once(self, room: int) -> int:
        """How many neighbouring matrices of each subgroup fit, as results, into `room` vectors."""
        fitting = [n for n in range(1, self.wide + 1) if self.wide % n == 0 and self.subgroups * SIDE * 4 * n <= room]
        return max(fitting)

    def shared_bytes(self, layout: str) -> int:
        """Of workgroup memory, for operands that lie so (see MatmulTemplate).

        Results take that of a tile: with memory of their own, a core of an H200 runs one workgroup instead of two.
        """
        tiles = [
            outer * (inner // 8 + 1)
            for outer, inner in (
                (self.rows, self.depth) if layout[0] == "n" else (self.depth, self.rows),
                (self.columns, self.depth) if layout[1] == "t" else (self.depth, self.columns),
            )
        ]
        return 16 * sum(tiles)


def write(work: Computation, launch: Launch, build: Builder) -> Kernel:
    anchor = anchor_of(work.nodes)
    (*parts, batches, m, n), depth = anchor.spec.shape, anchor.inputs[0].spec.shape[2]
    block = Block.of(launch)
    down, across = -(-m // block.rows), -(-n // block.columns)
    steps = Steps(-(-depth // block.depth), anchor.attrs["span"] // block.depth if parts else 0, block.depth)
    batch_and_part = build.let(GROUP // (across * down), "batch")
    batch = (
        build.let(batch_and_part % batches, "own_batch").within(batches) if parts else batch_and_part.within(batches)
    )
    place = (build.let(batch_and_part // batches, "part").within(parts[0]), batch) if parts else (batch,)
    subgroup = build.let(LANE // block.lanes, "subgroup")
    left = _Side(anchor.inputs[0], "m", (m, block.rows), GROUP // across % down, batch, block, build)
    right = _Side(anchor.inputs[1], "n", (n, block.columns), GROUP % across, batch, block, build)
    y, x = build.let(subgroup // block.across, "y"), build.let(subgroup % block.across, "x")
    sums = [[build.var(_matrix("result"), f"r{i}_{j}") for j in range(block.wide)] for i in range(block.high)]
    levels = set(work.domain.levels.values())
    totals = [_Sums(*pair, block, build) for pair in ((left, right), (right, left)) if pair[0].level in levels]
    if depth:
        step = partial(_step, left, right, (y, x), sums, block, build)
        matmul_staged.multiply((left, right), totals, steps, place[0], step, build)
    for side_sums in totals:
        side_sums.store(work)
    _Results(left, right, (y, x), subgroup, place, block, work, build).store(sums)
    ways = [SUBGROUP, *["sum"] * len(totals), *[matmul_staged.PART] * len(parts)]
    name = "_".join(["matmul", f"{block.rows}x{block.columns}", *ways])
    return build.kernel(name, block.threads, prod((*parts, batches)) * across * down, vector=4)


def _matrix(role: str) -> Type:
    kind = "f32" if role == "result" else "f16"
    return Type(f"subgroup_matrix_{role}<{kind}, {SIDE}, {SIDE}>")


class _Side:
    """An operand: `size` rows (columns), `extent` of them a workgroup; its tile is as it lies in memory."""

    def __init__(
        self, source: Node, letter: str, sizes: tuple[int, int], number: Expr, batch: Sym, block: Block, build: Builder
    ) -> None:
        self.letter, self.batch, self._build = letter, batch, build
        self.size, self.extent = sizes
        self.level = LEFT if letter == "m" else RIGHT
        self.depth, self.span = source.spec.shape[2 if letter == "m" else 1], block.depth
        self.is_along_k = is_contiguous_in_k(source, letter)
        self.source, self.room = _with_room(source, 2 if self.is_along_k == (letter == "m") else 1)
        outer, inner = (self.extent, self.span) if self.is_along_k else (self.span, self.extent)
        self.eights = inner // 8
        self.pitch = self.eights + 1
        self.block = build.let(number, f"block_{letter}")
        self.tile = build.workgroup_array(f"tile_{letter}", EIGHT, outer * self.pitch)
        self._parts: list[tuple[Var, Var, Var, list[Expr]]] = []
        total = outer * self.eights
        for part in range(-(-total // block.threads)):
            at_part = build.let(LANE + part * block.threads if part else LANE, f"at_{letter}{part}")
            row = build.let(at_part // self.eights, f"row_{letter}{part}")
            if self.eights == 4:  # Four neighbours read a row; the next four one that lies in other banks.
                row = build.let(row // 8 * 8 + (row & 1) * 4 + row // 2 % 4, f"other_{letter}{part}")
            eight = build.let(at_part % self.eights, f"eight_{letter}{part}")
            guard: list[Expr] = [at_part < total] if (part + 1) * block.threads > total else []
            self._parts.append((row, eight, build.var(construct(EIGHT), f"coming_{letter}{part}"), guard))

    def fetch(self, block: Sym) -> None:
        """Loads the invocation's part of the tile of a block of k into registers."""
        build = self._build
        for row, eight, coming, guard in self._parts:
            if self.is_along_k:
                rows, steps = [self._row(row)] * 8, self._eight(block, eight, self.room, self.span)
            else:
                first = self.block.within(-(-self.size // self.extent))
                rows, steps = (
                    [position for position, _ in self._eight(first, eight, self.room, self.extent)],
                    [self._k(block, row)] * 8,
                )
            ks, inside = [k for k, _ in steps], [conditions for _, conditions in steps]
            same = all(guard is inside[0] for guard in inside)
            if same and inside[0]:
                build.assign(coming, construct(EIGHT))
            with build.if_(*guard, *(inside[0] if same else ())):
                words = [
                    self._word(list(zip(rows, ks, inside, strict=True))[start : start + 2], same)
                    for start in (0, 2, 4, 6)
                ]
                build.assign(coming, build.let(construct(EIGHT, *words)))

    def put(self) -> None:
        """Stores what was fetched into the tile."""
        for row, eight, coming, guard in self._parts:
            with self._build.if_(*guard):
                self._build.assign(self.tile[row * self.pitch + eight], coming)

    def _row(self, row: Var) -> Sym:
        """Past the end the last one again, whose results nobody stores."""
        block = self.block.within(-(-self.size // self.extent))
        if self.size % self.extent == 0:
            return block * self.extent + row.within(self.extent)
        position = smaller(self.block * self.extent + row, self.size - 1)
        return self._build.let(position, self._build.fresh(self.letter)).within(self.size)

    def _k(self, block: Sym, row: Var) -> tuple[Sym, list[Expr]]:
        if self.depth % self.span == 0:
            return block * self.span + row.within(self.span), []
        k = self._build.let(ir.Index(block * self.span) + row, self._build.fresh("k"))
        return k.within(self.depth), [k < self.depth]

    def _eight(self, block: Sym, eight: Var, size: int, span: int) -> list[tuple[Sym, list[Expr]]]:
        """Eight neighbours along an axis, each with what has to hold for it to be there."""
        build = self._build
        if size % span == 0:
            return [(block * span + eight.within(span // 8) * 8 + i, _ALWAYS) for i in range(8)]
        first = build.let(ir.Index(block * (span // 8)) + eight, build.fresh("eight"))
        if size % 8 == 0:
            there: list[Expr] = [first < size // 8]
            last = build.let(smaller(first, size // 8 - 1), build.fresh("eight")).within(size // 8)
            return [(last * 8 + i, there) for i in range(8)]
        ats = [build.let(first * 8 + i, build.fresh("at")) for i in range(8)]
        lasts = [build.let(smaller(position, size - 1), build.fresh("at")).within(size) for position in ats]
        return [(last, [position < size]) for last, position in zip(lasts, ats, strict=True)]

    def _word(self, pair: list[tuple[Sym, Sym, list[Expr]]], is_there: bool) -> Expr:
        """Two neighbours: the word that has them, where there is one, else made of both."""
        build = self._build
        ats = [(self.batch, row, k) if self.letter == "m" else (self.batch, k, row) for row, k, _ in pair]
        word = build.word(self.source, ats) if is_there else None
        if word is not None:
            return word
        low, high = [
            self._half(place, [] if is_there else there) for place, (_, _, there) in zip(ats, pair, strict=True)
        ]
        return ir.Call(_PAIR, ir.U32, low, high)

    def _half(self, place: tuple[Sym, Sym, Sym], there: list[Expr]) -> Expr:
        bits = ir.Call(ir.template(formats.F16.pack), ir.U32, self._build.value(self.source, place))
        return self._build.let(ir.select(0, bits, there[0]) if there else bits)

    def load(self, y: Var, step: int, count: int, build: Builder) -> list[Var]:
        """The subgroup's matrices of a step of k. y: which of the subgroups along this side it is."""
        role, eights = ("left" if self.letter == "m" else "right"), SIDE // 8
        is_rows = self.is_along_k == (self.letter == "m")
        name = f"subgroupMatrixLoad<{_matrix(role)}, {'row' if is_rows else 'col'}_major>"
        tile = Var(EIGHT, f"&{self.tile.name}")
        matrices = []
        for index in range(count):
            if self.is_along_k:
                where = (y * (count * SIDE) + index * SIDE) * self.pitch + step // 8
            else:
                where = y * (count * eights) + (index * eights + step * self.pitch)
            matrices.append(build.let(call(name, _matrix(role), tile, where, ir.Const(ir.U32, self.pitch))))
        return matrices


def _with_room(source: Node, axis: int) -> tuple[Node, int]:
    """An operand without the slice that hides the zeros behind its rows, and how long they are with them."""
    if source.op is movement.slice_ and source.buffer is None and is_aligned(below(source)):
        return source.inputs[0], source.inputs[0].spec.shape[axis]
    return source, source.spec.shape[axis]


_ALWAYS: list[Expr] = []
_PAIR = ir.template("({0} | ({1} << 16u))")
_FLOAT = ir.template("bitcast<f32>({0})")


class _Sums:
    """Sums over k of an operand that lies along its rows (columns): see matmul_staged.py.

    Invocations have eight neighbours each, and a share of a tile's steps.
    """

    def __init__(self, side: _Side, other: _Side, block: Block, build: Builder) -> None:
        self._side, self._build, eights, letter = side, build, side.eights, side.letter
        most = min(block.threads // eights, block.depth, side.tile.length // (2 * eights))
        self._groups = 1 << (most.bit_length() - 1)
        self._steps, self._adding = block.depth // self._groups, [other.block.eq(0)]
        if self._groups * eights < block.threads:
            self._adding.append(self._groups * eights > LANE)
        self._group = build.let(LANE // eights, f"group_{letter}")
        self._eight = build.let(LANE % eights, f"own_eight_{letter}")
        self._totals = [build.var(construct(_FOUR), f"sum_{letter}{index}") for index in range(2)]

    def add(self) -> None:
        """What a tile has."""
        build, side = self._build, self._side
        with build.if_(*self._adding):
            for step in range(self._steps):
                eight = build.let(side.tile[(self._group * self._steps + step) * side.pitch + self._eight])
                for half, total in enumerate(self._totals):
                    pairs = [call("unpack2x16float", _TWO, eight[2 * half + component]) for component in range(2)]
                    build.assign(total, call(str(_FOUR), _FOUR, *pairs), "+=")

    def store(self, work: Computation) -> None:
        """Brings the shares together in the tile, which is free now."""
        build, side, levels = self._build, self._side, work.domain.levels
        with build.if_(*self._adding):
            for half, total in enumerate(self._totals):
                build.assign(side.tile[LANE * 2 + half], call("bitcast<vec4<u32>>", EIGHT, total))
        build.barrier()
        shape = (side.source.spec.shape[0], side.size)
        build.gather([node for node in work.outputs if levels[id(node)] == side.level])
        with build.if_(self._adding[0], 2 * side.eights > LANE):
            total = build.var(construct(_FOUR))
            for group in range(self._groups):
                own = side.tile[LANE + group * 2 * side.eights]
                build.assign(total, call("bitcast<vec4<f32>>", _FOUR, own), "+=")
            matmul_results.store_sums(total, LANE, side, shape, work, build)
        build.barrier()


def _step(
    left: _Side, right: _Side, own: tuple[Var, Var], sums: Sequence[Sequence[Var]], block: Block, build: Builder
) -> None:
    """Multiplies the tiles."""
    for k in range(0, block.depth, SIDE):
        with build.scope():
            rows, columns = left.load(own[0], k, block.high, build), right.load(own[1], k, block.wide, build)
            for row, line in zip(rows, sums, strict=True):
                for column, total in zip(columns, line, strict=True):
                    product = call("subgroupMatrixMultiplyAccumulate", total.type, row, column, total)
                    build.assign(total, product)


@dataclass(frozen=True, slots=True)
class _Results:
    """Brings a subgroup's sums to its invocations, a row of matrices after the other, and stores them."""

    left: _Side
    right: _Side
    own: tuple[Var, Var]
    subgroup: Var
    place: Sequence[Sym]
    block: Block
    work: Computation
    build: Builder

    def store(self, sums: Sequence[Sequence[Var]]) -> None:
        build, block, wide = self.build, self.block, self.block.wide
        build.gather([node for node in self.work.outputs if self.work.domain.levels[id(node)] == FULL])
        shared = max(self.left.tile, self.right.tile, key=lambda tile: tile.length)
        each = block.at_once(shared.length)
        pitch = 4 * each
        first = build.let(self.subgroup * (SIDE * pitch), "first_result")
        pieces = [line[j : j + each] for line in sums for j in range(0, wide, each)]
        with build.loop("piece", 0, unknown(len(pieces))) as piece:  # What stores them is not to be written out.
            for number, totals in enumerate(pieces):
                with build.if_(piece.eq(number)) if len(pieces) > 1 else build.scope():
                    for index, total in enumerate(totals):
                        where = f"{first.name} + {4 * index}u" if index else first.name
                        build.jump(f"subgroupMatrixStore<row_major>(&{shared.name}, {where}, {total.name}, {pitch}u)")
            build.barrier()
            i, j = build.let(piece // (wide // each), "piece_row"), build.let(piece % (wide // each), "piece_column")
            with build.loop("turn", 0, SIDE * pitch // block.lanes) as turn:
                at_four = build.let(turn * block.lanes + LANE % block.lanes, "own")
                row, four = build.let(at_four // pitch, "own_row"), build.let(at_four % pitch, "own_four")
                bits = build.let(shared[first + at_four])
                elements = [build.let(ir.Call(_FLOAT, ir.F32, bits[number])) for number in range(4)]
                column = self.own[1] * (4 * wide) + (four + j * pitch)
                self._store(elements, self.own[0] * (block.high * SIDE) + (row + i * SIDE), column)
            build.barrier()

    def _store(self, elements: Sequence[Expr], row: Expr, four: Expr) -> None:
        build, left, right = self.build, self.left, self.right
        m = build.let(left.block * left.extent + row, "m")
        there: list[Expr] = [m < left.size] if left.size % left.extent else []
        row_index = m.within(left.size)
        fours = right.extent // 4
        place = build.let(right.block * fours + four, "four")
        if right.size % 4 == 0:
            there += [place < right.size // 4] if right.size % right.extent else []
            columns = [place.within(right.size // 4) * 4 + number for number in range(4)]
            with build.if_(*there):
                matmul_results.store(elements, row_index, columns, self.place, self.work, build)
            return
        for number, element in enumerate(elements):
            column = build.let(place * 4 + number, build.fresh("n"))
            with build.if_(*there, column < right.size):
                matmul_results.store([element], row_index, [column.within(right.size)], self.place, self.work, build)
