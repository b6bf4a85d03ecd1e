"""What the rows of a block add up to, column by column, while a kernel of rows walks them one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from pywebgpu.ir.graph import Movement, Node, Pointwise
from pywebgpu.kernels.builder import Builder, Coords, element
from pywebgpu.kernels.ir import F32, Const, Index
from pywebgpu.kernels.templates.rows_walk import Place, Rows, groups
from pywebgpu.ops import reduction
from pywebgpu.support.symbolic import variable


def each_of(nodes: Sequence[Node]) -> int:
    """How many rows are added up to one, where some are."""
    return next((node.attrs["each"] for node in nodes if node.op is reduction.sum_rows), 1)


class BlockSums:
    """What the rows of a block add up to, column by column: each lane holds those of its columns."""

    def __init__(self, nodes: Sequence[Node], walk: Rows, build: Builder) -> None:
        self.nodes, self._walk = nodes, walk
        self.sources = [node.inputs[0] for node in nodes]
        count = walk.strips * walk.vector
        self._sums = [[build.var(Const(F32, 0.0), build.fresh("sum")) for _ in range(count)] for _ in nodes]

    def take(self, needed: Sequence[Node], build: Builder) -> None:
        """needed: what is computed of a row for them."""
        if not self.nodes:
            return

        def visit(places: Sequence[Place]) -> None:
            for place in places:
                for node in needed:
                    build.value(node, element(place.full, node))
            values = [[build.value(source, element(place.full, source)) for place in places] for source in self.sources]
            for inside, numbers in groups(places):
                with build.if_(self._walk.inside, *inside):
                    for number in numbers:
                        for sums, row_values in zip(self._sums, values, strict=True):
                            build.assign(sums[number], row_values[number], "+=")

        self._walk.each_column(build, visit)

    def store(self, build: Builder) -> None:
        walk = self._walk
        if not self.nodes:
            return
        block = variable("block", walk.blocks)
        with build.if_(Index(block) < walk.blocks):
            places = walk.places(build)
            for inside, numbers in groups(places):
                with build.if_(*inside):
                    for node, sums in zip(self.nodes, self._sums, strict=True):
                        for number in numbers:
                            build.store(node, block * walk.columns + places[number].at, sums[number])


def load_row(values: Sequence[Node], walk: Rows, build: Builder) -> None:
    """Loads all of a row that values are computed of before anything waits for it: few rows are walked at a time."""
    size = walk.rows * walk.columns

    def load(node: Node, coords: Coords, seen: set[int]) -> None:
        stack = [(node, coords)]
        while stack:
            current, where = stack.pop()
            if id(current) in seen or prod(current.spec.shape) != size:
                continue
            seen.add(id(current))
            if build.has_buffer(current):
                build.value(current, where)
            elif isinstance(current.op, Movement):
                inner, bounds = current.op.index(where, current.inputs[0].spec.shape, **current.attrs)
                stack += [] if bounds else [(current.inputs[0], inner)]
            elif isinstance(current.op, Pointwise):
                stack += [(source, where) for source in current.inputs[::-1]]

    def visit(places: Sequence[Place]) -> None:
        for place in places:
            seen: set[int] = set()
            for source in values:
                load(source, element(place.full, source), seen)

    walk.each_column(build, visit)
