"""Pictures read at points that tensors give, and maxima put back where they came from."""

import warnings as _warnings
from collections.abc import Callable as _Callable
from collections.abc import Sequence as _Sequence
from math import prod as _prod
from typing import Any as _Any

from pywebgpu.composites import convolution as _convolution
from pywebgpu.tensor import create as _create
from pywebgpu.tensor import dispatch as _dispatch
from pywebgpu.tensor import functions as _functions
from pywebgpu.tensor import memory_format as _memory_format
from pywebgpu.tensor import tensor as _tensor
from pywebgpu.tensor.apply import aten as _aten
from pywebgpu.tensor.apply import called as _called

_T = _tensor.Tensor
_Sizes = int | _Sequence[int]
_UNIT_SIZE = (
    "Since version 1.3.0, affine_grid behavior has changed for unit-size grids when align_corners=True. This is not an "
    "intended use case of affine_grid. See the documentation of affine_grid for details."
)
_CUBIC = -0.75  # torch's, and most pictures' programs'


def _check_grid(input: _T, grid: _T, mode: str, padding_mode: str) -> None:
    rank = input.ndim - 2
    if mode not in ("bilinear", "nearest", "bicubic") or padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError(f"nn.functional.grid_sample(): unknown mode {mode!r} or padding_mode {padding_mode!r}")
    if rank not in (2, 3) or grid.ndim != input.ndim or grid.shape[-1] != rank or grid.shape[0] != input.shape[0]:
        raise RuntimeError(
            f"grid_sampler(): expected grid and input to fit, but got input {list(input.shape)} and grid "
            f"{list(grid.shape)}"
        )
    if mode == "bicubic" and rank != 2:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")


