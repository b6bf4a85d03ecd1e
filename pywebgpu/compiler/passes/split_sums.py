"""Sums down the columns of what a kernel walks row by row, as the gradients of a norm's weights are, become two.

Each few rows are added up by who walks them, so memory is read once; a second kernel adds what those gave, in their
order. The numbers are the same in every run.
"""

from collections import deque
from collections.abc import Sequence
from math import prod

from pywebgpu import dtypes
from pywebgpu.dtypes import Kind
from pywebgpu.ir import walk
from pywebgpu.ir.graph import Node, Pointwise, Reduction
from pywebgpu.kernels.access import is_view
from pywebgpu.kernels.templates import Selection
from pywebgpu.ops import movement, pointwise, reduction

NARROW, WIDE = 256, 4096  # columns: a row is held in registers
FEW = 16  # rows, at least
BUSY = 12  # blocks of rows for each core, which all run at once,
MOST = 1600  # and for all of them: the second kernel adds these up
CORES = 132  # of a device that does not say how many it has, as Dawn's do: too many cost less than too few
BINDINGS = 12  # that a kernel may have, at least: each sum takes one more
STEPS = 64  # nodes that are looked at from a sum upwards

Size = tuple[int, int]  # rows, columns


def split_sums(roots: tuple[Node, ...], order: Sequence[Node], selection: Selection) -> tuple[Node, ...]:
    """The same values but for the order of sums."""
    target = selection.target
    features, limits = target.features, target.limits
    if target.is_cpu or not features.family or limits.bindings < BINDINGS:
        return roots
    sums = [(node, size) for node in order if (size := _down(node)) is not None]
    if not sums:
        return roots
    folded: dict[Size, set[int]] = {size: set() for _, size in sums}
    for node in order:
        size = _along(node)
        if size in folded:
            folded[size] |= {id(node), *_above(node.inputs[0], size)}
    cores = features.cores or CORES
    sizes = {id(node): size for node, size in sums if not folded[size].isdisjoint(_above(_source(node), size))}
    if not sizes:
        return roots

    def rule(node: Node, fresh: Node) -> Node:
        return _split(fresh, sizes[id(node)], cores) if id(node) in sizes else fresh

    return walk.replace(roots, order, rule)


def _split(node: Node, size: Size, cores: int) -> Node:
    rows, _ = size
    each = max(-(-rows // min(BUSY * cores, MOST)), 2)
    partial = reduction.sum_rows(movement.reshape(_source(node), shape=size), each=each)
    total = movement.reshape(reduction.sum_(partial, axes=(0,)), shape=node.spec.shape)
    return total if node.spec == total.spec else pointwise.cast(total, dtype=node.spec.dtype)


def _down(node: Node) -> Size | None:
    """Rows and columns of what is summed down its columns, where that is worth two kernels."""
    if node.op is not reduction.sum_ or node.is_source:
        return None
    source, columns = _source(node), prod(node.spec.shape)
    if source.spec.dtype.kind is not Kind.FLOAT or source.spec.dtype is dtypes.float64:
        return None
    is_held = NARROW <= columns <= WIDE and columns % 4 == 0
    rows = prod(source.spec.shape) // max(columns, 1)
    return (rows, columns) if is_held and rows >= FEW and _is_down(node) else None


def _is_down(node: Node) -> bool:
    """Whether a sum folds leading axes, and all that it does not fold is behind them."""
    axes = node.attrs["axes"]
    return prod(node.inputs[0].spec.shape[axes[-1] + 1 :]) == prod(node.spec.shape)


def _source(node: Node) -> Node:
    """What a sum folds; of a long one that was cut in two (see lower.py) what both together do."""
    source = node.inputs[0]
    while source.op is movement.reshape and source.buffer is None:
        source = source.inputs[0]
    is_cut = source.op is reduction.sum_ and not source.is_source and _is_down(node)
    columns = prod(node.spec.shape)
    if is_cut and prod(source.inputs[0].spec.shape[source.attrs["axes"][-1] + 1 :]) == columns:
        return source.inputs[0]
    return node.inputs[0]


def _along(node: Node) -> Size | None:
    """Rows and columns of what is folded along its rows."""
    if not isinstance(node.op, Reduction) or node.is_source:
        return None
    shape, axes = node.inputs[0].spec.shape, node.attrs["axes"]
    first = len(shape) - len(axes)
    return (prod(shape[:first]), prod(shape[first:])) if axes == tuple(range(first, len(shape))) else None


def _above(node: Node, size: Size) -> set[int]:
    """Ids of the values that a matrix is computed of, element by element or row by row, the nearest first."""
    visited, waiting = set[int](), deque([node])
    while waiting and len(visited) < STEPS:
        current = waiting.popleft()
        if id(current) in visited or prod(current.spec.shape) not in (size[0] * size[1], size[0]):
            continue
        visited.add(id(current))
        if current.buffer is None and (isinstance(current.op, Pointwise) or is_view(current)):
            waiting += current.inputs
    return visited
