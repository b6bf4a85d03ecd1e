"""Other grids for the same picture: padding with its own values, interpolation, pixels traded for channels."""

import importlib
from collections.abc import Sequence
from math import floor, prod
from operator import index

from pywebgpu import dtypes
from pywebgpu.composites import arithmetic, joining, linear, precision, slicing
from pywebgpu.dtypes import DType
from pywebgpu.errors import ShapeError
from pywebgpu.ir.graph import Node, Spec
from pywebgpu.ops import clamping, contraction, indexing, movement, pointwise, reduction

# Padding


def pad(x: Node, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Node:
    """Grows the last axes: `pad` is (before, after) of the last one, then of the one before it, and so on.

    mode: "constant" (`value`, 0 if not given), "reflect" (mirrored without the edge), "replicate" (the edge),
    "circular" (the other end). Negative numbers cut.
    Raises: ShapeError when `pad` is odd, too long, or larger than an axis can give.
    """
    if mode == "constant":
        return joining.pad_constant(x, pad, 0.0 if value is None else value)
    if value is not None and value != 0:
        raise ValueError(f"Padding mode {mode!r} doesn't take in value argument")
    if mode not in ("reflect", "replicate", "circular"):
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    joining.check_pad(pad)
    rank = len(x.spec.shape)
    if len(pad) % 2 or len(pad) > 2 * rank:
        raise ShapeError(
            f"Padding length must be divisible by 2 and at most twice the rank, got {list(pad)} for {rank}"
        )
    if not 1 <= len(pad) // 2 <= 3 or rank - len(pad) // 2 not in (1, 2):
        raise NotImplementedError(
            f"Padding size {len(pad)} is not supported for {rank}D input tensor: by mode {mode!r}, the last 1, 2 or 3 "
            f"axes behind channels grow"
        )
    for number in range(len(pad) // 2):
        x = _pad_axis(x, rank - 1 - number, pad[2 * number], pad[2 * number + 1], mode)
    return x


def _pad_axis(x: Node, axis: int, before: int, after: int, mode: str) -> Node:
    n = x.spec.shape[axis]
    longest = {"reflect": n - 1, "replicate": max(before, after, 0), "circular": n}[mode]
    if max(before, after) > longest or n == 0:
        raise ShapeError(
            f"Padding size should be {'less than' if mode == 'reflect' else 'at most'} the corresponding input "
            f"dimension, but got: padding ({before}, {after}) at dimension {axis} of input {list(x.spec.shape)}"
        )
    inside = slicing.part(x, axis, max(-before, 0), n - max(-after, 0))
    parts = [inside]
    if before > 0:
        if mode == "reflect":
            parts.insert(0, movement.flip(slicing.part(x, axis, 1, before + 1), axes=(axis,)))
        elif mode == "circular":
            kept = inside.spec.shape[axis]
            parts.insert(0, slicing.part(inside, axis, kept - before, kept))
        else:
            parts.insert(0, _repeated(slicing.part(x, axis, 0, 1), axis, before))
    if after > 0:
        if mode == "reflect":
            parts.append(movement.flip(slicing.part(x, axis, n - 1 - after, n - 1), axes=(axis,)))
        elif mode == "circular":
            parts.append(slicing.part(inside, axis, 0, after))
        else:
            parts.append(_repeated(slicing.part(x, axis, n - 1, n), axis, after))
    return joining.cat(parts, axis) if len(parts) > 1 else inside


def _repeated(edge: Node, axis: int, count: int) -> Node:
    return reduction.expand(edge, shape=(*edge.spec.shape[:axis], count, *edge.spec.shape[axis + 1 :]))


# Interpolation

LINEAR = {"linear": 1, "bilinear": 2, "trilinear": 3}


def _check_mode(mode: str, rank: int, *, of_bytes: bool) -> None:
    if mode in LINEAR and LINEAR[mode] != rank:
        raise NotImplementedError(f"Got {rank + 2}D input, but {mode} mode needs {LINEAR[mode] + 2}D input")
    if mode not in LINEAR and mode not in ("nearest", "nearest-exact"):
        raise NotImplementedError(
            f"Input Error: mode {mode!r} is not one of nearest, nearest-exact, area, bicubic, {', '.join(LINEAR)}"
        )
    if of_bytes and rank != 2:
        raise NotImplementedError(f"{mode} interpolation of torch.uint8 is there for 4D input only, got {rank + 2}D")


def interpolate(
    x: Node,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
) -> Node:
    """The picture on another grid.

    Shapes: x (n, c, *s) -> (n, c, *size), or floor(s * scale_factor).
    mode: "nearest", "nearest-exact", "linear", "bilinear" or "trilinear" (by the rank).
    Raises: ValueError and ShapeError where arguments do not fit; NotImplementedError for other modes.
    """
    rank = len(x.spec.shape) - 2
    space = x.spec.shape[2:]
    if align_corners is not None and mode not in LINEAR:
        raise ValueError(
            "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear"
        )
    outputs, scales = targets(space, size, scale_factor, recompute=bool(recompute_scale_factor))
    bytes_ = x.spec.dtype is dtypes.uint8 and mode in LINEAR
    _check_mode(mode, rank, of_bytes=bytes_)
    grids = list(enumerate(zip(outputs, scales, strict=True)))
    for number, (n_out, scale) in reversed(grids) if bytes_ else grids:  # Rounded after each axis, in torch's order.
        if bytes_:
            x = importlib.import_module("pywebgpu.composites.bytes").linear(
                x, 2 + number, n_out, scale, align_corners=bool(align_corners)
            )
        elif mode in LINEAR:
            x = _linear(x, 2 + number, n_out, scale, align_corners=bool(align_corners))
        else:
            x = _nearest(x, 2 + number, n_out, scale, offset=0.5 if mode == "nearest-exact" else 0.0)
    return x


def targets(
    space: Sequence[int], size: int | Sequence[int] | None, factor: float | Sequence[float] | None, *, recompute: bool
) -> tuple[list[int], list[float]]:
    """The new length of each axis, and how far one step there goes in the input."""
    rank = len(space)
    if (size is None) == (factor is None):
        raise ValueError("only one of size or scale_factor should be defined, and one must be")
    if size is not None:
        if recompute:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
        outputs = [size] * rank if isinstance(size, int) else [int(n) for n in size]
        if len(outputs) != rank:
            raise ValueError(
                f"Input and output must have the same number of spatial dimensions, got {space} and {outputs}"
            )
        scales = [n / m if m else 0.0 for n, m in zip(space, outputs, strict=True)]
    else:
        assert factor is not None
        factors = [float(factor)] * rank if isinstance(factor, int | float) else [float(f) for f in factor]
        if len(factors) != rank:
            raise ValueError(
                f"Input and scale_factor must have the same number of spatial dimensions, got {space}, {factors}"
            )
        outputs = [index(floor(n * f)) for n, f in zip(space, factors, strict=True)]
        scales = [n / m for n, m in zip(space, outputs, strict=True)] if recompute else [1 / f for f in factors]
    if any(n <= 0 for n in (*space, *outputs)):
        raise ShapeError(
            f"Input and output sizes should be greater than 0, but got input {list(space)} output {outputs}"
        )
    return outputs, scales


def _nearest(x: Node, axis: int, n_out: int, scale: float, *, offset: float) -> Node:
    """out[i] = x[floor((i + offset) * scale)] along `axis`."""
    n = x.spec.shape[axis]
    lead, tail = x.spec.shape[:axis], x.spec.shape[axis + 1 :]
    if n_out == n and scale == 1:
        return x
    if n_out % n == 0 and scale == n / n_out:
        each = n_out // n
        grown = reduction.expand(movement.reshape(x, shape=(*lead, n, 1, *tail)), shape=(*lead, n, each, *tail))
        return movement.reshape(grown, shape=(*lead, n_out, *tail))
    spec = Spec((n_out,), dtypes.float32)
    position = pointwise.add(pointwise.iota(spec=spec, axis=0), pointwise.full(offset, spec))
    position = pointwise.floor(pointwise.mul(position, pointwise.full(scale, spec)))
    index = arithmetic.cast(pointwise.minimum(position, pointwise.full(n - 1, spec)), dtypes.int64)
    front = (axis, *(a for a in range(len(x.spec.shape)) if a != axis))
    rows = movement.reshape(movement.permute(x, order=front), shape=(n, prod((*lead, *tail))))
    taken = movement.reshape(indexing.take(rows, index), shape=(n_out, *lead, *tail))
    return movement.permute(taken, order=tuple(front.index(a) for a in range(len(front))))


def _linear(x: Node, axis: int, n_out: int, scale: float, *, align_corners: bool) -> Node:
    """Interpolates along `axis` by a product with a matrix of two weights a row, made from positions alone."""
    n = x.spec.shape[axis]
    if n_out == n and (align_corners or scale == 1):
        return x
    precision.require_floating("interpolate", x)
    wide = precision.upcast(x)
    weights = weights_of(n, n_out, scale, wide.spec.dtype, align_corners=align_corners)
    return arithmetic.cast(weighed(wide, axis, weights), x.spec.dtype)


def weights_of(n: int, n_out: int, scale: float, dtype: DType, *, align_corners: bool) -> Node:
    """(n_out, n): two weights a row, made from positions alone."""
    spec = Spec((n_out, n), dtype)
    position = pointwise.iota(spec=spec, axis=0)
    if align_corners:
        position = pointwise.mul(position, pointwise.full((n - 1) / (n_out - 1) if n_out > 1 else 0.0, spec))
    else:
        half = pointwise.full(0.5, spec)
        position = pointwise.sub(pointwise.mul(pointwise.add(position, half), pointwise.full(scale, spec)), half)
        position = pointwise.maximum(position, pointwise.full(0.0, spec))
    position = pointwise.minimum(position, pointwise.full(n - 1, spec))
    away = pointwise.abs_(pointwise.sub(position, pointwise.iota(spec=spec, axis=1)))
    return clamping.relu(pointwise.sub(pointwise.full(1.0, spec), away))


def weighed(x: Node, axis: int, weights: Node) -> Node:
    """The products with `weights` (n_out, n) along `axis`."""
    if axis == len(x.spec.shape) - 1:
        return linear.matmul(x, contraction.transposed(weights))
    lead, tail = x.spec.shape[:axis], x.spec.shape[axis + 1 :]
    planes = movement.reshape(x, shape=(prod(lead), x.spec.shape[axis], prod(tail)))
    return movement.reshape(linear.matmul(weights, planes), shape=(*lead, weights.spec.shape[0], *tail))


# Pixels and channels


def pixel_shuffle(x: Node, upscale_factor: int) -> Node:
    """(..., c r^2, h, w) -> (..., c, h r, w r)."""
    *lead, c, h, w = _picture("pixel_shuffle", x)
    r = upscale_factor
    if r <= 0 or c % (r * r):
        raise ShapeError(
            f"pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, "
            f"but input.size(-3)={c} is not divisible by {r * r}"
        )
    n = len(lead)
    split = movement.reshape(x, shape=(*lead, c // (r * r), r, r, h, w))
    moved = movement.permute(split, order=(*range(n + 1), n + 3, n + 1, n + 4, n + 2))
    return movement.reshape(moved, shape=(*lead, c // (r * r), h * r, w * r))


def pixel_unshuffle(x: Node, downscale_factor: int) -> Node:
    """(..., c, h r, w r) -> (..., c r^2, h, w)."""
    *lead, c, h, w = _picture("pixel_unshuffle", x)
    r = downscale_factor
    if r <= 0 or h % r or w % r:
        raise ShapeError(
            f"pixel_unshuffle expects height and width to be divisible by downscale_factor, but {h} and {w} are not "
            f"divisible by {r}"
        )
    n = len(lead)
    split = movement.reshape(x, shape=(*lead, c, h // r, r, w // r, r))
    moved = movement.permute(split, order=(*range(n + 1), n + 2, n + 4, n + 1, n + 3))
    return movement.reshape(moved, shape=(*lead, c * r * r, h // r, w // r))


def channel_shuffle(x: Node, groups: int) -> Node:
    """(n, g c, ...) -> the same with channel (i, j) of (g, c) at (j, i)."""
    if len(x.spec.shape) < 3 or groups <= 0 or x.spec.shape[1] % groups:
        raise ShapeError(
            f"Number of channels must be divisible by groups. Got input {list(x.spec.shape)} and {groups} groups."
        )
    n, c, *rest = x.spec.shape
    split = movement.reshape(x, shape=(n, groups, c // groups, *rest))
    moved = movement.permute(split, order=(0, 2, 1, *range(3, 3 + len(rest))))
    return movement.reshape(moved, shape=x.spec.shape)


def _picture(name: str, x: Node) -> tuple[int, ...]:
    if len(x.spec.shape) < 3:
        raise ShapeError(f"{name} expects input to have at least 3 dimensions, but got {list(x.spec.shape)}")
    return x.spec.shape
