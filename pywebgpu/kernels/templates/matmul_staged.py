"""Batched matrix product by large blocks, for GPUs: the next tiles are loaded while the present ones are multiplied.

Each invocation keeps up to 16 x 8 results in registers, in fours of columns. Tiles of both operands lie in workgroup
memory as [k][fours of rows or columns], whatever way the operands lie, so that a step of k reads whole vectors; what is
contiguous in k has its rows set apart by one vector, so that invocations that write neighbours do not wait for one
another. The steps of k are written out and the tiles are two-dimensional: then the bounds checks of translators do not
depend on k, and drivers move them out. Neighbouring invocations are 8 x 4 of a block, as far as it goes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pywebgpu.ir.graph import Node, Reduction
from pywebgpu.kernels import ir
from pywebgpu.kernels.builder import Builder, rounded
from pywebgpu.kernels.ir import GROUP, LANE, Expr, Type, Var, call, construct, scalar, smaller
from pywebgpu.kernels.kernel import Kernel
from pywebgpu.kernels.launch import Launch
from pywebgpu.kernels.template import Computation
from pywebgpu.kernels.templates import matmul_kernel
from pywebgpu.kernels.templates.matmul_kernel import FULL, LEFT, RIGHT, anchor_of, is_contiguous_in_k
from pywebgpu.symbolic import Sym, flatten

WAY = "staged"


@dataclass(frozen=True, slots=True)
class Block:
    """A workgroup's part of the result: rows x columns, `high` x `wide` an invocation, `depth` of k at a time."""

    rows: int
    columns: int
    depth: int
    high: int
    wide: int

    @property
    def down(self) -> int:
        return self.rows // self.high

    @property
    def across(self) -> int:
        return self.columns // self.wide

    @property
    def lanes(self) -> int:
        return self.down * self.across

    @property
    def launch(self) -> Launch:
        return Launch(WAY, self.lanes, (self.rows, self.columns, self.depth), (self.high, self.wide))

    @staticmethod
    def of(launch: Launch) -> Block:
        return Block(*launch.tile, *launch.each)

    def shared_bytes(self, layout: str) -> int:
        """Of workgroup memory, for operands that lie so (see MatmulTemplate)."""
        fours = self.rows // 4 + (layout[0] == "n") + self.columns // 4 + (layout[1] == "t")
        return 16 * self.depth * fours


