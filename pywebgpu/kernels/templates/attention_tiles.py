"""What kernels of attention are made of: tiles in workgroup memory, products of them, and which scores are seen.

Eight neighbouring invocations share a row of a tile of scores, each with every eighth column. Rows of operands lie in
workgroup memory as vectors of four, set apart by one vector, so that neighbours do not wait for one another. Products
are written out in part: bounds checks of what a loop does not change are moved out of it, and all of it written out
takes drivers a second.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from math import e, log2
from operator import add

from pywebgpu import dtypes
from pywebgpu.composites import activation
from pywebgpu.composites.attention import HIDDEN, split_extras
from pywebgpu.ir.graph import Node
from pywebgpu.kernels.builder import Builder
from pywebgpu.kernels.ir import (
    F32,
    LANE,
    U32,
    Array,
    Const,
    Expr,
    Type,
    Var,
    call,
    construct,
    select,
    smaller,
)  # fmt: skip
from pywebgpu.kernels.launch import Launch
from pywebgpu.symbolic import Sym

LANES = 8  # invocations that share a row
FOUR = Type("f32", 4)
# Steps of a product, each of four elements, that a loop has written out. On an H200, gradients of 512 rows: all 16 take
# 0.092 ms and the driver 0.74 s, 4 take 0.096 ms and 0.40 s, 2 take 0.100 ms, 1 takes 0.119 ms.
STEPS = 4
BITS = log2(e)  # Exponentials are powers of 2.
APART = 2  # vectors between rows of weights


@dataclass(frozen=True, slots=True)
class Tile:
    """What a workgroup computes at a time: rows x columns of scores."""

    rows: int
    columns: int
    threads: int

    @property
    def down(self) -> int:
        """Rows side by side."""
        return self.threads // LANES

    @property
    def high(self) -> int:
        """Rows of an invocation."""
        return self.rows // self.down

    @property
    def wide(self) -> int:
        """Columns of an invocation."""
        return self.columns // LANES

    def launch(self, way: str = "") -> Launch:
        return Launch(way, self.threads, (self.rows, self.columns), (self.high, self.wide))

    @staticmethod
    def of(launch: Launch) -> Tile:
        rows, columns = launch.tile
        return Tile(rows, columns, launch.threads)


def fours(width: int) -> int:
    """Vectors of a row."""
    return -(-width // 4)


def parts_of_row(width: int) -> int:
    """Vectors that hold a number for each vector of a row, and one to set rows apart."""
    return -(-fours(width) // 4) + 1


@dataclass(frozen=True, slots=True)
class Call:
    """The operands of a call, and its options. groups: heads of the query that share one of key and value."""

    query: Node
    key: Node
    value: Node
    extras: tuple[Node, ...]
    scale: float
    causal: bool
    dropout: float
    masked: bool

    @property
    def batches(self) -> int:
        return self.query.spec.shape[0]

    @property
    def heads(self) -> int:
        return self.query.spec.shape[1]

    @property
    def groups(self) -> int:
        return self.heads // self.key.spec.shape[1]

    @property
    def length(self) -> int:
        """Of the query."""
        return self.query.spec.shape[2]

    @property
    def span(self) -> int:
        """Of key and value."""
        return self.key.spec.shape[2]

    @property
    def width(self) -> int:
        return self.query.spec.shape[3]

    @property
    def value_width(self) -> int:
        return self.value.spec.shape[3]

    @property
    def vector(self) -> int:
        """Words of memory that have four elements."""
        return 4 // self.query.spec.dtype.format.per_word


def zeros(high: int, wide: int, kind: Type, build: Builder) -> list[list[Var]]:
    return [[build.var(construct(kind)) for _ in range(wide)] for _ in range(high)]


class Lanes:
    """Where an invocation is in its workgroup's tile: its rows, its columns, and the vectors of results it has."""

    def __init__(self, tile: Tile, build: Builder) -> None:
        self.tile, self._build = tile, build
        self.x, self.y = build.let(LANE % LANES, "x"), build.let(LANE // LANES, "y")
        self.rows = [build.let(self.y + at * tile.down) if at else self.y for at in range(tile.high)]
        self.columns = [build.let(self.x + at * LANES) if at else self.x for at in range(tile.wide)]
        self.places = [build.let(column // 4) for column in self.columns]
        self.component = build.let(self.x & 3)

    def vectors(self, width: int) -> list[tuple[Var, list[Expr]]]:
        """Of a row of results: which vectors the invocation has, and what must hold for them to be there."""
        count, found = fours(width), list[tuple[Var, list[Expr]]]()
        for at in range(-(-count // LANES)):
            place = self._build.let(self.x + at * LANES) if at else self.x
            if (at + 1) * LANES > count:
                found.append((self._build.let(smaller(place, count - 1)), [place < count]))
            else:
                found.append((place, []))
        return found

    def put(self, weights: Array, values: Sequence[Sequence[Expr]]) -> None:
        """Stores the invocation's elements of a tile of scores."""
        for row, line in zip(self.rows, values, strict=True):
            for place, value in zip(self.places, line, strict=True):
                self._build.assign(weights.row(row, place)[self.component], value)


class Operand:
    """Query, key, value or a gradient: `extent` of its rows at a time in workgroup memory.

    at: the coordinates of an element, of its row and column.  axis: along which the rows lie.
    partner: a value of the same shape. Of each row the sum of the products of both is known, once all are there.
    """

    def __init__(
        self,
        source: Node,
        name: str,
        extent: int,
        at: Callable[[Sym, Sym], tuple[Sym, ...]],
        build: Builder,
        *,
        axis: int = 2,
        partner: Node | None = None,
    ) -> None:
        self.source, self.at, self.extent, self._build = source, at, extent, build
        self.size, self.width = source.spec.shape[axis], source.spec.shape[3]
        self.array = build.workgroup_array(name, FOUR, fours(self.width) + 1, extent)
        self.partner = partner
        if partner is not None:
            self.parts = build.workgroup_array(f"{name}_parts", FOUR, parts_of_row(self.width), extent)

    def stage(self, first: Expr, tile: Tile) -> None:
        """Brings rows from `first` on into workgroup memory; rows that are not there are the last one."""
        build, count, threads = self._build, fours(self.width), tile.threads
        for turn in range(-(-self.extent * count // threads)):
            with build.scope():
                place = build.let(LANE + turn * threads) if turn else LANE
                row, four = build.let(place // count), build.let(place % count)
                is_whole = (turn + 1) * threads <= self.extent * count
                with build.if_(*([] if is_whole else [row < self.extent])):
                    wanted = first + row
                    there = build.let(wanted if self.size % self.extent == 0 else smaller(wanted, self.size - 1))
                    found = build.let(self._four(self.source, there.within(self.size), four))
                    build.assign(self.array.row(row, four), found)
                    if self.partner is not None:
                        other = self._four(self.partner, there.within(self.size), four)
                        part = call("dot", F32, found, other)
                        build.assign(self.parts.row(row, four // 4)[four % 4], part)

    def total(self, row: Expr) -> Expr:
        """The sum of the products of a row and the partner's."""
        build, whole, rest = self._build, *divmod(fours(self.width), 4)
        found = [build.let(self.parts.row(row, Const(U32, at))) for at in range(whole + bool(rest))]
        sums = [reduce(add, found[:whole])] if whole else []
        numbers = [one[at] for one in sums for at in range(4)] + [found[-1][at] for at in range(rest)]
        return build.let(reduce(add, numbers))

    def _four(self, source: Node, there: Sym, four: Var) -> Expr:
        build = self._build
        parts: list[Expr] = []
        for i in range(4):
            column: Sym = four.within(fours(self.width)) * 4 + i
            if self.width % 4 == 0 or i < self.width % 4:
                parts.append(build.value(source, self.at(there, column)))
                continue
            last = build.let(smaller(four * 4 + i, self.width - 1)).within(self.width)
            parts.append(select(0.0, build.value(source, self.at(there, last)), four * 4 + i < self.width))
        return construct(FOUR, *parts)


def multiply(
    results: list[list[Var]],
    left: Operand,
    rows: Sequence[Expr],
    right: Operand,
    columns: Sequence[Expr],
    build: Builder,
) -> None:
    """results[i][j] += left's row i times right's row j."""
    steps = 1 if build.limits.unrolls else STEPS
    whole = left.width // 4
    looped = whole // steps * steps if whole > steps else 0

    def step(at: Expr, elements: int) -> None:
        with build.scope():
            a = [build.let(left.array.row(row, at)) for row in rows]
            b = [build.let(right.array.row(column, at)) for column in columns]
            for i in range(elements):
                for row, line in zip(a, results, strict=True):
                    for column, result in zip(b, line, strict=True):
                        build.assign(result, call("fma", F32, row[i], column[i], result))

    if looped:
        with build.loop("at", 0, looped, steps) as at:
            for i in range(steps):
                step(at + i if i else at, 4)
    for i in range(looped, fours(left.width)):
        step(Const(U32, i), min(4, left.width - 4 * i))


def mix(
    results: list[list[Var]], weights: Array, lanes: Lanes, right: Operand, places: Sequence[Expr], build: Builder
) -> None:
    """results[i][g] += the weights of row i times right's rows, of which an invocation has some vectors."""
    for four in range(lanes.tile.columns // 4):
        with build.scope():
            own = [build.let(weights.row(row, Const(U32, four))) for row in lanes.rows]
            for i in range(4):
                with build.scope():
                    found = [build.let(right.array.row(Const(U32, 4 * four + i), place)) for place in places]
                    for weight, line in zip(own, results, strict=True):
                        for one, result in zip(found, line, strict=True):
                            build.assign(result, call("fma", FOUR, call(str(FOUR), FOUR, weight[i]), one, result))


def weights_array(tile: Tile, build: Builder) -> Array:
    return build.workgroup_array("weights", FOUR, tile.columns // 4 + APART, tile.rows)


class Scores:
    """What becomes of a product of a row of the query and one of the key: a score as an exponent of 2, or hidden."""

    def __init__(self, call: Call, batch: Sym, head: Sym, tile: Tile, build: Builder) -> None:
        self._call, self._batch, self._head, self._tile, self._build = call, batch, head, tile, build
        self._mask, seed = split_extras(call.extras, call.masked)
        shape = (call.batches, call.heads, call.length, call.span)
        self._kept = None if seed is None else activation.kept(shape, call.dropout, seed)

    def exponent(self, product: Expr, query: Expr, key: Expr) -> Expr:
        """The score times log2(e); of hidden ones some number."""
        found: Expr = product * (self._call.scale * BITS)
        if self._mask is None or self._mask.spec.dtype is dtypes.bool_:
            return found
        added = self._build.value(self._mask, self._where(query, key))
        found = self._build.let(call("fma", F32, added, Const(F32, BITS), found))
        return select(found, Const(F32, HIDDEN), found < HIDDEN)  # -inf is no number to calculate with.

    def seen(self, query: Expr, key: Expr) -> list[Expr]:
        """What must hold for a score not to be hidden by a mask."""
        if self._mask is None or self._mask.spec.dtype is not dtypes.bool_:
            return []
        return [self._build.value(self._mask, self._where(query, key)).ne(0)]

    def kept(self, value: Expr, query: Expr, key: Expr) -> Expr:
        """A weight after dropout, or the gradient of one before it."""
        if self._kept is None:
            return value
        keep = self._build.value(self._kept, self._where(query, key)).ne(0)
        return select(0.0, value * (1 / (1 - self._call.dropout)), keep)

    def _where(self, query: Expr, key: Expr) -> tuple[Sym, ...]:
        call, build = self._call, self._build
        rows, columns = (build.let(smaller(at, size - 1)) for at, size in ((query, call.length), (key, call.span)))
        return self._batch, self._head, rows.within(call.length), columns.within(call.span)


def store_rows(
    node: Node,
    width: int,
    at: Callable[[Sym, Sym], Sym],
    row: Sym,
    places: Sequence[tuple[Var, list[Expr]]],
    values: Sequence[Expr],
    build: Builder,
) -> None:
    """Writes an invocation's vectors of a row of results. at: the flat position of an element."""
    for (place, there), value in zip(places, values, strict=True):
        with build.if_(*there):
            for i in range(4):
                column = place.within(fours(width)) * 4 + i
                if width % 4 == 0 or i < width % 4:
                    build.store(node, at(row, column), build.let(value[i]))
                    continue
                last = build.let(place * 4 + i)
                with build.if_(last < width):
                    build.store(node, at(row, last.within(width)), build.let(value[i]))
