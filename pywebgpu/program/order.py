"""In which order the groups of a schedule run: as the graph has them, but early what lets memory go.

A gradient of a weight, say, is the last reader of a wide value; run at once, that value's memory serves the next layer.
"""

from __future__ import annotations

from bisect import insort
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from math import prod
from typing import Protocol, TypeVar

from pywebgpu.graph.ir import Node


class Part(Protocol):
    """What must be known of a group."""

    number: int
    outputs: list[Node]
    members: int
    before: int
    parents: set[int]


P = TypeVar("P", bound=Part)


def ordered(groups: Iterable[P], reads: Callable[[P], Sequence[Node]], kept: Collection[int]) -> list[P]:
    """groups: as the graph has them. kept: ids of values whose memory is never let go, or is not their own.

    A group runs when all before it did: of those that can, the first one that frees more than it takes, else the first.
    """
    waiting = list(groups)
    inputs = {group.number: [node for node in reads(group) if node.buffer is None] for group in waiting}
    left = Counter(id(node) for nodes in inputs.values() for node in nodes)  # groups that still read it
    place = {group.number: at for at, group in enumerate(waiting)}
    children: dict[int, list[P]] = {}
    for group in waiting:
        for number in group.parents:
            children.setdefault(number, []).append(group)
    ready = [group for group in waiting if not group.before]
    known = {group.number for group in ready}
    found: list[P] = []
    done = 0

    def growth(group: P) -> int:
        """Elements that are live afterwards and were not before."""
        takes = sum(prod(node.spec.shape) for node in group.outputs if id(node) not in kept)
        frees = sum(prod(n.spec.shape) for n in inputs[group.number] if left[id(n)] == 1 and id(n) not in kept)
        return takes - frees

    while ready:
        group = next((group for group in ready if growth(group) < 0), ready[0])
        ready.remove(group)
        found.append(group)
        done |= group.members
        left.subtract(id(node) for node in inputs[group.number])
        for child in children.get(group.number, ()):
            if not child.before & ~done and child.number not in known:
                known.add(child.number)
                insort(ready, child, key=lambda group: place[group.number])
    assert len(found) == len(waiting), "the groups of a schedule have an order"
    return found
