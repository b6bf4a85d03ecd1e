"""Attention and its gradients, each one kernel, without scores in memory: see attention_kernel, attention_gradient."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib import import_module

from pywebgpu.composites import attention as composite
from pywebgpu.ir.graph import WHICH, Node
from pywebgpu.kernels import families
from pywebgpu.kernels.builder import Builder
from pywebgpu.kernels.kernel import Kernel, Limits
from pywebgpu.kernels.launch import Launch, Problem
from pywebgpu.kernels.target import SUBGROUPS, Features, Target
from pywebgpu.kernels.template import NEVER, Computation, FusedTemplate
from pywebgpu.kernels.templates import attention_kernel
from pywebgpu.kernels.templates.attention_kernel import SHUFFLED
from pywebgpu.kernels.templates.attention_tiles import APART, LANES, Tile, fours, parts_of_row
from pywebgpu.kernels.templates.rows import IN_ORDER

# Rows, columns, threads. On an H200, 12 heads of 64, causal, float32, values of 4,096 rows: 1.22 ms the first two, 1.28
# ms 64 x 32 by 128, 1.47 ms 32 x 32; of 512 rows, too few for smaller ones: 0.041 ms 32 x 32, 0.055 ms the first.
# Gradients of 1,024 rows: 0.315 ms 32 x 32, 0.329 ms 16 x 16, 0.506 ms 32 x 16.
TILES = (
    (32, 16, 64), (64, 16, 128), (32, 32, 128), (64, 32, 256), (64, 32, 128), (16, 16, 64), (16, 32, 64), (32, 32, 64),
    (16, 16, 32), (16, 8, 32), (8, 8, 64), (8, 8, 32), (4, 8, 32),
)  # fmt: skip
BACKWARD = ((32, 32, 128), (16, 16, 64), (32, 16, 64), *TILES[6:])
BUSY = 20_000  # invocations that keep a device busy
FEW, MANY = 8, 64  # rows of the query that are not worth a tile, keys that take long one tile after the other
WIDEST = 128  # numbers of a row of key or value, of which parts are taken
LONGEST = 1 << 18  # keys that one invocation goes along there, a few at a time, for all heads that share them
STORED = 1  # Where a CPU plays the GPU, scores are stored up to this share of its largest buffer.
RESULTS = 128  # numbers of rows of results that an invocation keeps: half of its registers, or so many


class AttentionTemplate(FusedTemplate):
    """Problem: rows of the query over all heads, its length, that of key and value, the wider of their widths.

    Launch: tile is rows and columns of scores at a time, each those of an invocation. SHUFFLED: rows are folded so.
    """

    name = "attention"
    absorbs = siblings = frozenset({name})  # The values of a call are nodes of one kernel.
    op = composite.attention
    effort = 3
    repeats = NEVER  # Operands are read by many workgroups, and again for gradients.
    operands = 0  # number of the query among the inputs

    def supports(self, node: Node, target: Target) -> bool:
        """Not where a CPU plays the GPU and scores fit: there workgroup memory costs more than they do in memory.

        Where few rows see many keys, a workgroup here would have all of these: a pass cuts them into parts, and for
        gradients the products share them out.
        """
        query, key, value = node.inputs[self.operands : self.operands + 3]
        batches, heads, length, width = query.spec.shape
        span = key.spec.shape[2]
        scores, rounds = 4 * batches * heads * length * span, max(length, span) * heads // key.spec.shape[1]
        if target.is_cpu and (scores <= STORED * target.limits.buffer_bytes or rounds > LONGEST):
            return False
        if length < FEW and span > MANY:
            return self.operands == 0 and _has_parts(node, target)
        return bool(self._tiles((width, value.spec.shape[3]), target))

    def packs(self, work: Computation, node: Node, each: int) -> bool:
        widths = [node.inputs[self.operands + index].spec.shape[3] for index in (0, 2)]
        return all(width % 4 == 0 for width in widths)

    def problem(self, work: Computation, build: Builder) -> Problem:
        node = work.nodes[0]
        query, key, value = node.inputs[self.operands : self.operands + 3]
        batches, heads, length, width = query.spec.shape
        sizes = (batches * heads * length, length, key.spec.shape[2], width, value.spec.shape[3])
        return Problem(sizes, (query.spec.dtype.name,), _case(node.attrs["window"]))

    def launches(self, problem: Problem, target: Target) -> Sequence[Launch]:
        rows, _, _, *widths = problem.sizes
        tiles = self._tiles((widths[0], widths[1]), target)
        busy = [tile for tile in tiles if rows * tile.threads >= BUSY * tile.rows]
        # A CPU that plays the GPU translates a short text much sooner.
        first = tiles[-1] if target.is_cpu else busy[0] if busy else max(tiles, key=_patience)
        ways = ["", SHUFFLED] if self._shuffles and _neighbours(target.features) else [""]
        return [
            tile.launch(variant)
            for tile in (first, *(tile for tile in tiles if tile != first))
            for variant in ways[::-1]
        ]

    tiles: tuple[tuple[int, int, int], ...] = TILES
    _shuffles = True

    def _tiles(self, widths: tuple[int, int], target: Target) -> list[Tile]:
        """Those that a device can run, and keep the results of."""
        most = min(RESULTS, (families.of(target.features).registers + 1) // 2)
        tiles = _fitting(self.tiles, self._shared_vectors, widths, target.limits)
        return [tile for tile in tiles if tile.high * max(widths) // LANES <= most]

    @staticmethod
    def _shared_vectors(tile: Tile, width: int, value_width: int) -> int:
        """Of four numbers, in workgroup memory."""
        query, value = fours(width) + 1, fours(value_width) + 1
        weights = tile.columns // 4 + APART
        return tile.rows * (query + weights + LANES // 4) + tile.columns * (query + value)

    def write(self, work: Computation, launch: Launch, build: Builder) -> Kernel:
        return attention_kernel.write(work, launch, build)


class AttentionBackwardTemplate(AttentionTemplate):
    """The same of the gradients; rows are those of the query, or of key and value, columns of the other."""

    name = "attention_backward"
    absorbs = siblings = frozenset({name})
    op = composite.attention_backward
    effort = 4
    operands = 3
    tiles = BACKWARD
    _shuffles = False

    @staticmethod
    def _shared_vectors(tile: Tile, width: int, value_width: int) -> int:
        query, value = fours(width) + 1, fours(value_width) + 1
        each = query + value + parts_of_row(value_width)
        return tile.rows * (each + tile.columns // 4 + APART) + tile.columns * each

    def write(self, work: Computation, launch: Launch, build: Builder) -> Kernel:
        gradient = import_module(
            "pywebgpu.kernels.templates.attention_gradient"
        )  # Where a CPU plays the GPU, nobody asks.
        kernel: Kernel = gradient.write(work, launch, build)
        return kernel


def is_few(node: Node) -> bool:
    """Whether a node is attention of few rows over many keys, of which each has a part."""
    if node.op is not composite.attention or node.is_source or WHICH not in node.attrs:
        return False
    return node.inputs[0].spec.shape[2] < FEW and node.inputs[1].spec.shape[2] > MANY


def _has_parts(node: Node, target: Target) -> bool:
    """Whether attention over parts of the keys has a kernel: of whole vectors, without dropout."""
    widths = [node.inputs[index].spec.shape[3] for index in (0, 2)]
    fits = max(widths) <= WIDEST and target.limits.workgroup_size >= 256
    return fits and not any(width % 4 for width in widths) and node.attrs["dropout"] == 0


def _case(window: composite.Window) -> str:
    return {composite.ALL: "", composite.CAUSAL: "causal"}.get(window, "window")


@lru_cache(256)
def _fitting(
    tiles: tuple[tuple[int, int, int], ...],
    vectors: Callable[[Tile, int, int], int],
    widths: tuple[int, int],
    limits: Limits,
) -> list[Tile]:
    return [
        tile
        for tile in (Tile(*sizes) for sizes in tiles)
        if tile.threads <= limits.workgroup_size and 16 * vectors(tile, *widths) <= limits.shared_bytes
    ]


def _patience(tile: Tile) -> tuple[bool, int, int]:
    """Where few rows leave a device idle, what takes time is to wait for tiles: several lanes a row, many columns."""
    return tile.threads >= 4 * tile.rows, tile.columns, tile.rows


def _neighbours(features: Features) -> bool:
    """Whether invocations that share a row surely lie in one subgroup."""
    return SUBGROUPS in features and features.family in IN_ORDER and features.subgroup_sizes[0] >= LANES
