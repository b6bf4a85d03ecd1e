"""Row programs: reductions over the same rows, with pointwise work before, between and after, in one kernel.

Each row has `lanes` invocations. Reductions that depend on one another run one after the other, each a pass over the
row and a tree in workgroup memory, so every lane has the result; values of the row are computed again in each pass.
Partial results are joined in an order that only the shapes decide: two runs give the same bits.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import reduce
from operator import add

from pywebgpu.dtypes import Kind
from pywebgpu.ir.graph import WHICH, Node, Op, Reduction
from pywebgpu.kernels.builder import Builder, element
from pywebgpu.kernels.combine import combine, identity
from pywebgpu.kernels.intrinsics import rounded
from pywebgpu.kernels.ir import (
    F32,
    I32,
    LANE,
    U32,
    Const,
    Expr,
    Var,
    call,
    constant,
    construct,
    isnan_,
    scalar,
    select,
)
from pywebgpu.kernels.kernel import Kernel
from pywebgpu.kernels.launch import Launch
from pywebgpu.kernels.template import Computation
from pywebgpu.kernels.templates.rows_blocks import BlockSums, each_of, load_row
from pywebgpu.kernels.templates.rows_walk import BLOCK, FULL, OUTER, Place, Rows, groups
from pywebgpu.ops import extremes, reduction

EXTREMES: dict[Op, Reduction] = {extremes.largest: reduction.max_, extremes.smallest: reduction.min_}
PART = 8  # columns that one invocation adds before it adds them to the rest: errors stay small


def folds(node: Node) -> bool:
    """Whether a node's value is folded of rows."""
    return isinstance(node.op, Reduction) or node.op in EXTREMES


def together(nodes: Sequence[Node]) -> list[list[Node]]:
    """The nodes that fold, those together which one walk over the row finds: the values of a fused op."""
    by_key: dict[tuple[int, ...], list[Node]] = {}
    for node in nodes:
        if folds(node):
            source = node.inputs[0]
            group_key = (id(node.op), id(source), *node.attrs["axes"]) if node.op in EXTREMES else (id(node),)
            by_key.setdefault(group_key, []).append(node)
    return list(by_key.values())


def is_positional(fold: Sequence[Node]) -> bool:
    """Whether a fold keeps a position beside its value."""
    return any(node.op in (reduction.argmax, reduction.argmin) or node.attrs.get(WHICH) == 1 for node in fold)


def write(work: Computation, launch: Launch, build: Builder) -> Kernel:
    nodes, levels, space = work.nodes, work.domain.levels, work.domain.space
    assert space is not None
    blocks = [node for node in nodes if levels[id(node)] == BLOCK]
    walk = Rows(space, launch, each_of(nodes))
    walk.plan(len(nodes), max(build.per_word(node) for node in work.outputs), build)
    sums = BlockSums(blocks, walk, build)
    with walk.open(build):
        _write_row(work, sums, walk, build)
    sums.store(build)
    name = "_".join(dict.fromkeys(node.op.name for node in nodes if folds(node) or node in blocks))
    return build.kernel(f"rows_{name}", walk.size, walk.groups, vector=walk.vector)


def _write_row(work: Computation, sums: BlockSums, walk: Rows, build: Builder) -> None:
    nodes, outputs, levels = work.nodes, work.outputs, work.domain.levels
    if walk.each > 1:
        folded = [node.inputs[0] for node in nodes if folds(node)]
        load_row([*folded, *[node for node in nodes if levels[id(node)] == FULL], *sums.sources], walk, build)
    above = fold_row(nodes, levels, walk, build)
    small = [node for node in outputs if levels[id(node)] == OUTER]
    if small:
        _store_outer(small, walk, build)
    full = [node for node in nodes if levels[id(node)] == FULL]
    sums.take([n for n in full if any(id(n) in above[id(o)] for o in sums.nodes)], build)
    large = [node for node in outputs if levels[id(node)] == FULL]
    if large:
        _store_rows([n for n in full if any(n is o or id(n) in above[id(o)] for o in large)], large, walk, build)


