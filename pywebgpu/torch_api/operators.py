"""PyTorch's operators under the names that its own library has for them: native_layer_norm, segment_reduce …

Most are what nn.functional calls, with what a gradient needs as further results.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, overload

from pywebgpu import dtypes, linalg
from pywebgpu.autograd.function import Function, FunctionCtx
from pywebgpu.nn import functional
from pywebgpu.nn.functional import filters
from pywebgpu.support import shapes
from pywebgpu.support.closed_types import contiguous_format
from pywebgpu.tensor import create, dispatch, functions, outputs, random
from pywebgpu.tensor.memory_format import laid_out, of_order, relaid, suggested
from pywebgpu.tensor.methods import named_by_numpy
from pywebgpu.tensor.tensor import Tensor

Maybe = Tensor | None


def slice_(input: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor:
    """input[start:end:step] along an axis."""
    part: Tensor = input.movedim(dim, 0)[start:end:step].movedim(0, dim)
    return part


def slice_copy(input: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor:
    """As slice_, with memory of its own."""
    return slice_(input, dim, start, end, step).clone(memory_format=contiguous_format)


def get_device(input: Tensor) -> int:
    """The number of a tensor's device; -1 of cpu."""
    return input.get_device()


def _shape_as_tensor(self: Tensor) -> Tensor:
    """The sizes of a tensor's axes. Result: int64 of shape (self.dim(),) on the host."""
    return create.tensor(list(self.shape), dtype=dtypes.int64, device="cpu")


def _cast_Float(self: Tensor, non_blocking: bool = False) -> Tensor:
    """float()."""
    return self.float()


def _cast_Int(self: Tensor, non_blocking: bool = False) -> Tensor:
    """int()."""
    return self.int()


def _cast_Long(self: Tensor, non_blocking: bool = False) -> Tensor:
    """long()."""
    return self.long()


@dispatch.public
def _assert(condition: object, message: str) -> None:
    """As `assert`; graphs keep it."""
    assert condition, message


# Norms and dropout under older names


def frobenius_norm(input: Tensor, dim: int | Sequence[int] = (), keepdim: bool = False) -> Tensor:
    """The root of the sum of squares over one or two axes; over none, of all elements."""
    return linalg.vector_norm(input, 2, dim or None, keepdim)


@outputs.writable()
def nuclear_norm(input: Tensor, dim: Sequence[int] = (-2, -1), keepdim: bool = False) -> Tensor:
    """The sum of the singular values of matrices, which lie along two axes."""
    return linalg.matrix_norm(input, "nuc", tuple(dim), keepdim)


def dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """dropout in place."""
    return functional.dropout(input, p, train, inplace=True)


def alpha_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """alpha_dropout in place."""
    return functional.alpha_dropout(input, p, train, inplace=True)


def feature_alpha_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """alpha_dropout of whole channels, in place."""
    return functional.feature_alpha_dropout(input, p, train, inplace=True)


def feature_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """dropout of whole channels of (n, c, ...)."""
    return functional.dropout3d(input.reshape(*input.shape[:2], -1, 1, 1), p, train).reshape(input.shape)


def feature_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """feature_dropout in place."""
    return input.copy_(feature_dropout(input, p, train))


# Normalization


def _statistics(x: Tensor, axes: Sequence[int], eps: float) -> tuple[Tensor, Tensor]:
    """Mean and the inverse of the standard deviation."""
    wide = x.float() if x.dtype.itemsize == 2 else x
    return wide.mean(axes, keepdim=True), wide.var(axes, correction=0, keepdim=True).add(eps).rsqrt()


def _scaled(x: Tensor, weight: Maybe, bias: Maybe) -> Tensor:
    x = x if weight is None else x * weight
    return x if bias is None else x + bias


def _normal(x: Tensor, axes: Sequence[int], eps: float) -> Tensor:
    mean, rstd = _statistics(x, axes, eps)
    return (x - mean) * rstd


