"""Scans along long rows become two steps: what each block of a row comes to, and the blocks, which add that up.

So many workgroups share a row, and none goes round its loops more often than adapters stand. A second dispatch takes a
GPU as long as it takes a workgroup to read some 30,000 elements: of shorter rows each block reads what is before it.
Up to some hundred blocks are one dispatch as well, in which blocks tell each other what they come to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from pywebgpu import dtypes
from pywebgpu.dtypes import Kind
from pywebgpu.ir import walk
from pywebgpu.ir.graph import Node
from pywebgpu.kernels import access
from pywebgpu.kernels.launch import Problem
from pywebgpu.kernels.templates import Selection, scan_blocks
from pywebgpu.ops import indexing, movement, pointwise, products, reduction
from pywebgpu.support.formats import WORD
from pywebgpu.support.shapes import Shape

SHORT = 2048  # elements of a row, up to which a workgroup that gives each lane a stretch of it is as fast
AGAIN = 1 << 15  # elements of all rows, up to which each block reads all that is before it
ALONE = 1 << 14  # elements of a row that one workgroup walks sooner than two dispatches run
MOST = 1 << 14  # blocks of a row: each workgroup reads what all before its own come to
# Elements of a block, and up to how many of such blocks a row has; beyond the last, blocks grow. As timed on an H100.
SIZES: tuple[tuple[int, int], ...] = ((1 << 10, 1 << 9), (1 << 11, 1 << 11), (1 << 13, MOST))
CHAINED: tuple[tuple[int, int], ...] = ((1 << 11, 1 << 6), (1 << 12, 1 << 7), (1 << 13, 1 << 9))  # of all rows' blocks
SIZES_ON_CPU: tuple[tuple[int, int], ...] = ((1 << 12, MOST),)


def split_scans(roots: tuple[Node, ...], order: Sequence[Node], selection: Selection) -> tuple[Node, ...]:
    """The same values but for the order of sums and products."""
    if not any(_is_long(node) for node in order):
        return roots
    return walk.rebuild(
        roots,
        order,
        lambda node: _split(node.inputs[0], node.attrs["mode"], selection) if _is_long(node) else node,
    )


def _is_long(node: Node) -> bool:
    return node.op is indexing.scan and not node.is_source and node.spec.shape[-1] > SHORT


def _split(x: Node, mode: str, selection: Selection) -> Node:
    columns, target = x.spec.shape[-1], selection.target
    is_cpu = target.is_cpu
    if not is_cpu and prod(x.spec.shape) <= AGAIN and mode not in scan_blocks.LONG:
        return indexing.scan_blocks(x, size=SIZES[0][0], mode=mode)
    chained = 0 if is_cpu or mode in scan_blocks.LONG else _chained(x, selection)
    if chained:
        return indexing.scan_chain(x, size=chained, mode=mode)
    if columns <= ALONE:
        return indexing.scan_blocks(x, size=columns, mode=mode)
    sizes = SIZES_ON_CPU if is_cpu else SIZES
    size = next((size for size, most in sizes if columns <= size * most), sizes[-1][0])
    while columns > size * MOST:
        size *= 2
    # Nobody asks what the last block comes to. Sums that fit are checked where their elements are.
    totals = _folded(x, -(-columns // size) - 1, size, mode.removesuffix("_checked"))
    return indexing.scan_blocks(x, totals, size=size, mode=mode)


def _chained(x: Node, selection: Selection) -> int:
    """Elements of a block, where all blocks can be one dispatch that has no windows; else 0."""
    *lead, columns = x.spec.shape
    rows, limits = prod(lead), selection.target.limits
    size = next((size for size, most in CHAINED if rows * -(-columns // size) <= most), 0)
    if not size or any(WORD * prod(node.spec.shape) > limits.binding_bytes for node in (x, access.below(x))):
        return 0
    template = selection.of(indexing.scan_chain(x, size=size, mode="add"))
    return size if template.launches(Problem((rows, columns, size)), selection.target) else 0


def _folded(x: Node, blocks: int, size: int, mode: str) -> Node:
    """(..., columns) -> (..., blocks): what the first blocks come to."""
    shape = (*x.spec.shape[:-1], blocks * size)
    first = movement.slice_(x, starts=(0,) * len(shape), sizes=shape, steps=(1,) * len(shape))
    if mode in ("add", "prod") and x.spec.dtype.kind is Kind.FLOAT:
        first = pointwise.cast(first, dtype=dtypes.float32)
    cut = movement.reshape(first, shape=(*shape[:-1], blocks, size))
    return movement.reshape(_FOLDS[mode](cut, (len(shape),)), shape=(*shape[:-1], blocks))


def _log_of_sum(x: Node, axes: Shape) -> Node:
    """log(sum(exp(x))), shifted by the largest element."""
    largest = reduction.max_(x, axes=axes)
    shift = pointwise.where(pointwise.isinf(largest), pointwise.full(0.0, largest.spec), largest)
    total = reduction.sum_(pointwise.exp(pointwise.sub(x, reduction.grown(shift, x))), axes=axes)
    return pointwise.add(pointwise.log(total), shift)


_FOLDS: dict[str, Callable[[Node, Shape], Node]] = {
    "add": reduction.sum_, "prod": products.prod_, "max": reduction.max_, "min": reduction.min_,
    "logaddexp": _log_of_sum,
}  # fmt: skip
