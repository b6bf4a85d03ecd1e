"""Rows written at a place that the device knows, with pointwise work on them: an invocation an element that is written.

It is made in the buffer of what is written to (see compiler/suballocation.py), the rest of which nobody touches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from pywebgpu.composites import row_writes
from pywebgpu.ir.graph import Node
from pywebgpu.kernels.access import Edges, below, gathers, read_at
from pywebgpu.kernels.builder import Builder, element
from pywebgpu.kernels.ir import GROUP, LANE, U32, Index, construct
from pywebgpu.kernels.iteration_space import IterationSpace
from pywebgpu.kernels.kernel import Kernel
from pywebgpu.kernels.launch import Launch, Problem
from pywebgpu.kernels.target import Target
from pywebgpu.kernels.template import REPEAT_COST, Computation, Domain, FusedTemplate
from pywebgpu.support.symbolic import flatten, variable

THREADS = 64
FEW = 1 << 16  # elements: writes of so many share a kernel with others of as many, which have nothing in common


class RowWritesTemplate(FusedTemplate):
    """Problem: elements that are written, and how many results. Launch: threads."""

    name = "row_writes"
    absorbs = frozenset({"pointwise", name})
    siblings = frozenset({name})
    op = row_writes.write_rows
    repeats = REPEAT_COST

    def supports(self, node: Node, target: Target) -> bool:
        return node.spec.dtype.format.per_word == 1 and 0 not in node.inputs[1].spec.shape

    def start(self, node: Node) -> Domain:
        return Domain(space=IterationSpace((_size(node),), ()))

    def joined(self, nodes: Sequence[Node], edges: Edges, parts: tuple[Domain, Domain]) -> Domain | None:
        """Elements that are written, and what is computed of the very same ones."""
        inside, sizes = {id(node) for node in nodes}, {_size(node) for node in nodes}
        if len(sizes) > 1:
            return None
        position = variable("i", *sizes)
        for node in nodes:
            base = below(node.inputs[0]) if node.op is self.op else None
            for producer, chain, shape in edges[id(node)]:
                if id(producer) in inside and (
                    producer.op is self.op
                    or producer is base
                    or gathers(node.op)
                    or read_at(position, shape, chain) != position
                ):
                    return None
        return self.start(nodes[-1])

    def part(self, nodes: Sequence[Node], domain: Domain) -> Domain:
        return self.start(nodes[-1])

    def is_whole(self, work: Computation) -> bool:
        return len({_size(node) for node in work.nodes}) == 1

    def is_small(self, work: Computation, escapes: Callable[[Node], bool], target: Target) -> bool:
        return _size(work.nodes[0]) <= FEW

    def problem(self, work: Computation, build: Builder) -> Problem:
        return Problem((_size(work.nodes[0]), len(work.outputs)))

    def launches(self, problem: Problem, target: Target) -> Sequence[Launch]:
        return [Launch(threads=min(THREADS, target.limits.workgroup_size))]

    def write(self, work: Computation, launch: Launch, build: Builder) -> Kernel:
        size = _size(work.nodes[0])
        i = build.let(GROUP * launch.threads + LANE, "i")
        build.jump("return", i >= size)
        position = i.within(size)
        values = {
            id(node): build.value(source, element(position, source))
            for node in work.nodes
            for source in [node.inputs[1] if node.op is self.op else node]
        }
        for node in work.outputs:
            if node.op is not self.op:
                build.store(node, position, values[id(node)])
                continue
            base, rows, start = node.inputs
            axis, length = node.attrs["axis"], base.spec.shape[node.attrs["axis"]]
            coords = element(position, rows)
            place = build.let(construct(U32, build.value(start, ())) + Index(coords[axis]))
            with build.if_(place < length):  # A number below 0 is larger than any.
                moved = (*coords[:axis], place.within(length), *coords[axis + 1 :])
                build.store(node, flatten(moved, base.spec.shape), values[id(node)])
        return build.kernel("row_writes", launch.threads, -(-size // launch.threads))


def _size(node: Node) -> int:
    """Elements that an invocation each is for."""
    return prod((node.inputs[1] if node.op is row_writes.write_rows else node).spec.shape)
