"""Rows combined by number, without atomics: each result element looks for the updates that are meant for it.

The updates of one element are taken in their order, so sums have the same bits in every run. Few updates: each element
looks at all of them, a workgroup reading each number once. Many: they are put in order first, and it bisects.
"""

from collections.abc import Sequence
from math import prod

from pywebgpu.ir.graph import Op
from pywebgpu.kernels.builder import Builder
from pywebgpu.kernels.combine import combine
from pywebgpu.kernels.ir import GROUP, LANE, U32, Const, construct, smaller
from pywebgpu.kernels.kernel import Kernel
from pywebgpu.kernels.launch import Launch, Problem, threads
from pywebgpu.kernels.target import Target
from pywebgpu.kernels.template import Computation, Template
from pywebgpu.ops import indexing
from pywebgpu.symbolic import ZERO, flatten, unflatten

LANES = 64  # invocations that read the numbers together


class ScatterTemplate(Template):
    """Problem: rows, columns, updates. Launch: threads, one a result."""

    name = "scatter"

    def claims(self, op: Op, target: Target) -> bool:
        return op is indexing.scatter

    def problem(self, work: Computation, build: Builder) -> Problem:
        (node,) = work.nodes
        return Problem((*node.spec.shape, node.inputs[1].spec.shape[0]))

    def launches(self, problem: Problem, target: Target) -> Sequence[Launch]:
        return [Launch(threads=one) for one in threads(min(target.limits.workgroup_size, LANES))]

    def write(self, work: Computation, launch: Launch, build: Builder) -> Kernel:
        (node,) = work.nodes
        base, index, source = node.inputs
        size, lanes = prod(node.spec.shape), launch.threads
        updates, mode = index.spec.shape[0], node.attrs["mode"]
        numbers = build.workgroup_array("numbers_of", U32, lanes)
        wanted = build.let(GROUP * lanes + LANE, "wanted")
        i = build.let(smaller(wanted, max(size - 1, 0)), "i")
        at = unflatten(i.within(size), node.spec.shape)
        row = build.let(i // max(node.spec.shape[1], 1))
        name = build.fresh("acc")
        result = build.var(build.value(base, at), name)
        with build.loop("first", 0, updates, lanes) as first:
            build.barrier()
            with build.if_(first + LANE < updates):
                own = build.let(first + LANE, "own")
                build.assign(numbers[LANE], construct(U32, build.value(index, (own.within(updates),))))
            build.barrier()
            count = build.let(smaller(Const(U32, lanes), updates - first), "count")
            with build.loop("k", 0, count) as k, build.if_(numbers[k].eq(row)):
                update = build.let(first + k, "update")
                value = build.value(source, (update.within(updates) if updates > 1 else ZERO, at[1]))
                build.assign(result, combine(mode, result, value))
        with build.if_(wanted < size):
            build.store(node, flatten(at, node.spec.shape), result)
        return build.kernel(f"scatter_{mode}", lanes, -(-size // lanes))


class ScatterSortedTemplate(Template):
    """Each result element finds the first update of its row by bisection and takes them while the row lasts.

    Problem: rows, columns, updates. Launch: threads, one a result.
    """

    name = "scatter_sorted"

    def claims(self, op: Op, target: Target) -> bool:
        return op is indexing.scatter_sorted

    def problem(self, work: Computation, build: Builder) -> Problem:
        (node,) = work.nodes
        return Problem((*node.spec.shape, node.inputs[1].spec.shape[0]))

    def launches(self, problem: Problem, target: Target) -> Sequence[Launch]:
        return [Launch(threads=one) for one in threads(target.limits.workgroup_size)]

    def write(self, work: Computation, launch: Launch, build: Builder) -> Kernel:
        (node,) = work.nodes
        base, numbers, order, source = node.inputs
        size, lanes = prod(node.spec.shape), launch.threads
        updates, mode = numbers.spec.shape[0], node.attrs["mode"]
        i = build.let(GROUP * lanes + LANE, "i")
        build.jump("return", i >= size)
        at = unflatten(i.within(size), node.spec.shape)
        row = build.let(i // max(node.spec.shape[1], 1))
        name = build.fresh("acc")
        result = build.var(build.value(base, at), name)
        low = build.var(Const(U32, 0), "low")
        high = build.var(Const(U32, updates), "high")
        with build.while_(low < high):
            half = build.let((low + high) // 2, "half")
            build.bisect(low, high, half, build.value(numbers, (half.within(updates),)) < row)
        with build.loop("position", low, updates) as position:
            build.jump("break", build.value(numbers, (position.within(updates),)).ne(row))
            update = build.let(construct(U32, build.value(order, (position.within(updates),))), "update")
            build.assign(result, combine(mode, result, build.value(source, (update.within(updates), at[1]))))
        build.store(node, flatten(at, node.spec.shape), result)
        return build.kernel(f"scatter_sorted_{mode}", lanes, -(-size // lanes))
