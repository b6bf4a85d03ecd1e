"""Folding axes: sums, means, extremes, norms, and the row functions made of them.

The ops fold an axis to size 1 and keep the rank; here a folded axis goes, unless `keepdim` keeps it. Names, defaults
and dtypes are torch's, so `sum`, `max` and the like hide Python's own inside this module.
"""

from collections.abc import Sequence
from math import inf, nan
from math import prod as product

from pywebgpu import dtypes
from pywebgpu.composites import arithmetic, precision
from pywebgpu.composites.composite_op import composite
from pywebgpu.dtypes import DType, Kind
from pywebgpu.errors import DTypeError, RangeError, ShapeError
from pywebgpu.ir.graph import Fused, Node, Reduction, Spec, thread_state
from pywebgpu.ops import extremes, movement, pointwise, products, reduction
from pywebgpu.support.shapes import Shape
from pywebgpu.support.shapes import axes as axes_of
from pywebgpu.support.shapes import axis as axis_of

Dims = int | Sequence[int] | None


def stop_gradient(x: Node) -> Node:
    """The same value; no gradient flows through it."""
    if not x.requires:
        return x
    before, thread_state.grad = thread_state.grad, False
    try:
        return movement.alias(x)
    finally:
        thread_state.grad = before


def peak(x: Node, axes: Shape) -> Node:
    """The largest element over `axes`, which stay with size 1; no gradient flows through it."""
    precision.require_order("max", x)
    before, thread_state.grad = thread_state.grad, False
    try:
        return fold(reduction.max_, x, axes)
    finally:
        thread_state.grad = before


def drop(x: Node, axes: Shape, *, keepdim: bool) -> Node:
    """Without the folded axes `axes`, unless `keepdim`."""
    if keepdim or not axes:
        return x
    return movement.reshape(x, shape=tuple(n for axis, n in enumerate(x.spec.shape) if axis not in axes))


def fold(op: Reduction, x: Node, axes: Shape) -> Node:
    """op over `axes`, which stay with size 1."""
    return op(x, axes) if axes else x


def count(x: Node, axes: Shape) -> int:
    return product([x.spec.shape[axis] for axis in axes])


def picked(x: Node, index: Node, axis: int) -> Node:
    """x[..., index, ...] along `axis`, which stays with size 1; `index` has x's shape but for size 1 there.

    One pass over the row and no gather, so it joins the other folds of the row in one kernel. The gradient goes to the
    picked element alone.  An index out of range picks 0.
    """
    positions = pointwise.iota(spec=Spec(x.spec.shape, index.spec.dtype), axis=axis)
    hit = pointwise.eq(positions, arithmetic.broadcast_to(index, x.spec.shape))
    return reduction.sum_(pointwise.where(hit, x, arithmetic.like(x, 0)), (axis,))


# Sums and products


def sum(x: Node, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None) -> Node:
    """The sum over `dim` (None: all axes); of whole numbers and bools in int64."""
    if dtype is None and x.spec.dtype.kind is Kind.FLOAT:
        return float_sum(x, dim, keepdim)
    axes = axes_of(dim, len(x.spec.shape))
    x = arithmetic.cast(x, dtype or _summed(x.spec.dtype))
    return drop(fold(reduction.sum_, x, axes), axes, keepdim=keepdim)


@composite
def float_sum(x: Node, dim: Dims, keepdim: bool) -> Node:
    """`sum` of floats, whose range nobody asks for."""
    axes = axes_of(dim, len(x.spec.shape))
    return drop(fold(reduction.sum_, x, axes), axes, keepdim=keepdim)


def nansum(x: Node, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None) -> Node:
    """The sum over `dim`, where NaN counts as 0."""
    if x.spec.dtype.kind is Kind.FLOAT:
        x = pointwise.where(pointwise.isnan(x), arithmetic.like(x, 0), x)
    return sum(x, dim, keepdim, dtype=dtype)


@composite
def mean(x: Node, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None) -> Node:
    """The mean over `dim` (None: all axes), summed in float32 for half floats.

    Raises: DTypeError when the dtype is not floating.
    """
    dtype = dtype or x.spec.dtype
    if dtype.kind is not Kind.FLOAT:
        raise DTypeError(
            "mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. "
            f"Got: {dtype.name}"
        )
    axes = axes_of(dim, len(x.spec.shape))
    out = row_mean(precision.upcast(arithmetic.cast(x, dtype)), axes)
    return drop(arithmetic.cast(out, dtype), axes, keepdim=keepdim)


