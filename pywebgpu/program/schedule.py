"""Which nodes share a kernel: the graph is cut into groups, each of one kind.

map        pointwise nodes over one number of elements, several of them stored
rows       reductions over the same rows, with pointwise work before, between and after (softmax, norms, losses)
product    one contraction, with pointwise work on its result before it is stored, and sums of its operands over k
single     any other op alone

Every node starts as its own group; going through the graph in order, a node's group joins those of its inputs where the
joined group still is one kernel: one kind, no path out of it and back, bindings within the limit, and each value that
passes inside is read at the very element where it was computed. That last test compares symbolic indices.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

from pywebgpu.graph import walk
from pywebgpu.graph.ir import Node, Pointwise, Reduction
from pywebgpu.kernels.kernel import Limits
from pywebgpu.ops import checks, contraction, indexing, packing, reduction
from pywebgpu.program import order
from pywebgpu.program.group import FULL, OUTER, Group, fits, geometry_of, stored_rows_are_fast
from pywebgpu.program.packing import Placed
from pywebgpu.program.reads import Reads, kind_of, read_at
from pywebgpu.settings import settings
from pywebgpu.symbolic import Sym, variable

LARGEST = 128  # nodes of one kernel: beyond that the text grows and nothing is won


class Schedule:
    """Cuts the graph of `roots` into groups; see `groups` for the result, in an order that may run."""

    def __init__(
        self,
        roots: Sequence[Node],
        limits: Limits,
        written: Iterable[tuple[Node, Node]] = (),
        placed: Placed | None = None,
    ) -> None:
        placed = Placed(tuple(roots)) if placed is None else placed
        self._order = walk.toposort(roots)
        self._wanted = {id(node) for node in (*roots, *placed.parts)}
        self._windows: dict[int, list[Node]] = {}  # by id of the data in whose buffer they lie
        for window in placed.windows:
            self._windows.setdefault(id(placed.inside[id(window)][0]), []).append(window)
        faults = any(checks.may_fail(node) for node in self._order)
        self._bindings = limits.bindings - faults  # The fault words of the device take one.
        self._folds = limits.shared_bytes // (4 * limits.workgroup_size)  # arrays of a workgroup, one a reduction
        reads = Reads(self._order, self._wanted, self._bindings)
        self._edges, self._users = reads.edges, reads.users
        self._groups: dict[int, Group] = {}
        self._of: dict[int, Group] = {}
        self._placed = 0
        self._rank = {id(node): at for at, node in enumerate(self._order)}
        self._written = {id(result): (result, leaf) for result, leaf in written}
        self.alias: dict[int, Node] = {}
        for node in reads.nodes:
            self._place(node)
        for node in reads.nodes:
            if self._of[id(node)].kind == "map" and self._waits(node):
                self._join_producers(node)
        self._settle()
        self.groups = self._ordered()

    def _settle(self) -> None:
        """Divides what binds too much. While joining, a buffer that may be written in place counted once.

        Where it turns out that it may not be, the groups are looked at again.
        """
        while True:
            self._divide_wide()
            self.alias = self._allow_writes()
            if len(self.alias) == len(self._written):
                return
            self._written = {at: pair for at, pair in self._written.items() if at in self.alias}

    # Joining

    def _place(self, node: Node) -> None:
        number = self._placed
        self._placed += 1
        group = Group(number, kind_of(node), [node], 1 << number)
        if isinstance(node.op, Reduction):
            group.geometry = geometry_of(node)
            group.levels[id(node)] = OUTER
        elif group.kind == "product":
            group.levels[id(node)] = FULL
        for producer, _, _ in self._edges[id(node)]:
            if producer.buffer is None:
                parent = self._of[id(producer)]
                group.parents.add(parent.number)
                group.before |= parent.before | parent.members
        self._groups[number] = group
        self._of[id(node)] = group
        if settings.fuse and not self._waits(node):
            self._join_producers(node)
            self._join_alike(node)

    def _waits(self, node: Node) -> bool:
        """What only reductions read is computed in their kernels: there it need not be stored."""
        readers = self._users.get(id(node), ())
        only = bool(readers) and all(isinstance(reader.op, Reduction) for reader in readers)
        return settings.fuse and only and isinstance(node.op, Pointwise) and id(node) not in self._wanted

    def _join_producers(self, node: Node) -> None:
        producers = {self._of[id(p)].number for p, _, _ in self._edges[id(node)] if p.buffer is None}
        for other in sorted(producers, reverse=True):
            current = self._of[id(node)]
            if other in self._groups and self._groups[other] is not current:
                self._join(self._groups[other], current)

    def _join_alike(self, node: Node) -> None:
        """Groups side by side which read the same values over the same elements share a kernel."""
        found: dict[int, Node] = {}
        for inner in self._of[id(node)].nodes:
            for producer, _, _ in self._edges[id(inner)]:
                for user in self._users[id(producer)] if producer.spec.shape else ():
                    if id(user) in self._of:
                        found[id(user)] = user
        for user in sorted(found.values(), key=lambda user: kind_of(user) != "product"):
            other, group = self._of[id(user)], self._of[id(node)]
            kinds = {other.kind, group.kind}
            if other is not group and (kinds in ({"map"}, {"rows"}, {"product", "rows"})):
                self._join(other, group)

    def _join(self, first: Group, second: Group) -> bool:
        kinds = {first.kind, second.kind}
        if "single" in kinds or kinds == {"product"}:
            return False
        if len(first.nodes) + len(second.nodes) > LARGEST:
            return False
        if self._path_between(first, second):
            return False
        nodes = [*first.nodes, *second.nodes]
        nodes.sort(key=lambda n: self._rank[id(n)])
        merged = Group(first.number, "map", nodes, first.members | second.members)
        if "product" in kinds:
            merged.kind = "product"
        elif "rows" in kinds:
            merged.kind = "rows"
            merged.geometry = first.geometry or second.geometry
        if not fits(merged, self._edges) or self._stores_rows_slowly(merged) or not self._within_limits(merged):
            return False
        self._commit(first, second, merged)
        return True

    def _path_between(self, a: Group, b: Group) -> bool:
        for one, other in ((a, b), (b, a)):
            for number in other.parents:
                parent = self._groups[number]
                if parent is not one and parent.before & one.members:
                    return True
        return False

    def _stores_rows_slowly(self, group: Group) -> bool:
        if group.kind != "rows" or group.geometry is None or stored_rows_are_fast(group.geometry):
            return False
        inside = {id(node) for node in group.nodes}
        return any(group.levels[id(node)] == FULL and self._escapes(node, inside) for node in group.nodes)

    def _escapes(self, node: Node, inside: set[int]) -> bool:
        """Somebody outside reads it, or somebody who is not placed yet, or the caller wants it."""
        return id(node) in self._wanted or any(id(user) not in inside for user in self._users.get(id(node), ()))

    def _within_limits(self, group: Group) -> bool:
        """Readers that are not placed yet may still join; see `_divide_wide` for those that do not."""
        inside = {id(node) for node in group.nodes}
        folds = [n.op in (reduction.argmax, reduction.argmin) for n in group.nodes if isinstance(n.op, Reduction)]
        return len(folds) + sum(folds) <= self._folds and self._width(group.nodes, inside) <= self._bindings

    def _width(self, nodes: Sequence[Node], inside: set[int]) -> int:
        """Buffers that a kernel of these nodes binds, as far as it is decided who reads them."""
        reads = {id(p) for n in nodes for p, _, _ in self._edges[id(n)] if id(p) not in inside}
        placed = self._of
        writes = sum(
            id(node) in self._wanted
            or any(id(user) not in inside and id(user) in placed for user in self._users.get(id(node), ()))
            for node in nodes
        )
        again = sum(at in inside and id(leaf) in reads for at, (_, leaf) in self._written.items())
        return len(reads) + writes - again

    def _commit(self, first: Group, second: Group, merged: Group) -> None:
        merged.parents = (first.parents | second.parents) - {first.number, second.number}
        merged.before = (first.before | second.before) & ~merged.members
        del self._groups[second.number]
        self._groups[merged.number] = merged
        for node in merged.nodes:
            self._of[id(node)] = merged
        more = merged.before | merged.members
        for group in self._groups.values():
            if group is not merged and group.before & merged.members:
                group.before |= more
            if second.number in group.parents:
                group.parents.discard(second.number)
                group.parents.add(merged.number)

    def _divide_wide(self) -> None:
        """Cuts a group that ended up with too many buffers, because not all readers joined it, into two and again."""
        stack = [group for group in self._groups.values() if len(group.nodes) > 1]
        divided = False
        while stack:
            group = stack.pop()
            if self._width(group.nodes, {id(node) for node in group.nodes}) <= self._bindings and not _is_mixed(group):
                continue
            divided = True
            cut = self._best_cut(group.nodes)
            first = self._part(group.number, group, group.nodes[:cut])
            second = self._part(self._placed, group, group.nodes[cut:])
            self._placed += 1
            stack += [part for part in (first, second) if len(part.nodes) > 1]
        if divided:
            self._renumber()

    def _best_cut(self, nodes: list[Node]) -> int:
        """Where the two halves together bind the fewest buffers."""

        def width(at: int) -> int:
            halves = nodes[:at], nodes[at:]
            widths = [self._width(half, {id(node) for node in half}) for half in halves]
            return max(*widths, self._bindings) * 100 + sum(widths)

        return min(range(1, len(nodes)), key=width)

    def _part(self, number: int, whole: Group, nodes: list[Node]) -> Group:
        part = Group(number, kind_of(nodes[0]), nodes, 1 << number)
        kinds = {kind_of(node) for node in nodes}
        part.kind = next((kind for kind in ("product", "rows") if kind in kinds), "map")
        part.levels = {id(node): whole.levels[id(node)] for node in nodes if whole.levels}
        if part.kind == "rows":
            folded = next(node for node in nodes if isinstance(node.op, Reduction))
            part.geometry = whole.geometry or geometry_of(folded)
            part.levels = {at: FULL if level == FULL else OUTER for at, level in part.levels.items()}
        self._groups[number] = part
        for node in nodes:
            self._of[id(node)] = part
        return part

    def _renumber(self) -> None:
        """Finds parents and order anew after groups were cut."""
        for group in self._groups.values():
            group.members, group.before = 1 << group.number, 0
            producers = (self._of[id(p)] for n in group.nodes for p, _, _ in self._edges[id(n)] if p.buffer is None)
            group.parents = {parent.number for parent in producers if parent is not group}
        done: set[int] = set()
        waiting = list(self._groups.values())
        while waiting:
            later = [group for group in waiting if not group.parents <= done]
            assert len(later) < len(waiting), "cutting a group leaves an order"
            for group in waiting:
                if group.parents <= done:
                    for number in group.parents:
                        group.before |= self._groups[number].before | self._groups[number].members
            done |= {group.number for group in waiting if group.parents <= done}
            waiting = later

    # Writes in place

    def _allow_writes(self) -> dict[int, Node]:
        """Which results may take over the buffer of a leaf: every other reader runs first, and its own reads match."""
        allowed: dict[int, Node] = {}
        for result, leaf in self._written.values():
            writer = self._of.get(id(result))
            if writer is None:
                continue
            readers = {self._of[id(user)].number: self._of[id(user)] for user in self._users.get(id(leaf), ())}
            sliced = [self._of[id(n)] for w in self._windows.get(id(leaf), ()) for n in self._users.get(id(w), ())]
            if writer in sliced or result.op is packing.pack:
                continue
            others = [group for group in (*readers.values(), *sliced) if group is not writer]
            if any(group.before & writer.members for group in others):
                continue
            if writer.number in readers and not self._reads_in_place(writer, result, leaf):
                continue
            for group in others:
                writer.parents.add(group.number)
                writer.before |= group.before | group.members
            for group in self._groups.values():
                if group.before & writer.members:
                    group.before |= writer.before
            allowed[id(result)] = leaf
        return allowed

    def _reads_in_place(self, writer: Group, result: Node, leaf: Node) -> bool:
        if writer.kind == "single":
            return False
        if writer.kind == "rows":
            geometry = writer.geometry
            assert geometry is not None
            # A later pass over the row, or another lane of it, would read what an earlier one wrote.
            inside = {id(node) for node in writer.nodes}
            if any(writer.levels[id(n)] == FULL and self._escapes(n, inside) for n in writer.nodes):
                return False
            position: Sym = variable("row", geometry.rows)
        else:
            position = variable("i", prod(result.spec.shape))
        for node in writer.nodes:
            for producer, chain, shape in self._edges[id(node)]:
                if producer is leaf:
                    if node.op in (contraction.matmul, indexing.take, indexing.cat) or shape != node.spec.shape:
                        return False
                    if (writer.kind == "rows" and writer.levels[id(node)] == FULL) or isinstance(node.op, Reduction):
                        return False
                    if writer.kind == "product" and writer.levels[id(node)] != writer.levels[id(result)]:
                        return False
                    if read_at(position, shape, chain) != position:
                        return False
        return True

    def _ordered(self) -> list[Group]:
        groups = sorted(self._groups.values(), key=lambda g: self._rank[id(g.nodes[-1])])
        for group in groups:
            inside = {id(node) for node in group.nodes}
            group.outputs = [node for node in group.nodes if self._escapes(node, inside)]
        return order.ordered(groups, self.reads, self._wanted | self.alias.keys())

    def reads(self, group: Group) -> list[Node]:
        """Values from outside that the group reads."""
        inside = {id(node) for node in group.nodes}
        found = {id(p): p for n in group.nodes for p, _, _ in self._edges[id(n)] if id(p) not in inside}
        return list(found.values())


def _is_mixed(group: Group) -> bool:
    """A cut left pointwise nodes of rows and of elements together, without the reduction that joined them."""
    return group.kind == "map" and len({prod(node.spec.shape) for node in group.nodes}) > 1
