"""The nodes of a graph cut into groups, and which group must run before which.

A node is placed after its producers, and placing numbers it. What must run before a group is a set of such numbers, a
bit each, kept whole while groups join: so a path between two groups is seen at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pywebgpu.compiler.fusion_group import FusionGroup
from pywebgpu.ir.graph import Node
from pywebgpu.kernels.access import Edges
from pywebgpu.kernels.template import Domain, Template


class Partition:
    """groups: by number.  of: by id of a node, its group."""

    def __init__(self, edges: Edges) -> None:
        self._edges = edges
        self._added: list[Node] = []
        self._count = 0  # numbers that were given
        self._waited_for: set[int] = set()  # numbers of groups that others run after, once that is settled
        self.groups: dict[int, FusionGroup] = {}
        self.of: dict[int, FusionGroup] = {}

    def add(self, node: Node, template: Template, domain: Domain) -> FusionGroup:
        """A group of its own for a node."""
        group = FusionGroup(template, [node], domain, number=self._count, members=1 << self._count)
        for parent in self._producers(group):
            group.parents.add(parent.number)
            group.before |= parent.before | parent.members
        self._added.append(node)
        self._count += 1
        self._put(group)
        return group

    def is_path_between(self, a: FusionGroup, b: FusionGroup) -> bool:
        """Whether one depends on the other through a third group, so that they cannot be one."""
        for later, other in ((a, b), (b, a)):
            for number in other.parents:
                parent = self.groups[number]
                if parent is not later and parent.before & later.members:
                    return True
        return False

    def join(self, first: FusionGroup, second: FusionGroup, merged: FusionGroup) -> None:
        """Puts a group that has the number and the nodes of `first`, and the nodes of `second`, in their place."""
        merged.members = first.members | second.members
        merged.parents = (first.parents | second.parents) - {first.number, second.number}
        merged.before = (first.before | second.before) & ~merged.members
        del self.groups[second.number]
        self._put(merged)
        more = merged.before | merged.members
        for group in self._later(merged):
            if group.before & merged.members:
                group.before |= more
            if second.number in group.parents:
                group.parents.discard(second.number)
                group.parents.add(merged.number)

    def divide(self, group: FusionGroup, parts: Sequence[FusionGroup]) -> None:
        """Puts groups that have the nodes of another in its place. Nothing is known of order until `settle`."""
        del self.groups[group.number]
        for part in parts:
            part.number = self._count
            self._count += 1
            self._put(part)

    def settle(self) -> None:
        """Finds anew what must run before what, and forgets what `run_after` asked for."""
        groups = self.groups.values()
        children: dict[int, list[FusionGroup]] = {}
        for group in groups:
            group.members, group.before = 1 << group.number, 0
            group.parents = {parent.number for parent in self._producers(group)}
            for number in group.parents:
                children.setdefault(number, []).append(group)
        self._waited_for = set(children)
        missing = {group.number: len(group.parents) for group in groups}
        ready = [group for group in groups if not group.parents]
        for group in ready:  # It grows meanwhile.
            for child in children.get(group.number, ()):
                child.before |= group.before | group.members
                missing[child.number] -= 1
                if not missing[child.number]:
                    ready.append(child)
        assert len(ready) == len(groups), "cutting a group leaves an order"

    def run_after(self, group: FusionGroup, others: Iterable[FusionGroup]) -> None:
        """Has a group run after others, of which none depends on it. Only where no groups join any more."""
        for other in others:
            self._waited_for.add(other.number)
            group.parents.add(other.number)
            group.before |= other.before | other.members
        if group.number in self._waited_for:
            for later in self.groups.values():
                if later.before & group.members:
                    later.before |= group.before

    def _put(self, group: FusionGroup) -> None:
        self.groups[group.number] = group
        for node in group.nodes:
            self.of[id(node)] = group

    def _producers(self, group: FusionGroup) -> list[FusionGroup]:
        """The other groups that a group reads from."""
        read = (producer for node in group.nodes for producer, _, _ in self._edges[id(node)])
        producers_of_reads = [self.of[id(producer)] for producer in read if producer.buffer is None]
        return [producer for producer in producers_of_reads if producer is not group]

    def _later(self, group: FusionGroup) -> list[FusionGroup]:
        """The others with a node that was placed after the group's first: whatever depends on it is among them."""
        first = (group.members & -group.members).bit_length() - 1
        groups = {(owner := self.of[id(node)]).number: owner for node in self._added[first:]}
        groups.pop(group.number)
        return list(groups.values())
