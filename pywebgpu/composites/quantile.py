"""Quantiles: the elements of a sorted row at fractional positions."""

from math import prod

from pywebgpu import dtypes
from pywebgpu.composites import arithmetic, elementwise, ordering, precision, reduce, scan
from pywebgpu.errors import ShapeError
from pywebgpu.ir.graph import Node
from pywebgpu.ops import movement, pointwise
from pywebgpu.step_capture.free_number import Number
from pywebgpu.support.shapes import Shape
from pywebgpu.support.shapes import axis as axis_of

INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def quantile(
    x: Node, q: Node | Number, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Node:
    """The value below which a share q of a row lies; NaN in a row with a NaN.

    Shapes: (..., n, ...) with q () or (m) -> (..., ...) or (m, ..., ...).
    Raises: RuntimeError for a dtype that is not floating, a number q outside of [0, 1], an empty row.
    """
    return _quantile(x, q, dim, keepdim, interpolation, skip_nan=False)


def nanquantile(
    x: Node, q: Node | Number, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Node:
    """The quantile of what is not NaN; NaN where nothing is left."""
    return _quantile(x, q, dim, keepdim, interpolation, skip_nan=True)


def _quantile(x: Node, q: Node | Number, dim: int | None, keepdim: bool, interpolation: str, *, skip_nan: bool) -> Node:
    precision.require_floating("quantile", x)
    if interpolation not in INTERPOLATIONS:
        raise RuntimeError(f"quantile() interpolation must be one of {INTERPOLATIONS}, but got {interpolation}")
    shares = _shares(x, q)
    shape = x.spec.shape
    axis = None if dim is None else axis_of(dim, len(shape))
    if axis is None or not shape:
        rows, kept = movement.reshape(x, shape=(1, prod(shape))), (1,) * len(shape)
        lead: Shape = ()
    else:
        order = (*(a for a in range(len(shape)) if a != axis), axis)
        lead, kept = (*shape[:axis], *shape[axis + 1 :]), (*shape[:axis], 1, *shape[axis + 1 :])
        rows = movement.reshape(movement.permute(x, order=order), shape=(prod(lead), shape[axis]))
    if 0 in shape:
        raise ShapeError("quantile() input tensor must be non-empty")
    quantiles = movement.permute(_rows(rows, shares, interpolation, skip_nan=skip_nan), order=(1, 0))
    many = (shares.spec.shape[0],) if isinstance(q, Node) and q.spec.shape else ()
    return movement.reshape(quantiles, shape=(*many, *(kept if keepdim else lead)))


def _shares(x: Node, q: Node | Number) -> Node:
    """q as a vector of x's dtype."""
    if not isinstance(q, Node):
        if not 0 <= q <= 1:
            raise RuntimeError("quantile() q must be in the range [0, 1]")
        return movement.reshape(arithmetic.number(q, x.spec.dtype), shape=(1,))
    if len(q.spec.shape) > 1:
        raise ShapeError("quantile() q must be a scalar or 1D tensor")
    if q.spec.dtype is not x.spec.dtype:
        raise RuntimeError("quantile() q tensor must be same dtype as the input tensor")
    return q if q.spec.shape else movement.reshape(q, shape=(1,))


def _rows(x: Node, shares: Node, interpolation: str, *, skip_nan: bool) -> Node:
    """(rows, n) and (m) -> (rows, m)."""
    rows, n = x.spec.shape
    shape = (rows, shares.spec.shape[0])
    ordered = ordering.sort(x, -1)[0]  # NaN comes last.
    is_nan = pointwise.isnan(x)
    count = reduce.sum(pointwise.bitwise_not(is_nan), 1, True) if skip_nan else None
    last = arithmetic.like(shares, n - 1) if count is None else arithmetic.sub(arithmetic.cast(count, x.spec.dtype), 1)
    position = arithmetic.broadcast_to(arithmetic.mul(shares, last), shape)
    if skip_nan:  # The last of no element is -1.
        none = arithmetic.like(position, 0)
        position = pointwise.where(pointwise.lt(position, none), none, position)
    known = reduce.stop_gradient(position)
    low, high = pointwise.floor(known), pointwise.ceil(known)
    below, above = (scan.take_along_rows(ordered, arithmetic.cast(end, dtypes.int64)) for end in (low, high))
    match interpolation:
        case "lower":
            out = below
        case "higher":
            out = above
        case "nearest":
            out = pointwise.where(pointwise.eq(pointwise.round_(known), high), above, below)
        case _:
            share = pointwise.sub(position, low) if interpolation == "linear" else arithmetic.like(position, 0.5)
            out = elementwise.lerp(below, above, share)
    if skip_nan:
        return out
    spoiled = arithmetic.broadcast_to(reduce.any(is_nan, 1, True), shape)
    return pointwise.where(spoiled, arithmetic.like(out, float("nan")), out)
