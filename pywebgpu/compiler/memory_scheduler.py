"""In which order the groups of a schedule run: as the graph has them, but early what lets memory go.

A gradient of a weight, say, is the last reader of a wide value; run at once, that value's memory serves the next layer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from math import prod
from typing import Generic, Protocol, TypeVar

from pywebgpu.ir.graph import Node


class Part(Protocol):
    """What must be known of a group."""

    number: int
    outputs: list[Node]
    parents: set[int]


P = TypeVar("P", bound=Part)


class _Memory(Generic[P]):
    """What the memory of values grows by when a group runs, after those that ran already."""

    def __init__(self, groups: Sequence[P], reads: Callable[[P], Sequence[Node]], kept: Collection[int]) -> None:
        self._kept = kept
        self._inputs = {group.number: [node for node in reads(group) if node.buffer is None] for group in groups}
        self._readers: dict[int, dict[int, P]] = {}  # by id of a value: those that still read it, by number
        for group in groups:
            for node in self._inputs[group.number]:
                self._readers.setdefault(id(node), {})[group.number] = group

    def inputs(self, group: P) -> Sequence[Node]:
        """What is computed, of what it reads."""
        return self._inputs[group.number]

    def growth(self, group: P) -> int:
        """Elements that are live afterwards and were not before."""
        takes = sum(prod(node.spec.shape) for node in group.outputs if id(node) not in self._kept)
        last = (node for node in self._inputs[group.number] if len(self._readers[id(node)]) == 1)
        return takes - sum(prod(node.spec.shape) for node in last if id(node) not in self._kept)

    def run(self, group: P) -> list[P]:
        """Those that free more now: they are the last readers of something."""
        last: list[P] = []
        for node in self._inputs[group.number]:
            readers = self._readers[id(node)]
            del readers[group.number]
            if len(readers) == 1:
                last += readers.values()
        return last


def ordered(
    groups: Sequence[P],
    reads: Callable[[P], Sequence[Node]],
    kept: Collection[int],
    inside: Mapping[int, tuple[Node, int]],
) -> list[P]:
    """groups: as the graph has them. kept: ids of values whose memory is never let go, or is not their own.

    A group runs when all before it did: of those that can, the first one that frees more than it takes, else the first.
    inside: by id of a value, the one in whose buffer it lies.
    """
    position = {group.number: index for index, group in enumerate(groups)}
    memory = _Memory(groups, reads, kept)
    children: dict[int, list[P]] = {}
    for group in groups:
        for number in group.parents:
            children.setdefault(number, []).append(group)
    missing = [len(group.parents) for group in groups]  # by position: groups that have to run before
    ready: set[int] = set()  # the positions of groups that can run, and of those that free more than they take
    freeing: set[int] = set()
    order: list[P] = []

    def offer(group: P) -> None:
        index = position[group.number]
        if not missing[index]:
            ready.add(index)
            if memory.growth(group) < 0:
                freeing.add(index)

    for group in groups:
        offer(group)
    begun: set[int] = set()  # ids of values in whose buffers others lie

    def wholes(index: int) -> set[int]:
        return {id(inside[id(node)][0]) for node in groups[index].outputs if id(node) in inside}

    def first() -> int:
        """Of those that can run. A buffer of many values is there from the first of them on: that one can wait."""
        index = min(freeing or ready)
        if wholes(index) <= begun:
            return index
        others = [index for index in freeing if wholes(index) <= begun]
        if not others:
            read = {id(node) for node in memory.inputs(groups[index])}
            siblings = [index for index in ready if any(id(node) in read for node in memory.inputs(groups[index]))]
            others = [index for index in siblings if wholes(index) <= begun]
        return min(others, default=index)

    while ready:
        index = first()
        begun |= wholes(index)
        ready.remove(index)
        freeing.discard(index)
        order.append(groups[index])
        for reader in memory.run(groups[index]):
            offer(reader)
        for child in children.get(groups[index].number, ()):
            missing[position[child.number]] -= 1
            offer(child)
    assert len(order) == len(groups), "the groups of a schedule have an order"
    return order
