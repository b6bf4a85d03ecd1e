"""Blocks of staged products (see matmul_staged.py): which there are, and which one a large GPU takes unmeasured.

The time of a block is told by what the multiprocessors have to do: rounds of workgroups, each as long as its
multiplications at the rate that a block of its size reaches. Constants are those of an H200; of other discrete GPUs
only the number of multiprocessors is known, or not even that.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from pywebgpu.kernels.kernel import Limits
from pywebgpu.kernels.target import Features
from pywebgpu.kernels.templates.matmul_staged import Block

BLOCKS = (  # rows, columns, depth, and of those of an invocation
    (128, 128, 16, 16, 8), (128, 128, 16, 8, 8), (64, 128, 16, 8, 8), (128, 64, 16, 8, 8), (64, 64, 16, 8, 8),
    (64, 64, 16, 4, 8), (32, 128, 16, 8, 4), (32, 64, 16, 4, 8), (32, 64, 32, 4, 8), (32, 32, 32, 4, 4),
)  # fmt: skip
PARTS = (2, 3, 4, 6, 8, 12, 16)  # of k, that workgroups share
SPAN = 32  # what the steps of a part are a multiple of: the depth of every block divides it
LEAST = 64  # steps of a part, at least
WIDTH = 64  # cores of a discrete GPU of which nothing else is known
RATES = {(128, 128): 0.9, (64, 128): 0.85, (128, 64): 0.85, (64, 64): 0.75, (32, 128): 0.7, (32, 64): 0.6}
JOIN = 0.25  # multiplications of a core that take as long as moving an element of a part
PASS = 600_000  # the same for one more dispatch


def fitting(layout: str, limits: Limits) -> list[Block]:
    """Those that a device of these limits can run."""
    blocks = [block for block in (Block(*one) for one in BLOCKS) if block.lanes <= limits.workgroup_size]
    return [block for block in blocks if block.shared_bytes(layout) <= limits.shared_bytes]


def in_parts(blocks: Sequence[Block], depth: int) -> list[Block]:
    """The same with k in parts, as far as each has something to do."""
    return [replace(block, parts=parts) for block in blocks for parts in PARTS if depth >= parts * LEAST]


def span(depth: int, parts: int) -> int:
    """Steps of k of a part."""
    return -(-depth // (parts * SPAN)) * SPAN


def is_large(features: Features) -> bool:
    """Whether an adapter is one for which blocks of this kind were made: its own memory, many registers."""
    return (
        features.kind == "discrete" or features.family == "nvidia" or (features.family == "amd" and features.cores > 0)
    )


@lru_cache(4096)
def choose(batches: int, m: int, n: int, depth: int, layout: str, limits: Limits, cores: int) -> Block | None:
    """The block that is expected to take the shortest; None where a product is too small for any."""
    known = [block for block in fitting(layout, limits) if (block.rows, block.columns) in RATES]
    found = [*known, *in_parts(known, depth)]
    return min(found, key=lambda block: _time(block, batches, m, n, depth, cores or WIDTH), default=None)


def _time(block: Block, batches: int, m: int, n: int, depth: int, cores: int) -> float:
    """In multiplications of a core."""
    groups = batches * -(-m // block.rows) * -(-n // block.columns) * block.parts
    steps = -(-depth // (block.parts * block.depth)) * block.depth
    own = block.rows * block.columns * steps / RATES[block.rows, block.columns]
    joining = PASS + JOIN * (2 * block.parts + 1) * batches * m * n / cores if block.parts > 1 else 0.0
    return max(-(-groups // cores), 1) * own + joining