def fold_row(
    nodes: Sequence[Node], levels: Mapping[int, str], walk: Rows, build: Builder
) -> Mapping[int, Collection[int]]:
    """Computes what there is one of for a row. Returns by id of a node, those that it is computed with in one pass."""
    depth = _depths(nodes, build)
    above = _ancestors(nodes, build)
    reductions = [node for node in nodes if folds(node)]
    between = [node for node in nodes if levels[id(node)] == OUTER and not folds(node)]
    for level in sorted({depth[id(node)] for node in reductions}):
        _outer_values(between, depth, level, walk, build)
        _reduce([n for n in reductions if depth[id(n)] == level], nodes, above, levels, walk, build)
    deepest = max((depth[id(node)] for node in reductions), default=0)
    _outer_values(between, depth, deepest + 1, walk, build)
    return above


def _store_rows(needed: Sequence[Node], large: Sequence[Node], walk: Rows, build: Builder) -> None:
    """needed: what is computed of a row, of which `large` is stored."""
    each = build.gather(large)

    def visit(places: Sequence[Place]) -> None:
        values = [{id(node): build.value(node, element(place.full, node)) for node in needed} for place in places]
        for inside, numbers in groups(places):
            with build.if_(*inside):
                for node in large:
                    for number in numbers:
                        build.store(node, places[number].full, values[number][id(node)])

    with build.if_(walk.inside):
        walk.each_column(build, visit, each)


def _store_outer(small: list[Node], walk: Rows, build: Builder) -> None:
    """One a row. Those that share a word are brought together in workgroup memory."""
    packed = [node for node in small if build.per_word(node) > 1]
    shared = [build.workgroup_array(f"word_{index}", U32, walk.group_rows) for index in range(len(packed))]
    with build.if_(walk.inside, walk.position.eq(0)):
        values = {id(node): build.value(node, element(walk.row, node)) for node in small}
        for node in small:
            if node not in packed:
                build.store(node, walk.row, values[id(node)])
        for node, bits in zip(packed, shared, strict=True):
            build.assign(bits[walk.own], build.packed(node, values[id(node)]))
    if not packed:
        return
    build.barrier()
    for node, bits in zip(packed, shared, strict=True):
        each = build.per_word(node)  # What is past the last row is zero: nobody wrote it.
        with build.if_(walk.inside, walk.position.eq(0), (walk.own % each).eq(0)):
            build.store_word(
                node, walk.row // each, [bits[walk.own + index if index else walk.own] for index in range(each)]
            )


def _outer_values(between: list[Node], depth: dict[int, int], level: int, walk: Rows, build: Builder) -> None:
    for node in between:
        if depth[id(node)] == level - 1:
            build.value(node, element(walk.row, node))


def _reduce(
    reductions: list[Node],
    nodes: Sequence[Node],
    above: Mapping[int, Collection[int]],
    levels: Mapping[int, str],
    walk: Rows,
    build: Builder,
) -> None:
    accumulators = [_Accumulator(fold, walk, build) for fold in together(reductions)]
    needed = [n for n in nodes if levels[id(n)] == FULL and any(id(n) in above[id(r)] for r in reductions)]

    def visit(places: Sequence[Place]) -> None:
        values: list[list[Expr]] = []  # All are loaded before any is waited for.
        for place in places:
            for node in needed:
                build.value(node, element(place.full, node))
            values.append(
                [
                    build.value(accumulator.source, element(place.full, accumulator.source))
                    for accumulator in accumulators
                ]
            )
        for inside, numbers in groups(places):
            with build.if_(*inside):
                for index, fold in enumerate(accumulators):
                    fold.take(
                        [values[number][index] for number in numbers],
                        [places[number].column for number in numbers],
                        build,
                    )

    walk.each_column(build, visit)
    for position, fold in enumerate(accumulators):
        fold.join(walk, position, build)


