"""Large blocks of products (matmul_staged.py, matmul_subgroups.py): which there are, and which a GPU takes unmeasured.

The time of a block is told by what the multiprocessors have to do: rounds of workgroups, each as long as its
multiplications at the rate that a block of its size reaches. Constants are those of an H200; of other discrete GPUs
only the number of multiprocessors is known, or not even that.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import import_module
from typing import Any

from pywebgpu.ir.graph import Node
from pywebgpu.kernels import families
from pywebgpu.kernels.builder import Builder
from pywebgpu.kernels.kernel import Kernel, Limits
from pywebgpu.kernels.launch import SUBGROUP, Launch, Problem
from pywebgpu.kernels.target import F16, SUBGROUPS, SubgroupMatrix, Target
from pywebgpu.kernels.target import MATRICES as SUBGROUP_MATRICES
from pywebgpu.kernels.template import Computation
from pywebgpu.kernels.templates.matmul_kernel import LEFT, RIGHT, anchor_of, is_contiguous_in_k, problem_of
from pywebgpu.ops import movement, pointwise
from pywebgpu.support.formats import WORD

WAY = "staged"
BLOCKS = (  # rows, columns, depth, of those of an invocation, parts of k, slices
    (128, 128, 16, 16, 8), (128, 128, 16, 8, 8), (64, 128, 16, 8, 8), (128, 64, 16, 8, 8), (64, 64, 16, 8, 8),
    (64, 64, 16, 4, 8), (32, 128, 16, 8, 4), (32, 64, 16, 4, 8), (32, 64, 32, 4, 8), (32, 32, 32, 4, 4),
    # Results of 768, 2304 and 3072 columns fill 128 workgroups of them, where powers of two leave a third idle.
    # 12 x 12 an invocation are as fast as cuBLAS, but registers suffice neither for a sum on the way nor for turning.
    (128, 96, 32, 8, 12, 1, 2), (64, 192, 32, 8, 12, 1, 2), (64, 96, 32, 8, 12, 1, 2), (96, 64, 32, 12, 8, 1, 2),
    (96, 64, 32, 12, 8, 1, 4), (64, 144, 32, 8, 12, 1, 2), (64, 48, 64, 8, 12, 1, 8), (64, 48, 32, 8, 12, 1, 4),
)  # fmt: skip
MATRICES = (  # rows, columns, depth, and matrices of a subgroup, of 16 x 16
    (128, 128, 32, 4, 4), (128, 64, 32, 4, 2), (64, 128, 32, 2, 4), (64, 64, 64, 2, 2), (64, 64, 32, 2, 2),
    (32, 128, 32, 2, 2), (32, 64, 64, 2, 1),
)  # fmt: skip
MATRIX = SubgroupMatrix("f16", "f32", 16, 16, 16)
STORED = ("float32", "float16", "bfloat16")  # whose operands may be
PARTS = (2, 3, 4, 6, 8, 11, 12, 16, 24, 32, 48, 64)  # of k, that workgroups share: at most
MANY, ENDLESS, FEW = 16, 1 << 14, 1 << 18  # so many, but where k has more steps for fewer results: convolutions
SPAN = 64  # what the steps of a part are a multiple of: the depth of every block divides it
LARGE, LENGTHY = 1 << 20, 1 << 12  # results whose blocks fill no large device, and what k then has to be worth parts
LEAST = 64  # steps of a part, at least
ROOM = 64 << 20  # bytes of all parts
LOWEST = 8  # rows and columns, at least: most of a block would be for nothing
WIDTH = 132  # cores, where they are not known, as Dawn tells none: too many cost less than too few
# How much of what a core can multiply a block reaches, by rows, columns, rows of an invocation and slices.
RATES = {
    (128, 128, 16, 1): 0.82, (128, 128, 8, 1): 0.70, (64, 128, 8, 1): 0.74, (128, 64, 8, 1): 0.75, (64, 64, 8, 1): 0.65,
    (64, 64, 4, 1): 0.59, (32, 128, 8, 1): 0.52, (32, 64, 4, 1): 0.53, (32, 32, 4, 1): 0.25,
    (128, 96, 8, 2): 0.72, (64, 192, 8, 2): 0.68, (64, 96, 8, 2): 0.60, (96, 64, 12, 2): 0.61, (96, 64, 12, 4): 0.58,
    (64, 144, 8, 2): 0.55, (64, 48, 8, 8): 0.545, (64, 48, 8, 4): 0.50,
}  # fmt: skip
LAYOUTS = {"tn": 1.0, "tt": 0.93, "nn": 0.99, "nt": 0.9}  # of that, where operands lie so
TURNED = 0.925  # of that, by blocks with slices where both operands are turned on their way
UNALIGNED = 0.8  # of that, by blocks without slices where an operand is loaded along k number by number
# The same of matrices, by rows and columns.
OF_MATRICES = {(128, 128): 4.6, (128, 64): 3.6, (64, 128): 3.4, (64, 64): 2.6, (32, 128): 2.2, (32, 64): 1.9}
LAST = 0.87  # rounds of workgroups that the last one takes longer than its share
EMPTY = 44  # steps of k that take as long as all else that a workgroup does
FILLING = 190  # invocations that keep a core busy
JOIN = 17.0  # multiplications of a core that take as long as moving an element of a part, where all cores do
PASS = 2_000_000  # the same for one more dispatch


@dataclass(frozen=True, slots=True)
class Block:
    """A workgroup's part of the result: rows x columns, `high` x `wide` an invocation, `depth` of k at a time.

    parts: how many workgroups share k (see compiler/passes/split_products.py).  slices: how many invocations of a
    workgroup do, each with its steps of a tile; in the end they add.
    """

    rows: int
    columns: int
    depth: int
    high: int
    wide: int
    parts: int = 1
    slices: int = 1

    @property
    def down(self) -> int:
        return self.rows // self.high

    @property
    def across(self) -> int:
        return self.columns // self.wide

    @property
    def steps(self) -> int:
        """Steps of k that lie together, and that are written out where drivers get loops as they are.

        So an index is checked once for all of them, and they take half of the time for them that they take for 16.
        """
        return 8 if self.depth >= 16 * self.slices else 4

    @property
    def of_slice(self) -> int:
        """Invocations of a slice."""
        return self.down * self.across

    @property
    def lanes(self) -> int:
        return self.of_slice * self.slices

    @property
    def meeting(self) -> int:
        """How many fours of each invocation's meet at a time those of the other slices."""
        return min(self.slices, 4)

    @property
    def launch(self) -> Launch:
        return Launch(WAY, self.lanes, (self.rows, self.columns, self.depth), (self.high, self.wide), self.parts)

    @staticmethod
    def of(launch: Launch) -> Block:
        (rows, columns, depth), (high, wide) = launch.tile, launch.each
        slices = launch.threads // (rows // high * (columns // wide))
        return Block(rows, columns, depth, high, wide, launch.split, slices)

    def shared_bytes(self, layout: str) -> int:
        """Of workgroup memory, for operands that lie so (see MatmulTemplate)."""
        fours = self.rows // 4 + (layout[0] == "n") + self.columns // 4 + (layout[1] == "t")
        return 16 * (self.depth * fours + (self.meeting * self.lanes if self.slices > 1 else 0))


