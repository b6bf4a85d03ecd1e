"""Normalisations of the channels of a batch: over the batch, over each sample, over groups and over neighbours."""

from typing import NamedTuple

from pywebgpu.composites import arithmetic, normalize, precision, reduce
from pywebgpu.composites.activation import per_channel
from pywebgpu.composites.composite_op import composite
from pywebgpu.dtypes import DType
from pywebgpu.errors import ShapeError
from pywebgpu.ir.graph import Node
from pywebgpu.ops import movement, pointwise


class BatchStatistics(NamedTuple):
    """What batch_norm saw: the output, and mean and variance of each channel (the variance with correction 1)."""

    output: Node
    mean: Node  # (c,)
    variance: Node  # (c,)


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
    out, centre, variance = normalize.standardized(precision.upcast(x), axes=axes, eps=eps)
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
    out, centre, variance = normalize.standardized(precision.upcast(x), axes=axes, eps=eps)
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
    out = normalize.centred(grouped, tuple(range(2, len(rest) + 3)), eps)
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


def _affine_channels(out: Node, weight: Node | None, bias: Node | None, dtype: DType) -> Node:
    if weight is not None:
        out = arithmetic.mul(out, per_channel(precision.upcast(weight), out))
    if bias is not None:
        out = arithmetic.add(out, per_channel(precision.upcast(bias), out))
    return arithmetic.cast(out, dtype)


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
