"""What is known of whole numbers before they are computed, and row numbers held against it.

A row number that is known to be wrong raises at the user's call; one that is known to be right costs nothing; any other
is checked on the device, and raises when a value is read.
"""

from collections.abc import Callable, Iterable
from math import prod
from typing import NamedTuple
from weakref import WeakKeyDictionary

from pywebgpu import dtypes
from pywebgpu.composites import arithmetic
from pywebgpu.composites.wide import COMPARISONS
from pywebgpu.dtypes import Kind
from pywebgpu.errors import REFUSALS, UNFIT, RangeError
from pywebgpu.ir import walk
from pywebgpu.ir.graph import DATA, HOST, OUTPUT, WHICH, Movement, Node, Spec, thread_state
from pywebgpu.ops import clamping, contraction, extremes, indexing, movement, pointwise, products, reduction
from pywebgpu.support.numbers import HELD, WORD

# What to say of checked row numbers. Beside the graph, as graphs that differ by a text alone are one Program.
_texts: WeakKeyDictionary[Node, str] = WeakKeyDictionary()
DEPTH = 16  # ops that are looked through

OUT_OF_BOUNDS = "index {index} is out of bounds for dimension {dim} with size {size}"


class Range(NamedTuple):
    """low <= every element <= high; `exact` when both are reached."""

    low: int
    high: int
    exact: bool


Ranges = Callable[[int], Range | None]  # of a node's inputs, by number
Rule = Callable[[Node, Ranges], Range | None]


def checked(index: Node, size: int, dim: int = 0, *, wrap: bool = True, text: str = OUT_OF_BOUNDS) -> Node:
    """The numbers of `index` as int64 in 0..size-1, where -1 is the last row if `wrap`.

    Raises: RangeError with `text`, at once where the numbers are known, else when a value is read: see `told`.
    """
    index = arithmetic.cast(index, dtypes.int64)
    if 0 in index.spec.shape:
        return index
    low = -size if wrap else 0
    index_range = known_range(index)
    if size == 0 or (
        index_range is not None and index_range.exact and not (low <= index_range.low and index_range.high < size)
    ):
        wrong = 0 if index_range is None else index_range.low if index_range.low < low else index_range.high
        raise RangeError(text.format(index=wrong, dim=dim, size=size))
    if index_range is not None and index_range.low >= 0 and index_range.high < size:
        return index
    return _checked_later(index, size, wrap=wrap, text=text.replace("{dim}", str(dim)))


def unknown(index: Node, size: int, text: str) -> Node:
    """The same of numbers that only the device knows."""
    return _checked_later(index, size, wrap=False, text=text)


def holding(x: Node, holds: Node, refusal: str) -> Node:
    """x, if all of `holds` is true; else RangeError with one of errors.REFUSALS when a value is read."""
    holds = arithmetic.broadcast_to(holds, x.spec.shape)
    number = pointwise.where(holds, *[pointwise.full(n, Spec((), dtypes.int64)) for n in (0, unfit(refusal))])
    return pointwise.add(x, arithmetic.cast(pointwise.index(number, size=1, wrap=False), x.spec.dtype))


def probabilities(x: Node, refusal: str = REFUSALS[3]) -> Node:
    """x, if all of it lies in [0, 1]."""
    base = walk.base(x)
    if base.op is pointwise.const and 0 <= base.attrs["value"] <= 1:
        return x
    inside = pointwise.bitwise_and(*[op(x, arithmetic.like(x, n)) for op, n in ((pointwise.ge, 0), (pointwise.le, 1))])
    return holding(x, inside, refusal)


def not_negative(x: Node, refusal: str) -> Node:
    """x, if none of it is below 0."""
    return holding(x, pointwise.ge(x, arithmetic.like(x, 0)), refusal)


def unfit(refusal: str) -> int:
    """The number that stands for a refusal where a row's is checked."""
    return UNFIT - REFUSALS.index(refusal)


def _checked_later(index: Node, size: int, *, wrap: bool, text: str) -> Node:
    node = pointwise.index(index, size=size, wrap=wrap)
    _texts[node] = text
    return node


def told(error: RangeError, nodes: Iterable[Node]) -> RangeError:
    """The error of a row number found wrong while `nodes` were computed, in the words of the call that it was for."""
    if error.row is not None:
        number, size = error.row
        for node in nodes:
            if node in _texts and node.attrs["size"] == size:
                return RangeError(_texts[node].format(index=number, size=size))
    return error


def known_range(node: Node, depth: int = DEPTH) -> Range | None:
    """The range of whole numbers that come from the host or from positions; None where it is unknown."""
    if node.op is HOST:
        return None if isinstance(node.buffer, float) else Range(node.buffer, node.buffer, True)
    if node.op is DATA:
        low = node.attrs.get("low")
        is_known = low is not None and (thread_state.observer is None or thread_state.observer.keeps_range(node))
        return Range(node.attrs["low"], node.attrs["high"], True) if is_known else None
    if depth == 0 or node.buffer is not None or node.spec.dtype.kind is Kind.FLOAT or 0 in node.spec.shape:
        return None
    if node.op is OUTPUT and node.inputs[0].op is indexing.stacked_slices:
        range_of_input = known_range(node.inputs[0].inputs[0], depth - 1)
        return None if range_of_input is None else Range(range_of_input.low, range_of_input.high, False)
    return _of_op(node, lambda input_index: known_range(node.inputs[input_index], depth - 1))


