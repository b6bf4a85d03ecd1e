"""Normalisations: subtract a mean, divide by a spread, scale and shift.

Each is row folds and pointwise work over one set of axes, in two passes (mean, then variance), so that the compiler
makes one kernel of it; no axis is moved, and no shape changes which the formula does not need.
"""

from collections.abc import Sequence
from typing import NamedTuple

from pywebgpu.composites import arithmetic, precision, reduce
from pywebgpu.composites.activation import per_channel
from pywebgpu.composites.composite_op import composite
from pywebgpu.dtypes import DType
from pywebgpu.errors import ShapeError
from pywebgpu.ir.graph import Fused, Node, Spec
from pywebgpu.ops import movement, pointwise
from pywebgpu.support.shapes import Shape
from pywebgpu.support.shapes import axes as axes_of

EPSILON = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}


class BatchStatistics(NamedTuple):
    """What batch_norm saw: the output, and mean and variance of each channel (the variance with correction 1)."""

    output: Node
    mean: Node  # (c,)
    variance: Node  # (c,)


@composite
def layer_norm(
    x: Node,
    normalized_shape: Sequence[int],
    weight: Node | None = None,
    bias: Node | None = None,
    eps: float = 1e-5,
) -> Node:
    """Scales each row of `x` to mean 0 and variance 1, then by `weight` and `bias`.

    Shapes: x (..., *normalized_shape), weight and bias normalized_shape -> that of x.
    Dtypes: floating; the statistics are float32 for half floats.
    Raises: ShapeError when the shapes do not end so; DTypeError when the dtype is not floating.
    Source: Ba, Kiros, Hinton 2016 (arXiv 1607.06450).  Against torch: the same.
    """
    axes = _trailing("layer_norm", x, normalized_shape, weight, bias)
    return _affine(_centred(x, axes, eps), weight, bias, x.spec.dtype)


@composite
def rms_norm(x: Node, normalized_shape: Sequence[int], weight: Node | None = None, eps: float | None = None) -> Node:
    """Divides each row of `x` by the root of its mean square, then scales by `weight`.

    Shapes: x (..., *normalized_shape), weight normalized_shape -> that of x.
    Dtypes: floating; the statistics are float32 for half floats. eps=None is the dtype's machine epsilon.
    Source: Zhang, Sennrich 2019 (arXiv 1910.07467).  Against torch: the same.
    """
    axes = _trailing("rms_norm", x, normalized_shape, weight, None)
    wide = precision.upcast(x)
    if eps is None:
        eps = EPSILON[wide.spec.dtype.name]
    square = reduce.row_mean(pointwise.mul(wide, wide), axes)
    out = arithmetic.mul(wide, pointwise.rsqrt(pointwise.add(square, arithmetic.like(square, eps))))
    return _affine(out, weight, None, x.spec.dtype)


def batch_norm(x: Node, weight: Node | None = None, bias: Node | None = None, eps: float = 1e-5) -> BatchStatistics:
    """Scales each channel to mean 0 and variance 1 over the batch, then by `weight` and `bias`: training.

    Shapes: x (n, c, ...), weight and bias (c,).
    Raises: ValueError when a channel has one value only; ShapeError as the shapes demand.
    Source: Ioffe, Szegedy 2015 (arXiv 1502.03167).  Against torch: the same.
    """
    if x.spec.shape == (0,):  # PyTorch takes no channels at all for a batch of nothing.
        none = pointwise.copy(x)
        return BatchStatistics(none, none, none)
    _check_channels("batch_norm", x, weight, bias)
    axes = tuple(axis for axis in range(len(x.spec.shape)) if axis != 1)
    n = reduce.count(x, axes)
    if n == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {list(x.spec.shape)}")
    out, centre, variance = standardized(precision.upcast(x), axes=axes, eps=eps)
    channels = (x.spec.shape[1],)
    unbiased = pointwise.mul(variance, arithmetic.like(variance, n / (n - 1) if n > 1 else 1))
    return BatchStatistics(
        _affine_channels(out, weight, bias, x.spec.dtype),
        movement.reshape(reduce.stop_gradient(centre), shape=channels),
        movement.reshape(reduce.stop_gradient(unbiased), shape=channels),
    )


