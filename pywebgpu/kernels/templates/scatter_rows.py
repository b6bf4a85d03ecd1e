"""Rows combined by number in place, by blocks of updates in the order of their numbers: see ops/scattering.py.

Each row is written by one workgroup of each kernel, and its updates are taken in their order, so sums have the same
bits in every run.
"""

from collections.abc import Callable, Mapping, Sequence

from pywebgpu.ir.graph import WHICH, Node, Op
from pywebgpu.kernels.builder import Builder
from pywebgpu.kernels.combine import combine
from pywebgpu.kernels.ir import GROUP, LANE, U32, Array, Const, Expr, Var, construct, select, smaller
from pywebgpu.kernels.kernel import Kernel
from pywebgpu.kernels.launch import Launch, Problem
from pywebgpu.kernels.target import Target
from pywebgpu.kernels.template import Computation, FusedTemplate, Template
from pywebgpu.ops import scattering
from pywebgpu.symbolic import Sym, flatten

BLOCK = scattering.BLOCK
NO_ROW = 0xFFFFFFFF
UNROLLED = 16  # carries that are loaded side by side


def problem_of(updates: int, columns: int) -> Problem:
    return Problem((updates, columns), layout=str(next(width for width in (4, 2, 1) if columns % width == 0)))


def launches_of(problem: Problem, target: Target) -> list[Launch]:
    """One workgroup has all columns where it can: each lane `vector` of them."""
    found = []
    for vector in (4, 2, 1):
        if vector <= int(problem.layout):
            columns = problem.sizes[1] // vector
            parts = -(-columns // target.limits.workgroup_size)
            found.append(Launch(threads=-(-columns // parts), vector=vector))
    return found


class Columns:
    """Which columns of a row an invocation has. group: the number of its workgroup but for the part of the columns."""

    def __init__(self, columns: int, launch: Launch, build: Builder) -> None:
        self.vectors, self.width = columns // launch.vector, launch.vector
        self.parts = -(-self.vectors // launch.threads)
        self.group = build.let(GROUP // self.parts if self.parts > 1 else GROUP, "block")
        self._column = build.let(GROUP % self.parts * launch.threads + LANE if self.parts > 1 else LANE, "column")
        self._all = self.parts * launch.threads == self.vectors
        self._there = self._column if self._all else build.let(smaller(self._column, self.vectors - 1), "there")

    def leave(self, build: Builder) -> None:
        """Lanes without a column have nothing more to do."""
        if not self._all:
            build.jump("return", self._column >= self.vectors)

    def at(self, row: Sym) -> list[tuple[Sym, Sym]]:
        """The elements of a row that the invocation has; of one without a column the last."""
        first = self._there.within(self.vectors) * self.width
        return [(row, first + number) for number in range(self.width)]


class ScatterBlocksTemplate(FusedTemplate):
    """Problem: updates, columns; layout: the largest vector that divides the columns. Launch: threads, vector."""

    name = "scatter_blocks"
    absorbs = beside = frozenset({name})
    op = scattering.scatter_blocks

    def problem(self, work: Computation, build: Builder) -> Problem:
        return problem_of(work.nodes[0].inputs[1].spec.shape[0], work.nodes[0].inputs[0].spec.shape[1])

    def launches(self, problem: Problem, target: Target) -> Sequence[Launch]:
        return launches_of(problem, target)

    def write(self, work: Computation, launch: Launch, build: Builder) -> Kernel:
        made = {node.attrs[WHICH]: node for node in work.nodes}
        base, numbers, order, _ = work.nodes[0].inputs
        updates = numbers.spec.shape[0]
        own = Columns(base.spec.shape[1], launch, build)
        blocks = -(-updates // BLOCK)
        number = build.workgroup_array("number_of", U32, BLOCK + 2)
        update = build.workgroup_array("update_of", U32, BLOCK + 2)
        with build.loop("t", LANE, BLOCK + 2, launch.threads) as t:
            after = build.let(own.group * BLOCK + t, "after")  # It counts from the update before the block.
            build.assign(number[t], NO_ROW)
            build.assign(update[t], 0)
            with build.if_(after > 0, after <= updates):
                position = build.let(after - 1, "position")
                found = build.let(construct(U32, build.value(order, (position.within(updates),))), "found")
                build.assign(update[t], found)
                build.assign(number[t], build.value(numbers, (found.within(updates),)))
        build.barrier()
        own.leave(build)
        _add_block(work.nodes[0], made, [build.let(number[t], f"n{t}") for t in range(BLOCK + 2)], update, own, build)
        return build.kernel(
            f"scatter_blocks_{work.nodes[0].attrs['mode']}", launch.threads, blocks * own.parts, vector=launch.vector
        )


def _add_block(
    of: Node, made: Mapping[int, Node], number: list[Var], update: Array, own: Columns, build: Builder
) -> None:
    """All rows are loaded before any is stored: they wait for memory together.

    made: by number, the values that this kernel computes: both, where it may bind as much.
    """
    node, carries = made.get(0), made.get(1)
    base, numbers, _, source = of.inputs
    rows, updates, mode = base.spec.shape[0], numbers.spec.shape[0], of.attrs["mode"]
    values: list[list[Expr]] = []
    places: list[list[tuple[Sym, Sym]]] = []
    before: list[list[Expr]] = []
    for t in range(1, BLOCK + 1):
        at = build.let(update[t], f"u{t}")
        values.append([build.value(source, place) for place in own.at(at.within(updates))])
    for t in range(1, BLOCK + 1):
        row = build.let(smaller(number[t], rows - 1), f"row{t}")
        places.append(own.at(row.within(rows)))
        before.append([build.value(base, place) for place in places[-1] if node is not None])
    sums = [build.var(value, build.fresh("acc")) for value in values[0]]
    first, count = build.let(own.group * 2, "carry"), 2 * -(-updates // BLOCK)
    from_left = build.var(select(0, Const(U32, 1), number[0].eq(number[1])), "from_left")
    for t in range(1, BLOCK + 1):
        if t > 1:
            goes_on = build.let(number[t].eq(number[t - 1]), f"on{t}")
            for total, value in zip(sums, values[t - 1], strict=True):
                build.assign(total, select(value, combine(mode, total, value), goes_on))
        with build.if_(number[t].ne(number[t + 1]), number[t].ne(Const(U32, NO_ROW))):
            with build.if_(from_left.eq(1)):
                store(carries, own.at(first.within(count)), sums, build)
            with build.else_():
                joined = [combine(mode, old, total) for old, total in zip(before[t - 1], sums, strict=False)]
                store(node, places[t - 1], joined, build)
            build.assign(from_left, 0)
    with build.if_(number[BLOCK].eq(number[BLOCK + 1]), number[BLOCK].ne(Const(U32, NO_ROW))):
        at = build.let(first + (1 - from_left), "out")
        store(carries, own.at(at.within(count)), sums, build)


def store(node: Node | None, places: Sequence[tuple[Sym, Sym]], values: Sequence[Expr], build: Builder) -> None:
    if node is None:
        return
    for place, value in zip(places, values, strict=True):
        build.store(node, flatten(place, node.spec.shape), value)


class ScatterCarriedTemplate(Template):
    """A workgroup for each block: where a run begins that goes on, it adds what the blocks have of it.

    Problem, Launch: as of blocks.
    """

    name = "scatter_carried"
    repeats = 1

    def claims(self, op: Op, target: Target) -> bool:
        return op is scattering.scatter_carried

    def problem(self, work: Computation, build: Builder) -> Problem:
        (node,) = work.nodes
        return problem_of(node.inputs[2].spec.shape[0], node.spec.shape[1])

    def launches(self, problem: Problem, target: Target) -> Sequence[Launch]:
        return launches_of(problem, target)

    def write(self, work: Computation, launch: Launch, build: Builder) -> Kernel:
        (node,) = work.nodes
        base, carries, numbers, order = node.inputs
        rows, updates, mode = node.spec.shape[0], numbers.spec.shape[0], node.attrs["mode"]
        own = Columns(node.spec.shape[1], launch, build)
        blocks = -(-updates // BLOCK)

        def number(position: Expr, name: str) -> Var:
            at = build.let(position, f"{name}_at")
            found = build.let(construct(U32, build.value(order, (at.within(updates),))), f"{name}_of")
            return build.let(build.value(numbers, (found.within(updates),)), name)

        own.leave(build)
        last = build.let(own.group * BLOCK + (BLOCK - 1), "last")
        build.jump("return", updates <= last + 1)
        row = number(last, "row")
        build.jump("return", number(last + 1, "next").ne(row))
        with build.if_(own.group > 0):
            started = number(own.group * BLOCK, "first").eq(row)
            with build.if_(started):
                build.jump("return", number(own.group * BLOCK - 1, "previous").eq(row))
        end = _end_of_run(own.group, row, blocks, number, build)
        count = carries.spec.shape[0]

        def carried(at: Expr, name: str) -> list[Expr]:
            place = build.let(at, name)
            return [build.value(carries, one) for one in own.at(place.within(count))]

        sums = [build.var(value, build.fresh("acc")) for value in carried(own.group * 2 + 1, "out")]
        at = build.var(own.group + 1, "at")
        with build.while_(at + UNROLLED <= end + 1):
            parts = [carried((at + step) * 2, f"in{step}") for step in range(UNROLLED)]
            for part in parts:
                for total, value in zip(sums, part, strict=True):
                    build.assign(total, combine(mode, total, value))
            build.assign(at, UNROLLED, "+=")
        with build.while_(at <= end):
            for total, value in zip(sums, carried(at * 2, "in_"), strict=True):
                build.assign(total, combine(mode, total, value))
            build.assign(at, 1, "+=")
        places = own.at(build.let(smaller(row, rows - 1), "held").within(rows))
        old = [build.value(base, place) for place in places]
        store(node, places, [combine(mode, one, total) for one, total in zip(old, sums, strict=True)], build)
        return build.kernel(f"scatter_carried_{mode}", launch.threads, blocks * own.parts, vector=launch.vector)


def _end_of_run(block: Var, row: Var, blocks: int, number: Callable[[Expr, str], Var], build: Builder) -> Var:
    """The last block that has a part of the run which goes out of `block`: the first number of each says."""
    low = build.var(block + 1, "low")
    high = build.var(Const(U32, blocks), "high")
    with build.while_(low + 1 < high):
        half = build.let((low + high) // 2, "half")
        with build.if_(number(half * BLOCK, "at_half").eq(row)):
            build.assign(low, half)
        with build.else_():
            build.assign(high, half)
    return low
