"""What each node of a graph reads from memory, once it is known which nodes are computed where they are used.

Views cost nothing, constants and counters cost nothing, and a cheap pointwise value is cheaper to compute in each of
its readers than to store and load. What remains are nodes that share kernels (see schedule.py) and the edges between
them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import prod

from pywebgpu import dtypes
from pywebgpu.dtypes import Kind
from pywebgpu.ir.graph import HOST, Movement, Node, Pointwise
from pywebgpu.kernels import windows
from pywebgpu.kernels.access import Chain, Edge, below, gathers, is_free, is_view
from pywebgpu.kernels.template import REPEAT_COST
from pywebgpu.kernels.templates import Selection
from pywebgpu.kernels.templates.matmul_blocks import is_aligned
from pywebgpu.ops import contraction, pointwise, reduction
from pywebgpu.settings import settings
from pywebgpu.support.formats import BF16, F16, WORD
from pywebgpu.support.shapes import Shape

LARGE = 1 << 18  # elements of a weight whose halves are stored,
REREAD = 512  # if products multiply each so many times: a kernel reads it once for a hundred of these
ROOMY = 9  # bindings: with fewer, what is stored there would cut the kernel that normalises it
SMALL = 8  # a value this many times smaller than its reader's costs next to nothing to read


class Inlining:
    """`nodes` are those that kernels are made for; `edges` what each of them reads; `users` who reads a value.

    wanted: ids of the nodes that are stored whoever reads them.  selection: which template computes a node.
    long: by id, the bindings of what needs several.  halves: ids of what products read as it is stored.
    costs: by id, the instructions that a node takes, with those of what is computed in it.
    """

    def __init__(self, order: Sequence[Node], wanted: set[int], bindings: int, selection: Selection) -> None:
        self._order, self.bindings = order, bindings
        self.selection, limits = selection, selection.target.limits
        self.long = {id(node): count for node in order if (count := windows.count(_bytes(node), limits)) > 1}
        self.wanted = wanted
        self._inline: set[int] = set()
        self.halves: set[int] = set()
        self._free: set[int] = set()
        self.edges: dict[int, list[Edge]] = {}
        self.costs: dict[int, int] = {}
        self.users: dict[int, list[Node]] = {}
        computing = [n for n in order if n.buffer is None and not is_view(n) and not is_free(n)]
        self._choose(computing)
        self.nodes = [node for node in computing if id(node) not in self._inline]
        self._store_crowded(computing)
        for node in self.nodes:
            for producer, _, _ in self.edges[id(node)]:
                self.users.setdefault(id(producer), []).append(node)

    def outside(self, nodes: Sequence[Node]) -> list[Node]:
        """The values that some nodes read, without those among them."""
        inside = {id(node) for node in nodes}
        producers = {id(p): p for node in nodes for p, _, _ in self.edges[id(node)] if id(p) not in inside}
        return list(producers.values())

    def add(self, node: Node, source: Node) -> None:
        """One more stored value, which reads a stored one."""
        self.wanted.add(id(node))
        self.edges[id(node)] = [(source, (), source.spec.shape)]
        self.users.setdefault(id(source), []).append(node)

    def bound(self, node: Node) -> int:
        """How many bindings a value takes where a kernel may reach all of it: one, if it is not `long`."""
        return self.long.get(id(node), 1)

    def escapes(self, node: Node, inside: Collection[int]) -> bool:
        """Whether somebody outside of some nodes, given by their ids, reads one of them, or the caller wants it."""
        return id(node) in self.wanted or any(id(user) not in inside for user in self.users.get(id(node), ()))

    def _edges_of(self, node: Node) -> list[Edge]:
        by_element = isinstance(node.op, Pointwise)
        return [
            edge
            for source in node.inputs
            for edge in self._resolve(source, (node if by_element else source).spec.shape)
        ]

    def _choose(self, computing: list[Node]) -> None:
        """Finds the nodes that are computed where they are used, and what the others read."""
        self._readers = readers = self._count_readers()
        self._copied = self._only_copied(computing)
        costs: dict[int, int] = {}
        for node in computing:
            edges = self._edges_of(node)
            self.costs[id(node)] = cost = _cost(node) + sum(costs.get(id(below(source)), 0) for source in node.inputs)
            if isinstance(node.op, Pointwise) and id(node) not in self.wanted:
                if not edges and cost <= REPEAT_COST:
                    self._free.add(id(node))
                    self._inline.add(id(node))
                    costs[id(node)] = cost
                    continue
                if settings.fuse and self._is_worth_repeating(node, edges, readers.get(id(node), []), cost):
                    self._inline.add(id(node))
                    costs[id(node)] = cost
                    continue
            self.edges[id(node)] = edges

    def _is_worth_repeating(self, node: Node, edges: list[Edge], readers: list[Node], cost: int) -> bool:
        """True where computing the node again in each reader costs less than storing and loading it."""
        if id(node) in self._copied:
            return cost <= REPEAT_COST
        if self._is_half_operand(node, readers) or is_aligned(node):
            return False
        inputs = {id(producer): producer for producer, _, _ in edges if producer.spec.shape}
        size = prod(node.spec.shape)
        large = [producer for producer in inputs.values() if prod(producer.spec.shape) * SMALL > size]
        if len(inputs) > 3 or len(large) > 1:
            return False
        if any(producer.op is contraction.partial_matmul for producer in large):
            return False  # It has more to read than it has to store.
        # Rows that were looked up and changed are read again in backward, and by what they were normalised to.
        looked_up = len(readers) > 1 and self.bindings >= ROOMY and any(gathers(producer.op) for producer in large)
        if (looked_up or any(self.selection.of(reader).rereads for reader in readers)) and any(
            self._is_alone(producer, node) for producer in large
        ):
            return False  # Stored instead of what it is made of, it takes as much memory, and is computed once.
        return cost <= min([self.selection.of(reader).repeats for reader in readers], default=REPEAT_COST)

    def _only_copied(self, computing: list[Node]) -> set[int]:
        """Ids of values that are computed for one copy of aligned rows alone: its kernel computes them."""
        copied: set[int] = set()
        for node in reversed(computing):
            readers = self._readers.get(id(node), [])
            is_one = len(readers) == 1 and isinstance(node.op, Pointwise) and id(node) not in self.wanted
            if is_one and (is_aligned(readers[0]) or id(readers[0]) in copied):
                copied.add(id(node))
        return copied

    def _is_alone(self, producer: Node, node: Node) -> bool:
        """Whether a computed value is read for one node only."""
        if producer.buffer is not None:
            return False
        current = producer
        while current is not node:
            readers = self._readers.get(id(current), [])
            if (
                id(current) in self.wanted
                or len(readers) != 1
                or (current is not producer and id(current) not in self._inline)
            ):
                return False
            current = readers[0]
        return True

    def _is_half_operand(self, node: Node, readers: list[Node]) -> bool:
        """Whether products read a computed value as halves: stored so it takes half the memory, also until backward.

        What was in memory before is read as it is, where storing it once more, by a kernel of its own, is not worth it.
        """
        if node.op is not pointwise.cast or node.spec.dtype.format not in (F16, BF16):
            return False
        products = [reader for reader in readers if self.selection.of(reader).rereads]
        is_operand = bool(products) or any(map(is_aligned, readers))
        if products and below(node.inputs[0]).buffer is not None:
            size = prod(node.spec.shape)
            times = sum(prod(product.spec.shape) * product.inputs[0].spec.shape[-1] for product in products) // max(
                size, 1
            )
            is_operand = size >= LARGE and times >= REREAD
        if is_operand:
            self.halves.add(id(node))
        return is_operand

    def _store_crowded(self, computing: list[Node]) -> None:
        """Where one node alone would bind too many buffers, what it computes in place is stored after all."""
        again = True
        while again:
            again = False
            for node in self.nodes:
                read = {id(p): p for p, _, _ in self.edges[id(node)]}
                if sum(map(self.bound, read.values())) + self.bound(node) <= self.bindings:
                    continue
                crowding = {id(below(source)) for source in node.inputs} & self._inline - self._free
                again = again or bool(crowding)
                self._inline -= crowding
            if again:
                self.nodes = [node for node in computing if id(node) not in self._inline]
                self.edges = {id(node): self._edges_of(node) for node in self.nodes}

    def _count_readers(self) -> dict[int, list[Node]]:
        """For each node below views: who reads it."""
        readers: dict[int, list[Node]] = {}
        for node in self._order:
            if node.buffer is not None or is_view(node):
                continue
            for source in node.inputs:
                readers.setdefault(id(below(source)), []).append(node)
        return readers

    def _resolve(self, source: Node, shape: Shape) -> list[Edge]:
        """The values from memory below an input that is read at `shape`, each with the views on the way to it."""
        edges: list[Edge] = []
        stack: list[tuple[Node, Chain]] = [(source, _spread(source, shape))]
        while stack:
            current, views = stack.pop()
            while is_view(current):
                step = current.op if isinstance(current.op, Movement) else None
                views = (*views, (step, tuple(current.attrs.items()), current.inputs[0].spec.shape))
                current = current.inputs[0]
            if is_free(current) or id(current) in self._inline:
                if current.op is not HOST:
                    stack.extend((inner, views + _spread(inner, current.spec.shape)) for inner in current.inputs)
            else:
                edges.append((current, views, shape))
        return edges


def _cost(node: Node) -> int:
    """Instructions of an op on an element. A float's register is float32: a cast to that is none."""
    if not isinstance(node.op, Pointwise):
        return 1
    widens = node.op is pointwise.cast and node.spec.dtype is dtypes.float32
    return 0 if widens and node.inputs[0].spec.dtype.kind is Kind.FLOAT else node.op.cost


def _bytes(node: Node) -> int:
    """At most: whether a kernel can pack what it computes is decided later."""
    size = prod(node.spec.shape)
    packed = node.spec.dtype.format.nbytes(size)
    return packed if node.buffer is not None else max(packed, WORD * size)


def _spread(operand: Node, shape: Shape) -> Chain:
    """The views through which a pointwise op over `shape` reads an operand: those that grow one of shape ()."""
    if operand.spec.shape or not shape:
        return ()
    return ((reduction.expand, (("shape", shape),), ()),)
