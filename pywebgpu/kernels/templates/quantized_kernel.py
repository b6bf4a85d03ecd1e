"""How products of few rows with quantised weights are written.

Some lanes share a row of the weight. Each has every so many-th unit of 16 bytes of codes, and multiplies all rows of
the operand with it before it goes on; what offsets come to is the sum of the operand's numbers, once for all rows.
Weights of one number of rows have theirs side by side in the same workgroups, the others follow in workgroups of
their own. An operand that is computed here lies in workgroup memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from pywebgpu.composites import quantized
from pywebgpu.ir.graph import Node
from pywebgpu.kernels import neighbours, quantized_units
from pywebgpu.kernels.builder import Builder, element
from pywebgpu.kernels.intrinsics import rounded
from pywebgpu.kernels.ir import F32, GROUP, LANE, U32, Const, Expr, Index, Var, call, smaller
from pywebgpu.kernels.iteration_space import IterationSpace
from pywebgpu.kernels.kernel import Kernel
from pywebgpu.kernels.launch import Launch
from pywebgpu.kernels.quantized_units import F32X4
from pywebgpu.kernels.template import Computation
from pywebgpu.kernels.templates.rows_kernel import fold_row
from pywebgpu.kernels.templates.rows_walk import FULL, OUTER, SHUFFLED, Place, Rows, groups
from pywebgpu.support.symbolic import Sym, constant, flatten

SUBGROUP = 32  # neighbours that surely lie in one where they share by shuffles
RESULT = "result"  # the level of a product, and of what is computed of it
BLOCK = 32  # columns whose fours lie apart: lanes read neighbouring ones, each of its own unit


@dataclass(frozen=True, slots=True)
class Segment:
    """Products with weights of `n` rows, and what is computed of them.  nodes: all of these, as the kernel has them."""

    n: int
    products: list[Node]
    nodes: list[Node]


@dataclass(frozen=True, slots=True)
class Parts:
    """What a kernel has: the nodes that the operand (m, k) is made of, and the products with what follows them."""

    m: int
    k: int
    format: str
    operand: Node
    rows: list[Node]
    segments: list[Segment]

    @property
    def n(self) -> int:
        """Rows of the weights that are multiplied one after the other or side by side."""
        return sum(segment.n for segment in self.segments)

    @classmethod
    def of(cls, work: Computation) -> Parts:
        products = [node for node in work.nodes if node.op is quantized.product]
        m, operand = products[0].spec.shape[0], products[0].inputs[0]
        rows = [node for node in work.nodes if is_row(work, node)]
        segments = []
        for n in dict.fromkeys(product.spec.shape[1] for product in products):
            nodes = [node for node in work.nodes if not is_row(work, node) and prod(node.spec.shape) == m * n]
            segments.append(Segment(n, [product for product in products if product.spec.shape[1] == n], nodes))
        return cls(m, operand.spec.shape[1], str(products[0].attrs["format"]), operand, rows, segments)


def is_row(work: Computation, node: Node) -> bool:
    """Whether the operand is made of a node."""
    return work.domain.levels.get(id(node), RESULT) != RESULT


def write(work: Computation, launch: Launch, build: Builder) -> Kernel:
    parts = Parts.of(work)
    staged = _Operand(parts, work, launch, build) if parts.rows else None
    group_rows, first = launch.threads // launch.split * launch.each[0], 0
    for segment in parts.segments:
        count = -(-segment.n // group_rows)
        own = [first <= GROUP, first + count > GROUP] if len(parts.segments) > 1 else []
        with build.if_(*own):
            _Write(parts, segment, work.outputs, staged, first, launch, build).write()
        first += count
    return build.kernel(f"quantized_{parts.format}", launch.threads, first, vector=4)


class _Operand:
    """The operand, computed by each workgroup and kept in its memory, in fours."""

    def __init__(self, parts: Parts, work: Computation, launch: Launch, build: Builder) -> None:
        self._parts, self._build = parts, build
        self._blocks = parts.m * parts.k // BLOCK
        self._fours = build.workgroup_array("operand", F32X4, parts.m * parts.k // 4)
        lanes = launch.threads
        each = (min(lanes, SUBGROUP),) if launch.variant == SHUFFLED else ()
        self._walk = Rows(IterationSpace((parts.m, parts.k), (1,)), launch._replace(split=lanes, each=each))
        self._walk.plan(len(parts.rows), 1, build)
        rows, levels = parts.rows, work.domain.levels
        stored = [node for node in rows if node in work.outputs]
        with self._walk.all(build):
            fold_row(rows, levels, self._walk, build)
            self._stored = [node for node in stored if levels[id(node)] == FULL]
            self._walk.each_column(build, self._keep)
            with build.if_(*([GROUP.eq(0), LANE.eq(0)] if len(stored) > len(self._stored) else [])):
                for node in stored:
                    if levels[id(node)] == OUTER:
                        build.store(node, self._walk.row, build.value(node, element(self._walk.row, node)))
        build.barrier()

    def four(self, m: int, column: Sym) -> Expr:
        """Four numbers of row `m`."""
        return self._build.let(self._fours[Index(self._slot(column + m * self._parts.k))])

    def _slot(self, position: Sym) -> Sym:
        return position // BLOCK + position // 4 % (BLOCK // 4) * self._blocks

    def _keep(self, places: Sequence[Place]) -> None:
        build, operand = self._build, self._parts.operand
        values = [build.value(operand, element(place.full, operand)) for place in places]
        width = self._walk.vector if len(places) > 1 else 1  # Behind the last strip columns are visited one by one.
        for inside, numbers in groups(places):
            with build.if_(*inside):
                for start in range(0, len(numbers), width):
                    position, own = places[numbers[start]].full, [values[number] for number in numbers[start:][:width]]
                    four = self._fours[Index(self._slot(position))]
                    if width == 4:
                        build.assign(four, neighbours.joined(build, own))
                    else:
                        build.assign(four[Index(position % 4)], own[0])
        for node in self._stored:  # For others: one workgroup tells them.
            for inside, numbers in groups(places):
                with build.if_(GROUP.eq(0), *inside):
                    for number in numbers:
                        place = places[number].full
                        build.store(node, place, build.value(node, element(place, node)))


class _Write:
    """Writes what the workgroups of a segment do, the first of which is `first`.

    sums: by number of a product, of a lane's rows of its weight, and of a row of the operand.
    """

    def __init__(
        self,
        parts: Parts,
        segment: Segment,
        outputs: Sequence[Node],
        staged: _Operand | None,
        first: int,
        launch: Launch,
        build: Builder,
    ) -> None:
        self.segment, self.launch, self.build, self.staged, self.first = segment, launch, build, staged, first
        self.products, self.format, self.operand = segment.products, parts.format, parts.operand
        self.outputs = [node for node in segment.nodes if any(node is output for output in outputs)]
        self.m, self.n, self.k = parts.m, segment.n, parts.k
        self.units = self.k // quantized_units.elements(self.format)
        self.lanes, self.each = launch.split, launch.each[0]
        self.group_rows = launch.threads // self.lanes * self.each

    def write(self) -> None:
        build = self.build
        self.position = build.let(LANE % self.lanes if self.lanes > 1 else Const(U32, 0), "position")
        group = GROUP - self.first if self.first else GROUP
        own = group * self.group_rows + LANE // self.lanes * self.each
        wanted = [build.let(own + index, f"wanted_{index}") for index in range(self.each)]
        is_even = self.n % self.group_rows == 0
        self.rows = [
            (row if is_even else build.let(smaller(row, self.n - 1), build.fresh("row"))).within(self.n)
            for row in wanted
        ]
        self.inside = [[] if is_even else [row < self.n] for row in wanted]
        self.sums = [
            [[build.var(Const(F32, 0.0), build.fresh("sum")) for _ in range(self.m)] for _ in range(self.each)]
            for _ in self.products
        ]
        self.fours: dict[tuple[int, Sym], Expr] = {}
        with build.loop("unit", self.position, self.units, self.lanes) as unit:
            self._add(unit.within(self.units))
        if self.lanes > 1:
            self._join()
        self._store()

    def _add(self, unit: Sym) -> None:
        """What a unit of each of the rows comes to, with each row of the operand."""
        build = self.build
        pairs = [(number, index) for number in range(len(self.products)) for index in range(self.each)]
        words = [
            quantized_units.load(build, self.products[number].inputs[1:], self.rows[index], unit)
            for number, index in pairs
        ]
        totals: dict[tuple[int, int], Expr] = {}  # of the operand's numbers, by row and part
        self.fours.clear()
        for (number, index), loaded in zip(pairs, words, strict=True):
            planes, row = self.products[number].inputs[1:], self.rows[index]
            parts = quantized_units.decode(self.format, build, planes, loaded, row, unit)
            for m in range(self.m):
                for part_number, part in enumerate(parts):
                    fours = [(self._four(m, column), codes) for column, codes in part.codes]
                    products = [build.let(x * codes) for x, codes in fours]
                    total: Expr = part.scale * self._across(products)
                    if part.offset is not None:
                        key = m, part_number
                        if key not in totals:
                            totals[key] = self._across([x for x, _ in fours])
                        total = total + part.offset * totals[key]
                    build.assign(self.sums[number][index][m], total, "+=")

    def _four(self, m: int, column: Sym) -> Expr:
        """Four numbers of the operand's row `m`, the same for all rows of the weights."""
        if self.staged is not None:
            if (m, column) not in self.fours:
                self.fours[m, column] = self.staged.four(m, column)
            return self.fours[m, column]
        coords = [(constant(m), column + index) for index in range(4)]
        four = neighbours.value(self.build, self.operand, coords)
        return four if four.type.width == 4 else call("vec4<f32>", F32X4, four)

    def _across(self, fours: Sequence[Expr]) -> Expr:
        """The sum of all numbers of some fours."""
        total = fours[0]
        for four in fours[1:]:
            total = total + four
        four = self.build.let(total)
        return self.build.let((four[0] + four[1]) + (four[2] + four[3]))

    def _join(self) -> None:
        """Adds what the lanes of a row have: the first lane has the sums."""
        build, lanes = self.build, self.lanes
        every = [total for of_product in self.sums for of_row in of_product for total in of_row]
        if self.launch.variant == SHUFFLED:
            distance = lanes
            while distance > 1:
                distance //= 2
                for total in every:
                    build.assign(total, call("subgroupShuffleXor", F32, total, Const(U32, distance)), "+=")
            return
        shared = build.workgroup_array("lane_sums", F32, self.launch.threads)
        for total in every:
            build.assign(shared[LANE], total)
            build.barrier()
            with build.loop("step", lanes // 2, 0, 1, ">>=") as step:
                with build.if_(self.position < step):
                    build.assign(shared[LANE], shared[LANE + step], "+=")
                build.barrier()
            build.assign(total, shared[LANE])
            build.barrier()

    def _store(self) -> None:
        build = self.build
        with build.if_(*([self.position.eq(0)] if self.lanes > 1 else [])):
            for index, row in enumerate(self.rows):
                with build.if_(*self.inside[index]):
                    for m in range(self.m):
                        place = flatten((constant(m), row), (self.m, self.n))
                        self._store_result(place, [of_product[index][m] for of_product in self.sums])

    def _store_result(self, place: Sym, sums: Sequence[Var]) -> None:
        build = self.build
        for product, total in zip(self.products, sums, strict=True):
            build.define(product, place, build.let(rounded(total, product.spec.dtype)))
        values = {id(node): build.value(node, element(place, node)) for node in self.segment.nodes}
        for node in self.outputs:
            build.store(node, place, values[id(node)])
