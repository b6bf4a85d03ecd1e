"""Attention of few rows over many keys: a workgroup has a row of one head and a part of the keys.

Some lanes share a key, each with every so many-th vector of its width; the workgroup goes along its keys a few for each
lane at a time. Scores meet in workgroup memory, where every lane finds the largest.
"""

from collections.abc import Sequence
from math import gcd, log
from typing import NamedTuple

from pywebgpu.composites import attention_parts
from pywebgpu.composites.attention import HIDDEN
from pywebgpu.ir.graph import WHICH, Node
from pywebgpu.kernels import neighbours
from pywebgpu.kernels.builder import Builder
from pywebgpu.kernels.ir import F32, GROUP, LANE, Const, Expr, Index, Type, Var, call, isnan_, larger, select, smaller
from pywebgpu.kernels.kernel import Kernel
from pywebgpu.kernels.launch import Launch, Problem
from pywebgpu.kernels.target import Target
from pywebgpu.kernels.template import Computation, FusedTemplate
from pywebgpu.kernels.templates.attention_kernel import LOWEST
from pywebgpu.kernels.templates.attention_scores import Scores
from pywebgpu.kernels.templates.attention_tiles import Call, Tile
from pywebgpu.support.symbolic import Sym, constant, flatten

SHARED = 8  # keys that a workgroup has side by side,
EACH = 8  # and one after the other before scores meet
LANES = 32  # that share a key, at most
FOUR = Type("f32", 4)


class AttentionPartsTemplate(FusedTemplate):
    """Problem: rows of the query over all heads, parts, keys of a part, the widths of key and value.

    Launch: threads, of which `split` share a key.
    """

    name = "attention_parts"
    absorbs = siblings = frozenset({name})  # The values of a call are nodes of one kernel.
    op = attention_parts.attention_parts
    effort = 2

    def problem(self, work: Computation, build: Builder) -> Problem:
        node = work.nodes[0]
        batches, heads, length, width = node.inputs[0].spec.shape
        sizes = (batches * heads * length, node.spec.shape[0], node.attrs["span"], width, node.inputs[2].spec.shape[3])
        return Problem(sizes, (node.inputs[0].spec.dtype.name,))

    def launches(self, problem: Problem, target: Target) -> Sequence[Launch]:
        share = lanes(*problem.sizes[3:])
        return [Launch(threads=SHARED * share, split=share)]

    def write(self, work: Computation, launch: Launch, build: Builder) -> Kernel:
        return _Write(work, launch, build).kernel()


