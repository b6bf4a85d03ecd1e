"""The operators of torchvision, whose library is compiled for PyTorch: here of tensors, with gradients by recording.

A region of interest is read by weights of rows and weights of columns, so pooling over it is two products of matrices.
Values and gradients are those of torchvision's kernels. Boxes get no gradient there, and none here.
Source: He et al. 2017 (arXiv 1703.06870), Dai et al. 2016 and 2017 (arXiv 1605.06409, 1703.06211).
"""

from __future__ import annotations

import struct
from array import array
from typing import Any

from pywebgpu import dtypes
from pywebgpu.autodiff import grad_mode
from pywebgpu.nn import functional
from pywebgpu.tensor import create, functions
from pywebgpu.tensor.tensor import Tensor
from pywebgpu.torch_api.library import Library

WORD = 16  # bits that a float32 sums exactly
Side = tuple[Tensor, Tensor]  # where boxes begin, and how large they are: (k, 1, 1) each


def nms(dets: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """The boxes that stay, best first: one goes where it overlaps a better one that stays by more than the threshold.

    Shapes: dets (n, 4) as x1, y1, x2, y2; scores (n,) -> (k,), int64. Waits for the device.
    """
    count = dets.shape[0]
    if count == 0:
        return create.zeros(0, dtype=dtypes.int64, device=dets.device)
    order = scores.detach().sort(descending=True, stable=True)[1]
    boxes = dets.detach()[order]
    low, high = boxes[:, :2], boxes[:, 2:]
    areas = (high - low).prod(1)
    sides = (high[:, None].minimum(high) - low[:, None].maximum(low)).clamp(min=0)
    shared = sides.prod(2)
    above = _exceeds(shared / (areas[:, None] + areas - shared), iou_threshold)
    bits = functional.pad(above.float(), (0, -count % WORD)).reshape(count, -1, WORD)
    words = (bits * 2.0 ** create.arange(WORD, device=dets.device)).sum(2).int().tolist()
    removed, kept = 0, []
    for index, row in enumerate(words):
        if not removed >> index & 1:
            kept.append(index)
            removed |= int.from_bytes(array("H", row).tobytes(), "little")
    stay: Tensor = order[create.tensor(kept, device=dets.device)]
    return stay


def _exceeds(values: Tensor, threshold: float) -> Tensor:
    """Whether values are above a number, which their dtype may not have."""
    nearest = struct.unpack("f", struct.pack("f", threshold))[0]
    if values.dtype is dtypes.float32 and nearest > threshold:
        return values.ge(nearest)
    return values.gt(threshold)


# Weights of rows and columns


def _sides(corners: Tensor) -> tuple[Side, Side]:
    """The sides of boxes along rows and along columns. corners: (k, 4) as x1, y1, x2, y2."""
    x1, y1, x2, y2 = (corners[:, axis, None, None] for axis in range(4))
    return (y1, y2 - y1), (x1, x2 - x1)


def _sampled(side: Side, n_bins: int, size: int, sampling_ratio: int) -> Tensor:
    """The weight of each row in each bin: the mean of samples, which lie between rows. (k, n_bins, size)."""
    begin, extent = side
    bins = extent / n_bins
    grid = create.full_like(bins, sampling_ratio) if sampling_ratio > 0 else bins.ceil()
    most = sampling_ratio if sampling_ratio > 0 else max(int(grid.max().item()), 1)
    steps = create.arange(most, device=begin.device).to(begin.dtype)[:, None]
    index = create.arange(n_bins, device=begin.device).to(begin.dtype)[:, None]
    per_bin = grid.clamp(min=1)
    starts, length = begin + index * bins, bins / per_bin
    positions = starts[:, :, None] + (steps + 0.5) * length[:, :, None]  # (k, n_bins, most, 1)
    inside = (positions >= -1) & (positions <= size) & (steps < grid[:, :, None])
    rows = create.arange(size, device=begin.device).to(begin.dtype)
    weights = (1 - (positions.clamp(0, size - 1) - rows).abs()).clamp(min=0)
    return functions.where(inside, weights, 0.0).sum(2) / per_bin


def _covered(side: Side, n_bins: int, size: int, last: int) -> Tensor:
    """Which rows are in each bin, where bins end at whole rows. (k, n_bins, size), bool."""
    begin, extent = side
    bins = extent / n_bins
    index = create.arange(n_bins, device=begin.device).to(begin.dtype)[:, None]
    first = ((index * bins).floor() + begin).clamp(0, last)
    end = (((index + 1) * bins).ceil() + begin).clamp(0, last)
    rows = create.arange(size, device=begin.device).to(begin.dtype)
    return (rows >= first) & (rows < end)


def _at_least_one(side: Side) -> Side:
    begin, extent = side
    return begin, extent.clamp(min=1)


def _rounded(values: Tensor) -> Tensor:
    """The nearest whole numbers; halves away from zero."""
    return values.sign() * (values.abs() + 0.5).floor()


def _of_images(weights: Tensor, rois: Tensor, n_images: int) -> Tensor:
    """Weights of the rows of all images, 0 for those of others than a box's. (k, bins, h) -> (k, bins, images * h)."""
    own = rois[:, :1].long() == create.arange(n_images, device=rois.device)
    return (weights[:, :, None] * own[:, None, :, None]).flatten(2)


def _by_rows(input: Tensor) -> Tensor:
    """(n, c, h, w) -> (n * h, c * w)."""
    n, c, h, w = input.shape
    return input.transpose(1, 2).reshape(n * h, c * w)


# Pooling


def roi_align(
    input: Tensor,
    rois: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
    aligned: bool,
) -> Tensor:
    """The mean of samples in each bin of each box.

    Shapes: input (n, c, h, w), rois (k, 5) as image, x1, y1, x2, y2 -> (k, c, pooled_height, pooled_width).
    sampling_ratio: samples along each side of a bin; as many as it has rows, if not positive. aligned: the centres of
    pixels lie at halves. Against torchvision: the same.
    """
    _, c, h, w = input.shape
    with grad_mode.no_grad():
        boxes = rois.detach().to(input.dtype)
        vertical, horizontal = _sides(boxes[:, 1:] * spatial_scale - (0.5 if aligned else 0.0))
        if not aligned:
            vertical, horizontal = _at_least_one(vertical), _at_least_one(horizontal)
        rows = _of_images(_sampled(vertical, pooled_height, h, sampling_ratio), boxes, input.shape[0])
        columns = _sampled(horizontal, pooled_width, w, sampling_ratio)
    by_row = (rows.flatten(0, 1) @ _by_rows(input)).reshape(-1, pooled_height * c, w)
    pooled = by_row @ columns.transpose(1, 2)
    return pooled.reshape(-1, pooled_height, c, pooled_width).transpose(1, 2).contiguous()


def _of_positions(input: Tensor, rows: Tensor, columns: Tensor) -> tuple[Tensor, Tensor]:
    """What each bin reads of channels of its own: (k, c, i, j), and which channels those are.

    input (n, c * i * j, h, w), rows (k, i, n * h), columns (k, j, w).
    """
    n, channels, h, w = input.shape
    k, i, j = rows.shape[0], rows.shape[1], columns.shape[1]
    c = channels // (i * j)
    own = input.reshape(n, c, i, j, h, w).permute(2, 0, 4, 1, 3, 5).reshape(i, n * h, c * j * w)
    by_row = (rows.transpose(0, 1) @ own).reshape(i, k, c, j, w)
    pooled = (by_row * columns[None, :, None]).sum(-1).permute(1, 2, 0, 3)
    mapping = create.arange(channels, dtype=dtypes.int32, device=input.device).reshape(c, i, j).expand(k, c, i, j)
    return pooled.contiguous(), mapping.contiguous()


def ps_roi_align(
    input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int, sampling_ratio: int
) -> tuple[Tensor, Tensor]:
    """As roi_align, where each bin reads channels of its own; and which channels, int32.

    Shapes: input (n, c * pooled_height * pooled_width, h, w), rois (k, 5) -> (k, c, pooled_height, pooled_width) twice.
    """
    with grad_mode.no_grad():
        boxes = rois.detach().to(input.dtype)
        vertical, horizontal = _sides(boxes[:, 1:] * spatial_scale - 0.5)
        own = _sampled(vertical, pooled_height, input.shape[2], sampling_ratio)
        rows = _of_images(own, boxes, input.shape[0])
        columns = _sampled(horizontal, pooled_width, input.shape[3], sampling_ratio)
    return _of_positions(input, rows, columns)


def ps_roi_pool(
    input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int
) -> tuple[Tensor, Tensor]:
    """The mean of each bin of each box, of channels of its own; and which channels, int32. Shapes as ps_roi_align.

    Bins end before the last row and column, as in torchvision; its gradient goes to these as well, and this one not.
    """
    h, w = input.shape[2:]
    with grad_mode.no_grad():
        boxes = rois.detach().to(input.dtype)
        vertical, horizontal = map(_at_least_one, _sides(_rounded(boxes[:, 1:] * spatial_scale)))
        own = _covered(vertical, pooled_height, h, h - 1).to(input.dtype)
        columns = _covered(horizontal, pooled_width, w, w - 1).to(input.dtype)
        own, columns = (mask / mask.sum(2, keepdim=True).clamp(min=1) for mask in (own, columns))
        rows = _of_images(own, boxes, input.shape[0])
    return _of_positions(input, rows, columns)


def roi_pool(
    input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int
) -> tuple[Tensor, Tensor]:
    """The largest element of each bin of each box, 0 of an empty one; and where it lies in its image, int32, or -1.

    Shapes: input (n, c, h, w), rois (k, 5) -> (k, c, pooled_height, pooled_width) twice.
    """
    h, w = input.shape[2:]
    with grad_mode.no_grad():
        boxes = rois.detach().to(input.dtype)
        sides = _sides(_rounded(boxes[:, 1:] * spatial_scale))  # Both corners are inside.
        vertical, horizontal = (_at_least_one((begin, extent + 1)) for begin, extent in sides)
        rows, columns = _covered(vertical, pooled_height, h, h), _covered(horizontal, pooled_width, w, w)
    own = input[boxes[:, 0].long()]  # (k, c, h, w)
    best, positions = _largest(own, columns)  # (k, c, h, pooled_width)
    best, row = _largest(best.transpose(2, 3), rows)  # (k, c, pooled_width, pooled_height)
    column = positions.transpose(2, 3).gather(3, row)
    empty = (~(rows.any(2)[:, None, None] & columns.any(2)[:, None, :, None])).expand(best.shape)
    pooled = functions.where(empty, 0.0, best).transpose(2, 3)
    place = functions.where(empty, -1, row * w + column).transpose(2, 3)
    return pooled.contiguous(), place.int().contiguous()


def _largest(values: Tensor, masks: Tensor) -> tuple[Tensor, Tensor]:
    """The largest of the last axis under each mask, and where it is. (k, c, r, s), (k, bins, s) -> (k, c, r, bins)."""
    parts = []
    for index in range(masks.shape[1]):
        parts.append(functions.where(masks[:, None, index, None], values, float("-inf")).max(3))
    return functions.stack([part[0] for part in parts], 3), functions.stack([part[1] for part in parts], 3)


# Convolution


def _between_pixels(pixels: Tensor, y: Tensor, x: Tensor, h: int, w: int) -> Tensor:
    """Values at points, from the four pixels around each: (n, groups, c, h * w) -> (n, groups, c, points)."""
    low_y, low_x = y.detach().floor(), x.detach().floor()
    inside = (y.detach() > -1) & (y.detach() < h) & (x.detach() > -1) & (x.detach() < w)
    columns: Any = 0
    for down in (0, 1):
        for right in (0, 1):
            row, column = low_y + down, low_x + right
            share = (1 - (y - row).abs()) * (1 - (x - column).abs())
            exists = inside & (row >= 0) & (row < h) & (column >= 0) & (column < w)
            index = (row.clamp(0, h - 1) * w + column.clamp(0, w - 1)).long().reshape(*pixels.shape[:2], 1, -1)
            values = pixels.gather(3, index.expand(-1, -1, pixels.shape[2], -1))
            columns = columns + values * functions.where(exists, share, 0.0).reshape(*pixels.shape[:2], 1, -1)
    between: Tensor = columns
    return between


def deform_conv2d(
    input: Tensor,
    weight: Tensor,
    offset: Tensor,
    mask: Tensor,
    bias: Tensor,
    stride_h: int,
    stride_w: int,
    pad_h: int,
    pad_w: int,
    dilation_h: int,
    dilation_w: int,
    groups: int,
    offset_groups: int,
    use_mask: bool,
) -> Tensor:
    """A convolution whose taps lie where `offset` moves them, between pixels, each times `mask`.

    Shapes: input (n, c, h, w), weight (o, c / groups, kh, kw), offset (n, offset_groups * kh * kw * 2, oh, ow),
    mask (n, offset_groups * kh * kw, oh, ow), bias (o,) -> (n, o, oh, ow). Against torchvision: the same.
    """
    n, c, h, w = input.shape
    out, _, kh, kw = weight.shape
    oh = (h + 2 * pad_h - dilation_h * (kh - 1) - 1) // stride_h + 1
    ow = (w + 2 * pad_w - dilation_w * (kw - 1) - 1) // stride_w + 1
    kernel_size, places = kh * kw, oh * ow
    moved = offset.reshape(n, offset_groups, kh, kw, 2, oh, ow)
    y = moved[:, :, :, :, 0] + _places(input, kh, oh, stride_h, pad_h, dilation_h)[:, None, :, None]
    x = moved[:, :, :, :, 1] + _places(input, kw, ow, stride_w, pad_w, dilation_w)[None, :, None]
    columns = _between_pixels(input.reshape(n, offset_groups, c // offset_groups, h * w), y, x, h, w)
    if use_mask:
        columns = columns * mask.reshape(n, offset_groups, 1, kernel_size * places)
    by_group = columns.reshape(n, groups, c // groups * kernel_size, places)
    result = (weight.reshape(groups, out // groups, -1) @ by_group).reshape(n, out, oh, ow)
    moved_sum: Tensor = result + bias[:, None, None]
    return moved_sum


def _places(input: Tensor, size: int, count: int, stride: int, pad: int, dilation: int) -> Tensor:
    """Where taps lie along an axis before they are moved: (size, count)."""
    steps = create.arange(count, device=input.device) * stride - pad
    return (steps + create.arange(size, device=input.device)[:, None] * dilation).to(input.dtype)


# Gradients by themselves, as torchvision asks for them


def _roi_pool_backward(
    grad: Tensor,
    rois: Tensor,
    argmax: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    batch_size: int,
    channels: int,
    height: int,
    width: int,
) -> Tensor:
    """That of roi_pool for its input: each bin's goes to the element that it took."""
    size = height * width
    rows = rois[:, :1].long() * channels + create.arange(channels, device=grad.device)
    places = (rows[:, :, None] * size + argmax.flatten(2).clamp(min=0)).flatten()
    values = functions.where(argmax >= 0, grad, 0.0).flatten()
    flat = create.zeros(batch_size * channels * size, dtype=grad.dtype, device=grad.device)
    return flat.index_add(0, places, values).reshape(batch_size, channels, height, width)


def _gradients(function: Any, inputs: tuple[Tensor, ...], grad: Tensor, options: tuple[Any, ...]) -> tuple[Tensor, ...]:
    """Those of the first result of a function for its inputs."""
    with grad_mode.enable_grad():
        own = tuple(tensor.detach().requires_grad_() for tensor in inputs)
        result = function(*own, *options)
    result = result[0] if isinstance(result, tuple) else result
    result.backward(grad)
    return tuple(create.zeros_like(tensor) if tensor.grad is None else tensor.grad for tensor in own)


def _linear(function: Any, grad: Tensor, shape: tuple[int, ...], options: tuple[Any, ...]) -> Tensor:
    """The gradient of a function that is linear in an input of some shape."""
    input = create.zeros(shape, dtype=grad.dtype, device=grad.device)
    return _gradients(function, (input,), grad, options)[0]


def _roi_align_backward(grad: Tensor, rois: Tensor, *options: Any) -> Tensor:
    scale, rows, columns, *shape, ratio, aligned = options
    return _linear(roi_align, grad, tuple(shape), (rois, scale, rows, columns, ratio, aligned))


def _ps_roi_align_backward(grad: Tensor, rois: Tensor, mapping: Tensor, *options: Any) -> Tensor:
    *how, n, c, h, w = options
    return _linear(ps_roi_align, grad, (n, c, h, w), (rois, *how))


def _ps_roi_pool_backward(grad: Tensor, rois: Tensor, mapping: Tensor, *options: Any) -> Tensor:
    *how, n, c, h, w = options
    return _linear(ps_roi_pool, grad, (n, c, h, w), (rois, *how))


def _deform_conv2d_backward(grad: Tensor, *args: Any) -> tuple[Tensor, ...]:
    input, weight, offset, mask, bias, *how = args

    def call(*tensors: Tensor) -> Tensor:
        return deform_conv2d(*tensors, *how)  # type: ignore[arg-type]

    return _gradients(call, (input, weight, offset, mask, bias), grad, ())


SCALE, POOLED = "float spatial_scale", "SymInt pooled_height, SymInt pooled_width"
SHAPE = "SymInt batch_size, SymInt channels, SymInt height, SymInt width"
STEPS = "SymInt stride_h, SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w"
CONVOLVED = f"Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, {STEPS}, SymInt groups"
SCHEMAS: dict[Any, str] = {
    nms: "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    roi_align: f"(Tensor input, Tensor rois, {SCALE}, {POOLED}, int sampling_ratio, bool aligned) -> Tensor",
    roi_pool: f"(Tensor input, Tensor rois, {SCALE}, {POOLED}) -> (Tensor, Tensor)",
    ps_roi_align: f"(Tensor input, Tensor rois, {SCALE}, {POOLED}, int sampling_ratio) -> (Tensor, Tensor)",
    ps_roi_pool: f"(Tensor input, Tensor rois, {SCALE}, {POOLED}) -> (Tensor, Tensor)",
    deform_conv2d: f"({CONVOLVED}, SymInt offset_groups, bool use_mask) -> Tensor",
    _roi_align_backward: f"(Tensor grad, Tensor rois, {SCALE}, {POOLED}, {SHAPE}, int sampling_ratio, bool aligned) "
    "-> Tensor",
    _roi_pool_backward: f"(Tensor grad, Tensor rois, Tensor argmax, {SCALE}, {POOLED}, {SHAPE}) -> Tensor",
    _ps_roi_align_backward: f"(Tensor grad, Tensor rois, Tensor channel_mapping, {SCALE}, {POOLED}, "
    f"int sampling_ratio, {SHAPE}) -> Tensor",
    _ps_roi_pool_backward: f"(Tensor grad, Tensor rois, Tensor channel_mapping, {SCALE}, {POOLED}, {SHAPE}) -> Tensor",
    _deform_conv2d_backward: f"(Tensor grad, {CONVOLVED}, SymInt offset_groups, bool use_mask) "
    "-> (Tensor, Tensor, Tensor, Tensor, Tensor)",
}
library = Library("torchvision", "FRAGMENT")
for _kernel, _schema in SCHEMAS.items():
    library.impl(library.define(_kernel.__name__ + _schema), _kernel, "CompositeImplicitAutograd")
for _schema in (
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qroi_align(Tensor input, Tensor rois, float input_scale, int input_zero_point, float rois_scale, "
    f"int rois_zero_point, {SCALE}, {POOLED}, int sampling_ratio, bool aligned) -> Tensor",
):
    library.define(_schema)  # Models are not quantised here: they have no kernel.
library.impl(library.define("_cuda_version() -> int"), lambda: -1, "CompositeImplicitAutograd")
