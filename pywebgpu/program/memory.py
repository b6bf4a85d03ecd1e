"""Where values lie: in which buffer, and at which of its bytes. The largest value chooses first, the tightest gap wins.

Inputs keep their own buffers. So do outputs, but what runs before an output is first written may use its memory. Two
values of one step never share a buffer, because no dispatch may bind one for reading and for writing, not even two
ranges of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

ALIGNMENT = 256  # bytes: where WebGPU lets a range start
Life = tuple[int, int]  # first and last step


@dataclass(frozen=True, slots=True)
class Layout:
    """buffer and offset of each slot, bytes of each buffer. `least`: the bytes that the fullest step has in use."""

    buffers: list[int]
    offsets: list[int]
    sizes: list[int]
    least: int


@dataclass(slots=True)
class _Place:
    """A buffer in the making. `values`: the life of each value in it, where it starts and where it ends."""

    nbytes: int
    members: set[int]
    values: list[tuple[Life, int, int]] = field(default_factory=list)

    def gap(self, life: Life, nbytes: int) -> tuple[int, int] | None:
        """The smallest gap that is large enough during a life: its size, and where it starts."""
        begin, finish = life
        meeting = [value for value in self.values if value[0][0] <= finish and begin <= value[0][1]]
        taken = sorted((start, end) for _, start, end in meeting)
        found: list[tuple[int, int]] = []
        free = 0
        for start, end in [*taken, (self.nbytes, self.nbytes)]:
            if start - free >= nbytes:
                found.append((start - free, free))
            free = max(free, -(-end // ALIGNMENT) * ALIGNMENT)
        return min(found, default=None)


def plan(
    steps: Sequence[Sequence[int]], sizes: Sequence[int], pinned: Mapping[int, int], late: Collection[int] = ()
) -> Layout:
    """steps: the slots that each step touches. pinned: slot -> slot whose buffer it has (itself, mostly).

    late: those that others may use until their first step: outputs that take over nobody's memory.
    """
    end = len(steps)
    lives = _lives(steps, len(sizes))
    beside = _neighbours(steps, len(sizes))
    for slot, owner in pinned.items():
        lives[owner] = min(lives[slot][0], lives[owner][0]) if owner in late else 0, end
    inner = [slot for slot in range(len(sizes)) if slot not in pinned]
    orders = [sorted(inner, key=lambda slot: (-sizes[slot], turn * lives[slot][turn < 0])) for turn in (1, -1)]
    layouts = [_laid_out(order, sizes, pinned, lives, beside) for order in (orders if inner else [inner])]
    buffers, offsets, bytes_of = min(layouts, key=lambda layout: sum(layout[2]))
    own = [(lives[slot], sizes[slot]) for slot in {*inner, *pinned.values()}]
    return Layout(buffers, offsets, bytes_of, _fullest(own, end))


def _laid_out(
    order: Sequence[int],
    sizes: Sequence[int],
    pinned: Mapping[int, int],
    lives: Sequence[Life],
    beside: Sequence[set[int]],
) -> tuple[list[int], list[int], list[int]]:
    """buffer and offset of each slot, and bytes of each buffer, where slots choose in this order."""
    buffers, offsets, places = [0] * len(sizes), [0] * len(sizes), list[_Place]()
    number: dict[int, int] = {}
    for slot, owner in pinned.items():
        if owner not in number:
            number[owner] = len(places)
            places.append(_Place(sizes[owner], {owner}, [(lives[owner], 0, sizes[owner])]))
        buffers[slot] = number[owner]
        places[number[owner]].members.add(slot)
    for slot in order:
        at, offset = _choose(places, sizes[slot], lives[slot], beside[slot])
        buffers[slot], offsets[slot] = at, offset
        places[at].members.add(slot)
        places[at].values.append((lives[slot], offset, offset + sizes[slot]))
    return buffers, offsets, [place.nbytes for place in places]


def _choose(places: list[_Place], nbytes: int, life: Life, beside: set[int]) -> tuple[int, int]:
    """The place with the tightest gap, and where in it; a new place if there is none."""
    best: tuple[int, int, int] | None = None
    for at, place in enumerate(places):
        if place.nbytes >= nbytes and beside.isdisjoint(place.members):
            gap = place.gap(life, nbytes)
            if gap is not None and (best is None or (gap[0], at) < best[:2]):
                best = gap[0], at, gap[1]
    if best is not None:
        return best[1:]
    places.append(_Place(nbytes, set()))
    return len(places) - 1, 0


def _lives(steps: Sequence[Sequence[int]], count: int) -> list[Life]:
    """First and last step of each slot; one that no step touches is there all the time."""
    found: dict[int, Life] = {}
    for at, touched in enumerate(steps):
        for slot in touched:
            found[slot] = (found.get(slot, (at, at))[0], at)
    return [found.get(slot, (0, len(steps))) for slot in range(count)]


def _neighbours(steps: Sequence[Sequence[int]], count: int) -> list[set[int]]:
    """For each slot those that a step touches together with it."""
    found: list[set[int]] = [set() for _ in range(count)]
    for touched in steps:
        for slot in touched:
            found[slot].update(touched)
    return found


def _fullest(values: Iterable[tuple[Life, int]], end: int) -> int:
    """The most bytes of values that are alive at one step."""
    change = [0] * (end + 2)
    for (first, last), nbytes in values:
        change[first] += nbytes
        change[last + 1] -= nbytes
    return max(accumulate(change))