def launches(problem: Problem, each: int, target: Target) -> Sequence[Launch]:
    """Of large blocks, k in parts last. each: how many results share a word, where several do."""
    # They write out fours of columns, each behind its own condition where some of them may be missing.
    if problem.formats[0] not in STORED or (each > 1 and problem.sizes[2] % 4):
        return ()
    blocks = *matrices(problem, target), *fitting(problem.layout, target.limits)
    return _launches(blocks, _most(problem))


def rule(problem: Problem, target: Target) -> Launch | None:
    """For large GPUs that nobody has measured; None on others, and for products of vectors."""
    features = target.features
    named = features.family == "nvidia" or (features.family == "amd" and features.cores > 0)  # Dawn tells no kind.
    if (features.kind != "discrete" and not named) or min(problem.sizes[1:3]) < LOWEST:
        return None
    blocks = matrices(problem, target) or _kept(fitting(problem.layout, target.limits), families.of(features).registers)
    block = choose(blocks, problem, features.cores or WIDTH)
    return block.launch if block else None


def is_of_matrices(product: Node, target: Target) -> bool:
    """Whether a product is likely to run on subgroup matrices."""
    return bool(matrices(problem_of(product), target))


def matrices_sum(product: Node, levels: Collection[str]) -> bool:
    """Whether subgroup matrices sum up what is wanted on their way: operands that do not lie along k."""
    sides = ((LEFT, product.inputs[0], "m"), (RIGHT, product.inputs[1], "n"))
    return not any(level in levels and is_contiguous_in_k(operand, letter) for level, operand, letter in sides)


def is_aligned(node: Node) -> bool:
    """Whether a node is a copy with zeros behind its rows: see compiler/passes/align_operands.py."""
    return node.op is pointwise.copy and bool(node.inputs) and node.inputs[0].op is movement.pad


def write(work: Computation, launch: Launch, build: Builder) -> Kernel:
    """A product with a launch of large blocks, or any of which only a part is wanted."""
    if launch.variant == SUBGROUP and matrices_sum(anchor_of(work.nodes), work.domain.levels.values()):
        kernel: Kernel = _module("matmul_subgroups").write(work, launch, build)
        return kernel
    if launch.variant != WAY:
        launch = fitting("nt", build.limits)[-1].launch
    written: Kernel = _module("matmul_staged").write(work, launch, build)
    return written