def grid_sample(
    input: _T,
    grid: _T,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> _T:
    """The input at the points of a grid, whose coordinates go from -1 to 1, the last axis first.

    Shapes: input (n, c, h, w), grid (n, *out, 2) -> (n, c, *out); or (n, c, d, h, w) and (n, *out, 3).
    """
    rank = input.ndim - 2
    _check_grid(input, grid, mode, padding_mode)
    if input.dtype.itemsize == 2:
        return grid_sample(input.float(), grid.float(), mode, padding_mode, align_corners).to(input.dtype)
    out, corners = grid.shape[1:-1], bool(align_corners)
    flat = grid.reshape(grid.shape[0], -1, rank)
    sizes = list(input.shape[2:])
    points = [_unscaled(flat[..., rank - 1 - axis], n, corners=corners) for axis, n in enumerate(sizes)]
    if mode != "bicubic":
        points = [_held(p, n, padding_mode, corners=corners) for p, n in zip(points, sizes, strict=True)]
    taps_of_axes = [_taps(point, mode) for point in points]  # of each axis: positions and weights
    rows, weights = [], []
    for chosen in _product(taps_of_axes):
        positions = [position for position, _ in chosen]
        if mode == "bicubic":
            positions = [_held(p, n, padding_mode, corners=corners) for p, n in zip(positions, sizes, strict=True)]
        row, inside = _row(positions, sizes)
        rows.append(row)
        weights.append(_prod((weight for _, weight in chosen), start=inside.to(input.dtype)))
    total = _pixels(input, _functions.stack(rows)).mul(_functions.stack(weights).unsqueeze(-1)).sum(0)
    sampled: _T = total.transpose(1, 2).reshape(*input.shape[:2], *out).contiguous()
    return _called(sampled, f"aten::grid_sampler_{rank}d")


def _pixels(input: _T, rows: _T) -> _T:
    """The channels of some pixels of each picture. Shapes: input (n, c, ...), rows (taps, n, points) -> (.., c).

    They are read as rows of one matrix, so that the gradient puts each pixel's channels in order once, together.
    """
    n, channels = input.shape[:2]
    matrix = input.reshape(n, channels, -1).transpose(1, 2).reshape(-1, channels)
    first = _create.arange(n, device=str(input.device)).unsqueeze(-1) * _prod(input.shape[2:])
    pixels: _T = matrix[(rows + first).reshape(-1)].reshape(*rows.shape, channels)
    return pixels


def _product(taps_of_axes: list[_Any]) -> list[list[_Any]]:
    combinations: list[list[_Any]] = [[]]
    for choices in taps_of_axes:
        combinations = [[*known, choice] for known in combinations for choice in choices]
    return combinations


def _unscaled(x: _T, n: int, *, corners: bool) -> _T:
    return (x + 1) * ((n - 1) / 2) if corners else ((x + 1) * n - 1) * 0.5


def _held(x: _T, n: int, padding_mode: str, *, corners: bool) -> _T:
    if padding_mode == "zeros":
        return x
    if padding_mode == "reflection":
        low, span = (0.0, float(n - 1)) if corners else (-0.5, float(n))
        if span == 0:
            return x * 0
        away = (x - low).abs()
        flips = (away / span).floor().detach()
        rest = away - flips * span
        x = _functions.where(flips.remainder(2) == 0, rest, span - rest) + low
    end = _functions.where(x.detach() > 0, n - 1.0, 0.0)  # No gradient there; NaN is at the first.
    return _functions.where((x > 0) & (x < n - 1), x, end)


def _taps(x: _T, mode: str) -> list[tuple[_Any, _Any]]:
    if mode == "nearest":
        finite = _functions.where(x.detach().isfinite(), x, 0)
        return [(x.detach().round(), finite * 0 + 1)]  # Its gradient is 0, and there is one.
    low = x.detach().floor()
    t = x - low
    if mode == "bilinear":
        return [(low, 1 - t), (low + 1, t)]
    a = _CUBIC
    near = [((a + 2) * d - (a + 3)) * d * d + 1 for d in (t, 1 - t)]
    far = [((a * d - 5 * a) * d + 8 * a) * d - 4 * a for d in (t + 1, 2 - t)]
    return [(low - 1, far[0]), (low, near[0]), (low + 1, near[1]), (low + 2, far[1])]


def _row(positions: list[_T], sizes: list[int]) -> tuple[_T, _T]:
    """The numbers of the pixels at whole positions, and which are inside: what is outside counts as 0."""
    inside: _Any = None
    index: _Any = None
    for position, n in zip(positions, sizes, strict=True):
        here = (position >= 0) & (position <= n - 1)
        inside = here if inside is None else inside & here
        line = _functions.where(here, position, 0).round().long()
        index = line if index is None else index * n + line
    return index, inside


@_aten("affine_grid_generator")
def affine_grid(theta: _T, size: _Sequence[int], align_corners: bool | None = None) -> _T:
    """The grid of grid_sample that maps a picture of `size` by matrices theta (n, 2, 3), or (n, 3, 4)."""
    rank = len(size) - 2
    if theta.ndim != 3 or tuple(theta.shape[1:]) != (rank, rank + 1) or rank not in (2, 3):
        if rank not in (2, 3):
            raise NotImplementedError(
                "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. Got size "
                f"{size}."
            )
        raise ValueError(
            f"Expected a batch of {rank}D affine matrices of shape Nx{rank}x{rank + 1} for size {size}. Got "
            f"{theta.shape}."
        )
    space, where = list(size[2:]), theta.device
    if align_corners and min(space) == 1:
        _warnings.warn(_UNIT_SIZE, stacklevel=2)
    lines = []
    for axis, n in enumerate(space):
        line = _create.linspace(-1, 1, n, dtype=theta.dtype, device=where) if n > 1 else theta.new_zeros(1)
        line = line if align_corners else line * ((n - 1) / n)
        lines.append(line.reshape([n if a == axis else 1 for a in range(rank)]).expand(space))
    points = _functions.stack([*reversed(lines), theta.new_ones(space)], -1).reshape(1, -1, rank + 1)
    grid: _T = (points @ theta.transpose(1, 2)).reshape(theta.shape[0], *space, rank)
    return grid


def _unpool(rank: int) -> _Callable[..., _T]:
    def max_unpool(
        input: _T,
        indices: _T,
        kernel_size: _Sizes,
        stride: _Sizes | None = None,
        padding: _Sizes = 0,
        output_size: _Sequence[int] | None = None,
    ) -> _T:
        """Zeros, with each maximum where max_pool found it."""
        _check_unpooled(f"max_unpool{rank}d", input, rank)
        kernel, pad, step = (
            list(_convolution.sizes("max_unpool", argument, rank))
            for argument in (kernel_size, padding, kernel_size if stride is None else stride)
        )
        if input.shape != indices.shape:
            raise RuntimeError(
                f"Expected shape of indices to be same as that of the input tensor ({list(input.shape)}) but got "
                f"indices tensor with shape: {list(indices.shape)}"
            )
        if indices.dtype.name != "int64":
            raise RuntimeError(f"elements in indices should be type int64 but got: {indices.dtype}")
        default = [(n - 1) * s - 2 * p + k for n, s, p, k in zip(input.shape[-rank:], step, pad, kernel, strict=True)]
        space = default if output_size is None else _unpooled_size(list(output_size), default, step)
        lead = input.shape[:-rank]
        zeros = input.new_zeros(*lead, _prod(space))
        unpooled: _T = zeros.scatter(-1, indices.flatten(-rank), input.flatten(-rank)).reshape(*lead, *space)
        order = _memory_format.suggested(input) if input.ndim == 4 else None
        if order is not None:
            unpooled = _memory_format.relaid(unpooled, _memory_format.of_order(tuple(unpooled.shape), order))
        return _called(unpooled, f"aten::max_unpool{rank}d")

    max_unpool.__name__ = max_unpool.__qualname__ = f"max_unpool{rank}d"
    return max_unpool


def _check_unpooled(name: str, input: _T, rank: int) -> None:
    if input.dim() not in (rank + 1, rank + 2):
        raise RuntimeError(
            f"Input to {name} should be a {rank + 1}d or {rank + 2}d Tensor, but got a tensor with {input.dim()} "
            f"dimensions."
        )
    if 0 in input.shape[1:]:
        raise RuntimeError(
            f"{name}(): Expected input to have non-zero size for non-batch dimensions, but got {list(input.shape)}"
        )


def _unpooled_size(size: list[int], default: list[int], step: list[int]) -> list[int]:
    """The last axes of a size; each is less than a step away from what kernel, step and padding give."""
    rank = len(default)
    if len(size) not in (rank, rank + 2):
        raise ValueError(
            f"output_size should be a sequence containing {rank} or {rank + 2} elements, but it has a length of "
            f"'{len(size)}'"
        )
    size = size[-rank:]
    for axis, (n, middle, s) in enumerate(zip(size, default, step, strict=True)):
        if not middle - s < n < middle + s:
            raise ValueError(
                f'invalid output_size "{tuple(size)}" (dim {axis} must be between {middle - s} and {middle + s})'
            )
    return size


max_unpool1d, max_unpool2d, max_unpool3d = (_unpool(rank) for rank in (1, 2, 3))


globals().update(_dispatch.all_public(globals(), __name__))