def lanes(width: int, value_width: int) -> int:
    """How many lanes share a key: each has as many vectors of it as the others."""
    return gcd(LANES, width // 4, value_width // 4)


class _State(NamedTuple):
    """What a lane knows of the keys so far: the largest score, sums of its keys' weights and of their values."""

    peak: Var
    total: Var
    mixed: list[Var]


class _Write:
    def __init__(self, work: Computation, launch: Launch, build: Builder) -> None:
        self.work, self.build, self.lanes = work, build, launch.split
        node = work.nodes[0]
        query, key, value, *extras = node.inputs
        attrs = node.attrs
        self.call = Call(query, key, value, tuple(extras), attrs["scale"], attrs["window"], 0.0, attrs["masked"])
        self.threads, self.span, self.count = launch.threads, attrs["span"], node.spec.shape[0]
        self.keys = SHARED * EACH

    def kernel(self) -> Kernel:
        build, call_ = self.build, self.call
        parts, length, heads = self.count, call_.length, call_.heads
        self.part = build.let(GROUP % parts, "part").within(parts)
        self.row = build.let(GROUP // parts % length, "row").within(length)
        head = build.let(GROUP // (parts * length) % heads, "head")
        self.head = head.within(heads)
        self.batch = build.let(GROUP // (parts * length * heads), "batch").within(call_.batches)
        shared = head if call_.groups == 1 else build.let(head // call_.groups, "shared_head")
        self.shared_head = shared.within(heads // call_.groups)
        self.x, self.y = build.let(LANE % self.lanes, "x"), build.let(LANE // self.lanes, "y")
        self.products = build.workgroup_array("products", F32, self.keys * (self.lanes + 1))
        self.weights = build.workgroup_array("weights", FOUR, self.keys // 4)
        tile = Tile(1, self.keys, self.threads)
        self.scores = Scores(call_, self.batch, self.head, tile, self.weights, build, across=True)
        self._run()
        groups = call_.batches * heads * length * parts
        return build.kernel("attention_parts", self.threads, groups, vector=4, inside=True)

    def _run(self) -> None:
        build, call_ = self.build, self.call
        zero = call("vec4<f32>", FOUR, Const(F32, 0.0))
        columns = self._columns(call_.value_width)
        state = _State(
            build.var(Const(F32, LOWEST), "peak"),
            build.var(Const(F32, 0.0), "total"),
            [build.var(zero, build.fresh("mixed")) for _ in columns],
        )
        query = [
            build.let(self._four(call_.query, (self.batch, self.head, self.row), column))
            for column in self._columns(call_.width)
        ]
        begin = build.let(Index(self.part * self.span), "begin")
        end = build.let(smaller(begin + self.span, call_.span), "end")
        if self.span == self.keys:
            self._step(begin, end, query, state)
        else:
            with build.loop("start", begin, end, self.keys) as start:
                self._step(start, end, query, state)
                build.barrier()
        self._finish(state)

    def _columns(self, width: int) -> list[Sym]:
        """The first column of each of a lane's vectors."""
        return [(self.x.within(self.lanes) + turn * self.lanes) * 4 for turn in range(width // (4 * self.lanes))]

    def _four(self, node: Node, place: tuple[Sym, ...], column: Sym) -> Expr:
        four = neighbours.value(self.build, node, [(*place, column + index) for index in range(4)])
        return four if four.type.width == 4 else call("vec4<f32>", FOUR, four)

    def _step(self, start: Expr, end: Expr, query: Sequence[Expr], state: _State) -> None:
        """Takes some keys in, and their values, which are loaded before any score is waited for."""
        build, call_ = self.build, self.call
        own = [build.let(self.y + SHARED * number) if number else self.y for number in range(EACH)]
        places = [
            (self.batch, self.shared_head, build.let(smaller(start + key, call_.span - 1)).within(call_.span))
            for key in own
        ]
        rows = [[self._four(call_.key, place, column) for column in self._columns(call_.width)] for place in places]
        values = [
            [self._four(call_.value, place, column) for column in self._columns(call_.value_width)] for place in places
        ]
        for key, row in zip(own, rows, strict=True):
            product: Expr = query[0] * row[0]
            for a, b in zip(query[1:], row[1:], strict=True):
                product = product + a * b
            four = build.let(product)
            build.assign(self.products[key * (self.lanes + 1) + self.x], (four[0] + four[1]) + (four[2] + four[3]))
        build.barrier()
        with build.loop("key", LANE, self.keys, self.threads) as number:
            self._score(start, number, end)
        build.barrier()
        largest = build.var(self.weights[0], build.fresh("largest"))
        for index in range(1, self.keys // 4):
            build.assign(largest, call("max", FOUR, largest, self.weights[index]))
        pairs = larger(larger(largest[0], largest[1]), larger(largest[2], largest[3]))
        peak = build.let(larger(state.peak, pairs))
        shrunk = build.let(call("p_exp2", F32, state.peak - peak))
        build.assign(state.peak, peak)
        for sum_ in (state.total, *state.mixed):
            build.assign(sum_, sum_ * shrunk)
        for key, value in zip(own, values, strict=True):
            weight = build.let(call("p_exp2", F32, self.weights[key // 4][key % 4] - peak))
            build.assign(state.total, weight, "+=")
            for mixed, numbers in zip(state.mixed, value, strict=True):
                build.assign(mixed, numbers * weight, "+=")

    def _score(self, start: Expr, key: Var, end: Expr) -> None:
        """A key's score, as an exponent of 2."""
        build = self.build
        first = build.let(key * (self.lanes + 1))
        total: Expr = self.products[first]
        for lane in range(1, self.lanes):
            total = total + self.products[first + lane]
        query, position = Index(self.row), build.let(start + key)
        exponent = self.scores.exponent(build.let(total), query, position)
        is_seen = position < end
        for condition in (*self.scores.seen(query, position), *self.call.inside(query, position)):
            is_seen = is_seen & condition
        build.assign(self.weights[key // 4][key % 4], select(HIDDEN, exponent, is_seen))

    def _finish(self, state: _State) -> None:
        """Adds what the lanes have, in their order."""
        build, width = self.build, self.call.value_width
        fours = width // 4
        results = build.workgroup_array("results", FOUR, SHARED * fours)
        totals = build.workgroup_array("totals", F32, SHARED)
        for turn, mixed in enumerate(state.mixed):
            build.assign(results[self.y * fours + self.x + turn * self.lanes], mixed)
        with build.if_(self.x.eq(0)):
            build.assign(totals[self.y], state.total)
        build.barrier()
        added: Expr = totals[0]
        for index in range(1, SHARED):
            added = added + totals[index]
        total = build.let(added)
        is_hidden = total.eq(0)  # All of the part. NaN is not unequal to 0 on every engine.
        outputs = {node.attrs[WHICH]: node for node in self.work.outputs}
        place = self.part, self.batch, self.row, self.head
        if 0 in outputs:
            with build.loop("column", LANE, fours, self.threads) as column:
                mixed_four: Expr = results[column]
                for index in range(1, SHARED):
                    mixed_four = mixed_four + results[column + index * fours]
                value = build.let(mixed_four // build.let(select(total, Const(F32, 1.0), is_hidden)))
                for index in range(4):
                    coords = (*place, column.within(fours) * 4 + index)
                    build.store(outputs[0], flatten(coords, outputs[0].spec.shape), value[index])
        if 1 in outputs:
            with build.if_(LANE.eq(0)):
                power = select(total, call("log", F32, total), ~isnan_(total))
                log_sum = select(state.peak * log(2) + power, Const(F32, HIDDEN), is_hidden)
                build.store(outputs[1], flatten((*place, constant(0)), outputs[1].spec.shape), log_sum)
