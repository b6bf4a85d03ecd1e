"""Operands of products on subgroup matrices whose rows do not begin at whole vectors are copied to rows that do.

Such a matrix is loaded number by number: products of one whose rows have 50,257 halves took ten times as long as those
of its copy, zeros behind each row included. The kernel looks through the slice (see matmul_subgroups.py).
"""

from collections.abc import Sequence
from math import prod

from pywebgpu.ir import walk
from pywebgpu.ir.graph import Movement, Node
from pywebgpu.kernels.templates import Selection, matmul_blocks
from pywebgpu.ops import contraction, movement, pointwise
from pywebgpu.support.symbolic import Sym, flatten, variable

Coords = tuple[Sym, ...]
EACH = 8  # elements of a vector
LARGE = 1 << 20  # elements of an operand, at least: smaller ones lie in caches
REREAD = 256  # and how often each of them is multiplied


def align_operands(roots: tuple[Node, ...], order: Sequence[Node], selection: Selection) -> tuple[Node, ...]:
    """The same values."""
    layouts = {id(node): _turned(node) for node in order if _is_product(node) and _has_matrices(node, selection)}
    if not any(turned is not None for pair in layouts.values() for turned in pair):
        return roots
    copies: dict[Node, Node] = {}

    def rule(node: Node, fresh: Node) -> Node:
        pair = layouts.get(id(node), (None, None))
        if pair == (None, None):
            return fresh
        inputs = [_aligned(*operand, copies) for operand in zip(node.inputs, fresh.inputs, pair, strict=True)]
        return Node(fresh.op, tuple(inputs), fresh.attrs, fresh.spec)

    return walk.replace(roots, order, rule)


def _is_product(node: Node) -> bool:
    return node.op is contraction.matmul and not node.is_source


def _has_matrices(node: Node, selection: Selection) -> bool:
    return matmul_blocks.is_of_matrices(node, selection.target)


def _turned(product: Node) -> tuple[bool | None, bool | None]:
    """For each operand whether its rows in memory are its columns; None where it stays as it is."""
    (batches, m, _), n = product.inputs[0].spec.shape, product.spec.shape[2]
    if batches != 1:
        return None, None
    return tuple([_lies(operand, times) for operand, times in zip(product.inputs, (n, m), strict=True)])  # type: ignore[return-value]


def _lies(operand: Node, times: int) -> bool | None:
    _, rows, columns = operand.spec.shape
    if rows * columns < LARGE or times < REREAD:
        return None
    source = operand
    coords: Coords = (variable("batch", 1), variable("row", rows), variable("column", columns))
    while isinstance(source.op, Movement) and source.buffer is None:
        coords, bounds = source.op.index(coords, source.inputs[0].spec.shape, **source.attrs)
        if bounds:
            return None
        source = source.inputs[0]
    if prod(source.spec.shape) != rows * columns:
        return None
    row, column = variable("row", rows), variable("column", columns)
    for is_turned, place, wide in ((False, (row, column), columns), (True, (column, row), rows)):
        if flatten(coords, source.spec.shape) == flatten(place, (rows * columns // wide, wide)):
            return is_turned if wide % EACH else None
    return None


def _aligned(before: Node, fresh: Node, is_turned: bool | None, copies: dict[Node, Node]) -> Node:
    if is_turned is None:
        return fresh
    base = walk.base(fresh)
    _, rows, columns = before.spec.shape
    if is_turned:
        rows, columns = columns, rows
    if base not in copies:
        wide = -(-columns // EACH) * EACH
        matrix = movement.reshape(base, shape=(1, rows, columns))
        padded = movement.pad(matrix, shape=(1, rows, wide), starts=(0, 0, 0), steps=(1, 1, 1))
        copies[base] = pointwise.copy(padded)
    aligned = copies[base]
    if is_turned:
        aligned = movement.permute(aligned, order=(0, 2, 1))
    return movement.slice_(aligned, starts=(0, 0, 0), sizes=before.spec.shape, steps=(1, 1, 1))