def write(work: Computation, launch: Launch, build: Builder) -> Kernel:
    nodes, levels = work.nodes, work.domain.levels
    anchor = anchor_of(nodes)
    (batches, m, n), depth = anchor.spec.shape, anchor.inputs[0].spec.shape[2]
    block, kind = Block.of(launch), scalar(anchor.spec.dtype)
    down, across = -(-m // block.rows), -(-n // block.columns)
    batch = build.let(GROUP // (across * down), "batch").within(batches)
    y, x = _own_place(block, build)
    summed = {level for level in levels.values() if level != FULL}
    left = _Side(anchor.inputs[0], "m", m, (block.rows, block.high), GROUP // across % down, y, batch, block, build)
    right = _Side(anchor.inputs[1], "n", n, (block.columns, block.wide), GROUP % across, x, batch, block, build)
    for side in (left, right):
        side.prepare(is_summed=side.level in summed)
    results = [build.var(construct(_four(kind)), f"r{at}") for at in range(block.high * block.wide // 4)]
    if depth:
        _multiply(left, right, results, depth, block, build)
    _finish(left, right, results, work, build)
    for side, other in ((left, right), (right, left)):
        if side.sums:
            side.finish_sums(other, work)
    name = "_".join(["matmul", f"{block.rows}x{block.columns}", "staged", *["sum"] * len(summed)])
    return build.kernel(name, block.lanes, batches * across * down)


def _own_place(block: Block, build: Builder) -> tuple[Var, Var]:
    """Row and column of an invocation among those of its workgroup: 32 neighbours are 4 x 8, where that fits."""
    if block.across % 8 or block.down % 4:
        return build.let(LANE // block.across, "y"), build.let(LANE % block.across, "x")
    inner, outer, wide = build.let(LANE % 32, "inner"), build.let(LANE // 32, "outer"), block.across // 8
    return build.let(outer // wide * 4 + inner // 8, "y"), build.let(outer % wide * 8 + inner % 8, "x")


def _four(kind: Type) -> Type:
    return Type(kind.kind, 4)


class _Side:
    """An operand: `size` rows (columns), `extent` of them a workgroup, `each` an invocation, in fours.

    first: the first of the workgroup's.  own: the invocation's, among those of its workgroup.
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
        self.source, self.letter, self.size, self.batch, self.block, self._build = (
            source, letter, size, batch, block, build,
        )  # fmt: skip
        self.extent, self.each = extents
        self.level = LEFT if letter == "m" else RIGHT
        self.is_along_k = is_contiguous_in_k(source, letter)
        self.lane, self.lanes = lane, self.extent // self.each
        self.first = build.let(at * self.extent, f"first_{letter}")
        self.kind = _four(scalar(source.spec.dtype))
        fours = self.extent // 4
        self.tile = build.workgroup_array(f"tile_{letter}", self.kind, fours + self.is_along_k, block.depth)
        self.sums: list[Var] = []
        self._parts: list[tuple[Var, Var, list[Sym], Var, list[Expr]]] = []

    def prepare(self, *, is_summed: bool) -> None:
        """What each invocation loads of a tile, a four at a time: which k, which four, and where its rows are."""
        build, fours, depth, letter = self._build, self.extent // 4, self.block.depth, self.letter
        total, lanes = fours * depth, self.block.lanes
        span = depth if self.is_along_k else fours
        for part in range(-(-total // lanes)):
            at = build.let(LANE + part * lanes if part else LANE, f"at_{letter}{part}")
            k = build.let(at % span if self.is_along_k else at // span, f"k_{letter}{part}")
            four = build.let(at // span if self.is_along_k else at % span, f"four_{letter}{part}")
            rows = self._rows(self.first + four * 4)
            coming = build.var(construct(self.kind), f"coming_{letter}{part}")
            guard: list[Expr] = [at < total] if total % lanes and (part + 1) * lanes > total else []
            self._parts.append((k, four, rows, coming, guard))
        if is_summed:
            self.sums = [build.var(construct(self.kind), f"sum_{letter}{at}") for at in range(self.each // 4)]

    def _rows(self, first: Expr) -> list[Sym]:
        """Four from `first` on; past the end the last one again, whose results nobody stores."""
        found = []
        for i in range(4):
            at = first + i if i else first
            at = smaller(at, self.size - 1) if self.size % self.extent else at
            found.append(self._build.let(at, self._build.fresh(self.letter)).within(self.size))
        return found

    def fetch(self, first_k: ir.Operand, depth: int) -> None:
        """Loads the invocation's part of the tiles from `first_k` on into registers."""
        build = self._build
        for own_k, _, rows, coming, guard in self._parts:
            k = build.let(own_k + first_k if isinstance(first_k, Expr) else own_k, build.fresh("k"))
            if depth % self.block.depth:
                build.assign(coming, construct(self.kind))
                guard = [*guard, k < depth]
            with build.if_(*guard):
                at = k.within(depth)
                places = [(self.batch, row, at) if self.letter == "m" else (self.batch, at, row) for row in rows]
                build.assign(coming, construct(self.kind, *[build.value(self.source, place) for place in places]))

    def put(self) -> None:
        """Stores what was fetched into the tile."""
        for k, four, _, coming, guard in self._parts:
            with self._build.if_(*guard):
                self._build.assign(self.tile.row(k, four), coming)

    def take(self, k: int) -> list[Var]:
        """The invocation's fours of the tile at a step of k."""
        build, fours = self._build, range(self.each // 4)
        found = [
            build.let(self.tile.row(ir.Const(ir.U32, k), self.lane + at * self.lanes if at else self.lane))
            for at in fours
        ]
        for total, four in zip(self.sums, found, strict=False):
            build.assign(total, four, "+=")
        return found

    def at(self, i: int | Expr) -> Var:
        """The i-th of the invocation's rows (columns)."""
        four = self.lane + i // 4 * self.lanes if isinstance(i, int) and i >= 4 else self.lane
        if isinstance(i, Expr):
            four = i // 4 * self.lanes + self.lane
        return self._build.let(self.first + four * 4 + i % 4, self._build.fresh(self.letter))

    def inside(self, at: Var) -> list[Expr]:
        return [at < self.size] if self.size % self.extent else []

    def finish_sums(self, other: _Side, work: Computation) -> None:
        """Stores the sums over k: those do it who have the first column (row) of the result."""
        build, nodes, levels = self._build, work.nodes, work.domain.levels
        shape = (self.source.spec.shape[0], self.size)
        many = build.local_array(f"sums_{self.letter}", self.sums)
        build.gather([node for node in work.outputs if levels[id(node)] == self.level])
        with build.if_(other.first.eq(0), other.lane.eq(0)), build.loop("at", 0, self.each) as at:
            own = self.at(at)
            with build.if_(*self.inside(own)):
                position = flatten((self.batch, own.within(self.size)), shape)
                for node in nodes:
                    if levels[id(node)] == self.level and isinstance(node.op, Reduction):
                        build.define(node, position, build.let(rounded(many[at // 4][at % 4], node.spec.dtype)))
                matmul_kernel.store_level(self.level, position, work, build)


def _multiply(left: _Side, right: _Side, results: Sequence[Var], depth: int, block: Block, build: Builder) -> None:
    for side in (left, right):
        side.fetch(0, depth)
    with build.loop("first_k", 0, depth, block.depth) as first_k:
        for side in (left, right):
            side.put()
        build.barrier()
        if depth > block.depth:
            following = build.let(first_k + block.depth, "following")
            with build.if_(following < depth):
                for side in (left, right):
                    side.fetch(following, depth)
        for k in range(block.depth):
            with build.scope():
                a, b = left.take(k), right.take(k)
                for at, result in enumerate(results):
                    i, j = divmod(at, len(b))
                    one = call(str(result.type), result.type, a[i // 4][i % 4])
                    build.assign(result, call("fma", result.type, one, b[j], result))
        build.barrier()


def _finish(left: _Side, right: _Side, results: Sequence[Var], work: Computation, build: Builder) -> None:
    """Stores an invocation's results through the epilogue."""
    anchor, levels = anchor_of(work.nodes), work.domain.levels
    build.gather([node for node in work.outputs if levels[id(node)] == FULL])
    wide = right.each
    is_plain = [node for node in work.nodes if levels[id(node)] == FULL] == [anchor]
    if is_plain:
        columns = [right.at(j) for j in range(wide)]
        for i in range(left.each):
            row = left.at(i)
            with build.if_(*left.inside(row)):
                for j, column in enumerate(columns):
                    with build.if_(*right.inside(column)):
                        _store(results[(i * wide + j) // 4][j % 4], row, column, left.batch, work, build)
        return
    many = build.local_array("results", results)
    with build.loop("at", 0, left.each * wide) as at:
        row, column = left.at(at // wide), right.at(at % wide)
        with build.if_(*left.inside(row), *right.inside(column)):
            _store(many[at // 4][at % 4], row, column, left.batch, work, build)


def _store(found: Expr, row: Var, column: Var, batch: Sym, work: Computation, build: Builder) -> None:
    anchor = anchor_of(work.nodes)
    _, m, n = anchor.spec.shape
    position = flatten((batch, row.within(m), column.within(n)), anchor.spec.shape)
    build.define(anchor, position, build.let(rounded(found, anchor.spec.dtype)))
    matmul_kernel.store_level(FULL, position, work, build)
