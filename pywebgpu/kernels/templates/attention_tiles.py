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
from operator import add

from pywebgpu.composites.attention import Window
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
    larger,
    select,
    smaller,
)  # fmt: skip
from pywebgpu.kernels.launch import Launch
from pywebgpu.support.symbolic import Sym

LANES = 8  # invocations that share a row
FOUR = Type("f32", 4)
# Steps of a product, each of four elements, that a loop has written out. On an H200, gradients of 512 rows: all 16 take
# 0.092 ms and the driver 0.74 s, 4 take 0.096 ms and 0.40 s, 2 take 0.100 ms, 1 takes 0.119 ms.
STEPS = 4
LOOPED = "attention"  # in Limits.unrolls
ROUNDS = 1 << 15  # of the loops of one invocation, from which all of a product is written out: adapters may end loops
APART = 2  # vectors between rows of weights; they hold what dropout keeps of a row: see attention_scores.py


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

    def launch(self, variant: str = "") -> Launch:
        return Launch(variant, self.threads, (self.rows, self.columns), (self.high, self.wide))

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
    window: Window
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

    def keys_seen(self, first: Expr, rows: int, columns: int, build: Builder) -> tuple[Expr, Expr]:
        """From which key on, in steps of `columns`, and to which rows of the query from `first` on see any."""
        left, right = self.window
        return _range(first, rows, left, right, self.span, columns, build)

    def queries_seeing(self, first: Expr, rows: int, columns: int, build: Builder) -> tuple[Expr, Expr]:
        """From which row of the query on, and to which, rows of the keys from `first` on are seen."""
        left, right = self.window
        return _range(first, rows, right, left, self.length, columns, build)

    def inside(self, query: Expr, key: Expr) -> list[Expr]:
        """What must hold for a key to lie in the window of a row of the query."""
        left, right = self.window
        conditions: list[Expr] = [] if right is None else [_moved(key, -right) <= _moved(query, right)]
        return conditions if left is None else [*conditions, _moved(query, -left) <= _moved(key, left)]

    def outside(self, start: Expr, columns: int, first: Expr, rows: int) -> list[Expr]:
        """Each of which may hold where some of the keys from `start` on lie outside of the window of some row."""
        left, right = self.window
        conditions: list[Expr] = [] if right is None else [_moved(start + columns, -right) > _moved(first, right)]
        return conditions if left is None else [*conditions, _moved(first + rows, -left) > _moved(start, left)]

    def steps(self, tile: Tile) -> int:
        """Steps of a product that a loop has written out."""
        fours_of_width = max(self.width, self.value_width) // 4
        tiles = max(self.length, self.span) // tile.columns * self.groups
        return max(fours_of_width, STEPS) if tiles * (1 + 2 * fours_of_width // STEPS) > ROUNDS else STEPS

    @property
    def vector(self) -> int:
        """Words of memory that have four elements."""
        return 4 // self.query.spec.dtype.format.per_word


def _moved(position: Expr, by: int) -> Expr:
    """`by` further; nothing where it is back: the other side of a comparison moves, since positions are unsigned."""
    return position + by if by > 0 else position


def _range(
    first: Expr, rows: int, before: int | None, after: int | None, size: int, step: int, build: Builder
) -> tuple[Expr, Expr]:
    """Positions first - before .. first + rows - 1 + after, of `size` there are; the start is a multiple of `step`."""
    start: Expr = Const(U32, 0)
    end: Expr = Const(U32, size)
    if before is not None:
        back = larger(first, before) - before if before > 0 else _moved(first, -before)
        start = build.let(back // step * step)
    if after is not None:
        last = _moved(first + rows, after)
        last = larger(last, -after) - -after if after < 0 else last
        end = build.let(smaller(last, size), "end")
    return start, end


def zeros(high: int, wide: int, kind: Type, build: Builder) -> list[list[Var]]:
    return [[build.var(construct(kind)) for _ in range(wide)] for _ in range(high)]


class Lanes:
    """Where an invocation is in its workgroup's tile: its rows, its columns, and the vectors of results it has."""

    def __init__(self, tile: Tile, build: Builder) -> None:
        self.tile, self._build = tile, build
        self.x, self.y = build.let(LANE % LANES, "x"), build.let(LANE // LANES, "y")
        self.rows = [build.let(self.y + index * tile.down) if index else self.y for index in range(tile.high)]
        self.columns = [build.let(self.x + index * LANES) if index else self.x for index in range(tile.wide)]
        self.places = [build.let(column // 4) for column in self.columns]
        self.component = build.let(self.x & 3)

    def vectors(self, width: int) -> list[tuple[Var, list[Expr]]]:
        """Of a row of results: which vectors the invocation has, and what must hold for them to be there."""
        count, vectors = fours(width), list[tuple[Var, list[Expr]]]()
        for index in range(-(-count // LANES)):
            place = self._build.let(self.x + index * LANES) if index else self.x
            if (index + 1) * LANES > count:
                vectors.append((self._build.let(smaller(place, count - 1)), [place < count]))
            else:
                vectors.append((place, []))
        return vectors

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
        coords: Callable[[Sym, Sym], tuple[Sym, ...]],
        build: Builder,
        *,
        axis: int = 2,
        partner: Node | None = None,
    ) -> None:
        self.source, self.at, self.extent, self._build = source, coords, extent, build
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
                    vector = build.let(self._four(self.source, there.within(self.size), four))
                    build.assign(self.array.row(row, four), vector)
                    if self.partner is not None:
                        other = self._four(self.partner, there.within(self.size), four)
                        part = call("dot", F32, vector, other)
                        build.assign(self.parts.row(row, four // 4)[four % 4], part)

    def total(self, row: Expr) -> Expr:
        """The sum of the products of a row and the partner's."""
        build, n_full, rest = self._build, *divmod(fours(self.width), 4)
        vectors = [build.let(self.parts.row(row, Const(U32, index))) for index in range(n_full + bool(rest))]
        sums = [reduce(add, vectors[:n_full])] if n_full else []
        numbers = [vector[component] for vector in sums for component in range(4)] + [
            vectors[-1][component] for component in range(rest)
        ]
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
    steps: int,
    build: Builder,
) -> None:
    """results[i][j] += left's row i times right's row j. steps: written out in each round of a loop."""
    steps = 1 if LOOPED in build.limits.unrolls and steps == STEPS else steps
    n_vectors = left.width // 4
    looped = n_vectors // steps * steps if n_vectors > steps else 0

    def step(position: Expr, elements: int) -> None:
        with build.scope():
            a = [build.let(left.array.row(row, position)) for row in rows]
            b = [build.let(right.array.row(column, position)) for column in columns]
            for i in range(elements):
                for row, line in zip(a, results, strict=True):
                    for column, result in zip(b, line, strict=True):
                        build.assign(result, call("fma", F32, row[i], column[i], result))

    if looped:
        with build.loop("at", 0, looped, steps) as start:
            for i in range(steps):
                step(start + i if i else start, 4)
    for i in range(looped, fours(left.width)):
        step(Const(U32, i), min(4, left.width - 4 * i))


def mix(
    results: list[list[Var]], weights: Array, lanes: Lanes, right: Operand, places: Sequence[Expr], build: Builder
) -> None:
    """results[i][g] += the weights of row i times right's rows, of which an invocation has some vectors."""

    def mix_four(four: Expr, rows: Sequence[Expr]) -> None:
        own = [build.let(weights.row(row, four)) for row in lanes.rows]
        for i, row_number in enumerate(rows):
            with build.scope():
                vectors = [build.let(right.array.row(row_number, place)) for place in places]
                for weight, line in zip(own, results, strict=True):
                    for vector, result in zip(vectors, line, strict=True):
                        build.assign(result, call("fma", FOUR, call(str(FOUR), FOUR, weight[i]), vector, result))

    count = lanes.tile.columns // 4
    if LOOPED in build.limits.unrolls:
        with build.loop("four", 0, count) as four:
            mix_four(four, [four * 4 + i for i in range(4)])
        return
    for number in range(count):
        with build.scope():
            mix_four(Const(U32, number), [Const(U32, 4 * number + i) for i in range(4)])


def weights_array(tile: Tile, build: Builder) -> Array:
    return build.workgroup_array("weights", FOUR, tile.columns // 4 + APART, tile.rows)


def store_rows(
    node: Node,
    width: int,
    flat: Callable[[Sym, Sym], Sym],
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
                    build.store(node, flat(row, column), build.let(value[i]))
                    continue
                last = build.let(place * 4 + i)
                with build.if_(last < width):
                    build.store(node, flat(row, last.within(width)), build.let(value[i]))
