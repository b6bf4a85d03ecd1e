"""The window that a mask over positions keeps to, found in its graph: how far before and after a row keys are seen."""

from __future__ import annotations

from typing import NamedTuple

from pywebgpu.composites.attention import Window
from pywebgpu.dtypes import int32, int64
from pywebgpu.ir.graph import HOST, Node
from pywebgpu.ops import movement, pointwise, reduction

_SHAPING = (movement.reshape, movement.permute, movement.alias, reduction.expand, pointwise.copy)


class _Line(NamedTuple):
    """The number query * position of the query + key * position of the key + rest."""

    query: int
    key: int
    rest: int

    def scaled(self, factor: int) -> _Line:
        return _Line(*(factor * term for term in self))

    def plus(self, other: _Line) -> _Line:
        return _Line(*(a + b for a, b in zip(self, other, strict=True)))


def of(mask: Node, query: Node, key: Node) -> tuple[Window, bool]:
    """The window, and whether it is all that the mask says. query, key: the positions of rows and keys, by number."""
    left: list[int] = []
    right: list[int] = []
    stack, is_whole = [mask], True
    while stack:
        node = _below(stack.pop())
        if node.op is pointwise.bitwise_and:
            stack += node.inputs
            continue
        lines = _at_least_0(node, query, key)
        is_whole = is_whole and lines is not None
        for line in lines or []:
            (left if line.key > 0 else right).append(line.rest)
    return (min(left, default=None), min(right, default=None)), is_whole


def _below(node: Node) -> Node:
    """What a value is, but for its shape: masks are made of numbers for one pair of positions."""
    while node.buffer is None and node.op in _SHAPING:
        (node,) = node.inputs
    return node


def _at_least_0(node: Node, query: Node, key: Node) -> list[_Line] | None:
    """Differences of the positions that are no less than 0 where a truth holds; None where it says something else."""
    if node.op is pointwise.const and node.attrs["value"]:
        return []
    is_not = node.op is pointwise.bitwise_not
    if is_not:
        node = _below(node.inputs[0])
    if node.op not in _SIGNS:
        return None
    sign, offset = _SIGNS[node.op]
    lines = [_line(source, query, key) for source in node.inputs]
    distances = [(source, line) for source, line in zip(map(_below, node.inputs), lines, strict=True) if line is None]
    if not distances:
        a, b = lines
        assert a is not None
        assert b is not None
        line = a.plus(b.scaled(-1)).scaled(sign).plus(_Line(0, 0, -offset))
        line = line.scaled(-1).plus(_Line(0, 0, -1)) if is_not else line
        return [line] if _is_difference(line) else None
    (distance, _), *others = distances
    if others or is_not or distance.op is not pointwise.abs_ or (sign > 0) is (lines[0] is None):
        return None
    inner = _line(distance.inputs[0], query, key)
    most = lines[0] or lines[1]
    if inner is None or most is None or not _is_difference(inner) or most.query or most.key:
        return None
    return [most.plus(inner.scaled(factor)).plus(_Line(0, 0, -offset)) for factor in (1, -1)]


# By comparison the sign of a - b which it wants, and how far apart they have to be.
_SIGNS = {pointwise.ge: (1, 0), pointwise.gt: (1, 1), pointwise.le: (-1, 0), pointwise.lt: (-1, 1)}


def _is_difference(line: _Line) -> bool:
    return (line.query, line.key) in ((1, -1), (-1, 1))


def _line(node: Node, query: Node, key: Node) -> _Line | None:
    """A number as a line over the positions; None where it is none, or may not be whole."""
    node = _below(node)
    if node is query or node is key:
        return _Line(int(node is query), int(node is key), 0)
    if node.spec.dtype not in (int32, int64):
        return None
    value = node.buffer if node.op is HOST else node.attrs.get("value") if node.op is pointwise.const else None
    if type(value) is int:
        return _Line(0, 0, value)
    if node.buffer is not None or node.op not in (pointwise.cast, pointwise.neg, pointwise.add, pointwise.sub):
        return None
    lines = [_line(source, query, key) for source in node.inputs]
    if any(line is None for line in lines):
        return None
    first, *others = (line for line in lines if line is not None)
    if node.op is pointwise.neg:
        return first.scaled(-1)
    sign = -1 if node.op is pointwise.sub else 1
    return first.plus(others[0].scaled(sign)) if others else first
