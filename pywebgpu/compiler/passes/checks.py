"""Whole numbers that may leave the 32 bits in which int64 is stored: their ops become ones that check.

What a result can be at most is found from the graph alone, since data and host numbers are no part of a Program; what
cannot leave 32 bits is not checked.
"""

from collections.abc import Sequence
from math import prod

from pywebgpu import dtypes
from pywebgpu.composites import bounds
from pywebgpu.composites.bounds import Range
from pywebgpu.dtypes import Kind
from pywebgpu.ir.graph import Node, Pointwise, thread_state
from pywebgpu.kernels.templates import Selection
from pywebgpu.ops import checks, contraction, indexing, pointwise, products, reduction
from pywebgpu.support.numbers import WORD

FEW = 1 << 16  # elements whose sum one more sum checks
MANY = 1 << 23  # elements whose sum three more check, exactly
NEAR = 2.0**31
_JOINING = (indexing.scan, indexing.scatter)
_FOLDING = (reduction.sum_, products.prod_, contraction.matmul)


def check_integers(roots: tuple[Node, ...], order: Sequence[Node], selection: Selection) -> tuple[Node, ...]:
    """The same values; where the true number of an int64 does not fit, the kernel leaves a note."""
    if not any(_is_arithmetic(node) for node in order):
        return roots
    ranges: dict[int, Range] = {}
    new: dict[int, Node] = {}
    for node in order:
        inputs = tuple([new[id(source)] for source in node.inputs]) if not node.is_source else node.inputs
        fresh = node if inputs == node.inputs else Node(node.op, inputs, node.attrs, node.spec)
        if node.spec.dtype.kind is not Kind.FLOAT:
            ranges[id(node)] = _range(node, ranges)
            if _is_arithmetic(node) and not _fits(node, ranges):
                fresh = _checked(fresh)
        if thread_state.origins is not None:
            thread_state.origins.carry(node, fresh)
        new[id(node)] = fresh
    return tuple([new[id(root)] for root in roots])


def _is_arithmetic(node: Node) -> bool:
    """Whether it computes an int64 that the dtypes of its inputs do not bound."""
    if node.spec.dtype is not dtypes.int64 or node.is_source:
        return False
    if node.op in _JOINING:
        return node.attrs["mode"] in checks.MODES
    if node.op is pointwise.cast:
        return node.inputs[0].spec.dtype.kind is Kind.FLOAT or node.inputs[0].spec.dtype is dtypes.uint32
    return node.op in _FOLDING or node.op in checks.OF


def _range(node: Node, ranges: dict[int, Range]) -> Range:
    return bounds.fixed_range(node, lambda input_index: ranges.get(id(node.inputs[input_index])))


def _fits(node: Node, ranges: dict[int, Range]) -> bool:
    """Whether the true result is known to fit."""
    if 0 in node.spec.shape or any(0 in source.spec.shape for source in node.inputs):
        return True
    folded = bounds.folded(node, lambda input_index: ranges.get(id(node.inputs[input_index])))
    return folded is not None and WORD[0] <= folded.low and folded.high <= WORD[1]


def _checked(node: Node) -> Node:
    op = node.op
    if op in _JOINING:
        return Node(op, node.inputs, {**node.attrs, "mode": checks.MODES[node.attrs["mode"]]}, node.spec)
    if op is pointwise.cast:
        return checks.whole(*node.inputs)
    if op is reduction.sum_:
        return _sum(node)
    if op is products.prod_:
        size = products.prod_(_size(node.inputs[0]), axes=node.attrs["axes"])
        return checks.near(node, size, limit=NEAR * (1 - 2.0**-17), name="prod")
    if op is contraction.matmul:
        a, b = node.inputs
        slack = (a.spec.shape[-1] + 8) * 2.0**-23
        size = contraction.matmul(_size(a), _size(b))
        return checks.near(node, size, limit=NEAR * max(1 - slack, 0.0), name="matmul")
    assert isinstance(op, Pointwise)
    return checks.OF[op](*node.inputs)


def _sum(node: Node) -> Node:
    """A sum of 32-bit words is right modulo 2^32; sums of their upper bits say how often 2^32 was lost."""
    x, axes = node.inputs[0], node.attrs["axes"]
    count = prod(x.spec.shape[axis] for axis in axes)
    if count <= FEW:
        shift = max((count - 1).bit_length(), 1)
        return checks.sum_(node, reduction.sum_(_right(x, shift), axes=axes), shift=shift, count=count)
    if count <= MANY:
        byte = pointwise.scalar(255, dtypes.int64)
        parts = [_right(x, 24), *(pointwise.bitwise_and(_right(x, shift), byte) for shift in (16, 8))]
        return checks.long_sum(node, *(reduction.sum_(part, axes=axes) for part in parts), count=count)
    return checks.near(node, reduction.sum_(_size(x), axes=axes), limit=NEAR * 0.98, name="sum")


def _right(x: Node, shift: int) -> Node:
    return pointwise.shift_right(x, pointwise.scalar(shift, dtypes.int64))


def _size(x: Node) -> Node:
    return pointwise.abs_(pointwise.cast(x, dtype=dtypes.float32))
