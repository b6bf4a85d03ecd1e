"""Batched matrix product by large blocks, for GPUs: the next tiles are loaded while the present ones are multiplied.

Each invocation keeps up to 16 x 8 results in registers, in fours of columns. Tiles of both operands lie in workgroup
memory as [k][fours of rows or columns], whatever way the operands lie, so that a step of k reads whole vectors; what is
contiguous in k has its rows set apart by one vector, so that invocations that write neighbours do not wait for one
another. Four or eight steps of k lie together: an index of its own for which of these and for the vector leaves bounds
checks that do not depend on k, and drivers move them out. Where a result fills too few workgroups to keep a device's
cores busy, invocations share its k in slices. Neighbouring invocations are 8 x 4 of a block, as far as it goes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Protocol

from pywebgpu.kernels import ir
from pywebgpu.kernels.builder import Builder
from pywebgpu.kernels.ir import GROUP, LANE, Expr, Operand, Var, call, construct, scalar, smaller
from pywebgpu.kernels.kernel import Kernel
from pywebgpu.kernels.launch import Launch
from pywebgpu.kernels.template import Computation
from pywebgpu.kernels.templates import matmul_results
from pywebgpu.kernels.templates.matmul_blocks import WAY, Block
from pywebgpu.kernels.templates.matmul_kernel import FULL, anchor_of
from pywebgpu.kernels.templates.matmul_operands import Side, four_of
from pywebgpu.kernels.templates.matmul_results import Sums
from pywebgpu.support.symbolic import ZERO, Sym

LARGE, PRODUCTS, SUMS = "large", "products", "sums"  # in Limits.unrolls: those that sum up an operand are of the last
RESULTS = 12288  # of a workgroup, from which products are large
PART = "part"  # the end of the name of a kernel whose results are parts of a product's


def write(work: Computation, launch: Launch, build: Builder) -> Kernel:
    nodes, levels = work.nodes, work.domain.levels
    anchor = anchor_of(nodes)
    (*parts, batches, m, n), depth = anchor.spec.shape, anchor.inputs[0].spec.shape[2]
    block, kind = Block.of(launch), scalar(anchor.spec.dtype)
    down, across = -(-m // block.rows), -(-n // block.columns)
    steps = Steps(-(-depth // block.depth), anchor.attrs["span"] // block.depth if parts else 0)
    batch_and_part = build.let(GROUP // (across * down), "batch")
    batch = (
        build.let(batch_and_part % batches, "own_batch").within(batches) if parts else batch_and_part.within(batches)
    )
    place = (build.let(batch_and_part // batches, "part").within(parts[0]), batch) if parts else (batch,)
    own: Var = build.let(LANE % block.of_slice, "own_of_slice") if block.slices > 1 else LANE
    mine = build.let(LANE // block.of_slice, "slice") if block.slices > 1 else None
    y, x = _own_place(own, block, build)
    summed = {level for level in levels.values() if level != FULL}
    left = Side(anchor.inputs[0], "m", m, (block.rows, block.high), GROUP // across % down, y, batch, block, build)
    right = Side(anchor.inputs[1], "n", n, (block.columns, block.wide), GROUP % across, x, batch, block, build)
    for side in (left, right):
        side.prepare()
    sums = [Sums(*pair, block, build) for pair in ((left, right), (right, left)) if pair[0].level in summed]
    variant = SUMS if sums else LARGE if block.rows * block.columns >= RESULTS else PRODUCTS
    looped = variant in build.limits.unrolls
    results = [build.var(construct(four_of(kind)), f"r{index}") for index in range(block.high * block.wide // 4)]
    if depth:
        multiply((left, right), sums, steps, place[0], lambda: _step(left, right, results, block, looped, build), build)
    for sums_of_side in sums:
        sums_of_side.put()
    if mine is not None:
        matmul_results.join_slices(left, right, results, place, (mine, own), block, work, build)
    else:
        matmul_results.finish(left, right, results, place, work, build)
    for sums_of_side in sums:
        sums_of_side.store(work)
    ways = [WAY, *["sum"] * len(summed), *[PART] * len(parts)]
    name = "_".join(["matmul", f"{block.rows}x{block.columns}", *ways])
    return build.kernel(name, block.lanes, prod((*parts, batches)) * across * down, vector=4, inside=True)


def _own_place(own: Var, block: Block, build: Builder) -> tuple[Var, Var]:
    """Row and column of an invocation among those of its slice: 32 neighbours are 4 x 8, or 8 x 4, where that fits."""
    columns = next((n for n in (8, 4) if block.across % n == 0 and block.down % (32 // n) == 0), 0)
    if not columns:
        return build.let(own // block.across, "y"), build.let(own % block.across, "x")
    inner, outer, wide = build.let(own % 32, "inner"), build.let(own // 32, "outer"), block.across // columns
    y = build.let(outer // wide * (32 // columns) + inner // columns, "y")
    return y, build.let(outer % wide * columns + inner % columns, "x")


@dataclass(frozen=True, slots=True)
class Steps:
    """How many blocks of k there are, and how many of them are of a part; 0: there are no parts.

    span: what the loop over them counts a block. Where that is not 1, drivers keep no address of each load in
    registers from one to the next: products of 4096 x 4096 halves on subgroup matrices took 0.51 ms, and take 0.45.
    Those of float32 gain nothing on average: 41.8 TFLOP/s instead of 44.2 where the right operand is turned.
    """

    count: int
    each: int
    span: int = 1


class Tiled(Protocol):
    """An operand whose tiles go through workgroup memory."""

    def fetch(self, block: Sym) -> None:
        """Loads the invocation's part of the tile of a block of k into registers."""

    def put(self) -> None:
        """Stores what was fetched into the tile."""