@composite
def batch_norm_fixed(
    x: Node, mean: Node, variance: Node, weight: Node | None = None, bias: Node | None = None, eps: float = 1e-5
) -> Node:
    """Scales each channel by a given `mean` and `variance` (c,): evaluation."""
    if x.spec.shape == (0,):
        return pointwise.copy(x)
    _check_channels("batch_norm", x, weight, bias, mean, variance)
    wide = precision.upcast(x)
    mean, variance = precision.upcast(mean), precision.upcast(variance)
    factor = pointwise.rsqrt(pointwise.add(variance, arithmetic.like(variance, eps)))
    out = pointwise.mul(pointwise.sub(wide, per_channel(mean, wide)), per_channel(factor, wide))
    return _affine_channels(out, weight, bias, x.spec.dtype)


def instance_norm(x: Node, weight: Node | None = None, bias: Node | None = None, eps: float = 1e-5) -> BatchStatistics:
    """Scales each channel of each sample by itself. Shapes: x (n, c, ...), weight and bias (c,).

    Source: Ulyanov et al. 2016 (arXiv 1607.08022).  Against torch: the same.
    """
    _check_channels("instance_norm", x, weight, bias)
    axes = tuple(range(2, len(x.spec.shape)))
    n = reduce.count(x, axes)
    if n == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {list(x.spec.shape)}")
    out, centre, variance = standardized(precision.upcast(x), axes=axes, eps=eps)
    unbiased = pointwise.mul(variance, arithmetic.like(variance, n / (n - 1) if n > 1 else 1))
    over_batch = (0, *axes)
    return BatchStatistics(
        _affine_channels(out, weight, bias, x.spec.dtype),
        reduce.drop(reduce.row_mean(reduce.stop_gradient(centre), over_batch), over_batch, keepdim=False),
        reduce.drop(reduce.row_mean(reduce.stop_gradient(unbiased), over_batch), over_batch, keepdim=False),
    )


