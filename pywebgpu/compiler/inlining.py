"""What each node of a graph reads from memory, once it is known which nodes are computed where they are used.

Views cost nothing, constants and counters cost nothing, and a cheap pointwise value is cheaper to compute in each of
its readers than to store and load. What remains are nodes that share kernels (see schedule.py) and the edges between
them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache
from math import prod
from typing import Any

from pywebgpu.ir.graph import HOST, Generator, Movement, Node, Pointwise, Reduction
from pywebgpu.ops import contraction, indexing, random, reduction
from pywebgpu.settings import settings
from pywebgpu.shapes import Shape
from pywebgpu.symbolic import Sym, flatten, unflatten

Chain = tuple[tuple[Movement | None, tuple[tuple[str, Any], ...], Shape], ...]  # views down to a producer
Edge = tuple[Node, Chain, Shape]  # producer, views, shape at which the consumer reads

REPEAT_COST = 48  # pointwise instructions that are repeated in each reader rather than stored between kernels
CHEAP_COST = 4  # the same where the reader is a contraction, which reads each element many times
SMALL = 8  # a value this many times smaller than its reader's costs next to nothing to read


def is_free(node: Node) -> bool:
    """Costs nothing wherever it is needed: constants, counters, host numbers."""
    if node.op is HOST:
        return True
    return node.buffer is None and isinstance(node.op, Generator) and node.op is not random.bits


def is_view(node: Node) -> bool:
    """Changes where its input is read, and nothing else."""
    return node.buffer is None and (isinstance(node.op, Movement) or node.op is indexing.offset_slice)


def below(node: Node) -> Node:
    """The node under a chain of views."""
    while is_view(node):
        node = node.inputs[0]
    return node


class Inlining:
    """`nodes` are those that kernels are made for; `edges` what each of them reads; `users` who reads a value.

    wanted: ids of the nodes that are stored whoever reads them.
    """

    def __init__(self, order: Sequence[Node], wanted: set[int], bindings: int) -> None:
        self._order, self._bindings = order, bindings
        self.wanted = wanted
        self._inline: set[int] = set()
        self._free: set[int] = set()
        self.edges: dict[int, list[Edge]] = {}
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
        found = {id(p): p for node in nodes for p, _, _ in self.edges[id(node)] if id(p) not in inside}
        return list(found.values())

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
        readers = self._count_readers()
        costs: dict[int, int] = {}
        for node in computing:
            edges = self._edges_of(node)
            if isinstance(node.op, Pointwise) and id(node) not in self.wanted:
                cost = node.op.cost + sum(costs.get(id(below(source)), 0) for source in node.inputs)
                if not edges and cost <= REPEAT_COST:
                    self._free.add(id(node))
                    self._inline.add(id(node))
                    costs[id(node)] = cost
                    continue
                if settings.fuse and _worth_repeating(node, edges, readers.get(id(node), []), cost):
                    self._inline.add(id(node))
                    costs[id(node)] = cost
                    continue
            self.edges[id(node)] = edges

    def _store_crowded(self, computing: list[Node]) -> None:
        """Where one node alone would bind too many buffers, what it computes in place is stored after all."""
        again = True
        while again:
            again = False
            for node in self.nodes:
                if len({id(p) for p, _, _ in self.edges[id(node)]}) < self._bindings:
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
        found: list[Edge] = []
        stack: list[tuple[Node, Chain]] = [(source, _spread(source, shape))]
        while stack:
            at, views = stack.pop()
            while is_view(at):
                step = at.op if isinstance(at.op, Movement) else None
                views = (*views, (step, tuple(at.attrs.items()), at.inputs[0].spec.shape))
                at = at.inputs[0]
            if is_free(at) or id(at) in self._inline:
                if at.op is not HOST:
                    stack.extend((inner, views + _spread(inner, at.spec.shape)) for inner in at.inputs)
            else:
                found.append((at, views, shape))
        return found


def _spread(operand: Node, shape: Shape) -> Chain:
    """The views through which a pointwise op over `shape` reads an operand: those that grow one of shape ()."""
    if operand.spec.shape or not shape:
        return ()
    return ((reduction.expand, (("shape", shape),), ()),)


def _worth_repeating(node: Node, edges: list[Edge], readers: list[Node], cost: int) -> bool:
    """True where computing the node again in each reader costs less than storing and loading it."""
    inputs = {id(producer): producer for producer, _, _ in edges if producer.spec.shape}
    size = prod(node.spec.shape)
    large = [producer for producer in inputs.values() if prod(producer.spec.shape) * SMALL > size]
    if len(inputs) > 3 or len(large) > 1:
        return False
    product = any(reader.op is contraction.matmul for reader in readers)
    if any(kind_of(reader) == "single" for reader in readers):
        return False
    return cost <= (CHEAP_COST if product else REPEAT_COST)


def kind_of(node: Node) -> str:
    match node.op:
        case Reduction():
            return "rows"
        case Pointwise() | Generator():
            return "map"
        case op if op is contraction.matmul:
            return "product"
        case op if op in (indexing.take, indexing.cat, indexing.write_slice):
            return "map"
        case _:
            return "single"


@lru_cache(65536)
def read_at(start: Sym, shape: Shape, chain: Chain) -> Sym | None:
    """The flat index of the producer's element that is read for the consumer's element `start`."""
    at = unflatten(start, shape)
    last = shape
    for op, attrs, source in chain:
        if op is None:
            return None
        at, bounds = op.index(at, source, **dict(attrs))
        if bounds:
            return None
        last = source
    return flatten(at, last)


def down(node: Node, at: tuple[Sym, ...]) -> tuple[int, Sym] | None:
    """The id of the node below a chain of views, and the flat index there; None where an element may lie outside."""
    while is_view(node):
        if not isinstance(node.op, Movement):
            return None
        at, bounds = node.op.index(at, node.inputs[0].spec.shape, **node.attrs)
        if bounds:
            return None
        node = node.inputs[0]
    return id(node), flatten(at, node.spec.shape)