class _Accumulator:
    """What is folded on one walk, of which some nodes are the results: a value, or one and its position."""

    def __init__(self, nodes: Sequence[Node], walk: Rows, build: Builder) -> None:
        op = EXTREMES.get(nodes[0].op, nodes[0].op)
        assert isinstance(op, Reduction)
        self.nodes, self.source = nodes, nodes[0].inputs[0]
        self.name, self.dtype = op.name, self.source.spec.dtype
        self.positional = is_positional(nodes)
        self.combine = op.combine
        start = constant(identity(self.name, self.dtype), scalar(self.dtype))
        self.value = build.var(start, build.fresh("acc"))
        floats = self.name == "sum" and self.dtype.kind is Kind.FLOAT
        self.part: Var | None = None
        if floats and walk.lanes == 1 and walk.columns > PART and not walk.strips:
            self.part = build.var(start, build.fresh("acc"))
        self.rest: Var | None = None  # what rounding took from a product
        if self.name == "prod" and self.dtype.kind is Kind.FLOAT and walk.columns > PART:
            self.rest = build.var(Const(F32, 0.0), build.fresh("acc"))
        if self.positional:
            self.position = build.var(Const(U32, 0xFFFFFFFF), build.fresh("acc"))

    def take(self, values: Sequence[Expr], columns: Sequence[Expr], build: Builder) -> None:
        """Values of some columns: those of a sum are added to one another first, so that errors stay small."""
        if self.name == "sum" and len(values) > 1:
            values = [reduce(add, values)]
        for value, column in zip(values, columns, strict=False):
            if self.positional:
                self._choose(value, column, build)
            elif self.part is not None:
                build.assign(self.part, value, "+=")
                with build.if_((column & (PART - 1)).eq(PART - 1)):
                    build.assign(self.value, self.part, "+=")
                    build.assign(self.part, 0.0)
            elif self.rest is not None:  # Equal factors round alike in all lanes, and their errors would add up.
                self._multiply(value, None, build)
            else:
                build.assign(self.value, combine(self.combine, self.value, value))

    def _choose(self, value: Expr, position: Expr, build: Builder) -> None:
        """Takes a candidate that is larger (smaller), or equal and earlier; NaN is larger (smaller) than all."""
        better = value > self.value if self.name in ("max", "argmax") else value < self.value
        same = value.eq(self.value)
        if self.dtype.kind is Kind.FLOAT:
            better = (better | isnan_(value)) & ~isnan_(self.value)
            same = same | (isnan_(value) & isnan_(self.value))
        with build.if_(better | (same & (position < self.position))):
            build.assign(self.value, value)
            build.assign(self.position, position)

    def _multiply(self, value: Expr, rest: Expr | None, build: Builder) -> None:
        """By another product, with what rounding took from it."""
        assert self.rest is not None
        product = build.let(self.value * value)
        error = call("p_product_error", F32, self.value, value, product)
        if rest is not None:
            error = call("fma", F32, self.value, rest, error)
        build.assign(self.rest, call("fma", F32, self.rest, value, error))
        build.assign(self.value, product)

    def join(self, walk: Rows, number: int, build: Builder) -> None:
        """Joins the lanes of a row: every lane of the row has the results."""
        if self.part is not None:
            build.assign(self.value, self.part, "+=")
        if walk.shuffled > 1 and not self.positional and self.rest is None:
            self._shuffle(walk, build)
        elif walk.lanes > 1:
            self._tree(walk, number, build)
        if self.rest is not None:  # It is as large as the product, or no number, where that is infinite.
            is_small = call("abs", F32, self.rest) < call("abs", F32, self.value)
            build.assign(self.value, select(self.value, self.value + self.rest, is_small))
        for node in self.nodes:
            is_position = self.positional and node.attrs.get(WHICH) != 0
            result = construct(I32, self.position) if is_position else rounded(self.value, self.dtype)
            build.define(node, walk.row, build.let(result))

    def _tree(self, walk: Rows, number: int, build: Builder) -> None:
        """By halves, in workgroup memory."""
        kind = self.value.type
        shared = [(self.value, build.workgroup_array(f"shared_{kind}_{number}", kind, walk.size))]
        if self.rest is not None:
            shared.append((self.rest, build.workgroup_array(f"shared_rest_{number}", F32, walk.size)))
        if self.positional:
            shared.append((self.position, build.workgroup_array(f"shared_position_{number}", U32, walk.size)))
        stride = 1 if walk.along else walk.group_rows
        for own, array in shared:
            build.assign(array[LANE], own)
        build.barrier()
        with build.loop("step", walk.lanes // 2, 0, 1, ">>=") as step:
            with build.if_(walk.position < step):
                value, *others = [build.let(array[LANE + step * stride]) for _, array in shared]
                if self.positional:
                    self._choose(value, others[0], build)
                elif self.rest is not None:
                    self._multiply(value, others[0], build)
                else:
                    build.assign(self.value, combine(self.combine, self.value, value))
                for own, array in shared:
                    build.assign(array[LANE], own)
            build.barrier()
        for own, array in shared:
            build.assign(own, array[LANE - walk.position * stride])
        build.barrier()

    def _shuffle(self, walk: Rows, build: Builder) -> None:
        """By halves within subgroups, then subgroup by subgroup, in workgroup memory that no other join has."""
        distance = walk.shuffled
        while distance > 1:
            distance //= 2
            other = build.let(call("subgroupShuffleXor", self.value.type, self.value, Const(U32, distance)))
            first, second = self.value, other
            if self.name != "sum":  # All but sums tell the order of two operands, by the sign of a zero.
                is_first = build.let((walk.position & distance).eq(0))
                first, second = [build.let(select(b, a, is_first)) for a, b in ((first, second), (second, first))]
            build.assign(self.value, combine(self.combine, first, second))
        parts = walk.lanes // walk.shuffled
        if parts == 1:
            return
        shared = build.workgroup_array(build.fresh("parts"), self.value.type, walk.size // walk.shuffled)
        with build.if_((walk.position % walk.shuffled).eq(0)):
            build.assign(shared[LANE // walk.shuffled], self.value)
        build.barrier()
        parts_left: list[Expr] = [build.let(shared[walk.own * parts + part]) for part in range(parts)]
        while len(parts_left) > 1:
            parts_left = [
                build.let(combine(self.combine, *pair)) for pair in zip(parts_left[::2], parts_left[1::2], strict=True)
            ]
        build.assign(self.value, parts_left[0])


def _depths(nodes: Sequence[Node], build: Builder) -> dict[int, int]:
    """How many reductions of the group lie on the way to a node, itself included."""
    depth: dict[int, int] = {}
    for node, inner in _inner_inputs(nodes, build):
        below = max((depth[id(n)] for n in inner), default=0)
        depth[id(node)] = below + folds(node)
    return depth


def _ancestors(nodes: Sequence[Node], build: Builder) -> dict[int, set[int]]:
    """Group members that a member needs in the same pass: not those behind a reduction."""
    above: dict[int, set[int]] = {}
    for node, inner in _inner_inputs(nodes, build):
        ancestors: set[int] = set()
        for source in inner:
            ancestors.add(id(source))
            if not folds(source):
                ancestors |= above[id(source)]
        above[id(node)] = ancestors
    return above


def _inner_inputs(nodes: Sequence[Node], build: Builder) -> list[tuple[Node, list[Node]]]:
    """Each node with the members of the group that it reads, through whatever is computed in place."""
    inside = {id(node): node for node in nodes}
    out = []
    for node in nodes:
        inner_inputs: dict[int, Node] = {}
        seen: set[int] = set()
        stack = list(node.inputs)
        while stack:
            current = stack.pop()
            if id(current) in inside:
                inner_inputs[id(current)] = current
            elif id(current) not in seen and not build.has_buffer(current):
                seen.add(id(current))
                stack.extend(current.inputs)
        out.append((node, list(inner_inputs.values())))
    return out
