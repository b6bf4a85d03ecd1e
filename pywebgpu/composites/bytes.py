"""Bilinear interpolation of bytes: PyTorch rounds after each axis, by weights of 15 bits."""

from pywebgpu import dtypes
from pywebgpu.composites import arithmetic, resample
from pywebgpu.ir.graph import Node
from pywebgpu.ops import pointwise


def linear(x: Node, axis: int, n_out: int, scale: float, *, align_corners: bool) -> Node:
    """As _linear, with torch's weights for bytes: whole numbers of 15 bits, and halves rounded up."""
    n = x.spec.shape[axis]
    if n_out == n and (align_corners or scale == 1):
        return x
    largest = max(max(part, 1 - part) for part in _parts(n, n_out, scale, align_corners=align_corners))
    precision_scale = 2.0 ** next(bits for bits in range(23) if int(0.5 + largest * 2 ** (bits + 1)) >= 1 << 15)
    weights = resample.weights_of(n, n_out, scale, dtypes.float32, align_corners=align_corners)
    weights = pointwise.floor(_plus_half(pointwise.mul(weights, arithmetic.like(weights, precision_scale))))
    out = resample.weighed(arithmetic.cast(x, dtypes.float32), axis, weights)
    return arithmetic.cast(
        pointwise.floor(_plus_half(pointwise.mul(out, arithmetic.like(out, 1 / precision_scale)))), dtypes.uint8
    )


def _plus_half(x: Node) -> Node:
    return pointwise.add(x, arithmetic.like(x, 0.5))


def _parts(n: int, n_out: int, scale: float, *, align_corners: bool) -> list[float]:
    """How far behind the first of its two neighbours each new position lies."""
    if align_corners:
        step = (n - 1) / (n_out - 1) if n_out > 1 else 0.0
        return [(position * step) % 1 for position in range(n_out)]
    return [max((position + 0.5) * scale - 0.5, 0.0) % 1 for position in range(n_out)]
