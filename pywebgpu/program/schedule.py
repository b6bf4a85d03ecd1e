"""Which nodes share a kernel: the graph is cut into groups, each of one kind.

map        pointwise nodes over one number of elements, several of them stored
rows       reductions over the same rows, with pointwise work before, between and after (softmax, norms, losses)
product    one contraction, with pointwise work on its result before it is stored
single     any other op alone

Every node starts as its own group; going through the graph in order, a node's group joins those of its inputs where the
joined group still is one kernel: one kind, no path out of it and back, bindings within the limit, and each value that
passes inside is read at the very element where it was computed. That last test compares symbolic indices.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import prod

from pywebgpu.graph import walk
from pywebgpu.graph.ir import Node, Reduction
from pywebgpu.kernels.kernel import Limits
from pywebgpu.ops import contraction, indexing, pointwise, reduction
from pywebgpu.program.geometry import Geometry
from pywebgpu.program.reads import Reads, kind_of, read_at
from pywebgpu.settings import settings
from pywebgpu.symbolic import Sym, variable

FULL, OUTER = "full", "outer"
TREES = 12  # reductions of one kernel: each takes its share of workgroup memory
LARGEST = 128  # nodes of one kernel: beyond that the text grows and nothing is won


@dataclass(eq=False)
class Group:
    """One kernel in the making. `levels`: for rows, whether a node has an element a row or one an element."""

    number: int
    kind: str
    nodes: list[Node]
    members: int
    levels: dict[int, str] = field(default_factory=dict)
    geometry: Geometry | None = None
    before: int = 0  # bits of all groups that must run earlier
    parents: set[int] = field(default_factory=set)
    outputs: list[Node] = field(default_factory=list)


class Schedule:
    """Cuts the graph of `roots` into groups; see `groups` for the result, in an order that may run."""

    def __init__(self, roots: Sequence[Node], limits: Limits, written: Iterable[tuple[Node, Node]] = ()) -> None:
        self._order = walk.toposort(roots)
        self._wanted = {id(root) for root in roots}
        faults = any(node.op is pointwise.index for node in self._order)
        self._bindings = limits.bindings - faults  # The fault words of the device take one.
        self._folds = limits.shared_bytes // (4 * limits.workgroup_size)  # arrays of a workgroup, one a reduction
        reads = Reads(self._order, self._wanted, self._bindings)
        self._edges, self._users = reads.edges, reads.users
        self._groups: dict[int, Group] = {}
        self._of: dict[int, Group] = {}
        self._placed = 0
        self._rank = {id(node): at for at, node in enumerate(self._order)}
        for node in reads.nodes:
            self._place(node)
        self._divide_wide()
        self.alias = self._allow_writes(written)
        self.groups = self._ordered()

    # Joining

    def _place(self, node: Node) -> None:
        number = self._placed
        self._placed += 1
        group = Group(number, kind_of(node), [node], 1 << number)
        if isinstance(node.op, Reduction):
            group.geometry = Geometry(node.inputs[0].spec.shape, node.attrs["axes"])
            group.levels[id(node)] = OUTER
        for producer, _, _ in self._edges[id(node)]:
            if producer.buffer is None:
                parent = self._of[id(producer)]
                group.parents.add(parent.number)
                group.before |= parent.before | parent.members
        self._groups[number] = group
        self._of[id(node)] = group
        if not settings.fuse:
            return
        producers = {self._of[id(p)].number for p, _, _ in self._edges[id(node)] if p.buffer is None}
        for other in sorted(producers, reverse=True):
            current = self._of[id(node)]
            if other in self._groups and self._groups[other] is not current:
                self._join(self._groups[other], current)
        self._join_alike(node)

    def _join_alike(self, node: Node) -> None:
        """Groups side by side which read the same values over the same elements share a kernel."""
        group = self._of[id(node)]
        seen: set[int] = set()
        for producer, _, _ in self._edges[id(node)]:
            if not producer.spec.shape:
                continue
            for user in self._users.get(id(producer), ()):
                other = self._of.get(id(user))
                if other is None or other is group or other.number in seen:
                    continue
                seen.add(other.number)
                if (other.kind == group.kind == "map") or (other.kind == "rows" and other.kind == group.kind):
                    self._join(other, group)
                    group = self._of[id(node)]

    def _join(self, first: Group, second: Group) -> bool:
        kinds = {first.kind, second.kind}
        if "single" in kinds or kinds == {"product"} or kinds == {"product", "rows"}:
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
        if not self._fits(merged) or not self._within_limits(merged):
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

    def _fits(self, group: Group) -> bool:
        """Every value that passes inside is read where it was computed."""
        inside = {id(node) for node in group.nodes}
        if group.kind == "rows":
            return self._rows_fit(group, inside)
        anchor = next((n for n in group.nodes if n.op is contraction.matmul), None)
        size = prod((anchor or group.nodes[0]).spec.shape)
        position = variable("i", size)
        for node in group.nodes:
            if prod(node.spec.shape) != size or size == 0:
                return False
            for producer, chain, shape in self._edges[id(node)]:
                if id(producer) in inside:
                    if node is anchor or shape != node.spec.shape or node.op in (indexing.take, indexing.cat):
                        return False
                    if read_at(position, shape, chain) != position:
                        return False
        return True

    def _rows_fit(self, group: Group, inside: set[int]) -> bool:
        geometry = group.geometry
        assert geometry is not None
        rows, columns = geometry.rows, geometry.columns
        if columns <= 1 or rows == 0:
            return False
        if sum(isinstance(node.op, Reduction) for node in group.nodes) > TREES:
            return False
        full, row = geometry.full(), variable("row", rows)
        levels: dict[int, str] = {}
        for node in group.nodes:
            if isinstance(node.op, Reduction):
                own = Geometry(node.inputs[0].spec.shape, node.attrs["axes"])
                if own != geometry and (own.rows, own.columns, own.full()) != (rows, columns, full):
                    return False
                levels[id(node)], start = OUTER, full
            elif prod(node.spec.shape) == rows * columns:
                levels[id(node)], start = FULL, full
            elif prod(node.spec.shape) == rows:
                levels[id(node)], start = OUTER, row
            else:
                return False
            for producer, chain, shape in self._edges[id(node)]:
                if id(producer) not in inside:
                    continue
                if node.op in (indexing.take, indexing.cat, indexing.write_slice):
                    return False
                wanted = full if levels[id(producer)] == FULL else row
                if levels[id(node)] == OUTER and not isinstance(node.op, Reduction) and wanted is full:
                    return False
                if read_at(start, shape, chain) != wanted:
                    return False
        stores_rows = any(levels[id(n)] == FULL and self._escapes(n, inside) for n in group.nodes)
        if stores_rows and not _stored_rows_are_fast(geometry):
            return False
        group.levels = levels
        return True

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
        return len(reads) + writes

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
        anchors = [node for node in nodes if kind_of(node) != "map"]
        part.kind = kind_of(anchors[0]) if anchors else "map"
        if part.kind == "rows":
            part.geometry = whole.geometry
            part.levels = {id(node): whole.levels[id(node)] for node in nodes}
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

    def _allow_writes(self, written: Iterable[tuple[Node, Node]]) -> dict[int, Node]:
        """Which results may take over the buffer of a leaf: every other reader runs first, and its own reads match."""
        allowed: dict[int, Node] = {}
        for result, leaf in written:
            writer = self._of.get(id(result))
            if writer is None or id(result) in allowed:
                continue
            readers = {self._of[id(user)].number: self._of[id(user)] for user in self._users.get(id(leaf), ())}
            others = [group for number, group in readers.items() if group is not writer]
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
                    if read_at(position, shape, chain) != position:
                        return False
        return True

    def _ordered(self) -> list[Group]:
        done = 0
        waiting = sorted(self._groups.values(), key=lambda g: self._rank[id(g.nodes[-1])])
        out: list[Group] = []
        while waiting:
            later = []
            for group in waiting:
                if group.before & ~done:
                    later.append(group)
                else:
                    out.append(group)
                    done |= group.members
            assert len(later) < len(waiting), "the groups of a schedule have an order"
            waiting = later
        for group in out:
            inside = {id(node) for node in group.nodes}
            group.outputs = [node for node in group.nodes if self._escapes(node, inside)]
        return out

    def reads(self, group: Group) -> list[Node]:
        """Values from outside that the group reads."""
        inside = {id(node) for node in group.nodes}
        found = {id(p): p for n in group.nodes for p, _, _ in self._edges[id(n)] if id(p) not in inside}
        return list(found.values())


def _is_mixed(group: Group) -> bool:
    """A cut left pointwise nodes of rows and of elements together, without the reduction that joined them."""
    return group.kind == "map" and len({prod(node.spec.shape) for node in group.nodes}) > 1


def _stored_rows_are_fast(geometry: Geometry) -> bool:
    """Elements of a row lie together: writing whole rows is as fast as writing in order."""
    rank = len(geometry.shape)
    trailing = geometry.axes == tuple(range(rank - len(geometry.axes), rank))
    return trailing and (geometry.rows >= 16 or geometry.columns <= 4096)