def fixed_range(node: Node, of: Ranges) -> Range:
    """The range that whole numbers have in every run, whatever data and host numbers are, on a device of 32-bit words.

    of: the same of the inputs, by number.
    """
    dtype = node.spec.dtype
    low, high = WORD if dtype is dtypes.int64 else (int(dtype.low), int(dtype.high))
    every = Range(low, high, False)
    if node.buffer is not None or node.op in (HOST, DATA) or 0 in node.spec.shape:
        return every
    range_of_op = _of_op(node, of)
    return range_of_op if range_of_op is not None and low <= range_of_op.low and range_of_op.high <= high else every


def folded(node: Node, of: Ranges) -> Range | None:
    """The range of the true result of an op on whole numbers, which its dtype may not hold."""
    rule = _FOLDS.get(node.op.name) or _RULES.get(node.op.name)
    return None if rule is None else rule(node, of)


def _of_op(node: Node, of: Ranges) -> Range | None:
    """What 32 bits, or the dtype, do not hold wraps, and is unknown."""
    if isinstance(node.op, Movement):
        return _moved(node, of)
    range_of_node = folded(node, of)
    if range_of_node is None:
        return None
    low, high = HELD[node.spec.dtype] if node.spec.dtype.kind is Kind.INT else (0, 1)
    return range_of_node if low <= range_of_node.low and range_of_node.high <= high else None


def _moved(node: Node, of: Ranges) -> Range | None:
    range_of_input = of(0)
    if range_of_input is None:
        return None
    if node.op in (movement.slice_, movement.window):
        return Range(range_of_input.low, range_of_input.high, False)
    if node.op in (movement.pad, movement.unwindow):
        value = int(node.attrs.get("value", 0))
        return Range(min(range_of_input.low, value), max(range_of_input.high, value), False)
    return range_of_input


def _const(node: Node, of: Ranges) -> Range:
    value = int(node.attrs["value"])
    return Range(value, value, True)


def _iota(node: Node, of: Ranges) -> Range:
    return Range(0, node.spec.shape[node.attrs["axis"]] - 1, True)


def _first(node: Node, of: Ranges) -> Range | None:
    return of(0)


def _flag(node: Node, of: Ranges) -> Range:
    return Range(0, 1, False)


def _cast(node: Node, of: Ranges) -> Range | None:
    dtype, source = node.spec.dtype, node.inputs[0].spec.dtype
    if source.kind is Kind.BOOL:
        return Range(0, 1, False)
    range_of_input = of(0) if source.kind is Kind.INT else None
    fits = (
        range_of_input is not None
        and dtype.kind is Kind.INT
        and dtype.low <= range_of_input.low
        and range_of_input.high <= dtype.high
    )
    return range_of_input if fits else None


def _index(node: Node, of: Ranges) -> Range:
    return Range(0, node.attrs["size"] - 1, False)


def _position(node: Node, of: Ranges) -> Range:
    return Range(0, _folded_count(node) - 1, False)


def _output(node: Node, of: Ranges) -> Range | None:
    """Of a fused op that finds positions."""
    inputs = node.inputs  # Looked at once: another thread may compute the node, which ends them.
    is_position = bool(inputs) and inputs[0].op in _FIRST and node.attrs["index"] == 1
    return _position(inputs[0], of) if is_position else None


def _order(node: Node, of: Ranges) -> Range:
    return Range(0, node.spec.shape[-1] - 1, True)


