"""Products, with pointwise work on their results, and sums of their operands over k: see matmul_kernel.py.

Against other tiles on an H100: 2048 x 2048 by 2048 x 2048 takes 0.84 ms with fours of registers in vectors and 4 steps
of k written out, 0.87 ms without the latter, 1.39 ms with 16 numbers. Smaller tiles lose even where few workgroups run.
On SwiftShader a load costs as much as eight multiplications, so blocks are large: 512 x 128 by 128 x 384 takes 28 ms
with 4 x 4 an invocation, 18 ms with 8 x 8, 16 ms with 16 x 8, which takes twice as long to translate. Its subgroups
are the four invocations that run as one: loading what all of them read together, 8 x 4 take 15 ms, and half as long to
translate as 8 x 8; 16 x 4 take 13 ms, and 80 %.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from math import prod

from pywebgpu import dtypes
from pywebgpu.ir.graph import Node, Op, Reduction
from pywebgpu.kernels import families
from pywebgpu.kernels import launch as launching
from pywebgpu.kernels.access import Edges, down, gathers, reads_inside
from pywebgpu.kernels.builder import Builder
from pywebgpu.kernels.iteration_space import folded
from pywebgpu.kernels.kernel import Kernel, Limits
from pywebgpu.kernels.launch import Launch, Problem
from pywebgpu.kernels.target import SUBGROUPS, Target
from pywebgpu.kernels.template import Computation, Domain, Template
from pywebgpu.kernels.templates import matmul_blocks, matmul_kernel
from pywebgpu.kernels.templates.matmul_kernel import FULL, LEFT, RIGHT, STEPS, Tile, anchor_of, problem_of
from pywebgpu.kernels.templates.rows import IN_ORDER
from pywebgpu.ops import contraction, reduction
from pywebgpu.support.symbolic import Sym, unflatten, variable

CHEAP_COST = 4  # instructions of an operand that are repeated at each of the many reads of an element
BUSY = 96  # workgroups that keep a device busy: a result that fills fewer has smaller ones, and shares them out by k
SHARE = 16  # of k, at least, for each that shares
EMULATED_LANES = 16  # of a workgroup on a CPU, which runs four at a time, and workgroups on its cores
CACHED_LANES = 64  # of a workgroup that uses no memory of its own: what its neighbours read lies in their cache
MUCH = 1 << 24  # multiplications: a block of 16 x 4 takes 15 % less than one of 8 x 4, and 40 % more to translate
TOGETHER = 4  # of these, side by side: as many as run at a time
NARROW = 4  # columns of an invocation whose rows its neighbours load as well
FEW = 64  # invocations that keep a CPU's cores busy
LARGE = ("staged", "subgroup")  # launches of large blocks: see matmul_blocks.py
LONG = 512  # of k, at least, for each that shares there: workgroup memory takes long to clear


class MatmulTemplate(Template):
    """Levels: FULL, a node has an element a result; LEFT, a row of the left operand; RIGHT, a column of the right one.

    Problem: batches, m, n, k; formats: the operands', then those of results of which several share a word; layout two
    letters, of the operands: "n" as they are, "t" where k is (not) contiguous.
    Launch: tile is rows, columns, and how much of k goes through workgroup memory at a time (0: none does); each is
    rows and columns of an invocation; `split` invocations share the k of a block.
    """

    name = "matmul"
    absorbs = frozenset({"pointwise", "rows"})
    siblings = frozenset({"rows"})
    repeats = CHEAP_COST
    effort = 2
    rereads = True

    def matches(self, op: Op, target: Target) -> bool:
        return op in contraction.PRODUCTS

    def start(self, node: Node) -> Domain:
        return Domain({id(node): FULL})

    def joined(self, nodes: Sequence[Node], edges: Edges, parts: tuple[Domain, Domain]) -> Domain | None:
        anchor = anchor_of(nodes)
        *lead, m, n = anchor.spec.shape
        batches = prod(lead)
        sizes = {FULL: batches * m * n, LEFT: batches * m, RIGHT: batches * n}
        inside = {id(node) for node in nodes}
        levels: dict[int, str] = {}
        for node in nodes:
            producers = [id(p) for p, _, _ in edges[id(node)] if id(p) in inside]
            levels_read = {levels[producer] for producer in producers} or {FULL}
            if isinstance(node.op, Reduction):
                levels_read = {summed(node, anchor)}
            level = levels_read.pop()
            if levels_read or sizes.get(level, 0) != prod(node.spec.shape) or sizes.get(level, 0) == 0:
                return None
            if producers and (node is anchor or isinstance(node.op, Reduction)):
                return None
            if not reads_inside(edges[id(node)], node, inside, variable("i", sizes[level])):
                return None
            levels[id(node)] = level
        return Domain(levels)

    def is_worthwhile(self, work: Computation, escapes: Callable[[Node], bool], target: Target) -> bool:
        product, levels = anchor_of(work.nodes), work.domain.levels.values()
        return matmul_blocks.matrices_sum(product, levels) or not matmul_blocks.is_of_matrices(product, target)

    def packs(self, work: Computation, node: Node, each: int) -> bool:
        *_, m, n = anchor_of(work.nodes).spec.shape
        return {FULL: n, LEFT: m, RIGHT: n}[work.domain.levels[id(node)]] % each == 0

    def written_at(self, work: Computation, result: Node, escapes: Callable[[Node], bool]) -> Sym:
        return variable("i", prod(result.spec.shape))

    def reads_on_level(self, work: Computation, node: Node, result: Node) -> bool:
        folds = isinstance(node.op, Reduction) or node.op in contraction.PRODUCTS or gathers(node.op)
        levels = work.domain.levels
        return not folds and levels[id(node)] == levels[id(result)]

    def problem(self, work: Computation, build: Builder) -> Problem:
        shared = {node.spec.dtype for node in work.outputs if self.packs(work, node, node.spec.dtype.format.per_word)}
        packed = sorted(dtype.name for dtype in shared if dtype.format.per_word > 1)
        return problem_of(anchor_of(work.nodes), packed)

    def launches(self, problem: Problem, target: Target) -> Sequence[Launch]:
        batches, m, n, depth = problem.sizes
        rule = _rule(batches, m, n, depth, target)
        each = max([dtypes.BY_NAME[name].format.per_word for name in problem.formats[1:]], default=1)
        staged = matmul_blocks.launches(problem, each, target)
        large = matmul_blocks.rule(problem, target) if staged else None
        first = [large, rule.launch] if large else [rule.launch]
        others = (*staged, *_tile_launches(target.limits, each))
        return [*first, *(launch for launch in others if launch not in first)]

    def span(self, problem: Problem, target: Target) -> int:
        """How many steps of k of a product a workgroup adds up; 0: all. See compiler/passes/split_products.py."""
        launch = launching.choose(self, problem, target)
        return matmul_blocks.span(problem, launch) if launch.variant in LARGE else 0

    def write(self, work: Computation, launch: Launch, build: Builder) -> Kernel:
        is_large = anchor_of(work.nodes).op is contraction.partial_matmul or launch.variant in LARGE
        return matmul_blocks.write(work, launch, build) if is_large else matmul_kernel.write(work, launch, build)


@lru_cache(16)
def _tiles(limits: Limits) -> list[Tile]:
    """Those that a device of these limits can run."""
    through = [
        Tile(rows, columns, depth, slices=slices)
        for rows in (16, 32, 64)
        for columns in (16, 32, 64)
        for slices in (1, 2, 4, 8, 16)
        for depth in (16, 32, 64)
        if depth % (STEPS * slices) == 0
    ]
    straight = [
        Tile(down * high, across * wide, 0, high, wide, slices)
        for high, wide in ((1, 4), (1, 8), (4, 1), (8, 1), (4, 4), (8, 8))
        for down, across in ((4, 1), (1, 4), (4, 4), (8, 8))
        for slices in (1, 4)
    ]
    return [tile for tile in (*through, *straight) if _fits(tile, limits)]


@lru_cache(64)
def _tile_launches(limits: Limits, each: int) -> tuple[Launch, ...]:
    """each: how many results share a word, where several do."""
    return tuple([tile.launch for tile in _tiles(limits) if tile.high % each == tile.wide % each == 0])


def _fits(tile: Tile, limits: Limits) -> bool:
    shared = 4 * tile.depth * (tile.rows + tile.columns)
    if tile.slices > 1 and tile.depth and max(tile.rows, tile.columns) * tile.depth < 4 * tile.lanes:
        return False  # What the slices add would not fit into the larger tile.
    if tile.slices > 1 and not tile.depth:
        shared = 32 * tile.lanes
    return tile.lanes <= limits.workgroup_size and shared <= limits.shared_bytes


def _rule(batches: int, m: int, n: int, depth: int, target: Target) -> Tile:
    """For devices that nobody has measured."""
    limits = target.limits
    if target.is_cpu:
        return _emulated(batches, m, n, depth, target)
    if not families.of(target.features).stages:
        high, wide = (1 if size == 1 else 4 for size in (m, n))
        return _straight(batches, m, n, depth, high, wide, limits, CACHED_LANES)
    rows, columns = (min(64, max(16, _power(size))) for size in (m, n))
    while max(rows, columns) > 16 and (
        rows * columns > 16 * limits.workgroup_size or batches * -(-m // rows) * -(-n // columns) < BUSY
    ):
        rows, columns = (rows // 2, columns) if rows >= columns else (rows, columns // 2)
    slices = max(limits.workgroup_size * 16 // (rows * columns), 1)
    while slices > 1 and slices * SHARE > depth:
        slices //= 2
    slices = 1 << (slices.bit_length() - 1)  # Halves are added to halves.
    return Tile(rows, columns, max(16, min(rows, columns) * slices // 4), slices=slices)


def _emulated(batches: int, m: int, n: int, depth: int, target: Target) -> Tile:
    """Where a CPU plays the GPU.

    What neighbours load together takes half as long to load, and a block of half the size to translate. More rows are
    worth that where there is much to multiply.
    """
    features = target.features
    high, wide = (1 if size == 1 else 4 if size <= 4 or 8 < size <= 12 else 8 for size in (m, n))
    known = SUBGROUPS in features and features.family in IN_ORDER and features.subgroup_sizes == (TOGETHER, TOGETHER)
    if known and m > 1 and n > NARROW * (TOGETHER - 2):
        rows = 2 * high if m * batches * n * depth >= MUCH else high
        tile = _straight(batches, m, n, depth, rows, NARROW, target.limits)
        if tile.slices == 1:
            return replace(tile, neighbours=TOGETHER)
    return _straight(batches, m, n, depth, high, wide, target.limits)


def _straight(
    batches: int, m: int, n: int, depth: int, high: int, wide: int, limits: Limits, most: int = EMULATED_LANES
) -> Tile:
    """Blocks of so many rows and columns an invocation, of which a workgroup has some."""
    down, across = -(-m // high), -(-n // wide)
    blocks = batches * down * across
    lanes = min(most, limits.workgroup_size, max(4, _power(blocks // 32)))
    per_row = min(_power(across), TOGETHER)
    slices = min(FEW // _power(blocks), limits.workgroup_size // lanes, _power(depth // LONG)) if blocks < FEW else 1
    return Tile(lanes // per_row * high, per_row * wide, 0, high, wide, max(slices, 1))


def _power(n: int) -> int:
    """The next power of two."""
    return 1 << max(n - 1, 0).bit_length()


def summed(node: Node, anchor: Node) -> str:
    """Which operand of a product a reduction sums over k, by its level; "" if it does another thing."""
    if node.op is not reduction.sum_ or anchor.op is not contraction.matmul:
        return ""
    space = folded(node)
    own = down(node.inputs[0], space.coords())
    for level, operand, axis in ((LEFT, anchor.inputs[0], 1), (RIGHT, anchor.inputs[1], 2)):
        batches, size, depth = operand.spec.shape[0], operand.spec.shape[axis], operand.spec.shape[3 - axis]
        if (space.rows, space.columns) == (batches * size, depth):
            batch, position = unflatten(variable("row", batches * size), (batches, size))
            k = variable("column", depth)
            if own is not None and own == down(operand, (batch, position, k) if axis == 1 else (batch, k, position)):
                return level
    return ""
