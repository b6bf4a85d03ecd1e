"""Which nodes share a kernel: going through the graph in order, a node's group joins those of its inputs, and those
that read what it reads, where the joined group still is one kernel.

One kernel: there is a template for it, no path goes out of it and back, bindings are within the limit, and each value
that passes inside is read at the very element where it was computed (see kernels/template.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from math import prod

from pywebgpu.compiler import packed_stores
from pywebgpu.compiler.fusion_group import FusionGroup
from pywebgpu.compiler.inlining import Inlining
from pywebgpu.compiler.partition import Partition
from pywebgpu.ir.graph import Node, Pointwise
from pywebgpu.kernels import templates
from pywebgpu.kernels.iteration_space import IterationSpace
from pywebgpu.kernels.template import Template
from pywebgpu.settings import settings

LARGEST = 128  # nodes of one kernel: beyond that the text grows and nothing is won
LONGEST = 512  # instructions of one, with those of what is computed in its nodes: translators take the square of it


class Fusion:
    """Joins the nodes of `reads` as far as it goes: see `partition`. Then groups that bind too much are divided.

    overwritten: by id of a result, the id of the leaf whose buffer it may take over. Both count as one binding.
    """

    def __init__(self, reads: Inlining, bindings: int, overwritten: Mapping[int, int]) -> None:
        self._reads, self._bindings = reads, bindings
        self._selection = reads.selection
        self._rank = {id(node): index for index, node in enumerate(reads.nodes)}
        self._overwritten = overwritten
        # Those that are no kernel together, and never will be.
        self._apart: set[tuple[FusionGroup, FusionGroup]] = set()
        self.partition = Partition(reads.edges)
        for node in reads.nodes:
            self._add(node)
        for node in reads.nodes:
            template = self.partition.of[id(node)].template
            if template is self._selection.of(node) and self._waits(node):
                self._join_producers(node)
        if settings.fuse:
            self._join_small()

    def _join_small(self) -> None:
        """Kernels that would leave a device idle, one after the other, share one where their spaces agree."""
        open_: dict[IterationSpace | int, FusionGroup] = {}
        for group in sorted(self.partition.groups.values(), key=lambda group: self._rank[id(group.nodes[0])]):
            if not self._is_small(group):
                continue
            space = group.domain.space or prod(group.nodes[0].spec.shape)
            last = open_.get(space)
            if last is not None:
                self._join(last, group)
            open_[space] = self.partition.of[id(group.nodes[0])]

    def _is_small(self, group: FusionGroup) -> bool:
        inside = {id(node) for node in group.nodes}
        return group.template.is_small(group, lambda node: self._reads.escapes(node, inside), self._selection.target)

    def _add(self, node: Node) -> None:
        template = self._selection.of(node)
        self.partition.add(node, template, template.start(node))
        if settings.fuse and not self._waits(node):
            self._join_producers(node)
            self._join_alike(node)

    def _waits(self, node: Node) -> bool:
        """What only kernels with a prologue read is computed in them: there it need not be stored."""
        readers = self._reads.users.get(id(node), ())
        only = bool(readers) and all(self._selection.of(reader).has_prologue for reader in readers)
        stored = id(node) in self._reads.wanted or id(node) in self._reads.halves
        return settings.fuse and only and isinstance(node.op, Pointwise) and not stored

    def _join_producers(self, node: Node) -> None:
        of, groups = self.partition.of, self.partition.groups
        producers = {of[id(p)].number for p, _, _ in self._reads.edges[id(node)] if p.buffer is None}
        for other in sorted(producers, reverse=True):
            current = of[id(node)]
            if other in groups and groups[other] is not current:
                self._join(groups[other], current)

    def _join_alike(self, node: Node) -> None:
        """Groups side by side which read the same values over the same elements share a kernel."""
        of, users = self.partition.of, self._reads.users
        readers: dict[int, Node] = {}
        own = of[id(node)]
        # Once each: a flat vector of parameters has as many users as there are parameters.
        read = {id(producer): producer for inner in own.nodes for producer, _, _ in self._reads.edges[id(inner)]}
        for producer_id, producer in read.items():
            for user in users[producer_id] if producer.spec.shape else ():
                if of.get(id(user), own) is not own:
                    readers[id(user)] = user
        # First those of other templates: a bias's gradient is made inside the weight's.
        for user in sorted(readers.values(), key=lambda user: self._selection.of(user) is self._selection.of(node)):
            other, group = of[id(user)], of[id(node)]
            if other is not group and _are_neighbours(other.template, group.template):
                self._join(other, group)

    def _join(self, first: FusionGroup, second: FusionGroup) -> None:
        """Makes one group of two, where they are one kernel."""
        template = templates.joined(first.template, second.template)
        if template is None or len(first.nodes) + len(second.nodes) > LARGEST:
            return
        if sum(self._reads.costs[id(node)] for node in (*first.nodes, *second.nodes)) > LONGEST:
            return
        if (first, second) in self._apart or self.partition.is_path_between(first, second):
            return
        nodes = sorted([*first.nodes, *second.nodes], key=lambda node: self._rank[id(node)])
        domain = template.joined(nodes, self._reads.edges, (first.domain, second.domain))
        merged = None if domain is None else FusionGroup(template, nodes, domain, number=first.number)
        if merged is not None and self._is_worthwhile(merged):
            self.partition.join(first, second, merged)
        else:
            self._apart.add((first, second))

    def _is_worthwhile(self, group: FusionGroup) -> bool:
        inside, wanted = {id(node) for node in group.nodes}, self._reads.wanted
        if not all(packed_stores.stores(group, node) for node in group.nodes if id(node) in wanted):
            return False  # What leaves the Program is written as its dtype lies in memory.
        if not group.template.is_worthwhile(
            group, lambda node: self._reads.escapes(node, inside), self._selection.target
        ):
            return False
        # Readers that are not placed yet may still join; see `divide` for those that do not.
        return self._width(group.nodes) <= self._bindings

    # Limits

    def _width(self, nodes: Sequence[Node]) -> int:
        """Buffers that a kernel of these nodes binds, as far as it is decided who reads them."""
        inside = {id(node) for node in nodes}
        wanted, users, placed = self._reads.wanted, self._reads.users, self.partition.of
        read = {id(p): p for node in nodes for p, _, _ in self._reads.edges[id(node)] if id(p) not in inside}
        written = [
            node
            for node in nodes
            if id(node) in wanted
            or any(id(user) not in inside and id(user) in placed for user in users.get(id(node), ()))
        ]
        again = [node for node in nodes if self._overwritten.get(id(node)) in read]
        if not self._reads.long:
            return len(read) + len(written) - len(again)
        read_all, written_all, again_all = (
            sum(map(self._reads.bound, sources)) for sources in (read.values(), written, again)
        )
        return read_all + written_all - again_all

    def divide(self, overwritten: Mapping[int, int]) -> None:
        """Cuts a group that ended up with too many buffers, because not all readers joined it, into two and again.

        overwritten: what counts as one binding from now on.
        """
        self._overwritten = overwritten
        stack = [group for group in self.partition.groups.values() if len(group.nodes) > 1]
        while stack:
            group = stack.pop()
            if self._width(group.nodes) > self._bindings or not group.template.is_whole(group):
                cut = self._best_cut(group.nodes)
                parts = [self._part(group, nodes) for nodes in (group.nodes[:cut], group.nodes[cut:])]
                self.partition.divide(group, parts)
                stack += [part for part in parts if len(part.nodes) > 1]

    def _best_cut(self, nodes: list[Node]) -> int:
        """Where the two halves together bind the fewest buffers."""

        def width(middle: int) -> int:
            widths = [self._width(half) for half in (nodes[:middle], nodes[middle:])]
            return max(*widths, self._bindings) * 100 + sum(widths)

        return min(range(1, len(nodes)), key=width)

    def _part(self, group: FusionGroup, nodes: list[Node]) -> FusionGroup:
        """Some nodes of a group as a group of its own."""
        template = reduce(_wider, (self._selection.of(node) for node in nodes))
        return FusionGroup(template, nodes, template.part(nodes, group.domain), number=group.number)


def with_copy(group: FusionGroup, copy: Node, reads: Inlining) -> FusionGroup | None:
    """A group that also makes a copy of what it computes; None where that is no kernel."""
    own = reads.selection.of(copy)
    template, nodes = templates.joined(group.template, own), [*group.nodes, copy]
    if template is None or reads.long or len(reads.outside(nodes)) + len(group.outputs) >= reads.bindings:
        return None
    domain = template.joined(nodes, reads.edges, (group.domain, own.start(copy)))
    joined = None if domain is None else FusionGroup(template, nodes, domain, number=group.number)
    inside = {id(node) for node in nodes}
    wanted = lambda node: reads.escapes(node, inside)  # noqa: E731
    is_kernel = (
        joined is not None
        and packed_stores.stores(joined, copy)
        and template.is_worthwhile(joined, wanted, reads.selection.target)
    )
    return joined if is_kernel else None


def _wider(first: Template, second: Template) -> Template:
    """Of two templates with nodes in one kernel, the one that writes it."""
    template = templates.joined(first, second)
    assert template is not None, "what is cut was joined"
    return template


def _are_neighbours(first: Template, second: Template) -> bool:
    return second.name in first.siblings or first.name in second.siblings
