"""Running sums, products and extremes along the last axis: one workgroup a row, each lane a stretch of it.

Every lane folds its stretch, the folds are joined from the left in workgroup memory, and the stretch is walked again.
"""

from collections.abc import Sequence
from math import prod

from pywebgpu.ir.graph import Node
from pywebgpu.kernels.builder import Builder
from pywebgpu.kernels.combine import combine
from pywebgpu.kernels.ir import LANE, Const, Expr, Var, larger, scalar, smaller
from pywebgpu.kernels.kernel import Kernel
from pywebgpu.kernels.launch import Launch, Problem, threads
from pywebgpu.kernels.target import Target
from pywebgpu.kernels.template import Computation, Template
from pywebgpu.ops import indexing
from pywebgpu.support.symbolic import flatten, unflatten, variable


class ScanTemplate(Template):
    """Problem: rows, columns. Launch: threads of a row."""

    name = "scan"
    op = indexing.scan
    repeats = 8  # It visits each element twice.

    def packs(self, work: Computation, node: Node, each: int) -> bool:
        return bool(node.spec.shape[-1] % each == 0)

    def problem(self, work: Computation, build: Builder) -> Problem:
        shape = work.nodes[0].spec.shape
        return Problem((prod(shape[:-1]), shape[-1]))

    def launches(self, problem: Problem, target: Target) -> Sequence[Launch]:
        columns = 1 << max(problem.sizes[1] - 1, 0).bit_length()
        return [Launch(threads=size) for size in threads(min(target.limits.workgroup_size, columns))]

    def write(self, work: Computation, launch: Launch, build: Builder) -> Kernel:
        (node,) = work.nodes
        source, mode = node.inputs[0], node.attrs["mode"]
        columns = node.spec.shape[-1]
        rows = prod(node.spec.shape[:-1])
        lanes = launch.threads
        each = build.gather(work.outputs)
        stretch = -(-columns // (lanes * each)) * each
        kind = scalar(node.spec.dtype)
        plain = mode.removesuffix("_checked")
        folds = build.workgroup_array("folds", kind, lanes)
        coords = (*unflatten(variable("group", rows), node.spec.shape[:-1]), variable("column", columns))
        start = build.let(LANE * stretch, "start")
        end = build.let(smaller(start + stretch, columns), "end")
        fold = build.var(Const(kind, 0), "fold")
        with build.loop("column", start, end) as column:
            _take(plain, fold, build.value(source, coords), column.eq(start), build)
        build.assign(folds[LANE], fold)
        build.barrier()
        with build.loop("step", 1, lanes, 1, "<<=") as step:
            joined = build.var(folds[LANE], "joined")
            with build.if_(step <= LANE, start < end):
                build.assign(joined, combine(plain, folds[LANE - step], joined))
            build.barrier()
            build.assign(folds[LANE], joined)
            build.barrier()
        total = build.var(folds[larger(LANE, 1) - 1], "total")
        with build.loop("column", start, end) as column:
            # Where all before them fit, these sums are true ones: here, and only here, they are checked.
            _take(mode, total, build.value(source, coords), column.eq(0), build)
            build.store(node, flatten(coords, node.spec.shape), total)
        return build.kernel(f"scan_{mode}", lanes, rows)


def _take(mode: str, total: Var, value: Expr, is_first: Expr, build: Builder) -> None:
    with build.if_(is_first):
        build.assign(total, value)
    with build.else_():
        build.assign(total, combine(mode, total, value))
