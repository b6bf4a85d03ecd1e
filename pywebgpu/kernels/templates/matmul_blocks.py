"""Blocks of staged products (see matmul_staged.py): which there are, and which one a large GPU takes unmeasured.

The time of a block is told by what the multiprocessors have to do: rounds of workgroups, each as long as its
multiplications at the rate that a block of its size reaches. Constants are those of an H200; of other discrete GPUs
only the number of multiprocessors is known, or not even that.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from pywebgpu.kernels.builder import Builder
from pywebgpu.kernels.kernel import Kernel, Limits
from pywebgpu.kernels.launch import Launch, Problem
from pywebgpu.kernels.target import Target
from pywebgpu.kernels.template import Computation
from pywebgpu.kernels.templates import matmul_staged
from pywebgpu.kernels.templates.matmul_staged import Block

BLOCKS = (  # rows, columns, depth, and of those of an invocation
    (128, 128, 16, 16, 8), (128, 128, 16, 8, 8), (64, 128, 16, 8, 8), (128, 64, 16, 8, 8), (64, 64, 16, 8, 8),
    (64, 64, 16, 4, 8), (32, 128, 16, 8, 4), (32, 64, 16, 4, 8), (32, 64, 32, 4, 8), (32, 32, 32, 4, 4),
)  # fmt: skip
STORED = ("float32", "float16", "bfloat16")  # whose operands may be
PARTS = (2, 3, 4, 6, 8, 12, 16)  # of k, that workgroups share
SPAN = 32  # what the steps of a part are a multiple of: the depth of every block divides it
LEAST = 64  # steps of a part, at least
WIDTH = 64  # cores of a discrete GPU of which nothing else is known
RATES = {(128, 128): 0.9, (64, 128): 0.85, (128, 64): 0.85, (64, 64): 0.75, (32, 128): 0.7, (32, 64): 0.6}
JOIN = 0.25  # multiplications of a core that take as long as moving an element of a part
PASS = 600_000  # the same for one more dispatch


def launches(problem: Problem, each: int, target: Target) -> list[Launch]:
    """Of staged products, k in parts last. each: how many results share a word, where several do."""
    # It writes out fours of columns, each behind its own condition where some of them may be missing.
    if problem.formats[0] not in STORED or (each > 1 and problem.sizes[2] % 4):
        return []
    blocks = fitting(problem.layout, target.limits)
    return [block.launch for block in (*blocks, *in_parts(blocks, problem.sizes[3]))]


def rule(problem: Problem, target: Target) -> Launch | None:
    """For large GPUs that nobody has measured; None on others."""
    features = target.features
    named = features.family == "nvidia" or (features.family == "amd" and features.cores > 0)  # Dawn tells no kind.
    if features.kind != "discrete" and not named:
        return None
    block = choose(problem.sizes, problem.layout, target.limits, features.cores or WIDTH)
    return block.launch if block else None


def write(work: Computation, launch: Launch, build: Builder) -> Kernel:
    """A product with a staged launch, or any of which only a part is wanted."""
    if launch.way != matmul_staged.WAY:
        launch = fitting("nt", build.limits)[-1].launch
    return matmul_staged.write(work, launch, build)


def fitting(layout: str, limits: Limits) -> list[Block]:
    """Those that a device of these limits can run."""
    blocks = [block for block in (Block(*one) for one in BLOCKS) if block.lanes <= limits.workgroup_size]
    return [block for block in blocks if block.shared_bytes(layout) <= limits.shared_bytes]


def in_parts(blocks: Sequence[Block], depth: int) -> list[Block]:
    """The same with k in parts, as far as each has something to do."""
    return [replace(block, parts=parts) for block in blocks for parts in PARTS if depth >= parts * LEAST]


def span(problem: Problem, launch: Launch) -> int:
    """Steps of k of a part; 0 where k has none."""
    return -(-problem.sizes[3] // (launch.split * SPAN)) * SPAN if launch.split > 1 else 0


@lru_cache(4096)
def choose(sizes: tuple[int, ...], layout: str, limits: Limits, cores: int) -> Block | None:
    """The block that is expected to take the shortest; None where a device can run none."""
    batches, m, n, depth = sizes
    known = [block for block in fitting(layout, limits) if (block.rows, block.columns) in RATES]
    found = [*known, *in_parts(known, depth)]
    return min(found, key=lambda block: _time(block, batches, m, n, depth, cores), default=None)


def _time(block: Block, batches: int, m: int, n: int, depth: int, cores: int) -> float:
    """In multiplications of a core."""
    groups = batches * -(-m // block.rows) * -(-n // block.columns) * block.parts
    steps = -(-depth // (block.parts * block.depth)) * block.depth
    own = block.rows * block.columns * steps / RATES[block.rows, block.columns]
    joining = PASS + JOIN * (2 * block.parts + 1) * batches * m * n / cores if block.parts > 1 else 0.0
    return max(-(-groups // cores), 1) * own + joining
