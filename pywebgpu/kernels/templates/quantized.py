"""Products of few rows with quantised weights, and pointwise work on their results: what decoding text is made of.

Some lanes share a row of the weight. Each has every so many-th unit of 16 bytes of codes, and multiplies all rows of
the operand with it before it goes on; what offsets come to is the sum of the operand's numbers, once for all rows.
"""

from collections.abc import Sequence
from math import prod

from pywebgpu.composites import quantized
from pywebgpu.ir.graph import Node
from pywebgpu.kernels import neighbours, quantized_units
from pywebgpu.kernels.access import Edges, gathers, reads_inside
from pywebgpu.kernels.builder import Builder, element
from pywebgpu.kernels.intrinsics import rounded
from pywebgpu.kernels.ir import F32, GROUP, LANE, U32, Const, Expr, Var, call, smaller
from pywebgpu.kernels.kernel import Kernel
from pywebgpu.kernels.launch import Launch, Problem
from pywebgpu.kernels.target import SUBGROUPS, Features, Target
from pywebgpu.kernels.template import Computation, Domain, FusedTemplate
from pywebgpu.kernels.templates.rows import IN_ORDER
from pywebgpu.kernels.templates.rows_walk import SHUFFLED
from pywebgpu.support.symbolic import Sym, constant, flatten, variable

MOST_ROWS = 8  # of the operand: tiles of products are faster for more
LANES = (1, 2, 4, 8, 16, 32)  # that may share a row of the weight
THREADS = (64, 128)
EACH = (1, 2, 4)  # rows of the weight that a lane has at the same time
EMULATED_THREADS = 16  # of a CPU that plays the GPU: there a row has one lane, and what it loads is for several rows
MANY = 16_000  # rows that keep a device busy, though a lane has several


class QuantizedTemplate(FusedTemplate):
    """Problem: rows of the operand, rows and columns of the weight, units of a row; formats: the weight's.

    Launch: threads, of which `split` share a row of the weight; each: rows of the weight that a lane has.
    """

    name = "quantized"
    absorbs = frozenset({"pointwise", name})
    siblings = frozenset({name})
    op = quantized.product
    effort = 1

    def supports(self, node: Node, target: Target) -> bool:
        return 0 < node.spec.shape[0] <= MOST_ROWS and 0 not in node.inputs[1].spec.shape

    def joined(self, nodes: Sequence[Node], edges: Edges, parts: tuple[Domain, Domain]) -> Domain | None:
        """Products of one operand with weights of one shape, and what is computed of each result alone."""
        products = [node for node in nodes if node.op is self.op]
        first, inside = products[0], {id(node) for node in nodes}
        if any(_kind(node) != _kind(first) for node in products):
            return None
        size = prod(first.spec.shape)
        for node in nodes:
            if node.op is self.op:
                if any(id(producer) in inside for producer, _, _ in edges[id(node)]):
                    return None
            elif prod(node.spec.shape) != size or not reads_inside(edges[id(node)], node, inside, variable("i", size)):
                return None
        return Domain()

    def written_at(self, work: Computation, result: Node, escapes: object) -> Sym:
        return variable("i", prod(result.spec.shape))

    def reads_on_level(self, work: Computation, node: Node, result: Node) -> bool:
        return node.op is not self.op and not gathers(node.op)

    def problem(self, work: Computation, build: Builder) -> Problem:
        node = _product_of(work)
        rows, n = node.spec.shape
        format = str(node.attrs["format"])
        k = node.inputs[0].spec.shape[1]
        return Problem((rows, n, k, k // quantized_units.elements(format)), (format,))

    def launches(self, problem: Problem, target: Target) -> Sequence[Launch]:
        _, n, _, units = problem.sizes
        shuffles = _neighbours(target.features)
        most = target.limits.workgroup_size
        threads = [size for size in THREADS if size <= most] or [max(LANES)]
        lanes = 8 if units < 32 else 16 if units < 128 else 32
        wanted = _launch(threads[0], lanes, 2 if n >= MANY else 1, shuffles)
        if target.is_cpu:
            wanted = _launch(min(EMULATED_THREADS, most), 1, EACH[-1], shuffles)
        others = [
            _launch(size, share, rows, shuffles and ways)
            for size in threads
            for share in (share for share in LANES if share <= max(units, lanes))
            for rows in EACH
            for ways in (True, False)
            if ways or not shuffles or share == 1
        ]
        return list(dict.fromkeys([wanted, *others]))

    def write(self, work: Computation, launch: Launch, build: Builder) -> Kernel:
        return _Write(work, launch, build).kernel()


def _launch(threads: int, lanes: int, each: int, shuffles: bool) -> Launch:
    return Launch(SHUFFLED if shuffles and lanes > 1 else "", threads, each=(each,), split=lanes)


def _neighbours(features: Features) -> bool:
    """Whether invocations that share a row surely lie in one subgroup."""
    return SUBGROUPS in features and features.family in IN_ORDER and features.subgroup_sizes[0] >= LANES[-1]


def _kind(node: Node) -> tuple[object, ...]:
    """What products of one kernel have in common."""
    return id(node.inputs[0]), node.spec, node.attrs["format"]


def _product_of(work: Computation) -> Node:
    return next(node for node in work.nodes if node.op is quantized.product)


class _Write:
    """Writes a kernel.

    sums: by number of a product, of a lane's rows of its weight, and of a row of the operand.
    """

    def __init__(self, work: Computation, launch: Launch, build: Builder) -> None:
        self.work, self.launch, self.build = work, launch, build
        self.products = [node for node in work.nodes if node.op is quantized.product]
        first = self.products[0]
        self.format = str(first.attrs["format"])
        self.operand = first.inputs[0]
        (self.m, self.n), self.k = first.spec.shape, self.operand.spec.shape[1]
        self.units = self.k // quantized_units.elements(self.format)
        self.lanes, self.each = launch.split, launch.each[0]
        self.group_rows = launch.threads // self.lanes * self.each

    def kernel(self) -> Kernel:
        build, launch = self.build, self.launch
        self.position = build.let(LANE % self.lanes if self.lanes > 1 else Const(U32, 0), "position")
        own = GROUP * self.group_rows + LANE // self.lanes * self.each
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
        with build.loop("unit", self.position, self.units, self.lanes) as unit:
            self._add(unit.within(self.units))
        if self.lanes > 1:
            self._join()
        self._store()
        name = f"quantized_{self.format}"
        return build.kernel(name, launch.threads, -(-self.n // self.group_rows), vector=4)

    def _add(self, unit: Sym) -> None:
        """What a unit of each of the rows comes to, with each row of the operand."""
        build = self.build
        pairs = [(number, index) for number in range(len(self.products)) for index in range(self.each)]
        words = [
            quantized_units.load(build, self.products[number].inputs[1:], self.rows[index], unit)
            for number, index in pairs
        ]
        totals: dict[tuple[int, int], Expr] = {}  # of the operand's numbers, by row and part
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
        """Four numbers of the operand's row `m`."""
        coords = [(constant(m), column + index) for index in range(4)]
        four = neighbours.value(self.build, self.operand, coords)
        return four if four.type.width == 4 else call("vec4<f32>", quantized_units.F32X4, four)

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
        values = {id(node): build.value(node, element(place, node)) for node in self.work.nodes}
        for node in self.work.outputs:
            build.store(node, place, values[id(node)])
