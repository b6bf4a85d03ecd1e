"""Which results take over the buffer of a data leaf, and which that of a large value that nobody reads any more.

Every other reader has to run first, and who writes may read no element of it but the one that it writes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from math import prod

from pywebgpu.compiler.fusion_group import FusionGroup
from pywebgpu.compiler.inlining import Inlining
from pywebgpu.compiler.partition import Partition
from pywebgpu.ir.graph import Node
from pywebgpu.kernels.access import Edge, read_at
from pywebgpu.ops import packing
from pywebgpu.support.symbolic import Sym

LARGE = 1 << 22  # elements from which a buffer less is worth a kernel that reads what it writes


def allowed(
    wanted: Iterable[tuple[Node, Node]],
    windows: Mapping[int, Sequence[Node]],
    partition: Partition,
    reads: Inlining,
    first: Callable[[Node], Node],
) -> dict[int, Node]:
    """By id of a result, the leaf whose buffer it takes over. Its group runs after the leaf's other readers from now.

    wanted: pairs of a result and a leaf.  windows: by id of a leaf, the slices of it that are bound by themselves.
    first: of a result that is made over other values, the one that is written first.
    """
    leaf_of: dict[int, Node] = {}
    for result, leaf in wanted:
        begun = first(result)
        writer = partition.of.get(id(begun))
        if writer is None or result.op is packing.pack:
            continue
        readers = _groups_that_read([leaf], partition, reads)
        sliced = _groups_that_read(windows.get(id(leaf), ()), partition, reads)
        others = [group for group in (readers | sliced).values() if group is not writer]
        if writer.number in sliced or any(group.before & writer.members for group in others):
            continue
        if writer.number in readers and not _reads_what_it_writes(writer, begun, leaf, reads):
            continue
        partition.run_after(writer, others)
        leaf_of[id(result)] = leaf
    return leaf_of


def reused(
    groups: Sequence[FusionGroup], reads: Inlining, placed: Collection[int], parts: Mapping[int, Sequence[Node]]
) -> list[tuple[Node, Node]]:
    """Pairs of a large result and the value whose last reader its kernel is, in whose buffer it is made.

    groups: in the order in which they run.  placed: ids of values that have their places already.
    parts: by id of a value, what lies inside it.
    """
    number = {id(node): index for index, group in enumerate(groups) for node in group.nodes}
    pairs: list[tuple[Node, Node]] = []
    kept = {*placed, *reads.wanted}
    for index, group in enumerate(groups):
        for result in group.outputs:
            if prod(result.spec.shape) < LARGE or id(result) in placed or result.spec.dtype.format.per_word > 1:
                continue
            for value in reads.outside(group.nodes):
                alike = value.spec.dtype is result.spec.dtype and prod(value.spec.shape) == prod(result.spec.shape)
                if value.buffer is not None or not alike or id(value) in kept:
                    continue
                is_last = all(number[id(user)] <= index for user in reads.users[id(value)])
                inner = [
                    number[id(user)] for part in parts.get(id(value), ()) for user in reads.users.get(id(part), ())
                ]
                if (
                    is_last
                    and all(user < index for user in inner)
                    and _reads_what_it_writes(group, result, value, reads)
                ):
                    kept.add(id(value))
                    pairs.append((result, value))
                    break
    return pairs


def _groups_that_read(values: Iterable[Node], partition: Partition, reads: Inlining) -> dict[int, FusionGroup]:
    groups = (partition.of[id(user)] for value in values for user in reads.users.get(id(value), ()))
    return {group.number: group for group in groups}


def _reads_what_it_writes(writer: FusionGroup, result: Node, leaf: Node, reads: Inlining) -> bool:
    """Whether each invocation reads of the leaf only what it writes itself, and writes after it has read."""
    inside = {id(node) for node in writer.nodes}
    position = writer.template.written_at(writer, result, lambda node: reads.escapes(node, inside))
    return position is not None and all(
        _is_read_at(position, node, edge, writer, result)
        for node in writer.nodes
        for edge in reads.edges[id(node)]
        if edge[0] is leaf
    )


def _is_read_at(position: Sym, node: Node, edge: Edge, writer: FusionGroup, result: Node) -> bool:
    """Whether a node of the writer reads just this element, at the level on which the result is written."""
    _, chain, shape = edge
    if not writer.template.reads_on_level(writer, node, result):
        return False
    return prod(shape) == prod(result.spec.shape) and read_at(position, shape, chain) == position
