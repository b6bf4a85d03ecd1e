"""Which nodes share a kernel: going through the graph in order, a node's group joins those of its inputs, and those
that read what it reads, where the joined group still is one kernel.

One kernel: of one kind, no path out of it and back, bindings within the limit, and each value that passes inside is
read at the very element where it was computed (see fusion_group.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from pywebgpu.compiler import packed_stores
from pywebgpu.compiler.fusion_group import FULL, OUTER, FusionGroup, fits, iteration_space_of, stored_rows_are_fast
from pywebgpu.compiler.inlining import Inlining, kind_of
from pywebgpu.compiler.partition import Partition
from pywebgpu.formats import WORD
from pywebgpu.ir.graph import Node, Pointwise, Reduction
from pywebgpu.kernels.kernel import Limits
from pywebgpu.ops import reduction
from pywebgpu.settings import settings

LARGEST = 128  # nodes of one kernel: beyond that the text grows and nothing is won


class Fusion:
    """Joins the nodes of `reads` as far as it goes: see `partition`. Then groups that bind too much are divided.

    overwritten: by id of a result, the id of the leaf whose buffer it may take over. Both count as one binding.
    """

    def __init__(self, reads: Inlining, bindings: int, limits: Limits, overwritten: Mapping[int, int]) -> None:
        self._reads, self._bindings = reads, bindings
        self._folds = limits.shared_bytes // (WORD * limits.workgroup_size)  # arrays of a workgroup, one a reduction
        self._rank = {id(node): at for at, node in enumerate(reads.nodes)}
        self._overwritten = overwritten
        # Those that are no kernel together, and never will be.
        self._apart: set[tuple[FusionGroup, FusionGroup]] = set()
        self.partition = Partition(reads.edges)
        for node in reads.nodes:
            self._add(node)
        for node in reads.nodes:
            if self.partition.of[id(node)].kind == "map" and self._waits(node):
                self._join_producers(node)

    def _add(self, node: Node) -> None:
        group = self.partition.add(node, kind_of(node))
        if isinstance(node.op, Reduction):
            group.space = iteration_space_of(node)
            group.levels[id(node)] = OUTER
        elif group.kind == "product":
            group.levels[id(node)] = FULL
        if settings.fuse and not self._waits(node):
            self._join_producers(node)
            self._join_alike(node)

    def _waits(self, node: Node) -> bool:
        """What only reductions read is computed in their kernels: there it need not be stored."""
        readers = self._reads.users.get(id(node), ())
        only = bool(readers) and all(isinstance(reader.op, Reduction) for reader in readers)
        return settings.fuse and only and isinstance(node.op, Pointwise) and id(node) not in self._reads.wanted

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
        found: dict[int, Node] = {}
        own = of[id(node)]
        for inner in own.nodes:
            for producer, _, _ in self._reads.edges[id(inner)]:
                for user in users[id(producer)] if producer.spec.shape else ():
                    if of.get(id(user), own) is not own:
                        found[id(user)] = user
        for user in sorted(found.values(), key=lambda user: kind_of(user) != "product"):
            other, group = of[id(user)], of[id(node)]
            kinds = {other.kind, group.kind}
            if other is not group and (kinds in ({"map"}, {"rows"}, {"product", "rows"})):
                self._join(other, group)

    def _join(self, first: FusionGroup, second: FusionGroup) -> None:
        """Makes one group of two, where they are one kernel."""
        kinds = {first.kind, second.kind}
        if "single" in kinds or kinds == {"product"} or len(first.nodes) + len(second.nodes) > LARGEST:
            return
        if (first, second) in self._apart or self.partition.is_path_between(first, second):
            return
        nodes = sorted([*first.nodes, *second.nodes], key=lambda node: self._rank[id(node)])
        merged = FusionGroup(first.number, "map", nodes)
        if "product" in kinds:
            merged.kind = "product"
        elif "rows" in kinds:
            merged.kind = "rows"
            merged.space = first.space or second.space
        if fits(merged, self._reads.edges) and self._stores_well(merged) and self._is_within_limits(merged):
            self.partition.join(first, second, merged)
        else:
            self._apart.add((first, second))

    def _stores_well(self, group: FusionGroup) -> bool:
        """Whether it writes what leaves the Program as that lies in memory, and whole rows only where that is fast."""
        wanted = self._reads.wanted
        if not all(packed_stores.stores(group, node) for node in group.nodes if id(node) in wanted):
            return False
        if group.kind != "rows" or group.space is None or stored_rows_are_fast(group.space):
            return True
        inside = {id(node) for node in group.nodes}
        return not any(group.levels[id(node)] == FULL and self._reads.escapes(node, inside) for node in group.nodes)

    # Limits

    def _is_within_limits(self, group: FusionGroup) -> bool:
        """Readers that are not placed yet may still join; see `divide` for those that do not."""
        folds = [n.op in (reduction.argmax, reduction.argmin) for n in group.nodes if isinstance(n.op, Reduction)]
        return len(folds) + sum(folds) <= self._folds and self._width(group.nodes) <= self._bindings

    def _width(self, nodes: Sequence[Node]) -> int:
        """Buffers that a kernel of these nodes binds, as far as it is decided who reads them."""
        inside = {id(node) for node in nodes}
        wanted, users, placed = self._reads.wanted, self._reads.users, self.partition.of
        read = {id(p) for node in nodes for p, _, _ in self._reads.edges[id(node)] if id(p) not in inside}
        writes = sum(
            id(node) in wanted or any(id(user) not in inside and id(user) in placed for user in users.get(id(node), ()))
            for node in nodes
        )
        again = sum(self._overwritten.get(id(node)) in read for node in nodes)
        return len(read) + writes - again

    def divide(self, overwritten: Mapping[int, int]) -> None:
        """Cuts a group that ended up with too many buffers, because not all readers joined it, into two and again.

        overwritten: what counts as one binding from now on.
        """
        self._overwritten = overwritten
        stack = [group for group in self.partition.groups.values() if len(group.nodes) > 1]
        while stack:
            group = stack.pop()
            if self._width(group.nodes) > self._bindings or _is_mixed(group):
                cut = self._best_cut(group.nodes)
                parts = [_part(group, nodes) for nodes in (group.nodes[:cut], group.nodes[cut:])]
                self.partition.divide(group, parts)
                stack += [part for part in parts if len(part.nodes) > 1]

    def _best_cut(self, nodes: list[Node]) -> int:
        """Where the two halves together bind the fewest buffers."""

        def width(at: int) -> int:
            widths = [self._width(half) for half in (nodes[:at], nodes[at:])]
            return max(*widths, self._bindings) * 100 + sum(widths)

        return min(range(1, len(nodes)), key=width)


def _is_mixed(group: FusionGroup) -> bool:
    """A cut left pointwise nodes of rows and of elements together, without the reduction that joined them."""
    return group.kind == "map" and len({prod(node.spec.shape) for node in group.nodes}) > 1


def _part(whole: FusionGroup, nodes: list[Node]) -> FusionGroup:
    """Some nodes of a group as a group of its own."""
    kinds = {kind_of(node) for node in nodes}
    part = FusionGroup(whole.number, next((kind for kind in ("product", "rows") if kind in kinds), "map"), nodes)
    part.levels = {id(node): whole.levels[id(node)] for node in nodes if whole.levels}
    if part.kind == "rows":
        folded = next(node for node in nodes if isinstance(node.op, Reduction))
        part.space = whole.space or iteration_space_of(folded)
        part.levels = {at: FULL if level == FULL else OUTER for at, level in part.levels.items()}
    return part