@named_by_numpy
def native_layer_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Maybe, bias: Maybe, eps: float
) -> tuple[Tensor, ...]:
    """layer_norm, mean, inverse of the standard deviation."""
    shape = tuple(normalized_shape)
    if not shape or tuple(input.shape[-len(shape) :]) != shape:
        raise RuntimeError(
            f"Given normalized_shape={list(shape)}, expected input with shape [*, {str(list(shape))[1:-1]}], but got "
            f"input of size{list(input.shape)}: it is to be at least 1-dimensional"
        )
    for name, part in (("weight", weight), ("bias", bias)):
        if part is not None and tuple(part.shape) != shape:
            raise RuntimeError(f"Expected {name} to be of same shape as normalized_shape, but got {list(part.shape)}")
    axes = list(range(-len(shape), 0))
    mean, rstd = _statistics(input.detach(), axes, eps)
    out = laid_out(_scaled(_normal(input, axes, eps), weight, bias).to(input.dtype), None)
    return out, mean.to(input.dtype), rstd.to(input.dtype)


@named_by_numpy
def native_group_norm(
    input: Tensor, weight: Maybe, bias: Maybe, N: int, C: int, HxW: int, group: int, eps: float
) -> tuple[Tensor, ...]:
    """group_norm, mean, inverse of the standard deviation. Shapes: input (N, C, …) of N * C * HxW elements."""
    for name, part in (("weight", weight), ("bias", bias)):
        if part is not None and tuple(part.shape) != (C,):
            raise RuntimeError(
                f"Expected {name} to be a vector of size equal to the number of channels in input, but got {name} of "
                f"shape {list(part.shape)} and input of shape {list(input.shape)}"
            )
    grouped = input.reshape(N, group, C // group * HxW)
    mean, rstd = _statistics(grouped, (-1,), eps)
    shape = (1, C, *(1 for _ in range(input.ndim - 2)))
    scale, shift = (None if part is None else part.reshape(shape) for part in (weight, bias))
    out = _scaled(_normal(grouped, (-1,), eps).reshape(input.shape), scale, shift)
    return out.to(input.dtype), mean.squeeze(-1).to(input.dtype), rstd.squeeze(-1).to(input.dtype)


@named_by_numpy
@outputs.writable()
def native_batch_norm(
    input: Tensor,
    weight: Maybe,
    bias: Maybe,
    running_mean: Maybe,
    running_var: Maybe,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, ...]:
    """batch_norm, and while training mean and inverse of the standard deviation."""
    axes = [axis for axis in range(input.ndim) if axis != 1]
    saved = [part.flatten().to(input.dtype) for part in _statistics(input.detach(), axes, eps)] if training else None
    out = functional.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)
    return out, *(saved or (input.new_empty(0), input.new_empty(0)))


@overload
def _native_batch_norm_legit(
    input: Tensor,
    weight: Maybe,
    bias: Maybe,
    running_mean: Tensor,
    running_var: Tensor,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, ...]: ...
@overload
def _native_batch_norm_legit(
    input: Tensor, weight: Maybe, bias: Maybe, training: bool, momentum: float, eps: float
) -> tuple[Tensor, ...]: ...
@named_by_numpy
def _native_batch_norm_legit(
    input: Tensor, weight: Maybe, bias: Maybe, *arguments: Any, **options: Any
) -> tuple[Tensor, ...]:
    """native_batch_norm, with running_mean and running_var or (no_stats) without both."""
    has_stats = "running_mean" in options or isinstance(next(iter(arguments), None), Tensor)
    function = native_batch_norm if has_stats else _native_batch_norm_no_stats
    return function(input, weight, bias, *arguments, **options)


def _native_batch_norm_no_stats(
    input: Tensor, weight: Maybe, bias: Maybe, training: bool, momentum: float, eps: float
) -> tuple[Tensor, ...]:
    return native_batch_norm(input, weight, bias, None, None, training, momentum, eps)


def _batch_norm_with_update(
    input: Tensor,
    weight: Maybe,
    bias: Maybe,
    running_mean: Tensor,
    running_var: Tensor,
    momentum: float,
    eps: float,
) -> tuple[Tensor, ...]:
    normalized = native_batch_norm(input, weight, bias, running_mean, running_var, True, momentum, eps)
    return *normalized, input.new_empty(0, dtype=dtypes.uint8)


# Masks and softmax


