"""Rows combined by number in place, by blocks of updates in the order of their numbers: see ops/scattering.py.

Each row is written by one workgroup of each kernel, and its updates are taken in their order, so sums have the same
bits in every run.
"""

from collections.abc import Mapping, Sequence

from pywebgpu.ir.graph import WHICH, Node
from pywebgpu.kernels.builder import Builder
from pywebgpu.kernels.combine import combine
from pywebgpu.kernels.ir import GROUP, LANE, U32, Array, Const, Expr, Var, construct, larger, scalar, select, smaller
from pywebgpu.kernels.kernel import Kernel
from pywebgpu.kernels.launch import Launch, Problem
from pywebgpu.kernels.target import Target
from pywebgpu.kernels.template import Computation, FusedTemplate, Template
from pywebgpu.ops import scattering
from pywebgpu.support.symbolic import Sym, flatten

BLOCK = scattering.BLOCK
NO_ROW = 0xFFFFFFFF
UNROLLED = 16  # carries that are loaded side by side
APART, SLICES = 64, 4  # lanes that have the columns of a long run, at most, and slices that share its length


def problem_of(updates: int, columns: int) -> Problem:
    return Problem((updates, columns), layout=str(next(width for width in (4, 2, 1) if columns % width == 0)))


def launches_of(problem: Problem, target: Target, most: int = 1 << 10) -> list[Launch]:
    """One workgroup has all columns where `most` lanes can: each lane `vector` of them."""
    launches, most = [], min(most, target.limits.workgroup_size)
    for vector in (4, 2, 1):
        if vector <= int(problem.layout):
            columns = problem.sizes[1] // vector
            parts = -(-columns // most)
            launches.append(Launch(threads=-(-columns // parts), vector=vector))
    return launches


class Columns:
    """Which columns of a row an invocation has. group: the number of its workgroup but for the part of the columns.

    slice: the number of its slice, of those that have the same columns.
    """

    def __init__(self, columns: int, launch: Launch, build: Builder) -> None:
        self.vectors, self.width = columns // launch.vector, launch.vector
        lanes = launch.threads // launch.split
        self.parts = -(-self.vectors // lanes)
        self.slice = build.let(LANE // lanes, "slice") if launch.split > 1 else Const(U32, 0)
        lane = build.let(LANE % lanes, "lane_of_slice") if launch.split > 1 else LANE
        self.group = build.let(GROUP // self.parts if self.parts > 1 else GROUP, "block")
        self._column = build.let(GROUP % self.parts * lanes + lane if self.parts > 1 else lane, "column")
        self._all = self.parts * lanes == self.vectors
        self._there = self._column if self._all else build.let(smaller(self._column, self.vectors - 1), "there")

    def leave(self, build: Builder) -> None:
        """Lanes without a column have nothing more to do."""
        if not self._all:
            build.jump("return", self._column >= self.vectors)

    def there(self) -> list[Expr]:
        """What must hold for the invocation to have a column."""
        return [] if self._all else [self._column < self.vectors]

    def at(self, row: Sym) -> list[tuple[Sym, Sym]]:
        """The elements of a row that the invocation has; of one without a column the last."""
        first = self._there.within(self.vectors) * self.width
        return [(row, first + number) for number in range(self.width)]


class ScatterBlocksTemplate(FusedTemplate):
    """Problem: updates, columns; layout: the largest vector that divides the columns. Launch: threads, vector."""

    name = "scatter_blocks"
    absorbs = siblings = frozenset({name})
    op = scattering.scatter_blocks

    def problem(self, work: Computation, build: Builder) -> Problem:
        return problem_of(work.nodes[0].inputs[1].spec.shape[0], work.nodes[0].inputs[0].spec.shape[1])

    def launches(self, problem: Problem, target: Target) -> Sequence[Launch]:
        return launches_of(problem, target)

    def write(self, work: Computation, launch: Launch, build: Builder) -> Kernel:
        outputs = {node.attrs[WHICH]: node for node in work.nodes}
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
                update_number = build.let(construct(U32, build.value(order, (position.within(updates),))), "found")
                build.assign(update[t], update_number)
                build.assign(number[t], build.value(numbers, (update_number.within(updates),)))
        build.barrier()
        own.leave(build)
        _add_block(
            work.nodes[0], outputs, [build.let(number[t], f"n{t}") for t in range(BLOCK + 2)], update, own, build
        )
        return build.kernel(
            f"scatter_blocks_{work.nodes[0].attrs['mode']}", launch.threads, blocks * own.parts, vector=launch.vector
        )


def _add_block(
    of: Node, outputs: Mapping[int, Node], number: list[Var], update: Array, own: Columns, build: Builder
) -> None:
    """All rows are loaded before any is stored: they wait for memory together.

    made: by number, the values that this kernel computes: both, where it may bind as much.
    """
    node, carries = outputs.get(0), outputs.get(1)
    base, numbers, _, source = of.inputs
    rows, updates, mode = base.spec.shape[0], numbers.spec.shape[0], of.attrs["mode"]
    values: list[list[Expr]] = []
    places: list[list[tuple[Sym, Sym]]] = []
    before: list[list[Expr]] = []
    for t in range(1, BLOCK + 1):
        place_of_update = build.let(update[t], f"u{t}")
        values.append([build.value(source, place) for place in own.at(place_of_update.within(updates))])
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
        place_of_update = build.let(first + (1 - from_left), "out")
        store(carries, own.at(place_of_update.within(count)), sums, build)


def store(node: Node | None, places: Sequence[tuple[Sym, Sym]], values: Sequence[Expr], build: Builder) -> None:
    if node is None:
        return
    for place, value in zip(places, values, strict=True):
        build.store(node, flatten(place, node.spec.shape), value)


class ScatterCarriedTemplate(Template):
    """A workgroup for each block: where a run begins that goes on, it adds what the blocks have of it.

    Problem: as of blocks. Launch: threads, vector; of `split` slices of the threads each adds a part of the run. Of
    long runs there are few, so several cores have a part of the columns each.
    """

    name = "scatter_carried"
    op = scattering.scatter_carried
    repeats = 1

    def problem(self, work: Computation, build: Builder) -> Problem:
        (node,) = work.nodes
        return problem_of(node.inputs[2].spec.shape[0], node.spec.shape[1])

    def launches(self, problem: Problem, target: Target) -> Sequence[Launch]:
        launches, narrow = launches_of(problem, target), launches_of(problem, target, APART)
        sliced = [launch._replace(threads=launch.threads * SLICES, split=SLICES) for launch in narrow]
        sliced = [launch for launch in sliced if launch.threads <= target.limits.workgroup_size]
        is_cpu = target.is_cpu
        return list(dict.fromkeys([*launches, *sliced] if is_cpu else [*sliced, *launches]))

    def write(self, work: Computation, launch: Launch, build: Builder) -> Kernel:
        (node,) = work.nodes
        numbers, mode = node.inputs[2], node.attrs["mode"]
        own = Columns(node.spec.shape[1], launch, build)
        blocks = -(-numbers.spec.shape[0] // BLOCK)
        _Run(node, own, blocks, launch, build).add()
        return build.kernel(f"scatter_carried_{mode}", launch.threads, blocks * own.parts, vector=launch.vector)


class _Run:
    """What a workgroup adds of the run that goes out of its block, where it is that in which it begins."""

    def __init__(self, node: Node, own: Columns, blocks: int, launch: Launch, build: Builder) -> None:
        self.node, self.own, self.blocks, self.launch, self.build = node, own, blocks, launch, build
        _, self.carries, self.numbers, self.order = node.inputs
        updates, block = self.numbers.spec.shape[0], own.group
        last = build.let(block * BLOCK + (BLOCK - 1), "last")
        looked = smaller(last, updates - 1), smaller(last + 1, updates - 1), block * BLOCK, larger(block * BLOCK, 1) - 1
        names = "row", "next", "first", "previous"
        self.row, after, first, previous = (
            self._number(position, name) for position, name in zip(looked, names, strict=True)
        )
        is_later = (block > 0) & first.eq(self.row) & previous.eq(self.row)
        self.begins = build.let((last + 1 < updates) & after.eq(self.row) & ~is_later, "begins")

    def add(self) -> None:
        """Each slice has its share of the blocks, one after the other; the first one adds up what the others have."""
        build, own, (node, mode) = self.build, self.own, (self.node, self.node.attrs["mode"])
        places = own.at(build.let(smaller(self.row, node.spec.shape[0] - 1), "held").within(node.spec.shape[0]))
        sums = [build.var(scalar(node.spec.dtype), build.fresh("acc")) for _ in places]
        end, share = build.var(own.group, "end"), build.var(Const(U32, 0), "share")
        with build.if_(self.begins):
            build.assign(end, self._end())
            build.assign(share, (end - own.group + (self.launch.split - 1)) // self.launch.split)
            index = build.var(own.group + 1 + own.slice * share, "at")
            stop = build.let(smaller(smaller(index + share, end + 1), self.blocks), "stop")
            is_first = own.slice.eq(0)
            begun = self._carried(select(index * 2, own.group * 2 + 1, is_first), "out")
            for total, value in zip(sums, begun, strict=True):
                build.assign(total, value)
            build.assign(index, select(index + 1, index, is_first))
            with build.while_(index < stop):  # What lies behind is loaded for nothing, and waits with the others.
                parts = [self._carried((index + step) * 2, f"in{step}") for step in range(UNROLLED)]
                for step, part in enumerate(parts):
                    for total, value in zip(sums, part, strict=True):
                        build.assign(total, select(total, combine(mode, total, value), index + step < stop))
                build.assign(index, UNROLLED, "+=")
        self._meet(sums, end, share)
        with build.if_(self.begins, own.slice.eq(0), *own.there()):
            old = [build.value(node.inputs[0], place) for place in places]
            store(
                node,
                places,
                [combine(mode, old_value, total) for old_value, total in zip(old, sums, strict=True)],
                build,
            )

    def _meet(self, sums: Sequence[Var], end: Var, share: Var) -> None:
        """The first slice takes what the others have, in their order, of those that have something."""
        build, own, (split, threads) = self.build, self.own, (self.launch.split, self.launch.threads)
        if split == 1:
            return
        shared = [build.workgroup_array(f"sums{index}", fold.type, threads) for index, fold in enumerate(sums)]
        for array, total in zip(shared, sums, strict=True):
            build.assign(array[LANE], total)
        build.barrier()
        lanes = threads // split
        with build.if_(own.slice.eq(0)):
            for other in range(1, split):
                has_some = own.group + 1 + share * other <= end
                for array, total in zip(shared, sums, strict=True):
                    joined = combine(self.node.attrs["mode"], total, array[LANE + other * lanes])
                    build.assign(total, select(total, joined, has_some))

    def _number(self, position: Expr, name: str) -> Var:
        build, updates = self.build, self.numbers.spec.shape[0]
        place = build.let(position, f"{name}_at")
        update = build.let(construct(U32, build.value(self.order, (place.within(updates),))), f"{name}_of")
        return build.let(build.value(self.numbers, (update.within(updates),)), name)

    def _carried(self, index: Expr, name: str) -> list[Expr]:
        count = self.carries.spec.shape[0]
        place = self.build.let(smaller(index, count - 1), name)
        return [self.build.value(self.carries, place_of_carry) for place_of_carry in self.own.at(place.within(count))]

    def _end(self) -> Var:
        """The last block that has a part of the run: the first number of each says.

        Several are looked at side by side: each look waits for memory twice.
        """
        build = self.build
        low = build.var(self.own.group + 1, "low")
        high = build.var(Const(U32, self.blocks), "high")
        with build.while_(low + 1 < high):
            step = build.let((high - low + (UNROLLED - 1)) // UNROLLED, "step")
            some = [build.let(low + step * index, f"at{index}") for index in range(1, UNROLLED)]
            rows = [
                self._number(smaller(probe, self.blocks - 1) * BLOCK, f"of{probe_row}")
                for probe_row, probe in enumerate(some)
            ]
            for probe_position, row in zip(some, rows, strict=True):
                build.assign(low, select(low, probe_position, (probe_position < high) & row.eq(self.row)))
            build.assign(high, smaller(high, low + step))
        return low