def matrices(problem: Problem, target: Target) -> tuple[Any, ...]:
    """Blocks of subgroup matrices that a device can run; none where it has no such matrices, or they cannot be told."""
    features = target.features
    low, high = features.subgroup_sizes
    has_all = all(name in features for name in (SUBGROUPS, F16, SUBGROUP_MATRICES)) and MATRIX in features.matrices
    if problem.formats[0] != "float16" or not has_all or low != high:
        return ()
    return _of_matrices(tuple(MATRICES), low, problem.layout, target.limits)


@lru_cache(64)
def _of_matrices(sizes: tuple[Any, ...], lanes: int, layout: str, limits: Limits) -> tuple[Any, ...]:
    blocks = [_module("matmul_subgroups").Block(*sizes, lanes=lanes) for sizes in sizes]
    blocks = [block for block in blocks if block.threads <= limits.workgroup_size]
    return tuple([block for block in blocks if block.shared_bytes(layout) <= limits.shared_bytes])


def _module(name: str) -> Any:
    """What writes the kernels: a page loads it when they are wanted there, which is rare."""
    return import_module(f"pywebgpu.kernels.templates.{name}")


@lru_cache(64)
def fitting(layout: str, limits: Limits) -> tuple[Block, ...]:
    """Staged ones that a device of these limits can run."""
    blocks = [block for block in (Block(*sizes) for sizes in BLOCKS) if block.lanes <= limits.workgroup_size]
    return tuple([block for block in blocks if block.shared_bytes(layout) <= limits.shared_bytes])


@lru_cache(64)
def _kept(blocks: tuple[Block, ...], registers: int) -> tuple[Block, ...]:
    """Those whose results take no more than half of the registers."""
    return tuple([block for block in blocks if 2 * block.high * block.wide <= registers + 1])


def _most(problem: Problem) -> int:
    """Parts of k: each has something to do, and all of them together are not too large.

    Gradients of weights have none where they fill a device: beside most of them a bias's is summed up, in one kernel.
    """
    batches, m, n, depth = problem.sizes
    if problem.layout == "tn" and batches * m * n > FEW and depth < (LENGTHY if batches * m * n <= LARGE else ENDLESS):
        return 1
    parts = PARTS[-1] if depth >= ENDLESS and batches * m * n <= FEW else MANY
    return min(depth // LEAST, ROOM // max(WORD * batches * m * n, 1), parts)


@lru_cache(256)
def _in_parts(blocks: tuple[Any, ...], most: int) -> tuple[Any, ...]:
    """The same, and after them with k in parts."""
    return (*blocks, *[replace(block, parts=parts) for block in blocks for parts in PARTS if parts <= most])


@lru_cache(256)
def _launches(blocks: tuple[Any, ...], most: int) -> tuple[Launch, ...]:
    return tuple([block.launch for block in _in_parts(blocks, most)])


def span(problem: Problem, launch: Launch) -> int:
    """Steps of k of a part; 0 where k has none."""
    return -(-problem.sizes[3] // (launch.split * SPAN)) * SPAN if launch.split > 1 else 0


@lru_cache(4096)
def choose(blocks: tuple[Any, ...], problem: Problem, cores: int) -> Any:
    """The block that is expected to take the shortest; None where a device can run none."""
    fastest = _in_parts(blocks, _most(problem))
    return min(fastest, key=lambda block: time(block, problem, cores), default=None)


def time(block: Any, problem: Problem, cores: int) -> float:
    """In multiplications of a core."""
    batches, m, n, depth = problem.sizes
    if isinstance(block, Block):
        rate, threads = RATES[block.rows, block.columns, block.high, block.slices], block.lanes
        rate *= LAYOUTS[problem.layout] * (TURNED if problem.layout == "nt" and block.slices > 1 else 1.0)
        if depth % 4 and problem.layout != "tn" and block.slices == 1:
            rate *= UNALIGNED
    else:
        rate, threads = OF_MATRICES[block.rows, block.columns], block.threads
    part = -(-depth // (block.parts * SPAN)) * SPAN if block.parts > 1 else depth
    groups: int = batches * -(-m // block.rows) * -(-n // block.columns) * -(-depth // max(part, 1))
    is_slow_alone = block.high * block.wide == 128  # A core runs two workgroups of them, or one at a lower rate.
    at_once = 2 if is_slow_alone and groups > cores else 1
    full_rounds = -(-groups // (cores * at_once)) * at_once
    least = FILLING / threads * (1.3 if is_slow_alone and at_once == 1 else 1.0)
    rounds = max(min(full_rounds, groups / cores + LAST * at_once), least, 1.0)
    steps = -(-part // block.depth) * block.depth + EMPTY
    own: float = block.rows * block.columns * steps / rate * rounds
    joining: float = PASS + JOIN * (2 * block.parts + 1) * batches * m * n / cores if block.parts > 1 else 0.0
    return own + joining
