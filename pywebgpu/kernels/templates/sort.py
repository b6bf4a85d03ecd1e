"""Stable ordering of rows of uint32 keys: blocks by counting, then pairs of runs merged by rank.

Each element finds its rank alone: in a block by counting smaller elements, in a merge by its own rank plus a binary
search in the other run. So a pass is one dispatch for any size, and equal keys keep their order.
"""

from collections.abc import Sequence
from math import prod

from pywebgpu.ir.graph import Node
from pywebgpu.kernels.builder import Builder
from pywebgpu.kernels.ir import GROUP, I32, LANE, U32, Const, Expr, Index, Var, construct, select, smaller
from pywebgpu.kernels.kernel import Kernel
from pywebgpu.kernels.launch import Launch, Problem, threads
from pywebgpu.kernels.target import Target
from pywebgpu.kernels.template import Computation, Template
from pywebgpu.ops import indexing
from pywebgpu.support.symbolic import Sym, flatten, unflatten

BLOCK = 256  # elements that one workgroup orders by counting
SIDES = (32, 16, 8, 4)  # elements of a larger block that one workgroup finds the ranks of
COUNTED = 128  # keys that a lane looks at for one of them, at most, where there are few enough
UNROLLED = 4  # keys, or vectors of them, that are loaded side by side


def _at(node: Node, row: Var, column: Var) -> tuple[Sym, ...]:
    rows, columns = prod(node.spec.shape[:-1]), node.spec.shape[-1]
    return (*unflatten(row.within(rows), node.spec.shape[:-1]), column.within(columns))


class SortBlockTemplate(Template):
    """Problem: rows, columns. Launch: threads of a workgroup, which orders a block."""

    name = "sort_block"
    op = indexing.sort_block
    repeats = 1  # Row numbers are cast to keys. What checks them costs more: then no load waits for another.

    def problem(self, work: Computation, build: Builder) -> Problem:
        return _problem(work)

    def launches(self, problem: Problem, target: Target) -> Sequence[Launch]:
        most = target.limits.workgroup_size
        return [Launch(threads=size) for size in threads(min(BLOCK, most) if problem.sizes[2] <= BLOCK else most)]

    def write(self, work: Computation, launch: Launch, build: Builder) -> Kernel:
        (node,) = work.nodes
        return _count_shared(node, launch, build) if node.attrs["size"] <= BLOCK else _count_apart(node, launch, build)


