"""Scores of attention, of a tile at a time: as exponents of 2, with a mask, and what dropout keeps of their weights."""

from __future__ import annotations

from math import e, log2

from pywebgpu import dtypes
from pywebgpu.composites import activation
from pywebgpu.composites.attention import HIDDEN, split_extras
from pywebgpu.kernels.builder import Builder
from pywebgpu.kernels.ir import F32, LANE, U32, Array, Call, Const, Expr, call, construct, select, smaller, template
from pywebgpu.kernels.templates import attention_tiles as tiles
from pywebgpu.support.symbolic import Sym

BITS = log2(e)  # Exponentials are powers of 2.
FOUR = 4  # neighbours among the keys that share a draw
_BIT = template("(({0} >> {1}) & 1u)")


class Scores:
    """What becomes of a product of a row of the query and one of the key: a score as an exponent of 2, or hidden.

    weights: the array of the tile's, between whose rows it keeps what was drawn. across: whether its columns are keys.
    """

    def __init__(
        self, call: tiles.Call, batch: Sym, head: Sym, tile: tiles.Tile, weights: Array, build: Builder, *, across: bool
    ) -> None:
        self._call, self._batch, self._head, self._tile, self._build = call, batch, head, tile, build
        self._mask, seed = split_extras(call.extras, call.masked)
        shape = (call.batches, call.heads, call.length, call.span)
        self._kept = None if seed is None else activation.kept(shape, call.dropout, seed)
        self._weights, self.across = weights, across
        self._shares = self._kept is not None and call.span % FOUR == 0

    def exponent(self, product: Expr, query: Expr, key: Expr) -> Expr:
        """The score times log2(e); of hidden ones some number."""
        exponent: Expr = product * (self._call.scale * BITS)
        if self._mask is None or self._mask.spec.dtype is dtypes.bool_:
            return exponent
        added = self._build.value(self._mask, self._where(query, key))
        exponent = self._build.let(call("fma", F32, added, Const(F32, BITS), exponent))
        return select(exponent, Const(F32, HIDDEN), exponent < HIDDEN)  # -inf is no number to calculate with.

    def seen(self, query: Expr, key: Expr) -> list[Expr]:
        """What must hold for a score not to be hidden by a mask."""
        if self._mask is None or self._mask.spec.dtype is not dtypes.bool_:
            return []
        return [self._build.value(self._mask, self._where(query, key)).ne(0)]

    def draw(self, query: Expr, key: Expr) -> None:
        """While a tile is brought in: what dropout keeps of it, four neighbours by one draw, as numbers below 16."""
        if not self._shares:
            return
        assert self._kept is not None
        build, call_, tile = self._build, self._call, self._tile
        quarter = tile.columns // FOUR
        count = tile.rows * quarter
        for turn in range(-(-count // tile.threads)):
            place = build.let(LANE + turn * tile.threads) if turn else LANE
            is_whole = (turn + 1) * tile.threads <= count
            with build.scope() if is_whole else build.if_(place < count):
                if self.across:
                    row, four = place // quarter, place % quarter
                else:
                    row, four = place % tile.columns, place // tile.columns
                position = build.let(smaller(query + row, call_.length - 1)).within(call_.length)
                first = build.let(smaller(key // FOUR + four, call_.span // FOUR - 1)).within(call_.span // FOUR)
                bits: Expr = Const(F32, 0)
                for bit in range(FOUR):
                    keep = build.value(self._kept, (self._batch, self._head, position, first * FOUR + bit)).ne(0)
                    bits = bits + select(0.0, Const(F32, 1 << bit), keep)
                build.assign(self._drawn(place), bits)

    def keeps(self, query: Expr, key: Expr, row: Expr, column: Expr) -> Expr | None:
        """Whether dropout keeps a weight, which `row` and `column` are of the tile; None where there is none."""
        if self._kept is None:
            return None
        if not self._shares:
            return self._build.value(self._kept, self._where(query, key)).ne(0)
        if self.across:
            place, bit = row * (self._tile.columns // FOUR) + column // FOUR, column & 3
        else:
            place, bit = row // FOUR * self._tile.columns + column, row & 3
        bits = construct(U32, self._drawn(self._build.let(place)))
        return self._build.let(Call(_BIT, U32, bits, bit)).ne(0)

    def kept(self, value: Expr, keep: Expr | None) -> Expr:
        """A weight after dropout, or the gradient of one before it."""
        return value if keep is None else select(0.0, value * (1 / (1 - self._call.dropout)), keep)

    def _drawn(self, place: Expr) -> Expr:
        """Where the bits of four neighbours are: rows of weights are set apart by as much room."""
        quarter = self._tile.columns // FOUR
        slot = place % quarter
        return self._weights.row(place // quarter, slot // FOUR + quarter)[slot % FOUR]

    def _where(self, query: Expr, key: Expr) -> tuple[Sym, ...]:
        call, build = self._call, self._build
        rows, columns = (
            build.let(smaller(position, size - 1)) for position, size in ((query, call.length), (key, call.span))
        )
        return self._batch, self._head, rows.within(call.length), columns.within(call.span)
