"""What is known of whole numbers before they are computed, and row numbers held against it.

A row number that is known to be wrong raises at the user's call; one that is known to be right costs nothing; any other
is checked on the device, and raises when a value is read.
"""

from collections.abc import Callable
from typing import NamedTuple

from pywebgpu import dtypes
from pywebgpu.compose import arithmetic
from pywebgpu.dtypes import Kind
from pywebgpu.errors import RangeError
from pywebgpu.graph.ir import DATA, HOST, Movement, Node
from pywebgpu.live import recorder
from pywebgpu.ops import indexing, movement, pointwise, reduction

DEPTH = 16  # ops that are looked through

OUT_OF_BOUNDS = "index {index} is out of bounds for dimension {dim} with size {size}"


class Range(NamedTuple):
    """low <= every element <= high; `exact` when both are reached."""

    low: int
    high: int
    exact: bool


def checked(index: Node, size: int, dim: int = 0, *, wrap: bool = True, text: str = OUT_OF_BOUNDS) -> Node:
    """The numbers of `index` as int64 in 0..size-1, where -1 is the last row if `wrap`.

    Raises: RangeError with `text`, at once where the numbers are known, else when a value is read.
    """
    index = arithmetic.cast(index, dtypes.int64)
    if 0 in index.spec.shape:
        return index
    low = -size if wrap else 0
    found = known_range(index)
    if size == 0 or (found is not None and found.exact and not (low <= found.low and found.high < size)):
        wrong = 0 if found is None else found.low if found.low < low else found.high
        raise RangeError(text.format(index=wrong, dim=dim, size=size))
    if found is not None and found.low >= 0 and found.high < size:
        return index
    return pointwise.index(index, size=size, wrap=wrap, text=text.replace("{dim}", str(dim)))


def known_range(node: Node, depth: int = DEPTH) -> Range | None:
    """The range of whole numbers that come from the host or from positions; None where it is unknown."""
    if node.op is HOST:
        return None if isinstance(node.buffer, float) else Range(node.buffer, node.buffer, True)
    if node.op is DATA:
        low = node.attrs.get("low")
        is_known = low is not None and (recorder.tape is None or recorder.tape.keeps_range(node))
        return Range(node.attrs["low"], node.attrs["high"], True) if is_known else None
    if depth == 0 or node.buffer is not None or node.spec.dtype.kind is Kind.FLOAT or 0 in node.spec.shape:
        return None
    rule = _moved if isinstance(node.op, Movement) else _RULES.get(node.op.name)
    try:
        return None if rule is None else rule(node, depth)
    except (IndexError, ValueError):
        if node.inputs:
            raise
        return None  # Another thread computed it meanwhile, and its inputs ended.


def _moved(node: Node, depth: int) -> Range | None:
    found = known_range(node.inputs[0], depth - 1)
    if found is None:
        return None
    if node.op in (movement.slice_, movement.window):
        return Range(found.low, found.high, False)
    if node.op in (movement.place, movement.unwindow):
        value = int(node.attrs.get("value", 0))
        return Range(min(found.low, value), max(found.high, value), False)
    return found


def _const(node: Node, depth: int) -> Range:
    value = int(node.attrs["value"])
    return Range(value, value, True)


def _iota(node: Node, depth: int) -> Range:
    return Range(0, node.spec.shape[node.attrs["axis"]] - 1, True)


def _first(node: Node, depth: int) -> Range | None:
    return known_range(node.inputs[0], depth - 1)


def _cast(node: Node, depth: int) -> Range | None:
    dtype, source = node.spec.dtype, node.inputs[0].spec.dtype
    if source.kind is Kind.BOOL:
        return Range(0, 1, False)
    found = known_range(node.inputs[0], depth - 1)
    fits = found is not None and dtype.kind is Kind.INT and dtype.low <= found.low and found.high <= dtype.high
    return found if fits else None


def _index(node: Node, depth: int) -> Range:
    return Range(0, node.attrs["size"] - 1, False)


def _position(node: Node, depth: int) -> Range:
    count = 1
    for axis in node.attrs["axes"]:
        count *= node.inputs[0].spec.shape[axis]
    return Range(0, count - 1, False)


def _order(node: Node, depth: int) -> Range:
    return Range(0, node.spec.shape[-1] - 1, True)


def _corners(combine: Callable[[int, int], int]) -> Callable[[Node, int], Range | None]:
    """The range of an op whose extremes lie at extremes of its inputs."""

    def rule(node: Node, depth: int) -> Range | None:
        a, b = (known_range(source, depth - 1) for source in node.inputs)
        if a is None or b is None:
            return None
        ends = [combine(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
        exact = a.exact and b.exact and (a.low == a.high or b.low == b.high)
        return Range(min(ends), max(ends), exact)

    return rule


def _remainder(node: Node, depth: int) -> Range | None:
    divisor = known_range(node.inputs[1], depth - 1)
    return None if divisor is None or divisor.low <= 0 else Range(0, divisor.high - 1, False)


def _floor_divide(node: Node, depth: int) -> Range | None:
    divisor = known_range(node.inputs[1], depth - 1)
    return None if divisor is None or divisor.low <= 0 else _corners(lambda x, y: x // y)(node, depth)


def _union(start: int) -> Callable[[Node, int], Range | None]:
    """The range of an op that picks each element from one of its inputs from `start` on."""

    def rule(node: Node, depth: int) -> Range | None:
        found = [known_range(source, depth - 1) for source in node.inputs[start:] if 0 not in source.spec.shape]
        known = [part for part in found if part is not None]
        if not known or len(known) < len(found):
            return None
        exact = node.op is indexing.cat and all(part.exact for part in known)
        return Range(min(part.low for part in known), max(part.high for part in known), exact)

    return rule


def _taken(node: Node, depth: int) -> Range | None:
    found = known_range(node.inputs[0], depth - 1)
    return None if found is None else Range(found.low, found.high, False)


_RULES: dict[str, Callable[[Node, int], Range | None]] = {
    pointwise.const.name: _const,
    pointwise.iota.name: _iota,
    pointwise.copy.name: _first,
    pointwise.graft.name: _first,
    pointwise.cast.name: _cast,
    pointwise.index.name: _index,
    reduction.argmax.name: _position,
    reduction.argmin.name: _position,
    indexing.argsort.name: _order,
    pointwise.add.name: _corners(lambda x, y: x + y),
    pointwise.sub.name: _corners(lambda x, y: x - y),
    pointwise.mul.name: _corners(lambda x, y: x * y),
    pointwise.maximum.name: _corners(max),
    pointwise.minimum.name: _corners(min),
    pointwise.remainder.name: _remainder,
    pointwise.floor_divide.name: _floor_divide,
    pointwise.where.name: _union(1),
    indexing.cat.name: _union(0),
    indexing.take.name: _taken,
    indexing.offset_slice.name: _taken,
    indexing.write_slice.name: _union(0),
}