class Adding(Protocol):
    """Sums over k."""

    def add(self) -> None:
        """What a tile has."""


def multiply(
    sides: Sequence[Tiled], sums: Sequence[Adding], steps: Steps, part: Sym, step: Callable[[], None], build: Builder
) -> None:
    """Goes along k, or the part of it: `step` multiplies the tiles, while the next ones are on their way."""
    count, span = steps.count, steps.span
    first: Operand = 0
    last: Operand = count
    if steps.each:
        first = build.let(ir.Index(part * steps.each), "first")
        last = build.let(smaller(first + steps.each, count), "last")
    for side in sides:
        side.fetch(first.within(count) if isinstance(first, Var) else ZERO)
    end = build.let(last * span, "end") if isinstance(last, Var) else last * span
    with build.loop("at", first * span, end, span) as start:
        for side in sides:
            side.put()
        build.barrier()
        for side_sums in sums:  # Before what is fetched takes registers.
            side_sums.add()
        if count > 1:
            with build.if_(start + span < end):
                following = build.let((start + span) // span if span > 1 else start + 1, "following")
                for side in sides:
                    side.fetch(following.within(count))
        step()
        build.barrier()


def _step(left: Side, right: Side, results: Sequence[Var], block: Block, looped: bool, build: Builder) -> None:
    """Multiplies the tiles: of the steps of k those of the invocation's slice. looped: the driver writes them out."""
    planes = block.depth // block.steps // block.slices
    first = build.let(LANE // block.of_slice * planes, build.fresh("first_plane")) if block.slices > 1 else None

    def multiply_one(plane: Expr, step: Expr) -> None:
        a, b = left.take(plane, step), right.take(plane, step)
        for number, result in enumerate(results):
            i, j = divmod(number, len(b))
            factor = call(str(result.type), result.type, a[i // 4][i % 4])
            build.assign(result, call("fma", result.type, factor, b[j], result))

    if looped:
        with build.loop("plane", 0, planes) as plane, build.loop("step", 0, block.steps) as step:
            multiply_one(plane if first is None else first + plane, step)
        return
    for plane_index in range(planes):
        plane_at = ir.Const(ir.U32, plane_index) if first is None else first + plane_index if plane_index else first
        for number in range(block.steps):
            with build.scope():
                multiply_one(plane_at, ir.Const(ir.U32, number))
