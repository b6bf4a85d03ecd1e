"""The operators of torchvision, against loops over boxes, bins and taps in PyTorch: values, and gradients of inputs."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import pywebgpu

T = torch.Tensor


def pixel(image: T, y: float, x: float) -> T:
    """A value between pixels of an image (c, h, w); 0 of what is more than one outside."""
    h, w = image.shape[1:]
    if not (-1 <= y <= h and -1 <= x <= w):
        return image.new_zeros(image.shape[0])
    y, x = min(max(y, 0), h - 1), min(max(x, 0), w - 1)
    result: Any = 0
    for row in {math.floor(y), math.ceil(y)}:
        for column in {math.floor(x), math.ceil(x)}:
            result = result + image[:, row, column] * (1 - abs(y - row)) * (1 - abs(x - column))
    return result


def aligned_bin(image: T, box: list[float], i: int, j: int, bins: tuple[int, int], ratio: int) -> T:
    """The mean of the samples of one bin. box: x1, y1, x2, y2 in the image's pixels."""
    x1, y1, x2, y2 = box
    bh, bw = (y2 - y1) / bins[0], (x2 - x1) / bins[1]
    gh, gw = (ratio, ratio) if ratio > 0 else (math.ceil(bh), math.ceil(bw))
    samples = [
        pixel(image, y1 + i * bh + (a + 0.5) * bh / gh, x1 + j * bw + (b + 0.5) * bw / gw)
        for a in range(gh)
        for b in range(gw)
    ]
    return sum(samples, image.new_zeros(image.shape[0])) / max(gh * gw, 1)


def boxes_of(rois: T, scale: float, shift: float) -> list[tuple[int, list[float]]]:
    return [(int(roi[0]), [float(corner) * scale - shift for corner in roi[1:]]) for roi in rois]


def bins_of(function: Callable[[T, list[float], int, int], T], input: T, boxes: Any, bins: tuple[int, int]) -> T:
    """What a function gives for each bin of each box: (k, c, i, j)."""
    rows = [
        torch.stack([
            torch.stack([function(input[image], box, i, j) for j in range(bins[1])], -1) for i in range(bins[0])
        ], -2)
        for image, box in boxes
    ]  # fmt: skip
    return torch.stack(rows)


def roi_align(input: T, rois: T, scale: float, ph: int, pw: int, ratio: int, aligned: bool) -> T:
    def mean(image: T, box: list[float], i: int, j: int) -> T:
        x1, y1, x2, y2 = box
        if not aligned:
            box = [x1, y1, max(x2, x1 + 1), max(y2, y1 + 1)]
        return aligned_bin(image, box, i, j, (ph, pw), ratio)

    return bins_of(mean, input, boxes_of(rois, scale, 0.5 if aligned else 0.0), (ph, pw))


def own_channels(image: T, i: int, j: int, bins: tuple[int, int]) -> T:
    return image.reshape(-1, *bins, *image.shape[1:])[:, i, j]


def ps_roi_align(input: T, rois: T, scale: float, ph: int, pw: int, ratio: int) -> T:
    def mean(image: T, box: list[float], i: int, j: int) -> T:
        return aligned_bin(own_channels(image, i, j, (ph, pw)), box, i, j, (ph, pw), ratio)

    return bins_of(mean, input, boxes_of(rois, scale, 0.5), (ph, pw))


def whole(box: list[float], i: int, j: int, bins: tuple[int, int], last: tuple[int, int], more: int) -> tuple[Any, Any]:
    """The rows and columns of a bin whose ends are whole."""
    x1, y1, x2, y2 = (math.floor(abs(corner) + 0.5) * (1 if corner >= 0 else -1) for corner in box)

    def span(first: int, end: int, at: int, count: int, limit: int) -> slice:
        size = max(end - first + more, 1) / count
        ends = (math.floor(at * size) + first, math.ceil((at + 1) * size) + first)
        return slice(*(min(max(place, 0), limit) for place in ends))

    return span(y1, y2, i, bins[0], last[0]), span(x1, x2, j, bins[1], last[1])


