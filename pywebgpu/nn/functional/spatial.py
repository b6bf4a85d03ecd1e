"""Work on pictures: convolutions, pooling, padding, resampling. Axes are (n, c, *space), the batch may be absent."""

from collections.abc import Callable as _Callable
from collections.abc import Sequence as _Sequence
from importlib import import_module as _import_module
from typing import Any as _Any

from pywebgpu import dtypes as _dtypes
from pywebgpu.composites import convolution as _convolution
from pywebgpu.composites import pooling as _pooling
from pywebgpu.composites import resample as _resample
from pywebgpu.nn.functional.ranks import of_each_rank as _of_each_rank
from pywebgpu.nn.functional.ranks import of_rank as _of_rank
from pywebgpu.tensor import dispatch as _dispatch
from pywebgpu.tensor import memory_format as _memory_format
from pywebgpu.tensor import outputs as _outputs
from pywebgpu.tensor import tensor as _tensor
from pywebgpu.tensor.apply import apply as _apply
from pywebgpu.tensor.apply import called as _called
from pywebgpu.tensor.methods import named_by_numpy as _named_by_numpy

_T = _tensor.Tensor
_Sizes = int | _Sequence[int]
_Pooled = _T | tuple[_T, _T]  # with where they were found
_Outputs = int | _Sequence[int | None]


def _convnd(
    input: _T,
    weight: _T,
    bias: _T | None = None,
    stride: _Sizes = 1,
    padding: _Sizes | str = 0,
    dilation: _Sizes = 1,
    groups: int = 1,
    *,
    rank: int = 2,
) -> _T:
    """Shapes: input (n, c, *space), weight (o, c / groups, *kernel), bias (o) -> (n, o, *positions)."""
    return _apply(_convolution.conv, input, weight, bias, stride, padding, dilation, groups, rank=rank)


def _conv_transposend(
    input: _T,
    weight: _T,
    bias: _T | None = None,
    stride: _Sizes = 1,
    padding: _Sizes = 0,
    output_padding: _Sizes = 0,
    groups: int = 1,
    dilation: _Sizes = 1,
    *,
    rank: int = 2,
) -> _T:
    """The gradient of convnd as a layer. Shapes: input (n, c, *space), weight (c, o / groups, *kernel), bias (o)."""
    options = stride, padding, output_padding, groups, dilation
    return _apply(_convolution.conv_transpose, input, weight, bias, *options, rank=rank)


conv1d, conv2d, conv3d = map(_named_by_numpy, _of_each_rank(_convnd))
conv_transpose1d, conv_transpose2d, conv_transpose3d = map(_named_by_numpy, _of_each_rank(_conv_transposend))


def unfold(input: _T, kernel_size: _Sizes, dilation: _Sizes = 1, padding: _Sizes = 0, stride: _Sizes = 1) -> _T:
    """(n, c, h, w) -> (n, c kernel, positions): what a kernel sees, as columns."""
    return _apply(_convolution.unfold, input, kernel_size, dilation, padding, stride)


def fold(
    input: _T,
    output_size: _Sizes,
    kernel_size: _Sizes,
    dilation: _Sizes = 1,
    padding: _Sizes = 0,
    stride: _Sizes = 1,
) -> _T:
    """(n, c kernel, positions) -> (n, c, *output_size): columns laid back and added where they overlap."""
    return _apply(_convolution.fold, input, output_size, kernel_size, dilation, padding, stride)


# Pooling


def _step(stride: _Sizes | None) -> _Sizes | None:
    """None and no numbers at all mean the kernel's size."""
    return None if stride is None or (isinstance(stride, list | tuple) and not stride) else stride


def _max_poolnd(
    input: _T,
    kernel_size: _Sizes,
    stride: _Sizes | None = None,
    padding: _Sizes = 0,
    dilation: _Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
    *,
    rank: int = 2,
) -> _Pooled:
    """The largest element of each window over the last axes; the first has the gradient.

    return_indices: also its position in the flattened axes, as int64.
    """
    function: _Callable[..., _Any] = _pooling.max_pool_with_indices if return_indices else _pooling.max_pool
    pooled: _Pooled = _apply(function, input, kernel_size, _step(stride), padding, dilation, ceil_mode, rank=rank)
    return pooled


