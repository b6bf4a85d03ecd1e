"""The gradients of attention in one kernel: scores are computed again, from the sums that the forward kernel left.

Some workgroups have rows of key and value and go along the query, the others have rows of the query and go along the
keys. Both multiply what they have with what they pass: query by key, which gives weights, and value by the gradient,
which gives the weights' gradients. Nobody adds to what another one wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from pywebgpu.composites.attention import PACKED
from pywebgpu.ir.graph import WHICH, Node
from pywebgpu.kernels.builder import Builder
from pywebgpu.kernels.ir import F32, GROUP, Expr, Var, call, select, smaller
from pywebgpu.kernels.kernel import Kernel
from pywebgpu.kernels.launch import Launch
from pywebgpu.kernels.template import Computation
from pywebgpu.kernels.templates import attention_tiles as tiles
from pywebgpu.kernels.templates.attention_scores import Scores
from pywebgpu.kernels.templates.attention_tiles import FOUR, Call, Lanes, Operand, Tile
from pywebgpu.support.shapes import Shape
from pywebgpu.support.symbolic import Sym, flatten

KEY, VALUE, QUERY = range(3)  # the outputs


def write(work: Computation, launch: Launch, build: Builder) -> Kernel:
    node = work.nodes[0]
    grad, sums, inner, query, key, value, *extras = node.inputs
    options = {name: value for name, value in node.attrs.items() if name not in (WHICH, PACKED, "multiplied")}
    call_ = Call(query, key, value, tuple(extras), **options)
    packed = node.attrs.get(PACKED)
    outputs = (
        {output.attrs[WHICH]: output for output in work.outputs} if packed is None else dict.fromkeys(range(3), node)
    )
    tile = Tile.of(launch)
    multiplied = node.attrs["multiplied"]
    kernel = Gradients(call_, (grad, sums, inner), outputs, packed, tile, build, multiplied=multiplied)
    keys = call_.batches * call_.heads // call_.groups * -(-call_.span // tile.rows) * bool({KEY, VALUE} & {*outputs})
    queries = call_.batches * call_.heads * -(-call_.length // tile.rows) * (QUERY in outputs)
    is_for_keys = keys > GROUP
    if keys:
        with build.if_(*([is_for_keys] if queries else [])):
            kernel.along_queries(GROUP)
    if queries:
        with build.else_() if keys else build.scope():
            kernel.along_keys(build.let(GROUP - keys) if keys else GROUP)
    return build.kernel("attention_backward", tile.threads, keys + queries, vector=call_.vector, inside=True)


class Gradients:
    def __init__(
        self,
        call_: Call,
        operands: tuple[Node, Node, Node],
        outputs: dict[int, Node],
        packed: Shape | None,
        tile: Tile,
        build: Builder,
        *,
        multiplied: bool,
    ) -> None:
        self.call, self.outputs, self.packed, self.tile, self.build = call_, outputs, packed, tile, build
        self.grad, self.sums, self.inner = operands
        self.multiplied = multiplied
        self.lanes = Lanes(tile, build)
        self.weights = tiles.weights_array(tile, build)

    def _operand(self, source: Node, name: str, extent: int, batch: Sym, head: Sym) -> Operand:
        if source is self.grad:
            partner = None if self.multiplied else self.inner
            where = lambda row, column: (batch, row, head, column)  # noqa: E731
            return Operand(source, name, extent, where, self.build, axis=1, partner=partner)
        return Operand(source, name, extent, lambda row, column: (batch, head, row, column), self.build)

    def along_queries(self, group: Expr) -> None:
        """The gradients of some rows of key and value."""
        build, call_, tile, lanes = self.build, self.call, self.tile, self.lanes
        few = call_.heads // call_.groups
        heads = call_.batches * few
        first = build.let(group // heads * tile.rows, "first")
        batch = build.let(group % heads // few, "batch").within(call_.batches)
        shared = build.let(group % few, "shared_head")
        own = shared.within(few)
        keys = self._operand(call_.key, "own", tile.rows, batch, own)
        values = self._operand(call_.value, "own_value", tile.rows, batch, own)
        keys.stage(first, tile)
        values.stage(first, tile)
        rows = [build.let(first + row) for row in lanes.rows]
        key_vectors, value_vectors = lanes.vectors(call_.width), lanes.vectors(call_.value_width)
        key_grads = tiles.zeros(tile.high, len(key_vectors), FOUR, build)
        value_grads = tiles.zeros(tile.high, len(value_vectors), FOUR, build)
        with self._heads(shared) as head:
            queries = self._operand(call_.query, "other", tile.columns, batch, head)
            grads = self._operand(self.grad, "other_value", tile.columns, batch, head)
            scores = Scores(call_, batch, head, tile, self.weights, build, across=False)
            begin, end = call_.queries_seeing(first, tile.rows, tile.columns, build)
            with build.loop("start", begin, end, tile.columns) as start:
                build.barrier()
                queries.stage(start, tile)
                grads.stage(start, tile)
                scores.draw(start, first)
                build.barrier()
                products, comings = self._products(keys, queries, values, grads)
                facts = lambda query, place: [self._row(batch, head, query, grads, place)] * tile.high  # noqa: E731
                self._weigh_tile(scores, (products, comings), (rows, start), call_.length, facts)
                if VALUE in self.outputs:
                    self._mix(value_grads, products, grads, value_vectors)
                if KEY in self.outputs:
                    if VALUE in self.outputs:
                        build.barrier()
                    self._mix(key_grads, comings, queries, key_vectors)
        gradients = ((KEY, key_grads, key_vectors), (VALUE, value_grads, value_vectors))
        self._store(gradients, rows, call_.span, batch, own)

    def along_keys(self, group: Expr) -> None:
        """The gradients of some rows of the query."""
        build, call_, tile, lanes = self.build, self.call, self.tile, self.lanes
        heads, blocks = call_.batches * call_.heads, -(-call_.length // tile.rows)
        first = build.let((blocks - 1 - group // heads) * tile.rows, "first")
        batch = build.let(group % heads // call_.heads, "batch").within(call_.batches)
        head = build.let(group % call_.heads, "head")
        shared = head if call_.groups == 1 else build.let(head // call_.groups, "shared_head")
        own, few = head.within(call_.heads), shared.within(call_.heads // call_.groups)
        queries = self._operand(call_.query, "own", tile.rows, batch, own)
        grads = self._operand(self.grad, "own_value", tile.rows, batch, own)
        queries.stage(first, tile)
        grads.stage(first, tile)
        rows = [build.let(first + row) for row in lanes.rows]
        if not self.multiplied:
            build.barrier()
        facts = [self._row(batch, own, row, grads, place) for row, place in zip(rows, lanes.rows, strict=True)]
        vectors = lanes.vectors(call_.width)
        query_grads = tiles.zeros(tile.high, len(vectors), FOUR, build)
        keys = self._operand(call_.key, "other", tile.columns, batch, few)
        values = self._operand(call_.value, "other_value", tile.columns, batch, few)
        scores = Scores(call_, batch, own, tile, self.weights, build, across=True)
        begin, end = call_.keys_seen(first, tile.rows, tile.columns, build)
        with build.loop("start", begin, end, tile.columns) as start:
            build.barrier()
            keys.stage(start, tile)
            values.stage(start, tile)
            scores.draw(first, start)
            build.barrier()
            products, comings = self._products(queries, keys, grads, values)
            self._weigh_tile(scores, (products, comings), (rows, start), call_.span, lambda *_: facts)
            self._mix(query_grads, comings, keys, vectors)
        self._store(((QUERY, query_grads, vectors),), rows, call_.length, batch, own)

    def _mix(
        self, grads: list[list[Var]], factors: list[list[Var]], other: Operand, vectors: list[tuple[Var, list[Expr]]]
    ) -> None:
        """Adds rows of `other`, times the factors of a tile, to the gradients."""
        self.lanes.put(self.weights, factors)
        self.build.barrier()
        tiles.mix(grads, self.weights, self.lanes, other, [place for place, _ in vectors], self.build)

    @contextmanager
    def _heads(self, shared: Var) -> Iterator[Sym]:
        """Each head of the query that has some key and value."""
        call_ = self.call
        if call_.groups == 1:
            yield shared.within(call_.heads)
            return
        with self.build.loop("member", 0, call_.groups) as member:
            yield self.build.let(shared * call_.groups + member, "head").within(call_.heads)

    def _products(
        self, own: Operand, other: Operand, own_value: Operand, other_value: Operand
    ) -> tuple[list[list[Var]], list[list[Var]]]:
        """Of a tile: rows of query and key, and rows of value and gradient."""
        build, tile, lanes = self.build, self.tile, self.lanes
        products = [tiles.zeros(tile.high, tile.wide, F32, build) for _ in range(2)]
        steps = self.call.steps(tile)
        tiles.multiply(products[0], own, lanes.rows, other, lanes.columns, steps, build)
        tiles.multiply(products[1], own_value, lanes.rows, other_value, lanes.columns, steps, build)
        return products[0], products[1]

    def _row(self, batch: Sym, head: Sym, query: Expr, grads: Operand, place: Expr) -> tuple[Expr, Expr]:
        """What is known of a row of scores: the logarithm of its sum, and its result times the gradient of that."""
        build, length = self.build, self.call.length
        row = build.let(smaller(query, length - 1)).within(length)
        inner = build.value(self.inner, (batch, head, row, Sym((), 0))) if self.multiplied else grads.total(place)
        return build.value(self.sums, (batch, head, row)), inner

    def _weigh_tile(
        self,
        scores: Scores,
        products: tuple[list[list[Var]], list[list[Var]]],
        origin: tuple[Sequence[Var], Expr],
        bound: int,
        facts: Callable[[Expr, Expr], Sequence[tuple[Expr, Expr]]],
    ) -> None:
        """`_weigh` of each element of a tile.

        origin: the tile's rows, and where its columns start. bound: of the columns. facts: what `_row` says of the
        query of each of the rows, from a column and its place in the tile.
        """
        for column, place in enumerate(self.lanes.columns):
            other = self.build.let(origin[1] + place)
            of_rows = facts(other, place)
            inside = [other < bound] if bound % self.tile.columns else []
            for row, own in enumerate(origin[0]):
                query, key = (own, other) if scores.across else (other, own)
                conditions = [*inside, *self.call.inside(query, key)]
                keep = scores.keeps(query, key, self.lanes.rows[row], place)
                pair = products[0][row][column], products[1][row][column]
                self._weigh(scores, (query, key), of_rows[row], conditions, keep, *pair)

    def _weigh(
        self, scores: Scores, position: tuple[Expr, Expr], known: tuple[Expr, Expr], there: Sequence[Expr],
        keep: Expr | None, product: Var, coming: Var,
    ) -> None:  # fmt: skip
        """Makes of a product the weight after dropout, and of what comes back to that the gradient of the score."""
        build, (sums, inner) = self.build, known
        conditions = [*there, *scores.seen(*position)]
        weight: Expr = call("p_exp2", F32, scores.exponent(product, *position) - sums)
        for condition in conditions:
            weight = select(0.0, weight, condition)
        weight = build.let(weight)
        kept = scores.kept(coming, keep)
        build.assign(coming, weight * (kept - inner) * self.call.scale)
        build.assign(product, scores.kept(weight, keep))

    def _store(
        self,
        results: Sequence[tuple[int, list[list[Var]], list[tuple[Var, list[Expr]]]]],
        rows: Sequence[Var],
        size: int,
        batch: Sym,
        head: Sym,
    ) -> None:
        build = self.build
        for index, row in enumerate(rows):
            with build.if_(*([row < size] if size % self.tile.rows else [])):
                for output_index, values, vectors in results:
                    node = self.outputs.get(output_index)
                    if node is not None:
                        width = self.call.value_width if output_index == VALUE else self.call.width
                        place = self._place(output_index, node, batch, head)
                        tiles.store_rows(node, width, place, row.within(size), vectors, values[index], build)

    def _place(self, output_index: int, node: Node, batch: Sym, head: Sym) -> Callable[[Sym, Sym], Sym]:
        """The flat position of an element of a gradient, from its row and column."""
        if self.packed is None:
            return lambda row, column: flatten((batch, row, head, column), node.spec.shape)
        of_batch, of_row, of_head, *starts = self.packed
        first = batch * of_batch + head * of_head + starts[output_index]
        return lambda row, column: first + row * of_row + column
