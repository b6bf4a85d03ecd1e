"""Where values lie: in which buffer, and at which of its bytes. The largest value chooses first, the tightest gap wins.

Inputs keep their own buffers. So do outputs, but what runs before an output is first written may use its memory. Two
values of one step never share a buffer, because no dispatch may bind one for reading and for writing, not even two
ranges of it.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise

from pywebgpu.compiler.live_intervals import LiveInterval, LiveIntervals, members

ALIGNMENT = 256  # bytes: where WebGPU lets a range start


@dataclass(frozen=True, slots=True)
class Layout:
    """buffer and offset of each slot, bytes of each buffer. `least`: the bytes that the fullest step has in use."""

    buffers: list[int]
    offsets: list[int]
    sizes: list[int]
    least: int


@dataclass(slots=True)
class _Buffer:
    """A buffer in the making. `values`: the life of each value in it, where it starts and where it ends."""

    nbytes: int
    values: list[tuple[LiveInterval, int, int]] = field(default_factory=list)

    def gap(self, interval: LiveInterval, nbytes: int) -> tuple[int, int] | None:
        """The smallest gap that is large enough during a life: its size, and where it starts."""
        begin, finish = interval
        meeting = [value for value in self.values if value[0][0] <= finish and begin <= value[0][1]]
        taken = sorted((start, end) for _, start, end in meeting)
        gaps: list[tuple[int, int]] = []
        free = 0
        for start, end in [*taken, (self.nbytes, self.nbytes)]:
            if start - free >= nbytes:
                gaps.append((start - free, free))
            free = max(free, -(-end // ALIGNMENT) * ALIGNMENT)
        return min(gaps, default=None)

    def full(self, interval: LiveInterval, nbytes: int) -> Iterator[LiveInterval]:
        """When, during a life, fewer than `nbytes` bytes are free."""
        begin, finish = interval
        taken: dict[int, int] = {}  # by step: bytes more than at the step before
        for (first, last), start, end in self.values:
            if first <= finish and begin <= last:
                first, after = max(first, begin), min(last, finish) + 1
                taken[first] = taken.get(first, 0) + end - start
                taken[after] = taken.get(after, 0) + start - end
        free = self.nbytes
        for step, after in pairwise(sorted(taken)):
            free -= taken[step]
            if free < nbytes:
                yield step, after - 1


class _Buffers:
    """All buffers in the making, and which of them have room when."""

    def __init__(self, end: int) -> None:
        self.made: list[_Buffer] = []
        self._life = 0, end
        self._of_size: dict[int, int] = {}  # by bytes: a set of buffers
        self._sizes: list[int] = []  # those that occur, in order
        self._used = LiveIntervals(end + 1)
        self._full = LiveIntervals(end + 1)  # Where no value fits that is still to come.
        self._least = 0  # bytes of the smallest value that `_full` is true of

    def new(self, nbytes: int) -> int:
        number = len(self.made)
        self.made.append(_Buffer(nbytes))
        if nbytes not in self._of_size:
            insort(self._sizes, nbytes)
        self._of_size[nbytes] = self._of_size.get(nbytes, 0) | 1 << number
        return number

    def put(self, number: int, offset: int, nbytes: int, interval: LiveInterval) -> None:
        self.made[number].values.append((interval, offset, offset + nbytes))
        self._used.add(interval, number)
        for time in self.made[number].full(interval, self._least):
            self._full.add(time, number)

    def find(self, nbytes: int, interval: LiveInterval, without: int) -> tuple[int, int] | None:
        """The buffer with the tightest gap, and where in it. Values come by their sizes, the largest first.

        Buffers that are empty meanwhile are found by their sizes; few of those in part are not full.
        """
        self._come_to(nbytes)
        room = ((1 << len(self.made)) - 1) & ~(without | self._full.during(interval))
        empty = room & ~self._used.during(interval)
        fitting_gaps: list[tuple[int, int, int]] = []
        for size in self._sizes[bisect_left(self._sizes, nbytes) :]:
            fitting = self._of_size[size] & empty
            if fitting:
                fitting_gaps.append((size, next(members(fitting)), 0))
                break
        for number in members(room & ~empty):
            gap = self.made[number].gap(interval, nbytes)
            if gap is not None:
                fitting_gaps.append((gap[0], number, gap[1]))
        return min(fitting_gaps)[1:] if fitting_gaps else None

    def _come_to(self, nbytes: int) -> None:
        """From now on no value is larger."""
        least = 1 << (nbytes.bit_length() - 1)
        if least == self._least:
            return
        self._least, self._full = least, LiveIntervals(self._life[1] + 1)
        for number, buffer in enumerate(self.made):
            for time in buffer.full(self._life, least):
                self._full.add(time, number)


def plan(
    steps: Sequence[Sequence[int]], sizes: Sequence[int], pinned: Mapping[int, int], late: Collection[int] = ()
) -> Layout:
    """steps: the slots that each step touches. pinned: slot -> slot whose buffer it has (itself, mostly).

    late: those that others may use until their first step: outputs that take over nobody's memory.
    """
    end = len(steps)
    intervals = _intervals(steps, len(sizes))
    neighbours = _neighbours(steps, len(sizes))
    for slot, owner in pinned.items():
        intervals[owner] = min(intervals[slot][0], intervals[owner][0]) if owner in late else 0, end
    inner = [slot for slot in range(len(sizes)) if slot not in pinned]
    orders = [sorted(inner, key=lambda slot: (-sizes[slot], turn * intervals[slot][turn < 0])) for turn in (1, -1)]
    layouts = [_laid_out(order, sizes, pinned, intervals, neighbours, end) for order in (orders if inner else [inner])]
    buffers, offsets, bytes_of = min(layouts, key=lambda layout: sum(layout[2]))
    own = [(intervals[slot], sizes[slot]) for slot in {*inner, *pinned.values()}]
    return Layout(buffers, offsets, bytes_of, _fullest(own, end))


def _laid_out(
    order: Sequence[int],
    sizes: Sequence[int],
    pinned: Mapping[int, int],
    intervals: Sequence[LiveInterval],
    neighbours: Sequence[set[int]],
    end: int,
) -> tuple[list[int], list[int], list[int]]:
    """buffer and offset of each slot, and bytes of each buffer, where slots choose in this order."""
    buffers = _Buffers(end)
    ranges: dict[int, tuple[int, int]] = {}  # by slot
    for slot, owner in pinned.items():
        if owner not in ranges:
            ranges[owner] = buffers.new(sizes[owner]), 0
            buffers.put(*ranges[owner], sizes[owner], intervals[owner])
        ranges[slot] = ranges[owner]
    for slot in order:
        without = 0
        for other in neighbours[slot] & ranges.keys():
            without |= 1 << ranges[other][0]
        position = buffers.find(sizes[slot], intervals[slot], without)
        ranges[slot] = position or (buffers.new(sizes[slot]), 0)
        buffers.put(*ranges[slot], sizes[slot], intervals[slot])
    numbers, offsets = zip(*(ranges[slot] for slot in range(len(sizes))), strict=True) if sizes else ((), ())
    return list(numbers), list(offsets), [buffer.nbytes for buffer in buffers.made]


def _intervals(steps: Sequence[Sequence[int]], count: int) -> list[LiveInterval]:
    """First and last step of each slot; one that no step touches is there all the time."""
    intervals: dict[int, LiveInterval] = {}
    for index, touched in enumerate(steps):
        for slot in touched:
            intervals[slot] = (intervals.get(slot, (index, index))[0], index)
    return [intervals.get(slot, (0, len(steps))) for slot in range(count)]


def _neighbours(steps: Sequence[Sequence[int]], count: int) -> list[set[int]]:
    """For each slot those that a step touches together with it."""
    neighbours: list[set[int]] = [set() for _ in range(count)]
    for touched in steps:
        for slot in touched:
            neighbours[slot].update(touched)
    return neighbours


def _fullest(values: Iterable[tuple[LiveInterval, int]], end: int) -> int:
    """The most bytes of values that are alive at one step."""
    change = [0] * (end + 2)
    for (first, last), nbytes in values:
        change[first] += nbytes
        change[last + 1] -= nbytes
    return max(accumulate(change))