def row_mean(x: Node, axes: Shape) -> Node:
    """The mean over `axes`, which stay with size 1."""
    return _over(fold(reduction.sum_, x, axes), count(x, axes))


def nanmean(x: Node, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None) -> Node:
    """The mean over `dim` of what is not NaN."""
    precision.require_floating("nanmean", x)
    valid = pointwise.bitwise_not(pointwise.isnan(x))
    n = sum(valid, dim, keepdim)
    total = nansum(x, dim, keepdim, dtype=dtype)
    return arithmetic.div(total, arithmetic.cast(n, total.spec.dtype))


def prod(x: Node, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None) -> Node:
    """The product over `dim` (None: all axes); of whole numbers and bools in int64."""
    axes = axes_of(dim, len(x.spec.shape))
    x = arithmetic.cast(x, dtype or _summed(x.spec.dtype))
    return drop(fold(products.prod_, x, axes), axes, keepdim=keepdim)


def count_nonzero(x: Node, dim: Dims = None) -> Node:
    """How many elements are not 0, as int64."""
    return sum(arithmetic.cast(x, dtypes.bool_), dim)


def any(x: Node, dim: Dims = None, keepdim: bool = False) -> Node:
    """Whether some element is not 0: bool, or uint8 of uint8."""
    return _truth(x, dim, keepdim, op=reduction.max_, nothing=False)


def all(x: Node, dim: Dims = None, keepdim: bool = False) -> Node:
    """Whether no element is 0: bool, or uint8 of uint8."""
    return _truth(x, dim, keepdim, op=reduction.min_, nothing=True)


# Extremes


def amax(x: Node, dim: Dims = None, keepdim: bool = False, *, name: str = "amax") -> Node:
    """The largest element over `dim` (None: all axes); equal ones share the gradient.

    Raises: where there is no element, RangeError with `dim` and ShapeError without.
    """
    return _extreme(reduction.max_, x, dim, keepdim, name)


def amin(x: Node, dim: Dims = None, keepdim: bool = False, *, name: str = "amin") -> Node:
    """The smallest element over `dim` (None: all axes); equal ones share the gradient. Raises as amax."""
    return _extreme(reduction.min_, x, dim, keepdim, name)


def shared(value: Node, x: Node) -> Node:
    """`value`, an element of all of x; those that equal it, or are NaN as it is, share its gradient evenly."""
    if not (x.requires and thread_state.grad):
        return value
    known, own = stop_gradient(value), stop_gradient(x)
    hit = pointwise.bitwise_or(
        pointwise.eq(own, known), pointwise.bitwise_and(pointwise.isnan(own), pointwise.isnan(known))
    )
    axes = tuple(range(len(x.spec.shape)))
    n = fold(reduction.sum_, arithmetic.cast(hit, x.spec.dtype), axes)
    parts = arithmetic.div(pointwise.where(hit, x, arithmetic.like(x, 0)), n)
    return pointwise.graft(known, drop(fold(reduction.sum_, parts, axes), axes, keepdim=False))


def largest(x: Node) -> Node:
    """The largest of all elements."""
    return shared(amax(x, name="max"), x)


def smallest(x: Node) -> Node:
    """The smallest of all elements."""
    return shared(amin(x, name="min"), x)


def max(x: Node, dim: int, keepdim: bool = False) -> tuple[Node, Node]:
    """The largest element along `dim`, and where the first of them is (int64); the gradient goes there."""
    return _first(extremes.largest, x, dim, keepdim, "max")


def min(x: Node, dim: int, keepdim: bool = False) -> tuple[Node, Node]:
    """The smallest element along `dim`, and where the first of them is (int64); the gradient goes there."""
    return _first(extremes.smallest, x, dim, keepdim, "min")


def aminmax(x: Node, *, dim: int | None = None, keepdim: bool = False) -> tuple[Node, Node]:
    """Smallest and largest element; equal ones share the gradient."""
    return amin(x, dim, keepdim, name="aminmax"), amax(x, dim, keepdim, name="aminmax")


