"""Which kernels a graph becomes, and in which order they run.

The graph is cut into groups, each one kernel of a template (kernels/templates/), which says what belongs in it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pywebgpu.compiler import in_place, memory_scheduler
from pywebgpu.compiler.fusion import Fusion, with_copy
from pywebgpu.compiler.fusion_group import FusionGroup
from pywebgpu.compiler.inlining import Inlining
from pywebgpu.compiler.suballocation import Suballocation
from pywebgpu.ir.graph import Node
from pywebgpu.kernels.templates import Selection
from pywebgpu.ops import checks


@dataclass(frozen=True, slots=True)
class Schedule:
    """groups: in an order that may run.  alias: by id of a result, the data leaf whose buffer it takes over."""

    groups: list[FusionGroup]
    alias: dict[int, Node]
    _reads: Inlining

    def reused(self, placed: Suballocation) -> list[tuple[Node, Node]]:
        """Pairs of a result and the value in whose buffer it is made."""
        done = self.alias.keys() | placed.inside.keys() | placed.written_over.keys()
        parts: dict[int, list[Node]] = {}
        for part in placed.parts:
            parts.setdefault(id(placed.inside[id(part)][0]), []).append(part)
        return in_place.reused(self.groups, self._reads, done, parts)

    def copy_after(self, node: Node, copy: Node) -> None:
        """Has a stored value copied by the kernel that computes it, or else by the next one."""
        self._reads.add(copy, node)
        index = next(index for index, group in enumerate(self.groups) if any(member is node for member in group.nodes))
        group = self.groups[index]
        joined = with_copy(group, copy, self._reads)
        if joined is not None:
            joined.outputs = [*group.outputs, copy]
            self.groups[index] = joined
            return
        template = self._reads.selection.of(copy)
        alone = FusionGroup(template, [copy], template.start(copy), number=len(self.groups))
        alone.outputs = [copy]
        self.groups.insert(index + 1, alone)

    def reads(self, group: FusionGroup) -> list[Node]:
        """Values from outside that a group reads."""
        return self._reads.outside(group.nodes)


def scheduled(
    placed: Suballocation, nodes: list[Node], selection: Selection, written: Iterable[tuple[Node, Node]]
) -> Schedule:
    """nodes: the toposorted graph.  written: pairs of a root and a data leaf whose buffer the root may take over."""
    binds_words = any(map(checks.binds_words, nodes))
    bindings = selection.target.limits.bindings - binds_words  # The device's own words take one.
    reads = Inlining(nodes, {id(node) for node in (*placed.roots, *placed.parts)}, bindings, selection)
    windows: dict[int, list[Node]] = {}  # by id of the data in whose buffer they lie
    for window in placed.windows:
        windows.setdefault(id(placed.inside[id(window)][0]), []).append(window)
    pairs = list({id(result): (result, leaf) for result, leaf in written}.values())
    fusion = Fusion(reads, bindings, _ids(pairs))
    while True:
        # While joining, what may be overwritten counted once. Where it may not be, groups are looked at again.
        fusion.divide(_ids(pairs))
        fusion.partition.settle()
        alias = in_place.allowed(pairs, windows, fusion.partition, reads, placed.first)
        if len(alias) == len(pairs):
            break
        pairs = [pair for pair in pairs if id(pair[0]) in alias]
    # What is made over other values takes its buffer over with the first of them.
    alias |= {id(placed.first(result)): alias[id(result)] for result, _ in pairs}
    return Schedule(_ordered(fusion, reads, alias, nodes, placed.inside), alias, reads)


def _ids(pairs: Iterable[tuple[Node, Node]]) -> dict[int, int]:
    return {id(result): id(leaf) for result, leaf in pairs}


def _ordered(
    fusion: Fusion, reads: Inlining, alias: dict[int, Node], nodes: list[Node], inside: dict[int, tuple[Node, int]]
) -> list[FusionGroup]:
    """As the graph has them, by their last nodes, but early what lets memory go."""
    rank = {id(node): index for index, node in enumerate(nodes)}
    groups = sorted(fusion.partition.groups.values(), key=lambda group: rank[id(group.nodes[-1])])
    for group in groups:
        own = {id(node) for node in group.nodes}
        group.outputs = [node for node in group.nodes if reads.escapes(node, own)]
    kept = reads.wanted | alias.keys() | inside.keys()
    return memory_scheduler.ordered(groups, lambda group: reads.outside(group.nodes), kept, inside)
