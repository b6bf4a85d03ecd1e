"""Running sums, products and extremes of long rows: a workgroup has a block of a row, and all lanes read side by side.

A lane has VECTOR neighbours in each of some strips, which lie beside each other. What lanes come to is joined from the
left in workgroup memory, for all strips at once; each lane then goes through its elements from what comes before them.
What the blocks before its own come to, a workgroup adds up itself: so a scan is two dispatches, whatever the length.
Of short rows it reads all elements before its own block, and the scan is one dispatch. So it is of rows of some more
blocks, where workgroups tell each other what their blocks come to (kernels/marks.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from functools import reduce
from math import prod

from pywebgpu.ir.graph import Node
from pywebgpu.kernels.builder import Builder
from pywebgpu.kernels.combine import combine, identity
from pywebgpu.kernels.ir import (
    LANE,
    U32,
    Const,
    Expr,
    Index,
    Type,
    Var,
    call,
    constant,
    larger,
    scalar,
    select,
    smaller,
)
from pywebgpu.kernels.kernel import Kernel
from pywebgpu.kernels.launch import Launch, Problem, threads
from pywebgpu.kernels.target import Target
from pywebgpu.kernels.template import NEVER, Computation, Template
from pywebgpu.kernels.templates.rows import PARTS, in_one_subgroup
from pywebgpu.kernels.templates.rows_walk import SHUFFLED
from pywebgpu.ops import indexing
from pywebgpu.support.formats import WORD
from pywebgpu.support.symbolic import Sym, flatten, unflatten, variable

VECTOR = 4  # neighbours that a lane has in a strip
STRIPS = 8  # of a lane, at most
LANES_ON_CPU, NEIGHBOURS_ON_CPU = 32, 16  # A CPU waits for barriers rather than for memory.
LONG = ("logaddexp",)  # modes
WAYS = 4  # launches that have a variant by shuffles
UNROLLED = 8  # totals of blocks, or vectors of earlier elements, that a lane loads side by side


class ScanBlocksTemplate(Template):
    """Problem: rows, columns, elements of a block; layout "long" where what joins two elements is a long text.

    Launch: threads, a power of two; each: strips of one; vector: neighbours of a lane in a strip. SHUFFLED: lanes are
    joined so, as many as `each` says besides.
    """

    name = "scan_blocks"
    op = indexing.scan_blocks
    repeats = 8

    def packs(self, work: Computation, node: Node, each: int) -> bool:
        return bool(node.spec.shape[-1] % VECTOR == 0)

    def problem(self, work: Computation, build: Builder) -> Problem:
        shape, attrs = work.nodes[0].spec.shape, work.nodes[0].attrs
        layout = "long" if attrs["mode"] in LONG else ""
        return Problem((prod(shape[:-1]), shape[-1], attrs["size"]), layout=layout)

    def launches(self, problem: Problem, target: Target) -> Sequence[Launch]:
        _, columns, size = problem.sizes
        limits = target.limits
        lanes = [size for size in threads(256) if size <= limits.workgroup_size]
        shapes = [(size, strips, VECTOR) for size in lanes for strips in (4, 2, 8, 1)]
        if target.is_cpu:
            shapes = [(LANES_ON_CPU, 1, NEIGHBOURS_ON_CPU), *shapes]
        elif size < columns:  # As many strips as make a turn of a block.
            shapes = [(256, min(max(size // (256 * VECTOR), 1), STRIPS), VECTOR), *shapes]
        launches = [Launch(threads=launch, each=(strips,), vector=vector) for launch, strips, vector in shapes]
        if problem.layout:  # It stands once for each element and step, and translators take their time.
            launches = [launch._replace(each=(1,), vector=VECTOR) for launch in launches]
        # Blocks end where a turn of the workgroup does; the end of a row is asked for.
        ends = [
            launch
            for launch in dict.fromkeys(launches)
            if launch.threads in lanes
            and (size >= columns or size % (launch.threads * launch.each[0] * launch.vector) == 0)
        ]
        room = limits.shared_bytes // (2 * WORD)
        fitting = [launch for launch in ends if launch.threads * (launch.each[0] + 1) <= room]
        of = in_one_subgroup(target.features)
        shuffled = [
            launch._replace(variant=SHUFFLED, each=(*launch.each, of))
            for launch in ends[:WAYS]
            if 1 < of < launch.threads <= PARTS * of
        ]
        is_best = bool(shuffled) and not target.is_cpu and shuffled[0].threads == ends[0].threads
        return [*shuffled, *fitting] if is_best else [*fitting, *shuffled]

    def write(self, work: Computation, launch: Launch, build: Builder) -> Kernel:
        (node,) = work.nodes
        *lead, columns = node.spec.shape
        size = node.attrs["size"]
        blocks, elements = -(-columns // size), launch.threads * launch.each[0] * launch.vector
        turns = -(-min(size, columns) // elements)
        build.gather(work.outputs)
        group = variable("group", prod(lead) * blocks)
        if len(node.inputs) > 1:  # From the end, which was read last: caches have it.
            group = build.let(prod(lead) * blocks - 1 - Index(group), "from_end").within(prod(lead) * blocks)
        *row, block = unflatten(group, (*lead, blocks))
        is_once = turns == 1
        before = [_before(node, tuple(row), block, launch, build)] if blocks > 1 and not is_once else []
        # Of the block alone: what is added to a large sum is rounded as that is.
        carry = [build.var(_nothing(node), "carry")] if turns > 1 else []
        is_ragged = columns % size > 0 or min(size, columns) % elements > 0
        with build.loop("turn", 0, turns) if turns > 1 else nullcontext():
            first = block * size + variable("turn", turns) * elements if turns > 1 else block * size
            strips = _strips(node, tuple(row), first, launch, is_ragged=is_ragged)
            for strip in strips:  # Totals are waited for together with elements.
                strip.load(build)
            earlier = [_earlier(node, tuple(row), block, launch.threads, build)] if blocks > 1 and is_once else []
            came_to = _turn(strips, earlier, [*before, *carry], launch, build)
            for own in carry:
                build.assign(own, combine(_plain(node), own, came_to))
                build.barrier()
        mode = node.attrs["mode"]
        return build.kernel(f"scan_blocks_{mode}", launch.threads, prod(lead) * blocks, vector=VECTOR)


class ScanChainTemplate(ScanBlocksTemplate):
    """Problem, launch: the same, but a workgroup goes through its block in one turn.

    It takes the next block that nobody has, and tells what that comes to; then it waits for what those before it come
    to, of which nobody waits for another. One that does not say so in time it reads itself, joined in the same order.
    """

    name = "scan_chain"
    op = indexing.scan_chain
    repeats = NEVER  # What is computed in two parts of a kernel may be rounded differently.

    def launches(self, problem: Problem, target: Target) -> Sequence[Launch]:
        size = problem.sizes[-1]
        return [
            launch
            for launch in super().launches(problem, target)
            if launch.threads * launch.each[0] * launch.vector == size
        ]

    def write(self, work: Computation, launch: Launch, build: Builder) -> Kernel:
        (node,) = work.nodes
        *lead, columns = node.spec.shape
        size, mode = node.attrs["size"], _plain(node)
        blocks = -(-columns // size)
        groups = prod(lead) * blocks
        build.gather(work.outputs)
        ticket = build.workgroup_array("ticket", U32, 1)
        with build.if_(LANE.eq(0)):
            build.assign(ticket[0], call("p_mark_ticket", U32, Const(U32, groups)))
        build.barrier()
        taken = build.let(ticket[0], "taken")
        tag = build.let(taken & Const(U32, 0xFFFF0000), "tag")
        number = build.let(taken & Const(U32, 0xFFFF), "number")
        *row, block = unflatten(number.within(groups), (*lead, blocks))
        strips = _strips(node, tuple(row), block * size, launch, is_ragged=columns % size > 0)
        for strip in strips:
            strip.load(build)
        _, joined = _join([], [strip.fold(build) for strip in strips], node, launch, build)
        joined = [(build.let(left), build.let(total)) for left, total in joined]
        total = build.let(_folded(mode, [total for _, total in joined]), "total")
        with build.if_(LANE.eq(0)):
            build.let(call("p_mark_word", U32, number, tag, call("bitcast<u32>", U32, total)))
        build.let(call("p_mark_rest", U32, number + (LANE + 1) * groups, Const(U32, groups * launch.threads), tag))
        earlier = build.var(_nothing(node), "earlier")
        with build.loop("at", LANE, build.let(Index(block), "end"), launch.threads) as place:
            position = flatten((*row, place.within(blocks)), (*lead, blocks))
            word = build.let(call("p_mark_wait", Type("u32", 2), Index(position), tag))
            known = build.var(call(f"bitcast<{earlier.type}>", earlier.type, word[0]))
            with build.if_(word[1].eq(0)):
                build.assign(known, _again(node, tuple(row), place.within(blocks), launch, build))
            build.assign(earlier, combine(mode, earlier, known))
        build.barrier()  # What strips came to was read where this is written.
        before, _ = _join([earlier], [], node, launch, build)
        _store(strips, joined, before, build)
        return build.kernel(f"scan_chain_{node.attrs['mode']}", launch.threads, groups, vector=VECTOR)


def _again(node: Node, row: tuple[Sym, ...], block: Sym, launch: Launch, build: Builder) -> Expr:
    """What a whole block comes to, by one lane: joined as `_join` does it, by twos and then in turn."""
    mode, nothing, (source, *_) = _plain(node), _nothing(node), node.inputs
    strips, pair = launch.each[0], launch.each[1] if launch.variant == SHUFFLED else launch.threads
    levels = pair.bit_length()
    total = build.var(nothing)
    with build.loop("strip", 0, strips) as strip:
        of_strip = build.var(nothing)
        with build.loop("part", 0, launch.threads // pair) as part:
            waiting = build.local_array(build.fresh("waiting"), [nothing] * levels)
            with build.loop("in_part", 0, pair) as lane:
                first = strip.within(strips) * launch.threads + part.within(launch.threads // pair) * pair
                first = block * node.attrs["size"] + (first + lane.within(pair)) * launch.vector
                own = [build.value(source, (*row, first + offset)) for offset in range(launch.vector)]
                fold, rest, level = build.var(_folded(mode, own)), build.var(lane), build.var(Const(U32, 0))
                with build.while_((rest & Const(U32, 1)).eq(1)):
                    build.assign(fold, combine(mode, waiting[level], fold))
                    build.assign(rest, rest // 2)
                    build.assign(level, 1, "+=")
                build.assign(waiting[level], fold)
            last = build.let(waiting[levels - 1])
            build.assign(of_strip, select(combine(mode, of_strip, last), last, part.eq(0)))
        build.assign(total, select(combine(mode, total, of_strip), of_strip, strip.eq(0)))
    return total


class _Strip:
    """The neighbours that a lane has in one strip. Behind the end of a row it reads elements that are there.

    first: what the first lane has, counted in neighbours of a lane.  number: of the strip.
    """

    def __init__(
        self, node: Node, row: tuple[Sym, ...], first: Sym, number: int, launch: Launch, *, is_ragged: bool
    ) -> None:
        self.node, self.row, self.number, self.is_ragged = node, row, number, is_ragged
        self._first, self._launch = first, launch
        self._groups: list[tuple[list[Expr], list[Sym]]] = []  # columns, and the condition under which they are there
        self._values: list[list[Expr]] = []
        self._folds: list[Expr] = []  # of all elements up to each

    def load(self, build: Builder) -> None:
        columns, neighbours = self.node.spec.shape[-1], self._launch.vector
        own = self._first + LANE.within(self._launch.threads)
        if not self.is_ragged:
            self._groups = [([], [own * neighbours + offset for offset in range(neighbours)])]
        else:
            width = 1 if columns % VECTOR else VECTOR
            for part in range(neighbours // width):
                wanted = build.let(Index(own * (neighbours // width) + part), f"wanted{self.number}_{part}")
                inside = build.let(wanted < columns // width, f"inside{self.number}_{part}")
                there = build.let(smaller(wanted, columns // width - 1), f"there{self.number}_{part}")
                first = there.within(columns // width) * width
                self._groups.append(([inside], [first + offset for offset in range(width)]))
        source = self.node.inputs[0]
        self._values = [[build.value(source, (*self.row, column)) for column in places] for _, places in self._groups]

    def fold(self, build: Builder) -> Var:
        """What the lane's elements come to."""
        for (conditions, _), values in zip(self._groups, self._values, strict=True):
            for value in values:
                own = build.let(select(_nothing(self.node), value, conditions[0])) if conditions else value
                joined = combine(_plain(self.node), self._folds[-1], own) if self._folds else own
                self._folds.append(build.let(joined))
        return build.var(self._folds[-1], f"fold{self.number}")

    def store(self, before: Sequence[Expr], build: Builder) -> None:
        """before: what comes before the lane's elements: of earlier blocks, of earlier turns and in this turn.

        What is added to a large sum is rounded as that is, so each is joined with all that is behind it.
        """
        node, mode, plain = self.node, self.node.attrs["mode"], _plain(self.node)
        last = _joined(plain, before)
        before = [build.let(last)] if mode in LONG else before
        folds = iter(self._folds)
        for (conditions, places), values in zip(self._groups, self._values, strict=True):
            with build.if_(*conditions):
                results = []
                for value in values:
                    joined = _joined(plain, [*before, next(folds)])
                    # Where all before it fit, the last sum is a true one: here, and only here, the next is checked.
                    results.append(build.let(joined if mode == plain else combine(mode, last, value)))
                    last = joined
                for position, result in zip(places, results, strict=True):
                    build.store(node, flatten((*self.row, position), node.spec.shape), result)