def native_dropout(input: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """dropout and what it kept."""
    if train is False or p == 0:
        return input.clone(), create.ones(input.shape, dtype=dtypes.bool_, device=input.device)
    kept = random.rand_like(input.detach().float()) >= p if p < 1 else input.new_zeros(input.shape).bool()
    return native_dropout_backward(input, kept, 0.0 if p == 1 else 1 / (1 - p)), kept


def native_dropout_backward(grad_output: Tensor, mask: Tensor, scale: float) -> Tensor:
    return grad_output * (mask.to(grad_output.dtype) * scale)


def _softmax_backward_data(grad_output: Tensor, output: Tensor, dim: int, input_dtype: dtypes.DType) -> Tensor:
    if grad_output.shape != output.shape:
        raise RuntimeError(
            f"Expected tensor for argument #1 'grad' to have same size as tensor for argument #2 'output'; but "
            f"{list(grad_output.shape)} does not equal {list(output.shape)}"
        )
    product = grad_output * output
    return laid_out((product - output * product.sum(dim, keepdim=True)).to(input_dtype), None)


def _safe_softmax(input: Tensor, dim: int, dtype: dtypes.DType | None = None) -> Tensor:
    """softmax; a row of -inf alone becomes 0."""
    x = input if dtype is None else input.to(dtype)
    x = x if x.dtype.is_floating_point else x.to(dtypes.default())
    empty = (x == float("-inf")).all(dim, keepdim=True)
    return x.masked_fill(empty, 0.0).softmax(dim).masked_fill(empty, 0.0)


# By number


def _held(input: Tensor, mask: Tensor, indices: Sequence[Maybe]) -> tuple[Any, ...]:
    """Numbers that are none where the mask is False, held inside."""
    return tuple(
        slice(None) if index is None else index.clamp(0, max(n - 1, 0))
        for index, n in zip(indices, input.shape, strict=False)
    )


@named_by_numpy
def _unsafe_masked_index(input: Tensor, mask: Tensor, indices: Sequence[Maybe], fill: float) -> Tensor:
    picked: Tensor = input[_held(input, mask, indices)]
    return picked.masked_fill(mask.logical_not(), fill)


@named_by_numpy
def _unsafe_masked_index_put_accumulate(
    input: Tensor, mask: Tensor, indices: Sequence[Maybe], values: Tensor
) -> Tensor:
    return input.index_put(_held(input, mask, indices), values.masked_fill(mask.logical_not(), 0), accumulate=True)


def max_pool2d_with_indices_backward(
    grad_output: Tensor,
    self: Tensor,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool,
    indices: Tensor,
) -> Tensor:
    flat = self.new_zeros(self.shape).flatten(-2)
    unpooled = flat.scatter_add(-1, indices.flatten(-2), grad_output.flatten(-2)).reshape(self.shape)
    order = suggested(self)
    return unpooled if order is None else relaid(unpooled, of_order(tuple(self.shape), order))


def _chunk_cat(tensors: Sequence[Tensor], dim: int, num_chunks: int, *, out: Maybe = None) -> Tensor:
    """Each tensor in so many parts along an axis, the last filled with 0; parts of one number are joined."""
    if not tensors or num_chunks < 1:
        raise RuntimeError("_chunk_cat expects a non-empty input tensor list and num_chunks greater than 0")
    first = tensors[0]
    axis = shapes.axis(dim, first.ndim)
    parts = []
    for x in tensors:
        if x.numel() == 0 or x.dtype is not first.dtype or x.device != first.device:
            raise RuntimeError("_chunk_cat expects non-empty tensors of one dtype and device")
        if x.ndim <= axis or x.shape[:axis] != first.shape[:axis]:
            raise RuntimeError("_chunk_cat expects same sizes of 0,...,dim-1 dimensions")
        rows = math.ceil(x.shape[axis] / num_chunks) * num_chunks
        flat = x.reshape(*x.shape[:axis], x.shape[axis], math.prod(x.shape[axis + 1 :]))
        filled = functional.pad(flat, (0, 0, 0, rows - x.shape[axis]))
        parts.append(filled.reshape(*x.shape[:axis], num_chunks, -1))
    return functions.cat(parts, axis + 1, out=out)


_REDUCED = {
    "sum": ("sum", 0.0),
    "mean": ("sum", 0.0),
    "prod": ("prod", 1.0),
    "max": ("amax", 0.0),
    "min": ("amin", 0.0),
}


def _segments(data: Tensor, lengths: Maybe, offsets: Maybe, *, unsafe: bool) -> tuple[Tensor, Tensor]:
    """How long each segment is, and where it ends."""
    if lengths is None and offsets is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    if lengths is None:
        assert offsets is not None
        return offsets.diff(dim=-1), offsets.narrow(-1, 1, offsets.shape[-1] - 1)
    if not unsafe and (lengths < 0).any():
        raise RuntimeError("lengths contains negative value!")
    if not unsafe and (lengths.sum(-1) != data.shape[lengths.ndim - 1]).any():
        raise RuntimeError(
            "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when "
            "!unsafe."
        )
    return lengths, lengths.cumsum(-1)


def segment_reduce(
    data: Tensor,
    reduce: str,
    *,
    lengths: Maybe = None,
    indices: Maybe = None,
    offsets: Maybe = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: float | None = None,
) -> Tensor:
    """Rows combined that lie beside each other, in groups of the given lengths or between the given offsets."""
    if reduce not in _REDUCED:
        raise RuntimeError(f"segment_reduce: reduce is one of {', '.join(_REDUCED)}, not {reduce!r}")
    if indices is not None:
        raise RuntimeError("segment_reduce(): indices based reduction is not supported yet.")
    lengths, ends = _segments(data, lengths, offsets, unsafe=unsafe)
    row_axis, count = shapes.axis(axis, data.ndim), lengths.shape[-1]
    position = create.arange(data.shape[row_axis], device=data.device)
    # A row belongs to as many groups as have ended before it; one after the last goes to a group that is dropped.
    group = (position.unsqueeze(-1) >= ends.unsqueeze(-2)).sum(-1)
    rest = (1,) * (data.ndim - group.ndim)
    how, start = _REDUCED[reduce]
    if reduce in ("max", "min"):
        start = float("-inf") if reduce == "max" else float("inf")
    shape = [*data.shape[:row_axis], count + 1, *data.shape[row_axis + 1 :]]
    initials = data.new_full(shape, start if initial is None else initial)
    number = group.reshape(*group.shape, *rest).expand(data.shape)
    if reduce in ("max", "min"):
        folded = initials.scatter_reduce(row_axis, number, data.detach(), how).narrow(row_axis, 0, count)
        initials = _Extreme.apply(*(part.movedim(row_axis, 0) for part in (data, folded, number)))
        return initials.movedim(0, row_axis).contiguous()  # type: ignore[no-any-return]
    if reduce == "prod":
        return _product(initials, row_axis, number, data).narrow(row_axis, 0, count).contiguous()
    folded = initials.scatter_reduce(row_axis, number, data, how).narrow(row_axis, 0, count).contiguous()
    if reduce != "mean":
        return folded
    sizes = lengths.reshape(*lengths.shape, *rest)
    empty = float("nan") if initial is None else initial
    return functions.where(sizes == 0, empty, folded / sizes.clamp_min(1)).to(data.dtype)


def _product(start: Tensor, row_axis: int, group: Tensor, data: Tensor) -> Tensor:
    """The products of the segments. The gradient of what is alone NaN in one is the product of the others."""
    none, is_nan = start.new_zeros(start.shape), data.isnan()
    counts = none.scatter_add(row_axis, group, is_nan.to(data.dtype))
    is_alone = is_nan.logical_and(counts.gather(row_axis, group) == 1)
    others = start.scatter_reduce(row_axis, group, data.masked_fill(is_alone, 1), "prod")
    alone = none.scatter_add(row_axis, group, data.masked_fill(is_alone.logical_not(), 0))
    return functions.where(counts == 1, others * alone, others)


class _Extreme(Function):
    """The gradient of the largest or smallest of each segment: all rows that are it, or NaN beside it, share it."""

    @staticmethod
    def forward(ctx: FunctionCtx, data: Tensor, result: Tensor, group: Tensor) -> Tensor:
        is_it = (data == _with_dropped(result).gather(0, group)).logical_or(data.isnan())
        ctx.save_for_backward(is_it.to(data.dtype), group)
        return result.clone()

    @staticmethod
    def backward(ctx: FunctionCtx, grad: Tensor) -> tuple[Tensor | None, ...]:
        shares, group = ctx.saved_tensors
        grad = _with_dropped(grad)
        count = grad.new_zeros(grad.shape).scatter_add(0, group, shares)
        return (grad / count.clamp_min(1)).gather(0, group) * shares, None, None


def _with_dropped(rows: Tensor) -> Tensor:
    """The same with a row of zeros for the group that is dropped."""
    return functions.cat([rows, rows.new_zeros(1, *rows.shape[1:])])


_segment_reduce = segment_reduce


# Products


@outputs.writable()
def _int_mm(self: Tensor, mat2: Tensor) -> Tensor:
    """The product of matrices of int8, as int32. Shapes: (m, k), (k, n) -> (m, n)."""
    if self.dim() != 2 or mat2.dim() != 2 or self.shape[1] != mat2.shape[0]:
        raise RuntimeError(f"_int_mm: needs (m, k) and (k, n), got {list(self.shape)} and {list(mat2.shape)}")
    if self.dtype is not dtypes.int8 or mat2.dtype is not dtypes.int8:
        raise RuntimeError(f"_int_mm: Expected int8 for both matrices, got {self.dtype} and {mat2.dtype}")
    return self.int().mm(mat2.int())


def _weight_int8pack_mm(self: Tensor, mat2: Tensor, scales: Tensor) -> Tensor:
    """The product with weights of int8, which have a scale a row. Shapes: (m, k), (n, k), (n,) -> (m, n)."""
    return self.mm(mat2.to(self.dtype).t()) * scales


@outputs.writable()
def _addmm_activation(
    self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1, use_gelu: bool = False
) -> Tensor:
    """relu of addmm, or gelu."""
    total = self.addmm(mat1, mat2, beta=beta, alpha=alpha)
    return functional.gelu(total) if use_gelu else total.relu()


def _masked_softmax(self: Tensor, mask: Tensor, dim: int | None = None, mask_type: int | None = None) -> Tensor:
    """softmax of what is not masked. mask_type: 0 of (l, l), 1 of (b, l), 2 of all of x (b, heads, l, l)."""
    if mask.dtype is not dtypes.bool_:
        raise RuntimeError("Mask should be a boolean tensor")
    if mask_type is None:
        raise RuntimeError("Mask Type should be defined")
    if mask_type == 1:
        mask = mask.reshape(mask.shape[0], *(1,) * (self.dim() - 2), mask.shape[-1])
    return self.masked_fill(mask, float("-inf")).softmax(self.dim() - 1 if dim is None else dim)


# Pictures

_MODES = "bilinear", "nearest", "bicubic"
_PADDINGS = "zeros", "border", "reflection"


@named_by_numpy
def grid_sampler(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """grid_sample, with numbers for its words."""
    sampled: Tensor = functional.grid_sample(
        input, grid, _MODES[interpolation_mode], _PADDINGS[padding_mode], align_corners
    )
    return sampled


grid_sampler_2d = grid_sampler_3d = grid_sampler


def _upsample_bilinear2d_aa(
    input: Tensor,
    output_size: Sequence[int] | None,
    align_corners: bool,
    scales_h: float | Sequence[float] | None = None,
    scales_w: float | None = None,
    *,
    scale_factors: Sequence[float] | None = None,
) -> Tensor:
    """interpolate with antialias=True, which may have scales of its own beside the size."""
    if output_size is None:
        assert scale_factors is not None
        return functional.interpolate(
            input, scale_factor=tuple(scale_factors), mode="bilinear", align_corners=align_corners, antialias=True
        )
    factors = scales_h if isinstance(scales_h, Sequence) else (scales_h, scales_w)
    sizes = tuple(output_size)
    steps = [1 / f if f else n / m for n, m, f in zip(input.shape[2:], sizes, factors, strict=True)]
    resized: Tensor = filters.filtered(input, sizes, steps, "bilinear", corners=align_corners, antialias=True)
    return resized


globals().update(dispatch.all_public(globals(), __name__))
