"""Stable ordering of rows of uint32 keys: blocks by counting, then pairs of runs merged by rank.

Each element finds its rank alone: in a block by counting smaller elements, in a merge by its own rank plus a binary
search in the other run. So a pass is one dispatch for any size, and equal keys keep their order.
"""

from collections.abc import Sequence
from math import prod

from pywebgpu.ir.graph import Node
from pywebgpu.kernels.builder import Builder
from pywebgpu.kernels.ir import GROUP, I32, LANE, U32, Const, Var, construct, select, smaller
from pywebgpu.kernels.kernel import Kernel
from pywebgpu.kernels.launch import Launch, Problem, threads
from pywebgpu.kernels.target import Target
from pywebgpu.kernels.template import Computation, Template
from pywebgpu.kernels.templates import sort_large_blocks
from pywebgpu.ops import indexing
from pywebgpu.support.symbolic import Sym, flatten, unflatten

BLOCK = 256  # elements that one workgroup orders by counting


def _indices(node: Node, row: Var, column: Var) -> tuple[Sym, ...]:
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
        if node.attrs["size"] <= BLOCK:
            return _count_shared(node, launch, build)
        return sort_large_blocks.Ranking(node, launch, build).write()


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
        build.assign(shared[k], build.value(keys, _indices(node, row, column)))
    build.barrier()
    with build.loop("own", LANE, count, lanes) as own:
        key = build.let(shared[own], "key")
        rank = build.var(first, "rank")
        with build.loop("k", 0, count) as k:
            before = (shared[k] < key) | (shared[k].eq(key) & (k < own))
            build.assign(rank, select(0, Const(U32, 1), before), "+=")
        build.store(node, flatten(_indices(node, row, rank), node.spec.shape), construct(I32, first + own))
    return build.kernel("sort_block", lanes, rows * blocks)


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
        own = build.let(construct(U32, build.value(order, _indices(node, row, position))), "own")
        key = build.let(build.value(keys, _indices(node, row, own)), "key")
        left = build.let(position < middle, "left")
        low = build.var(select(start, middle, left), "low")
        high = build.var(select(middle, end, left), "high")
        other = build.let(low, "other")
        with build.while_(low < high):
            half = build.let((low + high) // 2, "half")
            there = build.let(construct(U32, build.value(order, _indices(node, row, half))), "there")
            rival = build.value(keys, _indices(node, row, there))
            before = build.let(select(rival <= key, rival < key, left), "before")
            build.bisect(low, high, half, before)
        rank = build.let(start + (position - select(middle, start, left)) + (low - other), "rank")
        build.store(node, flatten(_indices(node, row, rank), node.spec.shape), construct(I32, own))
        return build.kernel("sort_merge", lanes, -(-size // lanes))


def _problem(work: Computation) -> Problem:
    shape, attrs = work.nodes[0].spec.shape, work.nodes[0].attrs
    return Problem((prod(shape[:-1]), shape[-1], attrs.get("size", attrs.get("width"))))