def argmax(x: Node, dim: int | None = None, keepdim: bool = False) -> Node:
    """Where the first of the largest elements is (int64): along `dim`, or with None in the flattened input."""
    return _arg(reduction.argmax, x, dim, keepdim)


def argmin(x: Node, dim: int | None = None, keepdim: bool = False) -> Node:
    """Where the first of the smallest elements is (int64): along `dim`, or with None in the flattened input."""
    return _arg(reduction.argmin, x, dim, keepdim)


# Spread


@composite
def var(x: Node, dim: Dims = None, *, correction: float = 1, keepdim: bool = False) -> Node:
    """The variance over `dim`, in two passes: the mean, then the squares around it over count - correction."""
    return var_mean(x, dim, correction=correction, keepdim=keepdim)[0]


@composite
def std(x: Node, dim: Dims = None, *, correction: float = 1, keepdim: bool = False) -> Node:
    """The root of the variance; its gradient is 0 where it is 0."""
    return std_mean(x, dim, correction=correction, keepdim=keepdim)[0]


def var_mean(x: Node, dim: Dims = None, *, correction: float = 1, keepdim: bool = False) -> tuple[Node, Node]:
    axes = axes_of(dim, len(x.spec.shape))
    squares, centre, _ = moments("var", x, axes, correction=correction)
    return tuple(drop(arithmetic.cast(y, _of(x, y)), axes, keepdim=keepdim) for y in (squares, centre))  # type: ignore[return-value]


def std_mean(x: Node, dim: Dims = None, *, correction: float = 1, keepdim: bool = False) -> tuple[Node, Node]:
    axes = axes_of(dim, len(x.spec.shape))
    squares, centre, _ = moments("std", x, axes, correction=correction)
    return tuple(drop(arithmetic.cast(y, _of(x, y)), axes, keepdim=keepdim) for y in (root(squares), centre))  # type: ignore[return-value]


def _of(x: Node, moment: Node) -> DType:
    """The dtype of a moment of x: a variance of complex numbers is real."""
    return moment.spec.dtype if x.spec.dtype.part is not None else x.spec.dtype


def moments(name: str, x: Node, axes: Shape, *, correction: float = 0) -> tuple[Node, Node, Node]:
    """Variance and mean over `axes`, which stay with size 1, and x without its mean; float32 for half floats."""
    if x.spec.dtype.kind is not Kind.FLOAT:
        raise DTypeError(f"{name}: only supports floating point dtypes, got {x.spec.dtype}")
    x = precision.upcast(x)
    centre = row_mean(x, axes)
    centred = arithmetic.sub(x, centre)
    degrees = count(x, axes) - correction
    squares = fold(reduction.sum_, _squares(centred), axes)
    return _over(squares, degrees if degrees > 0 else 0), centre, centred


def _squares(x: Node) -> Node:
    """|x|^2"""
    if x.spec.dtype.part is None:
        return pointwise.mul(x, x)
    re, im = arithmetic.parts().real(x), arithmetic.parts().imag(x)
    return pointwise.add(pointwise.mul(re, re), pointwise.mul(im, im))


def root(x: Node) -> Node:
    """The square root, whose gradient is 0 at 0."""
    zero = pointwise.eq(x, arithmetic.like(x, 0))
    return pointwise.where(zero, arithmetic.like(x, 0), pointwise.sqrt(pointwise.where(zero, arithmetic.like(x, 1), x)))