def _corners(combine: Callable[[int, int], int]) -> Rule:
    """The range of an op whose extremes lie at extremes of its inputs."""

    def rule(node: Node, of: Ranges) -> Range | None:
        a, b = of(0), of(1)
        if a is None or b is None:
            return None
        ends = [combine(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
        exact = a.exact and b.exact and (a.low == a.high or b.low == b.high)
        return Range(min(ends), max(ends), exact)

    return rule


def _remainder(node: Node, of: Ranges) -> Range | None:
    divisor = of(1)
    return None if divisor is None or divisor.low <= 0 else Range(0, divisor.high - 1, False)


def _floor_divide(node: Node, of: Ranges) -> Range | None:
    divisor = of(1)
    return None if divisor is None or divisor.low <= 0 else _corners(lambda x, y: x // y)(node, of)


def _neg(node: Node, of: Ranges) -> Range | None:
    range_of_input = of(0)
    return None if range_of_input is None else Range(-range_of_input.high, -range_of_input.low, range_of_input.exact)


def _abs(node: Node, of: Ranges) -> Range | None:
    range_of_input = of(0)
    if range_of_input is None:
        return None
    low, high = sorted((abs(range_of_input.low), abs(range_of_input.high)))
    return Range(0 if range_of_input.low <= 0 <= range_of_input.high else low, high, False)


def _relu(node: Node, of: Ranges) -> Range | None:
    range_of_input = of(0)
    return (
        None
        if range_of_input is None
        else Range(max(range_of_input.low, 0), max(range_of_input.high, 0), range_of_input.exact)
    )


def _masked(node: Node, of: Ranges) -> Range | None:
    """Of two numbers of which one is not negative, `and` keeps no bit that this one has not."""
    if node.spec.dtype.kind is Kind.BOOL:
        return Range(0, 1, False)
    highs = [
        range_of_input.high
        for range_of_input in (of(0), of(1))
        if range_of_input is not None and range_of_input.low >= 0
    ]
    return Range(0, min(highs), False) if highs else None


def _union(start: int) -> Rule:
    """The range of an op that picks each element from one of its inputs from `start` on."""

    def rule(node: Node, of: Ranges) -> Range | None:
        ranges = [
            of(input_index)
            for input_index, source in enumerate(node.inputs)
            if input_index >= start and 0 not in source.spec.shape
        ]
        known = [part for part in ranges if part is not None]
        if not known or len(known) < len(ranges):
            return None
        exact = node.op is indexing.cat and all(part.exact for part in known)
        return Range(min(part.low for part in known), max(part.high for part in known), exact)

    return rule


def _taken(node: Node, of: Ranges) -> Range | None:
    range_of_input = of(0)
    return None if range_of_input is None else Range(range_of_input.low, range_of_input.high, False)


# Sums and products: of how many elements, at most


def _folded_count(node: Node) -> int:
    return prod(node.inputs[0].spec.shape[axis] for axis in node.attrs["axes"])


def _added(term: Range | None, count: int) -> Range | None:
    return None if term is None else Range(min(term.low * count, 0), max(term.high * count, 0), False)


def _multiplied(factor: Range | None, count: int) -> Range | None:
    """Known of factors of at most 1, and of a few factors."""
    size = 0 if factor is None else max(abs(factor.low), abs(factor.high))
    if factor is None or (size > 1 and count > 64):
        return None
    return Range(-(size**count), size**count, False)


def _sum(node: Node, of: Ranges) -> Range | None:
    range_of_input = of(0)
    count = _folded_count(node)
    return None if range_of_input is None else Range(range_of_input.low * count, range_of_input.high * count, False)


def _prod(node: Node, of: Ranges) -> Range | None:
    return _multiplied(of(0), _folded_count(node))


def _scan(node: Node, of: Ranges) -> Range | None:
    mode, count = node.attrs["mode"], node.spec.shape[-1]
    return _added(of(0), count) if mode == "add" else _multiplied(of(0), count) if mode == "prod" else of(0)


def _scatter(node: Node, of: Ranges) -> Range | None:
    base, source, mode = of(0), of(2), node.attrs["mode"]
    if base is None or source is None or mode == "prod":
        return None
    more = _added(source, node.inputs[1].spec.shape[0]) if mode == "add" else None
    if more is not None:
        return Range(base.low + more.low, base.high + more.high, False)
    return Range(min(base.low, source.low), max(base.high, source.high), False)


def _matmul(node: Node, of: Ranges) -> Range | None:
    a, b = of(0), of(1)
    if a is None or b is None:
        return None
    ends = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    return _added(Range(min(ends), max(ends), False), node.inputs[0].spec.shape[-1])


_FOLDS: dict[str, Rule] = {
    reduction.sum_.name: _sum,
    products.prod_.name: _prod,
    reduction.max_.name: _taken,
    reduction.min_.name: _taken,
    indexing.scan.name: _scan,
    indexing.scatter.name: _scatter,
    contraction.matmul.name: _matmul,
}
_FIRST = (extremes.largest, extremes.smallest)
_RULES: dict[str, Rule] = dict.fromkeys([op.name for op in COMPARISONS], _flag) | {
    pointwise.const.name: _const,
    pointwise.iota.name: _iota,
    pointwise.copy.name: _first,
    pointwise.graft.name: _first,
    pointwise.cast.name: _cast,
    pointwise.index.name: _index,
    reduction.argmax.name: _position,
    reduction.argmin.name: _position,
    OUTPUT.name: _output,
    **{op.name: lambda node, of: _position(node, of) if node.attrs[WHICH] == 1 else None for op in _FIRST},
    indexing.argsort.name: _order,
    pointwise.add.name: _corners(lambda x, y: x + y),
    pointwise.sub.name: _corners(lambda x, y: x - y),
    pointwise.mul.name: _corners(lambda x, y: x * y),
    pointwise.neg.name: _neg,
    pointwise.abs_.name: _abs,
    clamping.relu.name: _relu,
    pointwise.bitwise_and.name: _masked,
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