max_pool1d, max_pool2d, max_pool3d = _of_each_rank(_max_poolnd)


def _with_indices(function: _Callable[..., _Pooled]) -> _Callable[..., tuple[_T, _T]]:
    def with_indices(*args: _Any, **options: _Any) -> tuple[_T, _T]:
        return function(*args, **{**options, "return_indices": True})  # type: ignore[return-value]

    with_indices.__name__ = with_indices.__qualname__ = f"{function.__name__}_with_indices"
    with_indices.__doc__ = f"{function.__name__} with return_indices."
    return with_indices


max_pool1d_with_indices = _with_indices(max_pool1d)
max_pool2d_with_indices = _with_indices(max_pool2d)
max_pool3d_with_indices = _with_indices(max_pool3d)


@_named_by_numpy
def avg_pool1d(
    input: _T,
    kernel_size: _Sizes,
    stride: _Sizes | None = None,
    padding: _Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> _T:
    """The mean of each window over the last axis."""
    return _avg_poolnd(input, kernel_size, stride, padding, ceil_mode, count_include_pad, rank=1)


def _avg_poolnd(
    input: _T,
    kernel_size: _Sizes,
    stride: _Sizes | None = None,
    padding: _Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
    *,
    rank: int = 2,
) -> _T:
    """The mean of each window over the last axes."""
    options = padding, ceil_mode, count_include_pad, divisor_override
    return _apply(_pooling.avg_pool, input, kernel_size, _step(stride), *options, rank=rank)


avg_pool2d, avg_pool3d = (
    _named_by_numpy(_outputs.writable(f"nn.functional.avg_pool{rank}d")(_of_rank(_avg_poolnd, rank))) for rank in (2, 3)
)


def _lp_poolnd(
    input: _T,
    norm_type: float,
    kernel_size: _Sizes,
    stride: _Sizes | None = None,
    ceil_mode: bool = False,
    *,
    rank: int = 2,
) -> _T:
    """(sum of x^p)^(1/p) over each window of the last axes."""
    return _apply(_pooling.lp_pool, input, norm_type, kernel_size, stride, ceil_mode, rank=rank)


lp_pool1d, lp_pool2d, lp_pool3d = _of_each_rank(_lp_poolnd)


def _not_empty_backward(pooled: _Any) -> _Any:
    """The result, whose gradient is refused where there are no windows."""
    values = pooled[0] if isinstance(pooled, tuple) else pooled
    if 0 in values.shape[1:] and values.requires_grad:
        values.register_hook(_refuse_empty)
    return pooled


def _refuse_empty(grad: _T) -> None:
    raise RuntimeError(
        f"Expected grad_output to have non-zero size for non-batch dimensions, but got {list(grad.shape)}"
    )


def _adaptive_avg_poolnd(input: _T, output_size: _Outputs, *, rank: int = 2) -> _T:
    """Means of `output_size` windows which cover the last axes."""
    pooled: _T = _not_empty_backward(_apply(_pooling.adaptive_avg_pool, input, output_size, rank=rank))
    return pooled


def _adaptive_max_poolnd(input: _T, output_size: _Outputs, return_indices: bool = False, *, rank: int = 2) -> _Pooled:
    """The largest elements of `output_size` windows which cover the last axes."""
    function: _Callable[..., _Any] = _pooling.adaptive_max_pool
    function = _pooling.adaptive_max_pool_with_indices if return_indices else function
    pooled: _Pooled = _not_empty_backward(_apply(function, input, output_size, rank=rank))
    return pooled


adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = _of_each_rank(_adaptive_avg_poolnd)
adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = _of_each_rank(_adaptive_max_poolnd)
adaptive_max_pool1d_with_indices = _with_indices(adaptive_max_pool1d)
adaptive_max_pool2d_with_indices = _with_indices(adaptive_max_pool2d)
adaptive_max_pool3d_with_indices = _with_indices(adaptive_max_pool3d)


# Padding and resampling


def pad(input: _T, pad: _Sequence[int], mode: str = "constant", value: float | None = None) -> _T:
    """Grows the last axes by (before, after) of the last one, then of the one before it, and so on.

    mode: "constant", "reflect", "replicate" or "circular".
    """
    padded = _apply(_resample.pad, input, tuple(pad), mode, value)
    if mode == "circular":
        padded = _memory_format.relaid(padded, None)
    kind = {"reflect": "reflection", "replicate": "replication"}.get(mode)
    return padded if kind is None else _called(padded, f"aten::{kind}_pad{len(pad) // 2}d")


def interpolate(
    input: _T,
    size: _Sizes | None = None,
    scale_factor: float | _Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> _T:
    """On another grid, by mode: "nearest", "nearest-exact", "area", "linear", "bilinear", "trilinear" or "bicubic".

    Dtypes: floating; bytes as well where PyTorch has that, by "nearest", "nearest-exact", "bilinear" and "bicubic".
    """
    takes_bytes = mode in ("nearest", "nearest-exact", "bilinear", "bicubic")
    if not input.is_floating_point() and not (takes_bytes and input.dtype is _dtypes.uint8):
        raise NotImplementedError(f"\"upsample_{mode}{input.ndim - 2}d\" not implemented for '{input.dtype.title}'")
    if antialias and not (mode in ("bilinear", "bicubic") and input.ndim == 4):
        raise ValueError(
            "Anti-alias option is restricted to bilinear and bicubic modes and requires a 4-D tensor as input"
        )
    if antialias or mode == "bicubic":
        if input.ndim != 4:
            raise NotImplementedError(f"Got {input.ndim}D input, but bicubic mode needs 4D input")
        space = tuple(input.shape[2:])
        sizes, scales = _resample.targets(space, size, scale_factor, recompute=bool(recompute_scale_factor))
        filters: _Any = _import_module("pywebgpu.nn.functional.filters")
        resized = filters.filtered(input, sizes, scales, mode, corners=bool(align_corners), antialias=antialias)
        return _called(resized, f"aten::upsample_{mode}2d" + "_aa" * antialias)
    if mode == "area" and align_corners is None:
        space = tuple(input.shape[2:])
        sizes, _ = _resample.targets(space, size, scale_factor, recompute=bool(recompute_scale_factor))
        return _apply(_pooling.adaptive_avg_pool, input, sizes, rank=len(space))
    resized = _apply(_resample.interpolate, input, size, scale_factor, mode, align_corners, recompute_scale_factor)
    return _called(resized, f"aten::upsample_{mode.replace('-', '_')}{input.ndim - 2}d")


def upsample(
    input: _T,
    size: _Sizes | None = None,
    scale_factor: float | _Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> _T:
    """torch's old name of interpolate."""
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: _T, size: _Sizes | None = None, scale_factor: float | _Sequence[float] | None = None) -> _T:
    """torch's old name of interpolate by repeating."""
    return interpolate(input, size, scale_factor, "nearest")


def upsample_bilinear(
    input: _T, size: _Sizes | None = None, scale_factor: float | _Sequence[float] | None = None
) -> _T:
    """torch's old name of interpolate by lines between the corners."""
    return interpolate(input, size, scale_factor, "bilinear", align_corners=True)


def pixel_shuffle(input: _T, upscale_factor: int) -> _T:
    """(..., c r^2, h, w) -> (..., c, h r, w r)."""
    return _apply(_resample.pixel_shuffle, input, upscale_factor)


def pixel_unshuffle(input: _T, downscale_factor: int) -> _T:
    """(..., c, h r, w r) -> (..., c r^2, h, w)."""
    return _apply(_resample.pixel_unshuffle, input, downscale_factor)


def channel_shuffle(input: _T, groups: int) -> _T:
    """(n, g c, ...) with channel (i, j) of (g, c) at (j, i)."""
    return _apply(_resample.channel_shuffle, input, groups)


globals().update(_dispatch.all_public(globals(), __name__))
