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
    ready = _Ready(groups, _Memory(groups, reads, kept), inside)
    order = []
    while ready:
        order.append(ready.take())
    assert len(order) == len(groups), "the groups of a schedule have an order"
    return order


class _Ready(Generic[P]):
    """The groups that can run: all before them did."""

    def __init__(self, groups: Sequence[P], memory: _Memory[P], inside: Mapping[int, tuple[Node, int]]) -> None:
        self._groups, self._memory, self._inside = groups, memory, inside
        self._position = {group.number: index for index, group in enumerate(groups)}
        self._children: dict[int, list[P]] = {}
        for group in groups:
            for number in group.parents:
                self._children.setdefault(number, []).append(group)
        self._missing = [len(group.parents) for group in groups]  # by position: groups that have to run before
        self._ready: set[int] = set()  # by position
        self._freeing: set[int] = set()  # those that free more than they take
        self._begun: set[int] = set()  # ids of values in whose buffers others lie
        for group in groups:
            self._offer(group)

    def __bool__(self) -> bool:
        return bool(self._ready)

    def take(self) -> P:
        """The group that runs next."""
        index = self._first()
        group = self._groups[index]
        self._begun |= self._bases(index)
        self._ready.remove(index)
        self._freeing.discard(index)
        for reader in self._memory.run(group):
            self._offer(reader)
        for child in self._children.get(group.number, ()):
            self._missing[self._position[child.number]] -= 1
            self._offer(child)
        return group

    def _offer(self, group: P) -> None:
        index = self._position[group.number]
        if not self._missing[index]:
            self._ready.add(index)
            if self._memory.growth(group) < 0:
                self._freeing.add(index)

    def _first(self) -> int:
        """A buffer of many values is there from the first of them on: that one can wait."""
        index = min(self._freeing or self._ready)
        if self._bases(index) <= self._begun:
            return index
        others = [index for index in self._freeing if self._bases(index) <= self._begun]
        if not others:
            inputs = self._memory.inputs
            read = {id(node) for node in inputs(self._groups[index])}
            siblings = [other for other in self._ready if any(id(node) in read for node in inputs(self._groups[other]))]
            others = [other for other in siblings if self._bases(other) <= self._begun]
        return min(others, default=index)

    def _bases(self, index: int) -> set[int]:
        """Ids of the values in whose buffers a group's outputs lie."""
        inside = self._inside
        return {id(inside[id(node)][0]) for node in self._groups[index].outputs if id(node) in inside}
