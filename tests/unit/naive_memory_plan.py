"""A memory plan that looks at every gap of every buffer for every value: slow, and what memory_plan.py must find."""

from collections.abc import Collection, Mapping, Sequence

from pywebgpu.compiler.memory_plan import ALIGNMENT, Layout

Life = tuple[int, int]
Value = tuple[Life, int, int]  # its life, where it starts and where it ends
Place = tuple[int, set[int], list[Value]]  # bytes, slots, values of a buffer


def plan(
    steps: Sequence[Sequence[int]], sizes: Sequence[int], pinned: Mapping[int, int], late: Collection[int]
) -> Layout:
    lives: list[Life] = [(0, len(steps))] * len(sizes)
    for slot in range(len(sizes)):
        touched = [at for at, slots in enumerate(steps) if slot in slots]
        lives[slot] = (touched[0], touched[-1]) if touched else lives[slot]
    for slot, owner in pinned.items():
        lives[owner] = (min(lives[slot][0], lives[owner][0]) if owner in late else 0, len(steps))
    inner = [slot for slot in range(len(sizes)) if slot not in pinned]
    used = [(lives[slot], sizes[slot]) for slot in {*inner, *pinned.values()}]
    least = max(sum(n for (first, last), n in used if first <= at <= last) for at in range(len(steps) + 1))
    forwards = sorted(inner, key=lambda slot: (-sizes[slot], lives[slot][0]))
    backwards = sorted(inner, key=lambda slot: (-sizes[slot], -lives[slot][1]))
    found = [_laid_out(order, steps, sizes, pinned, lives) for order in (forwards, backwards)]
    return Layout(*min(found, key=lambda layout: sum(layout[2])), least)


def _laid_out(
    order: list[int],
    steps: Sequence[Sequence[int]],
    sizes: Sequence[int],
    pinned: Mapping[int, int],
    lives: list[Life],
) -> tuple[list[int], list[int], list[int]]:
    places: list[Place] = []
    where: dict[int, tuple[int, int]] = {}
    for slot, owner in pinned.items():
        if owner not in where:
            where[owner] = len(places), 0
            places.append((sizes[owner], {owner}, [(lives[owner], 0, sizes[owner])]))
        where[slot] = where[owner]
        places[where[owner][0]][1].add(slot)
    for slot in order:
        beside = {other for touched in steps if slot in touched for other in touched}
        gaps = [
            (gap, at, start)
            for at, (nbytes, slots, values) in enumerate(places)
            if beside.isdisjoint(slots)
            for gap, start in _gaps(nbytes, values, lives[slot])
            if gap >= sizes[slot]
        ]
        if gaps:
            where[slot] = min(gaps)[1:]
        else:
            where[slot] = len(places), 0
            places.append((sizes[slot], set(), []))
        at, offset = where[slot]
        places[at][1].add(slot)
        places[at][2].append((lives[slot], offset, offset + sizes[slot]))
    slots = range(len(sizes))
    return [where[slot][0] for slot in slots], [where[slot][1] for slot in slots], [nbytes for nbytes, _, _ in places]


def _gaps(nbytes: int, values: list[Value], life: Life) -> list[tuple[int, int]]:
    """Size and start of what is free during all of a life."""
    taken = sorted((start, end) for (first, last), start, end in values if first <= life[1] and life[0] <= last)
    found, free = [], 0
    for start, end in [*taken, (nbytes, nbytes)]:
        found.append((start - free, free))
        free = max(free, -(-end // ALIGNMENT) * ALIGNMENT)
    return found
