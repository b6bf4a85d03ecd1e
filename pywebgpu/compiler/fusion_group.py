"""A group of nodes that one kernel computes, and whether nodes fit together in one.

Apart from the schedule because it asks nothing of the other groups.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod

from pywebgpu.compiler.inlining import Edge, down, read_at
from pywebgpu.compiler.iteration_space import IterationSpace
from pywebgpu.ir.graph import Node, Reduction
from pywebgpu.ops import contraction, indexing, reduction
from pywebgpu.symbolic import Sym, unflatten, variable

Edges = Mapping[int, list[Edge]]

FULL, OUTER = "full", "outer"
LEFT, RIGHT = "left", "right"
TREES = 12  # reductions of one kernel: each takes its share of workgroup memory


@dataclass(eq=False)
class FusionGroup:
    """One kernel in the making.

    levels: for rows, whether a node has an element a row (OUTER) or one an element (FULL); for a product, whether one a
    result (FULL), a row of the left operand (LEFT) or a column of the right one (RIGHT).
    """

    number: int
    kind: str
    nodes: list[Node]
    members: int = 0  # bits of its nodes' numbers (see partition.py)
    levels: dict[int, str] = field(default_factory=dict)
    space: IterationSpace | None = None
    before: int = 0  # bits of all that must run earlier
    parents: set[int] = field(default_factory=set)
    outputs: list[Node] = field(default_factory=list)


def iteration_space_of(node: Node) -> IterationSpace:
    return IterationSpace(node.inputs[0].spec.shape, node.attrs["axes"])


def stored_rows_are_fast(space: IterationSpace) -> bool:
    """Elements of a row lie together: writing whole rows is as fast as writing in order."""
    rank = len(space.shape)
    trailing = space.axes == tuple(range(rank - len(space.axes), rank))
    return trailing and (space.rows >= 16 or space.columns <= 4096)


def fits(group: FusionGroup, edges: Edges) -> bool:
    """Whether one kernel can compute all nodes: every value that passes inside is read where it was computed.

    Sets the levels of a group of rows and of a product.
    """
    inside = {id(node) for node in group.nodes}
    if group.kind == "rows":
        return _rows_fit(group, edges, inside)
    if group.kind == "product":
        return _product_fits(group, edges, inside)
    size = prod(group.nodes[0].spec.shape)
    position = variable("i", size)
    for node in group.nodes:
        if prod(node.spec.shape) != size or size == 0:
            return False
        if not _reads_inside(edges[id(node)], node, inside, position):
            return False
    return True


def _reads_inside(edges: list[Edge], node: Node, inside: set[int], position: Sym) -> bool:
    """What the node reads of its own group is the very element that it computes."""
    for producer, chain, shape in edges:
        if id(producer) in inside:
            if shape != node.spec.shape or node.op in (indexing.take, indexing.cat):
                return False
            if read_at(position, shape, chain) != position:
                return False
    return True


def _product_fits(group: FusionGroup, edges: Edges, inside: set[int]) -> bool:
    anchor = next(n for n in group.nodes if n.op is contraction.matmul)
    batches, m, n = anchor.spec.shape
    sizes = {FULL: batches * m * n, LEFT: batches * m, RIGHT: batches * n}
    levels: dict[int, str] = {}
    for node in group.nodes:
        producers = [id(p) for p, _, _ in edges[id(node)] if id(p) in inside]
        found = {levels[at] for at in producers} or {FULL}
        if isinstance(node.op, Reduction):
            found = {_summed(node, anchor)}
        level = found.pop()
        if found or sizes.get(level, 0) != prod(node.spec.shape) or sizes[level] == 0:
            return False
        if producers and (node is anchor or isinstance(node.op, Reduction)):
            return False
        if not _reads_inside(edges[id(node)], node, inside, variable("i", sizes[level])):
            return False
        levels[id(node)] = level
    group.levels = levels
    return True


def _rows_fit(group: FusionGroup, edges: Edges, inside: set[int]) -> bool:
    space = group.space
    assert space is not None
    rows, columns = space.rows, space.columns
    if columns <= 1 or rows == 0:
        return False
    if sum(isinstance(node.op, Reduction) for node in group.nodes) > TREES:
        return False
    full, row = space.full(), variable("row", rows)
    levels: dict[int, str] = {}
    for node in group.nodes:
        if isinstance(node.op, Reduction):
            own = iteration_space_of(node)
            if own != space and (own.rows, own.columns, own.full()) != (rows, columns, full):
                return False
            levels[id(node)], start = OUTER, full
        elif prod(node.spec.shape) == rows * columns:
            levels[id(node)], start = FULL, full
        elif prod(node.spec.shape) == rows:
            levels[id(node)], start = OUTER, row
        else:
            return False
        for producer, chain, shape in edges[id(node)]:
            if id(producer) not in inside:
                continue
            if node.op in (indexing.take, indexing.cat, indexing.write_slice):
                return False
            wanted = full if levels[id(producer)] == FULL else row
            if levels[id(node)] == OUTER and not isinstance(node.op, Reduction) and wanted is full:
                return False
            if read_at(start, shape, chain) != wanted:
                return False
    group.levels = levels
    return True


def _summed(node: Node, anchor: Node) -> str:
    """Which operand of a product a reduction sums over k, by its level; "" if it does another thing."""
    if node.op is not reduction.sum_:
        return ""
    space = iteration_space_of(node)
    own = down(node.inputs[0], space.coords())
    for level, operand, axis in ((LEFT, anchor.inputs[0], 1), (RIGHT, anchor.inputs[1], 2)):
        batches, size, depth = operand.spec.shape[0], operand.spec.shape[axis], operand.spec.shape[3 - axis]
        if (space.rows, space.columns) == (batches * size, depth):
            batch, position = unflatten(variable("row", batches * size), (batches, size))
            k = variable("column", depth)
            if own is not None and own == down(operand, (batch, position, k) if axis == 1 else (batch, k, position)):
                return level
    return ""
