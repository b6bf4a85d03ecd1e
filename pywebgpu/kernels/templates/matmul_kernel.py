"""Batched matrix product with holes: operands are any nodes read at (batch, row, k), results pass through an epilogue.

Each invocation keeps a small block of results in registers. Tiles of both operands go through workgroup memory; where
a CPU plays the GPU (Limits.emulated), operands are read from memory as they are needed. What passes by in registers may
be summed over k on its way: so a bias's gradient is made inside the weight's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod

from pywebgpu.ir.graph import Movement, Node, Reduction
from pywebgpu.kernels import ir
from pywebgpu.kernels.access import down, only_moves
from pywebgpu.kernels.builder import Builder, element
from pywebgpu.kernels.intrinsics import rounded
from pywebgpu.kernels.ir import F32, GROUP, LANE, U32, Array, Const, Expr, Type, Var, call, construct, scalar, smaller
from pywebgpu.kernels.kernel import Kernel
from pywebgpu.kernels.launch import Launch, Problem
from pywebgpu.kernels.template import Computation
from pywebgpu.ops import contraction
from pywebgpu.support import symbolic
from pywebgpu.support.symbolic import Sym, flatten, variable

FULL, LEFT, RIGHT = "full", "left", "right"  # a node of a product has an element a result, a row, or a column
LINE = 4  # neighbours in memory that make up for what lies between the runs that they are of
BROADCAST = "broadcast"  # a launch where all invocations that have the same rows are one subgroup
STEPS = 4  # of k that are written out: what one reads does not wait for what another multiplies


@dataclass(frozen=True, slots=True)
class Tile:
    """A workgroup's block of the result: rows x columns, `high` x `wide` an invocation.

    depth: how much of k goes through workgroup memory at a time; 0: operands are read from memory.
    slices: invocations that share a block of results: each multiplies its part of the depth, and in the end they add.
    neighbours: invocations of a subgroup beside each other, which load the rows that all of them multiply together.
    """

    rows: int
    columns: int
    depth: int
    high: int = 4
    wide: int = 4
    slices: int = 1
    neighbours: int = 1

    @property
    def blocks(self) -> int:
        return (self.rows // self.high) * (self.columns // self.wide)

    @property
    def lanes(self) -> int:
        return self.blocks * self.slices

    @property
    def launch(self) -> Launch:
        variant = BROADCAST if self.neighbours > 1 else ""
        return Launch(variant, self.lanes, (self.rows, self.columns, self.depth), (self.high, self.wide), self.slices)

    @staticmethod
    def of(launch: Launch) -> Tile:
        (rows, columns, depth), (high, wide) = launch.tile, launch.each
        return Tile(
            rows, columns, depth, high, wide, launch.split, columns // wide if launch.variant == BROADCAST else 1
        )


def write(work: Computation, launch: Launch, build: Builder) -> Kernel:
    levels = work.domain.levels
    anchor = anchor_of(work.nodes)
    left, right = anchor.inputs
    batches, m, n = anchor.spec.shape
    kind, depth = scalar(anchor.spec.dtype), left.spec.shape[2]
    tile = Tile.of(launch)
    down, across = -(-m // tile.rows), -(-n // tile.columns)
    per_row = tile.columns // tile.wide
    batch = build.let(GROUP // (across * down), "batch")
    first_m = build.let(GROUP // across % down * tile.rows, "first_m")
    first_n = build.let(GROUP % across * tile.columns, "first_n")
    block = build.let(LANE % tile.blocks if tile.slices > 1 else LANE, "block")
    piece = build.let(LANE // tile.blocks, "slice")
    own_m = build.let(first_m + block // per_row * tile.high, "own_m")
    own_n = build.let(first_n + block % per_row * tile.wide, "own_n")
    results = [result for i in range(tile.high) for result in _zeros(f"r{i}", kind, tile.wide, build)]
    summed = {level for level in levels.values() if level != FULL}
    sides = (
        _Side(left, m, tile.rows, tile.high, "m", first_m, own_m, LEFT in summed, build, tile.neighbours),
        _Side(right, n, tile.columns, tile.wide, "n", first_n, own_n, RIGHT in summed, build),
    )
    product = _Product(tile, results, sides, batch.within(batches), block, piece, depth, build)
    if depth:
        (product.through_tiles if tile.depth else product.from_memory)()
    if tile.slices > 1:
        product.add_slices()
    product.finish(anchor, work)
    for side, other in (sides, sides[::-1]):
        if side.sums:
            side.finish_sums(other, batches, piece, work)
    variant = f"{tile.rows}x{tile.columns}" if tile.depth else "small"
    return build.kernel("_".join(["matmul", variant, *["sum"] * len(summed)]), tile.lanes, batches * across * down)


def _fours(kind: Type, size: int) -> Type:
    """What holds `size` numbers, or four of them if there are more."""
    return Type(kind.kind, min(size, 4))


def _zeros(name: str, kind: Type, size: int, build: Builder) -> list[Var]:
    """Variables for `size` numbers, in vectors of four."""
    names = [name] if size <= 4 else [f"{name}_{index}" for index in range(size // 4)]
    return [build.var(construct(_fours(kind, size)), vector) for vector in names]


def _part(values: Sequence[Expr], index: int, size: int) -> Expr:
    return values[0] if size == 1 else values[index // 4][index % 4]


class _Side:
    """An operand: `size` rows (columns), `extent` of them a workgroup, `each` an invocation.

    first, own: the first of the workgroup's and of the invocation's.  sums: over k, where somebody wants them.
    neighbours: invocations, a subgroup, that load together what each of them has.
    """

    def __init__(
        self,
        source: Node,
        size: int,
        extent: int,
        each: int,
        letter: str,
        first: Var,
        own: Var,
        sums: bool,
        build: Builder,
        neighbours: int = 1,
    ) -> None:
        self.source, self.size, self.extent, self.each, self.letter = source, size, extent, each, letter
        self.first, self.own, self._build, self._neighbours = first, own, build, neighbours
        self.kind = scalar(source.spec.dtype)
        self.level = LEFT if letter == "m" else RIGHT
        self.sums = _zeros(f"sum_{letter}", self.kind, each, build) if sums else []

    def tile(self, kind: Type, length: int) -> Array:
        return self._build.workgroup_array(f"tile_{self.letter}", kind, length)

    def at(self, batch: Sym, position: Sym, k: Sym) -> tuple[Sym, Sym, Sym]:
        return (batch, position, k) if self.letter == "m" else (batch, k, position)

    def positions(self, first: Expr, count: int) -> list[Sym]:
        """`count` rows from `first` on; past the end the last one again, whose results nobody stores."""
        positions = []
        for i in range(count):
            position = first + i if i else first
            fits = self.size % self.extent == 0
            name = self._build.fresh(self.letter)
            positions.append(
                self._build.let(position if fits else smaller(position, self.size - 1), name).within(self.size)
            )
        return positions

    def loaded(self) -> list[Sym]:
        """Those of the invocation's rows that it loads itself."""
        each = self.each // self._neighbours
        return self.positions(self.own if each == self.each else self.own + LANE % self._neighbours * each, each)

    def vectors(self, batch: Sym, positions: list[Sym], k: Sym) -> list[Expr]:
        values: list[Expr] = [self._build.value(self.source, self.at(batch, position, k)) for position in positions]
        if self._neighbours > 1:
            lanes = [Const(U32, lane) for lane in range(self._neighbours)]
            values = [call("subgroupBroadcast", self.kind, value, lane) for lane in lanes for value in values]
        fours = [values[start : start + 4] for start in range(0, len(values), 4)]
        return [construct(_fours(self.kind, len(four)), *four) for four in fours]

    def load(self, batch: Sym, depth: int, first_k: Expr, tile: Tile) -> None:
        """One tile into workgroup memory: for each k, fours of rows. Neighbours read neighbours."""
        build, fours = self._build, self.extent // 4
        count = fours * tile.depth
        once = count == tile.lanes
        with build.scope() if once else build.loop("at", LANE, count, tile.lanes) as looped:
            position = looped or build.let(LANE, "at")
            along = is_contiguous_in_k(self.source, self.letter)
            span = tile.depth if along else fours
            k_position = build.let(position % span if along else position // span, "k_position")
            four = build.let(position // span if along else position % span, "four")
            k = build.let(first_k + k_position, "k")
            four_of = build.var(construct(_fours(self.kind, 4)), "four_of")
            with build.if_(*[k < depth] if depth % tile.depth else ()):
                positions = self.positions(self.first + four * 4, 4)
                build.assign(four_of, self.vectors(batch, positions, k.within(depth))[0])
            build.assign(self.tile(four_of.type, count)[k_position * fours + four], four_of)

    def finish_sums(self, other: _Side, batches: int, piece: Expr, work: Computation) -> None:
        """Stores the sums over k: those do it who have the first column (row) of the result."""
        build = self._build
        many = build.local_array(f"sums_{self.letter}", self.sums) if len(self.sums) > 1 else None
        build.gather([node for node in work.outputs if work.domain.levels[id(node)] == self.level])
        with build.if_(other.own.eq(0), piece.eq(0)), build.loop("at", 0, self.each) as index:
            own = build.let(self.own + index, self.letter)
            with build.if_(*[own < self.size] if self.size % self.extent else ()):
                total = many[index // 4][index % 4] if many else self.sums[0][index] if self.each > 1 else self.sums[0]
                position = flatten((variable("batch", batches), own.within(self.size)), (batches, self.size))
                for node in work.nodes:
                    if work.domain.levels[id(node)] == self.level and isinstance(node.op, Reduction):
                        build.define(node, position, build.let(rounded(total, node.spec.dtype)))
                store_level(self.level, position, work, build)


@dataclass(frozen=True, slots=True)
class _Product:
    """An invocation's sums. results: row by row, in vectors.  block, piece: which of them, and which part of k."""

    tile: Tile
    results: list[Var]
    sides: tuple[_Side, _Side]
    batch: Sym
    block: Var
    piece: Var
    depth: int
    build: Builder

    def from_memory(self) -> None:
        build, pieces = self.build, self.tile.slices
        positions = [side.loaded() for side in self.sides]
        with build.loop("k", self.piece if pieces > 1 else 0, self.depth, pieces) as k:
            a, b = (
                [build.let(four) for four in side.vectors(self.batch, places, k.within(self.depth))]
                for side, places in zip(self.sides, positions, strict=True)
            )
            self.multiply(a, b)

    def through_tiles(self) -> None:
        build, tile = self.build, self.tile
        tiles = [side.tile(_fours(side.kind, 4), side.extent * tile.depth // 4) for side in self.sides]
        with build.loop("first_k", 0, self.depth, tile.depth) as first_k:
            for side in self.sides:
                side.load(self.batch, self.depth, first_k, tile)
            build.barrier()
            share = tile.depth // tile.slices
            with build.loop("at", 0, share, STEPS) as position:
                k = build.let(self.piece * share + position if tile.slices > 1 else position, "k")
                for step in range(STEPS):
                    here = k + step if step else k
                    a, b = (
                        build.let(array[here * (side.extent // 4) + (side.own - side.first) // 4])
                        for array, side in zip(tiles, self.sides, strict=True)
                    )
                    self.multiply([a], [b])
            build.barrier()

    def multiply(self, a: Sequence[Var], b: Sequence[Var]) -> None:
        build, wide = self.build, len(b)
        is_fused = self.tile.neighbours > 1 and self.sides[0].kind == F32  # Translated so it takes 8 % less.
        for index, result in enumerate(self.results):
            left, right = _part(a, index // wide, self.tile.high), b[index % wide]
            if is_fused:
                build.assign(result, call("fma", right.type, call(str(right.type), right.type, left), right, result))
            else:
                build.assign(result, left * right, "+=")
        for own, side in zip((a, b), self.sides, strict=True):
            for total, value in zip(side.sums, own, strict=True) if side.sums else ():
                build.assign(total, value, "+=")

    def add_slices(self) -> None:
        """Adds what the slices of a block have found; all of them then have the sums."""
        build, tile = self.build, self.tile
        kind = self.results[0].type
        largest = max(self.sides, key=lambda side: side.extent).tile(kind, tile.lanes)
        for own in [*self.results, *(total for side in self.sides for total in side.sums)]:
            same = own.type == kind
            shared = largest if same else build.workgroup_array(f"shared_{own.type.width}", own.type, tile.lanes)
            build.assign(shared[LANE], own)
            build.barrier()
            with build.loop("half", tile.slices // 2, 0, 1, ">>=") as half:
                with build.if_(self.piece < half):
                    build.assign(shared[LANE], shared[LANE + half * tile.blocks], "+=")
                build.barrier()
            build.assign(own, shared[self.block])
            build.barrier()

    def finish(self, anchor: Node, work: Computation) -> None:
        """Stores an invocation's results through the epilogue."""
        batches, m, n = anchor.spec.shape
        build, tile = self.build, self.tile
        each = build.gather([node for node in work.outputs if work.domain.levels[id(node)] == FULL])
        with self.each_result(each) as (row, column, value):
            guards = [
                position < size for position, size, by in ((row, m, tile.rows), (column, n, tile.columns)) if size % by
            ]
            with build.if_(*guards):
                result = build.let(as_result(value, anchor, work, build))
                position = flatten((variable("batch", batches), row.within(m), column.within(n)), anchor.spec.shape)
                position = known_by_all(position, work, build)
                build.define(anchor, position, result)
                store_level(FULL, position, work, build)

    @contextmanager
    def each_result(self, each: int) -> Iterator[tuple[Var, Var, Expr]]:
        """A loop over an invocation's results: row and column of each.

        each: neighbours of a row that one invocation visits, where several share a block.
        """
        build, high, wide = self.build, self.tile.high, self.tile.wide
        own_m, own_n = (side.own for side in self.sides)
        width = min(wide, 4)
        if build.limits.emulated:  # A division takes as long there as many multiplications.
            parts = [_part([vector], component, width) for vector in self.results for component in range(width)]
            results = build.local_array("results", parts)
            with build.loop("i", 0, high) as i:
                row = build.let(own_m + i, "m")
                with self.each_neighbour("j", wide, each) as j:
                    yield row, build.let(own_n + j, "n"), results[i * wide + j]
            return
        results = build.local_array("results", self.results)
        with self.each_neighbour("at", high * wide, each) as index:
            row = build.let(own_m + index // wide, "m")
            column = build.let(own_n + index % wide, "n")
            result = results[index // width]
            yield row, column, result[index % width] if width > 1 else result

    @contextmanager
    def each_neighbour(self, name: str, end: int, each: int) -> Iterator[Var]:
        build, slices = self.build, self.tile.slices
        if each == 1 or slices == 1:
            with build.loop(name, self.piece, end, slices) as index:
                yield index
            return
        with (
            build.loop("start", self.piece * each, end, slices * each) as start,
            build.loop(name, start, start + each) as index,
        ):
            yield index


def as_result(result: Expr, anchor: Node, work: Computation, build: Builder) -> Expr:
    """A sum as an element of a product: rounded, unless it is only stored, which rounds it."""
    if all(map(build.rounds, work.outputs)) and all(node is anchor or only_moves(node) for node in work.nodes):
        return result
    return rounded(result, anchor.spec.dtype)


def store_level(level: str, position: Sym, work: Computation, build: Builder) -> None:
    """After every load: a result may take over the buffer that another one reads."""
    levels = work.domain.levels
    values = {id(node): build.value(node, element(position, node)) for node in work.nodes if levels[id(node)] == level}
    for node in work.outputs:
        if levels[id(node)] == level:
            build.store(node, position, values[id(node)])


def known_by_all(position: Sym, work: Computation, build: Builder) -> Sym:
    """A result's position as nodes have it that read it through views: by a name, where terms of it would change."""
    levels = work.domain.levels
    inside = {id(node) for node in work.nodes if levels[id(node)] == FULL}
    for node in work.nodes:
        if id(node) not in inside or node.op in contraction.PRODUCTS:
            continue
        coords = element(position, node)
        flat_reads = [down(source, coords) for source in node.inputs if source.spec.shape == node.spec.shape]
        if any(read is not None and read[0] in inside and read[1] != position for read in flat_reads):
            return build.let(ir.Index(position), build.fresh("i")).within(prod(node.spec.shape))
    return position


def anchor_of(nodes: Sequence[Node]) -> Node:
    """The product among the nodes of its kernel."""
    return next(node for node in nodes if node.op in contraction.PRODUCTS)


def problem_of(product: Node, packed: Sequence[str] = ()) -> Problem:
    """packed: formats of results of which several share a word."""
    left, right = product.inputs
    letters = "n" if is_contiguous_in_k(left, "m") else "t", "t" if is_contiguous_in_k(right, "n") else "n"
    sizes = (*left.spec.shape[:2], right.spec.shape[2], left.spec.shape[2])
    return Problem(sizes, (left.spec.dtype.name, *packed), "".join(letters))


def is_contiguous_in_k(source: Node, letter: str) -> bool:
    """Whether stepping k steps one element in the memory below the views of an operand; letter: its other axis.

    Where k runs over several axes, as in a convolution's windows, that is so in runs: of LINE elements at least.
    """
    names = ("batch", "m", "k") if letter == "m" else ("batch", "k", "n")
    coords = tuple(variable(name, n) for name, n in zip(names, source.spec.shape, strict=True))
    while isinstance(source.op, Movement) and source.buffer is None:
        coords, _ = source.op.index(coords, source.inputs[0].spec.shape, **source.attrs)
        source = source.inputs[0]
    flat = flatten(coords, source.spec.shape)
    return any(factor == 1 and _is_run_of_k(atom) for atom, factor in flat.terms)


def _is_run_of_k(atom: symbolic.Atom) -> bool:
    if isinstance(atom, symbolic.Remainder):
        return atom.by >= LINE and atom.of == variable("k", atom.of.high + 1)
    return isinstance(atom, symbolic.Var) and atom.name == "k"
