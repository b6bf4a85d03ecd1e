"""Attention in one kernel: softmax(query key^T scale + mask) value, without scores in memory (Dao 2022, 2205.14135).

A workgroup has some rows of the query and goes along key and value tile by tile. It keeps for each row the largest
score so far and the sum of exponentials, and makes smaller what it has when a larger score is met. Exponents are of 2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import and_, or_

from pywebgpu.composites.attention import HIDDEN
from pywebgpu.ir.graph import WHICH, Node
from pywebgpu.kernels.builder import Builder
from pywebgpu.kernels.ir import F32, GROUP, U32, Array, Const, Expr, Var, call, isnan_, larger, select
from pywebgpu.kernels.kernel import Kernel
from pywebgpu.kernels.launch import Launch
from pywebgpu.kernels.template import Computation
from pywebgpu.kernels.templates import attention_tiles as tiles
from pywebgpu.kernels.templates.attention_scores import Scores
from pywebgpu.kernels.templates.attention_tiles import FOUR, LANES, Call, Lanes, Operand, Tile
from pywebgpu.support.symbolic import Sym, flatten

SHUFFLED = "shuffled"  # rows are folded by shuffles, else through workgroup memory
LOWEST = -2e38  # where the largest score starts: above what is hidden


def write(work: Computation, launch: Launch, build: Builder) -> Kernel:
    node = work.nodes[0]
    query, key, value, *extras = node.inputs
    options = {name: value for name, value in node.attrs.items() if name != WHICH}
    call_ = Call(query, key, value, tuple(extras), **options)
    tile = Tile.of(launch)
    Forward(call_, tile, launch.variant == SHUFFLED, build).run(work)
    blocks = -(-call_.length // tile.rows)
    return build.kernel(
        "attention", tile.threads, call_.batches * call_.heads * blocks, vector=call_.vector, inside=True
    )


class Forward:
    def __init__(self, call_: Call, tile: Tile, shuffled: bool, build: Builder) -> None:
        self.call, self.tile, self.shuffled, self.build = call_, tile, shuffled, build
        heads, blocks = call_.batches * call_.heads, -(-call_.length // tile.rows)
        # What takes longest starts first: the last rows see the most.
        self.first = build.let((blocks - 1 - GROUP // heads) * tile.rows, "first")
        batch = build.let(GROUP % heads // call_.heads, "batch").within(call_.batches)
        head = build.let(GROUP % call_.heads, "head")
        shared = head if call_.groups == 1 else build.let(head // call_.groups, "shared_head")
        few, own = shared.within(call_.heads // call_.groups), head.within(call_.heads)
        self.batch, self.head = batch, own
        self.lanes = Lanes(tile, build)
        self.query = Operand(call_.query, "queries", tile.rows, lambda row, column: (batch, own, row, column), build)
        self.key = Operand(call_.key, "keys", tile.columns, lambda row, column: (batch, few, row, column), build)
        self.value = Operand(call_.value, "values", tile.columns, lambda row, column: (batch, few, row, column), build)
        self.weights = tiles.weights_array(tile, build)
        self.scores = Scores(call_, batch, own, tile, self.weights, build, across=True)
        self.rows = [build.let(self.first + row) for row in self.lanes.rows]
        self.vectors = self.lanes.vectors(call_.value_width)

    def run(self, work: Computation) -> None:
        build, call_, tile = self.build, self.call, self.tile
        self.query.stage(self.first, tile)
        high, wide = tile.high, tile.wide
        self.results = tiles.zeros(high, len(self.vectors), FOUR, build)
        self.peaks = [build.var(Const(F32, LOWEST)) for _ in range(high)]
        self.sums = [build.var(Const(F32, 0)) for _ in range(high)]
        begin, end = call_.keys_seen(self.first, tile.rows, tile.columns, build)
        with build.loop("start", begin, end, tile.columns) as start:
            build.barrier()
            self.key.stage(start, tile)
            self.value.stage(start, tile)
            self.scores.draw(self.first, start)
            build.barrier()
            scores = tiles.zeros(high, wide, F32, build)
            steps = call_.steps(tile)
            tiles.multiply(scores, self.query, self.lanes.rows, self.key, self.lanes.columns, steps, build)
            self._fold(scores, start)
            build.barrier()
            places = [place for place, _ in self.vectors]
            tiles.mix(self.results, self.weights, self.lanes, self.value, places, build)
        self._finish(work)

    def _fold(self, scores: list[list[Var]], start: Var) -> None:
        """Takes a tile of scores into what is known of its rows, and stores its weights."""
        build = self.build
        keys = [build.let(start + column) for column in self.lanes.columns]
        for query, line in zip(self.rows, scores, strict=True):
            for key, score in zip(keys, line, strict=True):
                new_peak = self.scores.exponent(score, query, key)
                seen = self.scores.seen(query, key)
                build.assign(score, select(HIDDEN, new_peak, seen[0]) if seen else new_peak)
        self._hide(scores, keys, start)
        largest = [build.var(line[0]) for line in scores]
        for new_peak, line in zip(largest, scores, strict=True):
            for score in line[1:]:
                build.assign(new_peak, larger(new_peak, score))
        self._across("max", largest)
        for index, line in enumerate(scores):
            peak = build.let(larger(self.peaks[index], largest[index]))
            shrunk = build.let(call("p_exp2", F32, self.peaks[index] - peak))
            build.assign(self.peaks[index], peak)
            build.assign(self.sums[index], self.sums[index] * shrunk)
            for result in self.results[index]:
                build.assign(result, result * shrunk)
            columns = zip(self.lanes.columns, self.lanes.places, strict=True)
            for score, key, (column, place) in zip(line, keys, columns, strict=True):
                build.assign(score, call("p_exp2", F32, score - peak))
                build.assign(self.sums[index], score, "+=")
                keep = self.scores.keeps(self.rows[index], key, self.lanes.rows[index], column)
                kept = self.scores.kept(score, keep)
                build.assign(self.weights.row(self.lanes.rows[index], place)[self.lanes.component], kept)

    def _hide(self, scores: list[list[Var]], keys: Sequence[Var], start: Var) -> None:
        """Scores outside of the window, and of what lies behind the end: only some tiles have such."""
        build, call_, tile = self.build, self.call, self.tile
        if some := call_.outside(start, tile.columns, self.first, tile.rows):
            with build.if_(reduce(or_, some)):
                for query, line in zip(self.rows, scores, strict=True):
                    for key, score in zip(keys, line, strict=True):
                        build.assign(score, select(HIDDEN, score, reduce(and_, call_.inside(query, key))))
        if call_.span % tile.columns:
            with build.if_(start + tile.columns > call_.span):
                for line in scores:
                    for key, score in zip(keys, line, strict=True):
                        build.assign(score, select(HIDDEN, score, key < call_.span))

    def _across(self, how: str, values: list[Var]) -> None:
        """Each row's value of its lanes folded: every one of them has it."""
        build = self.build

        def joined(a: Expr, b: Expr) -> Expr:
            return larger(a, b) if how == "max" else a + b

        if self.shuffled:
            for value in values:
                for step in (1, 2, 4):
                    other = build.let(call("subgroupShuffleXor", F32, value, Const(U32, step)))
                    build.assign(value, joined(value, other))
            return
        folds = self._folds()
        for row, value in zip(self.lanes.rows, values, strict=True):
            build.assign(folds.row(row, self.lanes.places[0])[self.lanes.component], value)
        build.barrier()
        for row, value in zip(self.lanes.rows, values, strict=True):
            parts = [build.let(folds.row(row, Const(U32, index))) for index in range(LANES // 4)]
            total: Expr = parts[0][0]
            for score_index in range(1, LANES):
                total = joined(total, parts[score_index // 4][score_index % 4])
            build.assign(value, total)

    def _folds(self) -> Array:
        return self.build.workgroup_array("folds", FOUR, LANES // 4, self.tile.rows)

    def _finish(self, work: Computation) -> None:
        build, call_ = self.build, self.call
        self._across("sum", self.sums)
        outputs = {node.attrs[WHICH]: node for node in work.outputs}
        for index, query in enumerate(self.rows):
            is_hidden = self.sums[index].eq(0)  # All of the row. NaN is not unequal to 0 on every engine.
            total = build.let(select(self.sums[index], Const(F32, 1), is_hidden))
            with build.if_(*([query < call_.length] if call_.length % self.tile.rows else [])):
                row = query.within(call_.length)
                if 0 in outputs:
                    values = [build.let(result // total) for result in self.results[index]]
                    tiles.store_rows(
                        outputs[0], call_.value_width, self._place(outputs[0]), row, self.vectors, values, build
                    )
                if 1 in outputs:
                    power = select(total, call("log2", F32, total), ~isnan_(total))
                    log_sum = select(self.peaks[index] + power, Const(F32, 0), is_hidden)
                    with build.if_(self.lanes.x.eq(0)):
                        position = flatten((self.batch, self.head, row), outputs[1].spec.shape)
                        build.store(outputs[1], position, log_sum)

    def _place(self, node: Node) -> Callable[[Sym, Sym], Sym]:
        return lambda row, column: flatten((self.batch, row, self.head, column), node.spec.shape)
