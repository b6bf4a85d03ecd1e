"""Rows combined by number, without atomics: each result element looks for the updates that are meant for it.

The updates of one element are taken in their order, so sums have the same bits in every run. Few updates: each element
looks at all of them, a workgroup reading each number once. Many: they are put in order first, and it bisects. Of very
many, blocks that are of one row are folded before.
"""

from collections.abc import Callable, Sequence
from math import prod

from pywebgpu.ir.graph import Node
from pywebgpu.kernels.builder import Builder
from pywebgpu.kernels.combine import combine
from pywebgpu.kernels.ir import GROUP, LANE, U32, Const, Expr, Var, construct, scalar, select, smaller
from pywebgpu.kernels.kernel import Kernel
from pywebgpu.kernels.launch import Launch, Problem, threads
from pywebgpu.kernels.target import Target
from pywebgpu.kernels.template import Computation, Template
from pywebgpu.ops import indexing
from pywebgpu.support.symbolic import ZERO, Sym, flatten, unflatten

LANES = 64  # invocations that read the numbers together
NEIGHBOURS = 4  # results of a row that one invocation computes, where a CPU plays the GPU


class ScatterTemplate(Template):
    """Problem: rows, columns, updates. Launch: threads, one for `vector` results of a row, or for a word of results."""

    name = "scatter"
    op = indexing.scatter
    packs_own = True

    def problem(self, work: Computation, build: Builder) -> Problem:
        (node,) = work.nodes
        return Problem((*node.spec.shape, node.inputs[1].spec.shape[0]))

    def launches(self, problem: Problem, target: Target) -> Sequence[Launch]:
        launches = [Launch(threads=size) for size in threads(min(target.limits.workgroup_size, LANES))]
        # Where comparing takes time, and few invocations keep all cores busy.
        wide = target.limits.emulated and problem.sizes[1] % NEIGHBOURS == 0
        return [*[launch._replace(vector=NEIGHBOURS) for launch in launches if wide], *launches]

    def write(self, work: Computation, launch: Launch, build: Builder) -> Kernel:
        (node,) = work.nodes
        size, lanes, each = prod(node.spec.shape), launch.threads, build.gather(work.outputs)
        if each == 1:
            each = launch.vector
            self._find(node, build.let(GROUP * lanes + LANE, "wanted"), lanes, build, launch.vector)
        else:
            with build.loop("of_word", 0, each) as own:
                self._find(node, build.let((GROUP * lanes + LANE) * each + own, "wanted"), lanes, build)
        return build.kernel(f"scatter_{node.attrs['mode']}", lanes, -(-size // (lanes * each)))

    def _find(self, node: Node, wanted: Var, lanes: int, build: Builder, width: int = 1) -> None:
        """One result, or those beside each other. The workgroup reads the numbers together, so all of it comes here."""
        base, index, source = node.inputs
        size, updates, mode = prod(node.spec.shape) // width, index.spec.shape[0], node.attrs["mode"]
        numbers = build.workgroup_array("numbers_of", U32, lanes)
        i = build.let(smaller(wanted, max(size - 1, 0)), "i")
        ats = [unflatten(i.within(size) * width + n, node.spec.shape) for n in range(width)]
        row = build.let(i // max(node.spec.shape[1] // width, 1))
        names = [build.fresh("acc") for _ in ats]
        results = [build.var(build.value(base, coords), name) for coords, name in zip(ats, names, strict=True)]
        with build.loop("first", 0, updates, lanes) as first:
            build.barrier()
            with build.if_(first + LANE < updates):
                own = build.let(first + LANE, "own")
                build.assign(numbers[LANE], construct(U32, build.value(index, (own.within(updates),))))
            build.barrier()
            count = build.let(smaller(Const(U32, lanes), updates - first), "count")
            with build.loop("k", 0, count) as k, build.if_(numbers[k].eq(row)):
                update = build.let(first + k, "update")
                for result, place in zip(results, ats, strict=True):
                    value = build.value(source, (update.within(updates) if updates > 1 else ZERO, place[1]))
                    build.assign(result, combine(mode, result, value))
        with build.if_(wanted < size):
            for result, place in zip(results, ats, strict=True):
                build.store(node, flatten(place, node.spec.shape), result)


class ScatterSortedTemplate(Template):
    """Each result element finds the first update of its row by bisection and takes them while the row lasts.

    Problem: rows, columns, updates. Launch: threads, one a result, or a word of results.
    """

    name = "scatter_sorted"
    op = indexing.scatter_sorted
    packs_own = True

    def problem(self, work: Computation, build: Builder) -> Problem:
        (node,) = work.nodes
        return Problem((*node.spec.shape, node.inputs[1].spec.shape[0]))

    def launches(self, problem: Problem, target: Target) -> Sequence[Launch]:
        return [Launch(threads=size) for size in threads(target.limits.workgroup_size)]

    def write(self, work: Computation, launch: Launch, build: Builder) -> Kernel:
        (node,) = work.nodes
        groups = _each_result(node, launch.threads, build, lambda i: self._find(node, i, build))
        return build.kernel(f"scatter_sorted_{node.attrs['mode']}", launch.threads, groups)

    def _find(self, node: Node, i: Var, build: Builder) -> None:
        base, numbers, _, _, *folds = node.inputs
        size, updates, mode = prod(node.spec.shape), numbers.spec.shape[0], node.attrs["mode"]
        coords = unflatten(i.within(size), node.spec.shape)
        row = build.let(i // max(node.spec.shape[1], 1))
        name = build.fresh("acc")
        result = build.var(build.value(base, coords), name)
        low = build.var(Const(U32, 0), "low")
        high = build.var(Const(U32, updates), "high")
        with build.while_(low < high):
            half = build.let((low + high) // 2, "half")
            build.bisect(low, high, half, build.value(numbers, (half.within(updates),)) < row)
        run = _Run(node, row, coords[1], result, build)
        if not folds:
            run.take("position", low, Const(U32, updates))
        else:
            each, blocks = node.attrs["size"], updates // node.attrs["size"]
            first = build.let((low + (each - 1)) // each, "first")
            run.take("position", low, smaller(low + (each - 1), first * each))
            block = build.var(first, "block")
            with build.loop("whole", first, Const(U32, blocks)) as block_index:
                is_all = run.goes_on(block_index * each) & run.goes_on(block_index * each + (each - 1))
                build.jump("break", ~is_all)
                build.assign(
                    result, combine(mode, result, build.value(folds[0], (block_index.within(blocks), coords[1])))
                )
                build.assign(block, block_index + 1)
            start = build.let(block * each, "start")
            run.take("position", start, smaller(start + each, updates))
        build.store(node, flatten(coords, node.spec.shape), result)


class FoldSortedTemplate(Template):
    """Each result is folded of a block of sorted updates, where they are of one row.

    Problem: blocks, columns, updates of a block. Launch: threads, one a result, or a word of results.
    """

    name = "fold_sorted"
    op = indexing.fold_sorted
    packs_own = True

    def problem(self, work: Computation, build: Builder) -> Problem:
        (node,) = work.nodes
        return Problem((*node.spec.shape, node.attrs["size"]))

    def launches(self, problem: Problem, target: Target) -> Sequence[Launch]:
        return [Launch(threads=size) for size in threads(min(target.limits.workgroup_size, LANES))]

    def write(self, work: Computation, launch: Launch, build: Builder) -> Kernel:
        (node,) = work.nodes
        groups = _each_result(node, launch.threads, build, lambda i: self._fold(node, i, build))
        return build.kernel(f"fold_sorted_{node.attrs['mode']}", launch.threads, groups)

    def _fold(self, node: Node, i: Var, build: Builder) -> None:
        size = node.attrs["size"]
        coords = unflatten(i.within(prod(node.spec.shape)), node.spec.shape)
        first = build.let(i // node.spec.shape[1] * size, "first")
        result = build.var(scalar(node.spec.dtype), build.fresh("acc"))
        run = _Run(node, Const(U32, 0), coords[1], result, build)
        build.assign(result, run.value(first))
        is_one = run.number(first).eq(run.number(build.let(first + (size - 1))))
        with build.loop("position", first + 1, build.let(select(first, first + size, is_one), "end")) as position:
            build.assign(result, combine(node.attrs["mode"], result, run.value(position)))
        build.store(node, flatten(coords, node.spec.shape), result)


class _Run:
    """The updates of a row, which stand side by side in their order. column: of the result."""

    def __init__(self, node: Node, row: Expr, column: Sym, result: Var, build: Builder) -> None:
        *_, self._numbers, self._order, self._source = node.inputs[: 3 if node.op is indexing.fold_sorted else 4]
        self._mode, self._row, self._column, self._result, self._build = node.attrs["mode"], row, column, result, build
        self._updates = self._numbers.spec.shape[0]

    def number(self, position: Var) -> Expr:
        return self._build.value(self._numbers, (position.within(self._updates),))

    def goes_on(self, position: Expr) -> Expr:
        return self.number(self._build.let(position)).eq(self._row)

    def value(self, position: Var) -> Expr:
        update = self._build.let(
            construct(U32, self._build.value(self._order, (position.within(self._updates),))),
            self._build.fresh("update"),
        )
        return self._build.value(self._source, (update.within(self._updates), self._column))

    def take(self, name: str, start: Expr, end: Expr) -> None:
        """Updates from start to end, as long as they are of the row."""
        with self._build.loop(name, start, end) as position:
            self._build.jump("break", self.number(position).ne(self._row))
            self._build.assign(self._result, combine(self._mode, self._result, self.value(position)))


def _each_result(node: Node, lanes: int, build: Builder, find: Callable[[Var], None]) -> int:
    """Has each invocation find a result, or a word of them. How many workgroups that takes."""
    size, each = prod(node.spec.shape), build.gather([node])
    if each == 1:
        i = build.let(GROUP * lanes + LANE, "i")
        build.jump("return", i >= size)
        find(i)
    else:
        start = build.let((GROUP * lanes + LANE) * each, "start_of_word")
        with build.loop("i", start, smaller(start + each, size)) as i:
            find(i)
    return -(-size // (lanes * each))