def _strips(node: Node, row: tuple[Sym, ...], first: Sym, launch: Launch, *, is_ragged: bool) -> list[_Strip]:
    """What a workgroup goes through in a turn, from an element of a row on."""
    start = first // launch.vector
    return [
        _Strip(node, row, start + index * launch.threads, index, launch, is_ragged=is_ragged)
        for index in range(launch.each[0])
    ]


def _earlier(node: Node, row: tuple[Sym, ...], block: Sym, lanes: int, build: Builder) -> Var:
    """What a lane's share of what is before a block comes to: of totals of blocks or, without them, of elements.

    Neighbours in memory are of neighbouring lanes.
    """
    mode, (source, *totals) = _plain(node), node.inputs
    width, count = (1, totals[0].spec.shape[-1]) if totals else (VECTOR, -(-source.spec.shape[-1] // VECTOR))
    end = build.let(Index(block if totals else block * (node.attrs["size"] // VECTOR)), "end")

    def fold(first: Expr, steps: int) -> Expr:
        """Some are joined first, so that errors stay small; those behind the end are loaded for nothing."""
        places = [build.let(smaller(first + step * lanes, count - 1)).within(count) * width for step in range(steps)]
        loaded = [
            [build.value([source, *totals][-1], (*row, place + offset)) for offset in range(width)] for place in places
        ]
        own = [
            build.let(select(_nothing(node), _folded(mode, values), first + step * lanes < end))
            for step, values in enumerate(loaded)
        ]
        return _folded(mode, own)

    share = -(-count // lanes)
    if totals and share <= UNROLLED:
        return build.var(fold(LANE, share), "earlier")
    total = build.var(_nothing(node), "earlier")
    with build.loop("at", LANE, end, UNROLLED * lanes) as start:
        build.assign(total, combine(mode, total, fold(start, UNROLLED)))
    return total


def _before(node: Node, row: tuple[Sym, ...], block: Sym, launch: Launch, build: Builder) -> Expr:
    """What all blocks before this one come to, for a block of several turns."""
    (total,), _ = _join([_earlier(node, row, block, launch.threads, build)], [], node, launch, build)
    build.barrier()  # The first turn writes where this was read.
    return total


def _turn(
    strips: Sequence[_Strip], earlier: Sequence[Var], before: Sequence[Expr], launch: Launch, build: Builder
) -> Expr:
    """Scans the strips of all lanes: what they come to.

    earlier: of a lane's share of earlier blocks.  before: what else comes before the strips.
    """
    node = strips[0].node
    wholes, joined = _join(earlier, [strip.fold(build) for strip in strips], node, launch, build)
    return _store(strips, joined, [*wholes, *before], build)


def _store(
    strips: Sequence[_Strip], joined: Sequence[tuple[Expr, Expr]], before: Sequence[Expr], build: Builder
) -> Expr:
    """joined: of each strip, what is to the left of a lane and what all come to. What all strips come to."""
    node = strips[0].node
    mode, total = _plain(node), _nothing(node)
    for index, (strip, (left, total_of_strip)) in enumerate(zip(strips, joined, strict=True)):
        own = build.let(select(total, combine(mode, total, left) if index else left, LANE > 0))
        strip.store([*before, own], build)
        total = build.let(combine(mode, total, total_of_strip) if index else total_of_strip)
    return total


def _folded(mode: str, parts: Sequence[Expr]) -> Expr:
    return reduce(lambda left, right: combine(mode, left, right), parts[1:], parts[0])


def _joined(mode: str, parts: Sequence[Expr]) -> Expr:
    """Parts, from the left, each joined with all that is behind it."""
    return reduce(lambda behind, part: combine(mode, part, behind), reversed(parts[:-1]), parts[-1])


def _join(
    parts: Sequence[Var], folds: Sequence[Var], node: Node, launch: Launch, build: Builder
) -> tuple[list[Expr], list[tuple[Expr, Expr]]]:
    """What all lanes' parts come to; of each fold that lanes have, what is to the left of a lane and what all come to.

    There is nothing to the left of the first lane: what is given there is any value.
    """
    if launch.variant == SHUFFLED:
        return _join_by_subgroups(parts, folds, node, launch, build)
    mode, lanes, start, step = _plain(node), launch.threads, 0, 1
    every = [*parts, *folds]
    arrays = [build.workgroup_array(f"folds{index}", fold.type, 2 * lanes) for index, fold in enumerate(every)]
    for array, fold in zip(arrays, every, strict=True):
        build.assign(array[LANE], fold)
    build.barrier()
    while step < lanes:
        with build.if_(step <= LANE):
            for array, fold in zip(arrays, every, strict=True):
                left = array[LANE - step if start == 0 else LANE + (start - step)]
                build.assign(fold, combine(mode, left, fold))
        start, step = lanes - start, step * 2  # Steps use halves in turn.
        for array, fold in zip(arrays, every, strict=True):
            build.assign(array[LANE + start if start else LANE], fold)
        build.barrier()
    before = larger(LANE, 1) + (start - 1) if start else larger(LANE, 1) - 1
    wholes = [build.let(array[start + lanes - 1]) for array in arrays]
    lefts = [array[before] for array in arrays[len(parts) :]]
    return list(wholes[: len(parts)]), list(zip(lefts, wholes[len(parts) :], strict=True))


def _join_by_subgroups(
    parts: Sequence[Var], folds: Sequence[Var], node: Node, launch: Launch, build: Builder
) -> tuple[list[Expr], list[tuple[Expr, Expr]]]:
    """By shuffles within subgroups; what those come to is joined by every lane, of which there are few."""
    mode, nothing, (_, of) = _plain(node), _nothing(node), launch.each
    count, step = launch.threads // of, 1
    position, number = build.let(LANE % of), build.let(LANE // of)
    while step < of:
        for part in parts:
            other = build.let(call("subgroupShuffleXor", part.type, part, Const(U32, step)))
            build.assign(part, combine(mode, part, other))
        for fold in folds:
            other = build.let(call("subgroupShuffleUp", fold.type, fold, Const(U32, step)))
            build.assign(fold, select(fold, combine(mode, other, fold), position >= step))
        step *= 2
    every = [*parts, *folds]
    arrays = [build.workgroup_array(f"folds{index}", fold.type, count) for index, fold in enumerate(every)]
    with build.if_(position.eq(of - 1)):
        for array, fold in zip(arrays, every, strict=True):
            build.assign(array[number], fold)
    build.barrier()
    wholes = [build.let(_folded(mode, [array[index] for index in range(count)])) for array in arrays[: len(parts)]]
    pairs: list[tuple[Expr, Expr]] = []
    for array, fold in zip(arrays[len(parts) :], folds, strict=True):
        neighbour = build.let(call("subgroupShuffleUp", fold.type, fold, Const(U32, 1)))
        before, total = nothing, build.let(array[0])
        for subgroup in range(1, count):
            before = build.let(select(before, total, number.eq(subgroup)))
            total = build.let(combine(mode, total, array[subgroup]))
        pairs.append((build.let(select(before, combine(mode, before, neighbour), position > 0)), total))
    return list(wholes), pairs


def _plain(node: Node) -> str:
    mode: str = node.attrs["mode"]
    return mode.removesuffix("_checked")


def _nothing(node: Node) -> Expr:
    return constant(identity(_plain(node), node.spec.dtype), scalar(node.spec.dtype))