def _count_shared(node: Node, launch: Launch, build: Builder) -> Kernel:
    """A workgroup orders a block."""
    keys, lanes = node.inputs[0], launch.threads
    rows, columns = prod(node.spec.shape[:-1]), node.spec.shape[-1]
    blocks = -(-columns // BLOCK)
    shared = build.workgroup_array("keys_of", U32, BLOCK)
    row = build.let(GROUP // blocks, "row")
    first = build.let(GROUP % blocks * BLOCK, "first")
    count = build.let(smaller(Const(U32, BLOCK), columns - first), "count")
    with build.loop("k", LANE, count, lanes) as k:
        column = build.let(first + k, "column")
        build.assign(shared[k], build.value(keys, _at(node, row, column)))
    build.barrier()
    with build.loop("own", LANE, count, lanes) as own:
        key = build.let(shared[own], "key")
        rank = build.var(first, "rank")
        with build.loop("k", 0, count) as k:
            before = (shared[k] < key) | (shared[k].eq(key) & (k < own))
            build.assign(rank, select(0, Const(U32, 1), before), "+=")
        build.store(node, flatten(_at(node, row, rank), node.spec.shape), construct(I32, first + own))
    return build.kernel("sort_block", lanes, rows * blocks)


def _count_apart(node: Node, launch: Launch, build: Builder) -> Kernel:
    """A large block, ordered by many workgroups: each has a few elements, whose ranks its lanes count in parts."""
    keys, lanes, size = node.inputs[0], launch.threads, node.attrs["size"]
    rows, columns = prod(node.spec.shape[:-1]), node.spec.shape[-1]
    side = next((number for number in SIDES if min(size, columns) * number <= COUNTED * lanes), SIDES[-1])
    parts, vector = lanes // side, 4 if columns % 4 == 0 else 1
    groups = -(-columns // side)  # A block begins where a workgroup does: both are powers of two.
    counts = build.workgroup_array("counts", U32, side * parts)
    row = build.let(GROUP // groups, "row")
    part = build.let(LANE // side, "part")
    own = build.let(GROUP % groups * side + LANE % side, "own")
    column = build.let(smaller(own, columns - 1), "column")
    first = build.let(column // size * size, "first")
    end = build.let(smaller(first + size, columns), "end")
    key = build.let(build.value(keys, _at(node, row, column)), "key")
    lead = unflatten(row.within(rows), node.spec.shape[:-1])
    mine = build.let(column // vector, "mine")

    def loaded(number_of_vector: Var) -> list[tuple[Expr, Expr]]:
        places = [number_of_vector.within(columns // vector) * vector + number for number in range(vector)]
        return [(Index(place), build.value(keys, (*lead, place))) for place in places]

    rank = build.var(Const(U32, 0), "rank")
    around = loaded(mine) if vector > 1 else []
    for place, other in around:  # Equal keys of vectors before this one count as well: see below.
        is_before = part.eq(0) & other.eq(key) & (place < own)
        build.assign(rank, select(0, Const(U32, 1), is_before), "+=")

    def count(vectors: Sequence[Expr]) -> None:
        """All are loaded before one is compared, by a bound that a whole vector has."""
        ats = [build.let(vector, build.fresh("k")) for vector in vectors]
        for compared, others in zip(ats, [loaded(index) for index in ats], strict=True):
            bound = build.let(key + select(0, Const(U32, 1), compared < mine), build.fresh("bound"))
            all_are = build.let(bound < key, build.fresh("all_are"))  # The largest number has none above it.
            for _, other in others:
                build.assign(rank, select(0, Const(U32, 1), (other < bound) | all_are), "+=")

    next_vector = build.var(first // vector + part, "at")
    with build.if_(part < parts):
        with build.while_((next_vector + (UNROLLED - 1) * parts) * vector < end):
            count([next_vector + step * parts for step in range(UNROLLED)])
            build.assign(next_vector, UNROLLED * parts, "+=")
        with build.while_(next_vector * vector < end):
            count([next_vector])
            build.assign(next_vector, parts, "+=")
        build.assign(counts[LANE], rank)
    build.barrier()
    with build.if_(side > LANE, own < columns):
        total = build.var(first, "total")
        with build.loop("step", 0, parts) as side_rows:
            build.assign(total, counts[side_rows * side + LANE], "+=")
        build.store(node, flatten(_at(node, row, total), node.spec.shape), construct(I32, own))
    return build.kernel("sort_block", lanes, rows * groups, vector=vector)


class SortMergeTemplate(Template):
    """Problem: rows, columns. Launch: threads, one an element."""

    name = "sort_merge"
    op = indexing.sort_merge
    repeats = SortBlockTemplate.repeats

    def problem(self, work: Computation, build: Builder) -> Problem:
        return _problem(work)

    def launches(self, problem: Problem, target: Target) -> Sequence[Launch]:
        return [Launch(threads=size) for size in threads(target.limits.workgroup_size)]

    def write(self, work: Computation, launch: Launch, build: Builder) -> Kernel:
        (node,), lanes = work.nodes, launch.threads
        keys, order = node.inputs
        width: int = node.attrs["width"]
        size, columns = prod(node.spec.shape), node.spec.shape[-1]
        i = build.let(GROUP * lanes + LANE, "i")
        build.jump("return", i >= size)
        row = build.let(i // columns, "row")
        position = build.let(i % columns, "position")
        start = build.let(position // (2 * width) * (2 * width), "start")
        middle = build.let(smaller(start + width, columns), "middle")
        end = build.let(smaller(start + 2 * width, columns), "end")
        own = build.let(construct(U32, build.value(order, _at(node, row, position))), "own")
        key = build.let(build.value(keys, _at(node, row, own)), "key")
        left = build.let(position < middle, "left")
        low = build.var(select(start, middle, left), "low")
        high = build.var(select(middle, end, left), "high")
        other = build.let(low, "other")
        with build.while_(low < high):
            half = build.let((low + high) // 2, "half")
            there = build.let(construct(U32, build.value(order, _at(node, row, half))), "there")
            rival = build.value(keys, _at(node, row, there))
            before = build.let(select(rival <= key, rival < key, left), "before")
            build.bisect(low, high, half, before)
        rank = build.let(start + (position - select(middle, start, left)) + (low - other), "rank")
        build.store(node, flatten(_at(node, row, rank), node.spec.shape), construct(I32, own))
        return build.kernel("sort_merge", lanes, -(-size // lanes))


def _problem(work: Computation) -> Problem:
    shape, attrs = work.nodes[0].spec.shape, work.nodes[0].attrs
    return Problem((prod(shape[:-1]), shape[-1], attrs.get("size", attrs.get("width"))))