def norm(
    x: Node, p: float | str | None = 2, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Node:
    """(sum of |x|^p)^(1/p) over `dim`; p may be inf (largest), -inf (smallest) or 0 (how many are not 0).

    Dtypes: floating; half floats are summed in float32.
    Raises: DTypeError for other dtypes; ShapeError for p="nuc".  Against torch: the same, gradients at 0 included.
    """
    if isinstance(p, str) and p != "fro":
        raise ShapeError(f"norm: p={p!r} needs singular values, which are not computed here; use p='fro' or a number")
    if dtype is not None:
        x = arithmetic.cast(x, dtype)
    if x.spec.dtype.kind is not Kind.FLOAT:
        raise DTypeError(f"norm: Expected a floating point tensor as input. Got {x.spec.dtype.name}")
    power = 2.0 if p is None or isinstance(p, str) else float(p)
    axes = axes_of(dim, len(x.spec.shape))
    if x.spec.dtype.part is not None:
        x = arithmetic.parts().modulus(x)
    out = arithmetic.cast(_norm(precision.upcast(x), power, axes), x.spec.dtype)
    return drop(out, axes, keepdim=keepdim)


def _norm(x: Node, p: float, axes: Shape) -> Node:
    if p == 2:
        return root(fold(reduction.sum_, pointwise.mul(x, x), axes))
    if p == 0:
        some = pointwise.where(arithmetic.cast(x, dtypes.bool_), arithmetic.like(x, 1), arithmetic.like(x, 0))
        return fold(reduction.sum_, pointwise.unmoved(some, x), axes)
    size = pointwise.abs_(x)
    if p == 1:
        return fold(reduction.sum_, size, axes)
    if p < 0:
        _require_some("linalg.vector_norm", x, axes, is_given=True)
    if p in (inf, -inf):
        return _extreme(reduction.max_ if p > 0 else reduction.min_, size, axes, True, "norm")
    zero = pointwise.eq(size, arithmetic.like(size, 0))
    some = pointwise.pow_(pointwise.where(zero, arithmetic.like(size, 1), size), arithmetic.like(size, p))
    at_zero = arithmetic.like(size, 0.0 if p > 0 else inf)
    total = fold(reduction.sum_, pointwise.where(zero, at_zero, some), axes)
    none = pointwise.eq(total, arithmetic.like(total, 0))
    powered = pointwise.pow_(pointwise.where(none, arithmetic.like(total, 1), total), arithmetic.like(total, 1 / p))
    return pointwise.where(none, arithmetic.like(total, 0.0 if p > 0 else inf), powered)  # Of infinities alone.


# Rows of exponentials


@composite
def logsumexp(x: Node, dim: Dims, keepdim: bool = False) -> Node:
    """log(sum(exp(x))) over `dim`, shifted by the largest element."""
    if isinstance(dim, Sequence) and not dim and x.spec.shape:
        raise ShapeError(f"logsumexp(): Expected reduction dim to be specified for an input of shape {x.spec.shape}")
    axes = axes_of(dim, len(x.spec.shape))
    dtype = arithmetic.floating(x)
    x = precision.upcast(arithmetic.cast(x, dtype))
    if count(x, axes) == 0:
        out = pointwise.log(fold(reduction.sum_, x, axes))
        return drop(arithmetic.cast(out, dtype), axes, keepdim=keepdim)
    largest = peak(x, axes)
    largest = pointwise.where(pointwise.isinf(largest), arithmetic.like(largest, 0), largest)
    total = fold(reduction.sum_, pointwise.exp(arithmetic.sub(x, largest)), axes)
    out = pointwise.add(pointwise.log(total), largest)
    return drop(arithmetic.cast(out, dtype), axes, keepdim=keepdim)


def shifted_exponentials(x: Node, axis: int) -> tuple[Node, Node, Node]:
    """x - max(x), its exponential, and the sum of that along `axis`, which stays with size 1."""
    shifted = arithmetic.sub(x, peak(x, (axis,)))
    powers = pointwise.exp(shifted)
    return shifted, powers, reduction.sum_(powers, (axis,))


@composite
def softmax(x: Node, dim: int, *, dtype: DType | None = None) -> Node:
    """exp(x) over its sum along `dim`, shifted by the largest element; half floats are computed in float32."""
    x, axis, out = _row("softmax", x, dim, dtype)
    if x.spec.shape and 0 not in x.spec.shape:
        _, powers, total = shifted_exponentials(x, axis)
        x = arithmetic.div(powers, total)
    elif not x.spec.shape:
        x = pointwise.exp(pointwise.sub(x, x))
    return arithmetic.cast(x, out)


@composite
def log_softmax(x: Node, dim: int, *, dtype: DType | None = None) -> Node:
    """x - logsumexp(x) along `dim`; half floats are computed in float32."""
    x, axis, out = _row("log_softmax", x, dim, dtype)
    if x.spec.shape and 0 not in x.spec.shape:
        shifted, _, total = shifted_exponentials(x, axis)
        x = arithmetic.sub(shifted, pointwise.log(total))
    elif not x.spec.shape:
        x = pointwise.sub(x, x)
    return arithmetic.cast(x, out)


# Parts


def _summed(dtype: DType) -> DType:
    return dtype if dtype.kind is Kind.FLOAT else dtypes.int64


def _over(total: Node, n: float) -> Node:
    if n == 0 and total.spec.dtype.part is None:  # A driver that knows the total to be 0 takes 0 / 0 for 0.
        above = pointwise.gt(total, arithmetic.like(total, 0))
        return pointwise.mul(total, pointwise.where(above, arithmetic.like(total, inf), arithmetic.like(total, nan)))
    return pointwise.div(total, arithmetic.like(total, n))


def _row(name: str, x: Node, dim: int, dtype: DType | None) -> tuple[Node, int, DType]:
    """The input in the dtype to compute in, the axis, and the dtype of the result."""
    if dtype is not None:
        x = arithmetic.cast(x, dtype)
    if 0 not in x.spec.shape:  # Of no elements torch asks for no dtype.
        precision.require_floating(name, x)
    return precision.upcast(x), axis_of(dim, len(x.spec.shape)), x.spec.dtype


def _truth(x: Node, dim: Dims, keepdim: bool, *, op: Reduction, nothing: bool) -> Node:
    axes = () if dim in ((), []) else axes_of(dim, len(x.spec.shape))  # No axes are all axes elsewhere alone.
    result = dtypes.uint8 if x.spec.dtype is dtypes.uint8 else dtypes.bool_
    x = arithmetic.cast(arithmetic.cast(x, dtypes.bool_), result)
    if axes and count(x, axes) == 0:
        shape = tuple(1 if axis in axes else n for axis, n in enumerate(x.spec.shape))
        return drop(pointwise.full(nothing, Spec(shape, result)), axes, keepdim=keepdim)
    return drop(fold(op, x, axes), axes, keepdim=keepdim)


def _extreme(op: Reduction, x: Node, dim: Dims, keepdim: bool, name: str) -> Node:
    precision.require_order(name, x)
    axes = axes_of(dim, len(x.spec.shape))
    _require_some(name, x, axes, is_given=dim is not None)
    return drop(fold(op, x, axes), axes, keepdim=keepdim)


def _require_some(name: str, x: Node, axes: Shape, *, is_given: bool, error: type[Exception] = ShapeError) -> None:
    if count(x, axes):
        return
    if not is_given:
        raise error(
            f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with "
            f"the 'dim' argument (input shape {x.spec.shape})."
        )
    empty = next(axis for axis in axes if x.spec.shape[axis] == 0)
    raise RangeError(f"{name}(): Expected reduction dim {empty} to have non-zero size, got shape {x.spec.shape}.")


def _first(op: Fused, x: Node, dim: int, keepdim: bool, name: str) -> tuple[Node, Node]:
    precision.require_order(name, x)
    axis = axis_of(dim, len(x.spec.shape))
    if not x.spec.shape:
        return movement.alias(x), pointwise.full(0, Spec((), dtypes.int64))
    _require_some(name, x, (axis,), is_given=True)
    is_float = x.spec.dtype.kind is Kind.FLOAT  # The range of whole numbers is known of the ops that this is made of.
    value, index = op(x, axes=(axis,)) if is_float else op.fallback(x, axes=(axis,))
    return drop(value, (axis,), keepdim=keepdim), drop(index, (axis,), keepdim=keepdim)


def _arg(op: Reduction, x: Node, dim: int | None, keepdim: bool) -> Node:
    if isinstance(dim, Sequence):
        raise TypeError(f"{op.name}(): argument 'dim' must be int, not {type(dim).__name__}")
    precision.refuse_bool(op.name, x)
    precision.require_order(op.name, x)
    axes = axes_of(dim, len(x.spec.shape))
    _require_some(op.name, x, axes, is_given=dim is not None, error=RangeError)
    if not axes:
        return pointwise.full(0, Spec((), dtypes.int64))
    return drop(op(x, axes), axes, keepdim=keepdim)