@composite
def group_norm(
    x: Node, num_groups: int, weight: Node | None = None, bias: Node | None = None, eps: float = 1e-5
) -> Node:
    """Scales groups of neighbouring channels of each sample. Shapes: x (n, c, ...), weight and bias (c,).

    Raises: ShapeError when c is not a multiple of `num_groups`.
    Source: Wu, He 2018 (arXiv 1803.08494).  Against torch: the same.
    """
    _check_channels("group_norm", x, weight, bias)
    n, c, *rest = x.spec.shape
    if num_groups <= 0 or c % num_groups:
        raise ShapeError(
            f"Expected number of channels in input to be divisible by num_groups, but got input of shape "
            f"{list(x.spec.shape)} and num_groups={num_groups}"
        )
    grouped = movement.reshape(x, shape=(n, num_groups, c // num_groups, *rest))
    out = _centred(grouped, tuple(range(2, len(rest) + 3)), eps)
    return _affine_channels(movement.reshape(out, shape=x.spec.shape), weight, bias, x.spec.dtype)


def local_response_norm(x: Node, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Node:
    """x / (k + alpha * mean of squares over `size` neighbouring channels)^beta. Shapes: x (n, c, ...)."""
    rank = len(x.spec.shape)
    if rank < 3:
        raise ValueError(f"Expected 3D or higher dimensionality input (got {rank} dimensions)")
    if 0 in x.spec.shape:
        return x
    dtype = arithmetic.floating(x)
    wide = precision.upcast(arithmetic.cast(x, dtype))
    shape = list(x.spec.shape)
    shape[1] += size - 1
    starts = tuple(size // 2 if axis == 1 else 0 for axis in range(rank))
    padded = movement.pad(pointwise.mul(wide, wide), shape=tuple(shape), starts=starts, steps=(1,) * rank)
    windows = movement.window(padded, axis=1, size=size, step=1, dilation=1)
    square = reduce.drop(reduce.row_mean(windows, (rank,)), (rank,), keepdim=False)
    if dtype is not x.spec.dtype:  # PyTorch's mean of whole numbers is cut off.
        square = pointwise.trunc(square)
    scale = pointwise.add(pointwise.mul(square, arithmetic.like(square, alpha)), arithmetic.like(square, k))
    out = pointwise.div(wide, pointwise.pow_(scale, arithmetic.like(scale, beta)))
    return arithmetic.cast(out, dtype)


def normalize(x: Node, p: float = 2.0, dim: int | Sequence[int] = 1, eps: float = 1e-12) -> Node:
    """x over its p-norm along `dim`, which counts as `eps` at least."""
    axes, wide = axes_of(dim, len(x.spec.shape)), precision.upcast(x)
    size = reduce.norm(wide, p, axes, keepdim=True)
    return arithmetic.cast(arithmetic.div(wide, at_least(size, eps)), x.spec.dtype)


def at_least(x: Node, low: float) -> Node:
    """x where x >= low, else low; the gradient goes through x where it is chosen."""
    bound = arithmetic.like(x, low)
    return pointwise.where(pointwise.lt(x, bound), bound, x)


# Parts


def _standardized(x: Node, *, axes: Shape, eps: float) -> tuple[Node, Node, Node]:
    variance, centre, centred = reduce.moments("standardized", x, axes)
    scale = pointwise.rsqrt(pointwise.add(variance, arithmetic.like(variance, eps)))
    return arithmetic.mul(centred, scale), centre, variance


def _standardized_specs(x: Spec, *, axes: Shape, eps: float) -> tuple[Spec, Spec, Spec]:
    folded = Spec(tuple([1 if axis in axes else n for axis, n in enumerate(x.shape)]), x.dtype)
    return x, folded, folded


def _standardized_vjp(
    grads: tuple[Node | None, ...], outs: tuple[Node, ...], x: Node, *, axes: Shape, eps: float
) -> tuple[Node | None]:
    """Both sums over a row are of one walk, and the rest is by element: the gradient through mean and variance apart
    would walk twice, and wait once more."""
    g, (_, centre, variance) = grads[0], outs
    if g is None:
        return (None,)
    scale = pointwise.rsqrt(pointwise.add(variance, arithmetic.like(variance, eps)))
    centred = arithmetic.sub(x, centre)
    slope = pointwise.mul(reduce.row_mean(pointwise.mul(g, centred), axes), pointwise.mul(scale, scale))
    along = arithmetic.mul(centred, slope)
    return (arithmetic.mul(arithmetic.sub(arithmetic.sub(g, reduce.row_mean(g, axes)), along), scale),)


standardized: Fused = Fused(
    "standardized",  # x -> (x - mean) / sqrt(variance + eps) over axes, and both, of size 1 there
    infer=_standardized_specs,
    fallback=_standardized,
    vjp=_standardized_vjp,
)


def _centred(x: Node, axes: Shape, eps: float) -> Node:
    """(x - mean) / sqrt(variance + eps) over `axes`; float32 for half floats."""
    return standardized(precision.upcast(x), axes=axes, eps=eps)[0]


def _affine(out: Node, weight: Node | None, bias: Node | None, dtype: DType) -> Node:
    if weight is not None:
        out = arithmetic.mul(out, precision.upcast(weight))
    if bias is not None:
        out = arithmetic.add(out, precision.upcast(bias))
    return arithmetic.cast(out, dtype)


def _affine_channels(out: Node, weight: Node | None, bias: Node | None, dtype: DType) -> Node:
    if weight is not None:
        out = arithmetic.mul(out, per_channel(precision.upcast(weight), out))
    if bias is not None:
        out = arithmetic.add(out, per_channel(precision.upcast(bias), out))
    return arithmetic.cast(out, dtype)


def _trailing(name: str, x: Node, normalized_shape: Sequence[int], weight: Node | None, bias: Node | None) -> Shape:
    """The axes of `normalized_shape` in x."""
    precision.require_floating(name, x)
    sizes, have = tuple(normalized_shape), x.spec.shape
    if not sizes:
        raise ShapeError(f"{name}: expected normalized_shape to be at least 1-dimensional, got {list(sizes)}")
    if len(have) < len(sizes) or have[len(have) - len(sizes) :] != sizes:
        raise ShapeError(
            f"Given normalized_shape={list(sizes)}, expected input with shape [*, {', '.join(map(str, sizes))}], but "
            f"got input of size {list(have)}"
        )
    for what, part in (("weight", weight), ("bias", bias)):
        if part is not None and part.spec.shape != sizes:
            raise ShapeError(
                f"{name}: expected {what} to be of same shape as normalized_shape, but got {what} of shape "
                f"{list(part.spec.shape)} and normalized_shape = {list(sizes)}"
            )
    return tuple(range(len(have) - len(sizes), len(have)))


def _check_channels(name: str, x: Node, *parts: Node | None) -> None:
    precision.require_floating(name, x)
    if len(x.spec.shape) < 2:
        raise ShapeError(f"{name}: expected at least 2 dimensions, got input of shape {list(x.spec.shape)}")
    for part in parts:
        if part is not None and part.spec.shape != (x.spec.shape[1],):
            raise ShapeError(
                f"{name}: expected weight, bias and statistics of shape ({x.spec.shape[1]},) for input of shape "
                f"{list(x.spec.shape)}, got {list(part.spec.shape)}"
            )