def roi_pool(input: T, rois: T, scale: float, ph: int, pw: int) -> T:
    def largest(image: T, box: list[float], i: int, j: int) -> T:
        rows, columns = whole(box, i, j, (ph, pw), tuple(image.shape[1:]), 1)  # type: ignore[arg-type]
        part = image[:, rows, columns].flatten(1)
        return part.max(1).values if part.shape[1] else image.new_zeros(image.shape[0])

    return bins_of(largest, input, boxes_of(rois, scale, 0.0), (ph, pw))


def ps_roi_pool(input: T, rois: T, scale: float, ph: int, pw: int) -> T:
    def mean(image: T, box: list[float], i: int, j: int) -> T:
        h, w = image.shape[1:]
        rows, columns = whole(box, i, j, (ph, pw), (h - 1, w - 1), 0)
        part = own_channels(image, i, j, (ph, pw))[:, rows, columns].flatten(1)
        return part.mean(1) if part.shape[1] else part.sum(1)

    return bins_of(mean, input, boxes_of(rois, scale, 0.0), (ph, pw))


def deform_conv2d(input: T, weight: T, offset: T, mask: T, bias: T, *how: Any) -> T:
    sh, sw, ph, pw, dh, dw, groups, offset_groups, use_mask = how
    n, c = input.shape[:2]
    out, _, kh, kw = weight.shape
    oh, ow = offset.shape[2:]
    padded = torch.nn.functional.pad(input, (1, 1, 1, 1))  # What lies beyond is 0.
    moved = offset.reshape(n, offset_groups, kh * kw, 2, oh, ow)
    columns = []
    for image in range(n):
        for y in range(oh):
            for x in range(ow):
                taps = []
                for group in range(offset_groups):
                    channels = slice(group * c // offset_groups, (group + 1) * c // offset_groups)
                    for tap in range(kh * kw):
                        row = y * sh - ph + tap // kw * dh + moved[image, group, tap, 0, y, x]
                        column = x * sw - pw + tap % kw * dw + moved[image, group, tap, 1, y, x]
                        value = between(padded[image, channels], row, column)
                        taps.append(value * mask[image, group * kh * kw + tap, y, x] if use_mask else value)
                columns.append(
                    torch.stack(taps).reshape(offset_groups, kh * kw, -1).transpose(1, 2).reshape(groups, -1)
                )
    own = torch.stack(columns).reshape(n, oh * ow, groups, -1).permute(0, 2, 3, 1)
    return (weight.reshape(groups, out // groups, -1) @ own).reshape(n, out, oh, ow) + bias[:, None, None]


def between(padded: T, row: T, column: T) -> T:
    """A value between pixels of an image with a border of 0, with the gradient of where it is."""
    h, w = padded.shape[1] - 2, padded.shape[2] - 2
    y, x = row.item(), column.item()
    if not (-1 < y < h and -1 < x < w):
        return padded.new_zeros(padded.shape[0])
    y, x = math.floor(y), math.floor(x)
    result: Any = 0
    for a in (y, y + 1):
        for b in (x, x + 1):
            result = result + padded[:, a + 1, b + 1] * (1 - (row - a).abs()) * (1 - (column - b).abs())
    return result


def nms(dets: T, scores: T, threshold: float) -> T:
    kept: list[int] = []
    for index in scores.sort(descending=True, stable=True).indices.tolist():
        a = dets[index]
        overlaps = []
        for other in kept:
            b = dets[other]
            sides = (torch.minimum(a[2:], b[2:]) - torch.maximum(a[:2], b[:2])).clamp(min=0)
            shared = sides.prod()
            overlaps.append(float(shared / ((a[2:] - a[:2]).prod() + (b[2:] - b[:2]).prod() - shared)))
        if all(overlap <= threshold for overlap in overlaps):
            kept.append(index)
    return torch.tensor(kept)


numbers = np.random.default_rng(0)


def drawn(*shape: int, low: float = -1, high: float = 1) -> Any:
    return numbers.uniform(low, high, shape).astype("float32")


def some_boxes(count: int, width: float, height: float) -> Any:
    corners = drawn(count, 2, low=-4, high=1) + drawn(count, 2, low=0, high=1) * [width * 0.7, height * 0.7]
    sizes = drawn(count, 2, low=0.05, high=0.7) * [width, height]
    return np.concatenate([corners, corners + sizes], 1).astype("float32")


def some_rois(count: int) -> Any:
    return np.concatenate([numbers.integers(0, 2, (count, 1)), some_boxes(count, 22, 18)], 1).astype("float32")


# The operator, its arrays, further arguments, how many arrays have a gradient.
CASES: list[tuple[Callable[..., Any], tuple[Any, ...], tuple[Any, ...], int]] = [
    *((roi_align, (drawn(2, 3, 9, 11), some_rois(4)), (0.5, 2, 3, ratio, aligned), 1)
      for ratio in (-1, 2) for aligned in (False, True)),
    *((ps_roi_align, (drawn(2, 12, 9, 11), some_rois(4)), (0.5, 2, 3, ratio), 1) for ratio in (-1, 2)),
    (roi_pool, (drawn(2, 3, 9, 11), some_rois(5)), (0.5, 2, 3), 1),
    (ps_roi_pool, (drawn(2, 12, 9, 11), some_rois(5)), (0.5, 2, 3), 1),
    (deform_conv2d, (drawn(2, 4, 5, 6), drawn(2, 4, 3, 2), drawn(2, 12, 5, 7, low=-2, high=2), drawn(2, 6, 5, 7),
      drawn(2)), (1, 1, 1, 1, 1, 1, 1, 1, True), 5),
    (deform_conv2d, (drawn(1, 4, 7, 6), drawn(4, 2, 3, 2), drawn(1, 24, 4, 4, low=-2, high=2), drawn(1, 1), drawn(4)),
     (2, 1, 1, 0, 1, 2, 2, 2, False), 3),
]  # fmt: skip


@pytest.mark.parametrize(("reference", "arrays", "options", "count"), CASES)
def test_values_and_gradients_are_those_of_loops(
    reference: Callable[..., Any], arrays: tuple[Any, ...], options: tuple[Any, ...], count: int, device: str
) -> None:
    theirs = [torch.tensor(array).double().requires_grad_(index < count) for index, array in enumerate(arrays)]
    mine = [pywebgpu.tensor(array, device=device).requires_grad_(index < count) for index, array in enumerate(arrays)]
    expected = reference(*theirs, *options)
    operator = getattr(pywebgpu.ops.torchvision, reference.__name__)
    result = operator(*mine, *options)
    result = result[0] if isinstance(result, tuple) else result
    weights = drawn(*expected.shape)
    (expected * torch.tensor(weights)).sum().backward()
    (result * pywebgpu.tensor(weights, device=device)).sum().backward()
    np.testing.assert_allclose(result.detach().cpu().numpy(), expected.detach().numpy(), rtol=1e-5, atol=2e-5)
    for own, other in zip(mine[:count], theirs[:count], strict=True):
        np.testing.assert_allclose(own.grad.cpu().numpy(), other.grad.numpy(), rtol=1e-5, atol=5e-5)


@pytest.mark.parametrize("threshold", [0.1, 0.5, 0.7])
@pytest.mark.parametrize("count", [0, 1, 17, 60])
def test_boxes_that_stay(count: int, threshold: float, device: str) -> None:
    boxes, scores = some_boxes(count, 40, 40), np.round(drawn(count, low=0, high=1), 1)  # Some scores are equal.
    expected = nms(torch.tensor(boxes), torch.tensor(scores), threshold)
    kept = pywebgpu.ops.torchvision.nms(
        pywebgpu.tensor(boxes, device=device), pywebgpu.tensor(scores, device=device), threshold
    )
    assert kept.dtype is pywebgpu.int64
    assert kept.tolist() == expected.tolist()


def test_a_gradient_asked_for_by_itself() -> None:
    operators = pywebgpu.ops.torchvision
    input = pywebgpu.tensor(drawn(2, 3, 9, 11)).requires_grad_()
    rois, grad = pywebgpu.tensor(some_rois(4)), pywebgpu.tensor(drawn(4, 3, 2, 3))
    operators.roi_align(input, rois, 0.5, 2, 3, 2, True).backward(grad)
    own = operators._roi_align_backward(grad, rois, 0.5, 2, 3, 2, 3, 9, 11, 2, True)
    assert pywebgpu.allclose(own, input.grad)
    input.grad = None
    pooled, place = operators.roi_pool(input, rois, 0.5, 2, 3)
    pooled.backward(grad)
    assert pywebgpu.allclose(operators._roi_pool_backward(grad, rois, place, 0.5, 2, 3, 2, 3, 9, 11), input.grad)
