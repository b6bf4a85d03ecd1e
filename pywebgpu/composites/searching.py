"""Searching in what is in order: how many of its elements lie below a number."""

from collections.abc import Callable
from functools import partial
from math import prod

from pywebgpu import dtypes
from pywebgpu.composites import arithmetic, precision, reduce
from pywebgpu.dtypes import Kind
from pywebgpu.errors import DTypeError, ShapeError
from pywebgpu.ir.graph import Node, Spec
from pywebgpu.ops import indexing as ops
from pywebgpu.ops import movement, pointwise

FEW = 128  # boundaries up to which counting the smaller ones beats halving


def searchsorted(edges: Node, x: Node | float, right: bool = False, out_int32: bool = False) -> Node:
    """How many of the ascending `edges` lie below each x; with `right`, how many do not lie above it.

    Shapes: edges (n,) and x of any shape, or edges (..., n) and x (..., m) with equal leading axes.
    Raises: ShapeError for other shapes, DTypeError when both have axes and their dtypes differ.
    """
    if not isinstance(x, Node):
        x = arithmetic.number(x, arithmetic.result_type(edges, x))
    dtype = arithmetic.result_type(edges, x)
    precision.refuse_bool("searchsorted", edges)
    if edges.spec.shape == ():
        raise ShapeError("torch.searchsorted(): boundaries tensor should have positive dimension, but got 0 dimension")
    if x.spec.shape and x.spec.dtype is not edges.spec.dtype:
        raise DTypeError(
            "torch.searchsorted(): boundary tensor and input value tensor should have same dtype, but got boundary "
            f"tensor dtype {edges.spec.dtype} and input value tensor dtype {x.spec.dtype}"
        )
    if len(edges.spec.shape) > 1 and edges.spec.shape[:-1] != x.spec.shape[:-1]:
        raise ShapeError(
            "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries "
            "tensor and input value tensor must match, but we got boundaries tensor "
            f"{list(edges.spec.shape)} and input value tensor {list(x.spec.shape)}"
        )
    edges, x = (arithmetic.cast(reduce.stop_gradient(part), dtype) for part in (edges, x))
    passes: Callable[[Node, Node], Node] = pointwise.gt if right else pointwise.ge
    if dtype.kind is Kind.FLOAT:
        passes = partial(_passes_sorted, passes)
    count = _counted if edges.spec.shape[-1] <= FEW else _halved
    position = count(edges, x, passes)
    return arithmetic.cast(position, dtypes.int32) if out_int32 else position


def _passes_sorted(passes: Callable[[Node, Node], Node], edge: Node, x: Node) -> Node:
    """NaN stands behind all numbers, as `sort` has it."""
    is_last = pointwise.bitwise_and(pointwise.ne(edge, edge), pointwise.eq(x, x))
    return pointwise.bitwise_or(passes(edge, x), is_last)


def bucketize(x: Node | float, edges: Node, out_int32: bool = False, right: bool = False) -> Node:
    """As searchsorted, with one row of edges for all x."""
    if len(edges.spec.shape) != 1:
        raise ShapeError(f"boundaries tensor must be 1 dimension, but got dim({len(edges.spec.shape)})")
    return searchsorted(edges, x, right, out_int32)


def _counted(edges: Node, x: Node, passes: Callable[[Node, Node], Node]) -> Node:
    """Compares every x with every edge: one kernel, n comparisons an element."""
    n = edges.spec.shape[-1]
    shape = (*x.spec.shape, n)
    if n == 0:
        return pointwise.full(0, Spec(x.spec.shape, dtypes.int64))
    if len(edges.spec.shape) > 1:
        edges = movement.reshape(edges, shape=(*edges.spec.shape[:-1], 1, n))
    column = arithmetic.broadcast_to(movement.reshape(x, shape=(*x.spec.shape, 1)), shape)
    below = pointwise.bitwise_not(passes(arithmetic.broadcast_to(edges, shape), column))
    return reduce.sum(below, -1)


def _halved(edges: Node, x: Node, passes: Callable[[Node, Node], Node]) -> Node:
    """Halves the row of edges until one position is left: log2(n) lookups an element."""
    n = edges.spec.shape[-1]
    rows = movement.reshape(edges, shape=(prod(edges.spec.shape), 1))
    low = pointwise.full(0, Spec(x.spec.shape, dtypes.int64))
    high = arithmetic.like(low, n)
    unit = arithmetic.like(low, 1)
    first = _row_starts(edges, x)
    for _ in range(n.bit_length()):
        middle = pointwise.shift_right(pointwise.add(low, high), unit)
        is_open = pointwise.lt(low, high)
        position = pointwise.minimum(middle, arithmetic.like(low, n - 1))
        position = movement.reshape(
            position if first is None else pointwise.add(position, first), shape=(prod(x.spec.shape),)
        )
        edge = movement.reshape(ops.take(rows, position), shape=x.spec.shape)
        stop = passes(edge, x)
        goes_up = pointwise.bitwise_and(is_open, pointwise.bitwise_not(stop))
        goes_down = pointwise.bitwise_and(is_open, stop)
        low = pointwise.where(goes_up, pointwise.add(middle, unit), low)
        high = pointwise.where(goes_down, middle, high)
    return low


def _row_starts(edges: Node, x: Node) -> Node | None:
    """Where the edges of x's own row start in the flattened edges; None when there is one row."""
    lead = edges.spec.shape[:-1]
    if not lead:
        return None
    count = pointwise.iota(spec=Spec((prod(lead), 1), dtypes.int64), axis=0)
    starts = pointwise.mul(count, arithmetic.like(count, edges.spec.shape[-1]))
    return arithmetic.broadcast_to(movement.reshape(starts, shape=(*lead, 1)), x.spec.shape)
