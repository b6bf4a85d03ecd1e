"""Pooling whose windows lie at random steps, so that sizes shrink by any factor."""

from collections.abc import Callable as _Callable
from collections.abc import Sequence as _Sequence
from math import prod as _prod
from typing import Any as _Any

from pywebgpu import dtypes as _dtypes
from pywebgpu.tensor import create as _create
from pywebgpu.tensor import dispatch as _dispatch
from pywebgpu.tensor import functions as _functions
from pywebgpu.tensor import random as _random
from pywebgpu.tensor import tensor as _tensor

_T = _tensor.Tensor
_Sizes = int | _Sequence[int]
_Pooled = _T | tuple[_T, _T]


def _fractional(rank: int) -> _Callable[..., _Pooled]:
    name = f"fractional_max_pool{rank}d"

    def fractional_max_pool(
        input: _T,
        kernel_size: _Sizes,
        output_size: _Sizes | None = None,
        output_ratio: float | _Sequence[float] | None = None,
        return_indices: bool = False,
        _random_samples: _T | None = None,
    ) -> _Pooled:
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
        if input.dim() not in (rank + 1, rank + 2) or 0 in input.shape[1:]:
            raise RuntimeError(
                f"{name}: Expected input of {rank + 1} or {rank + 2} dimensions, with non-zero size for non-batch "
                f"dimensions, but got: {list(input.shape)}"
            )
        sizes = tuple(input.shape[-rank:])
        if output_size is None:
            ratios = _repeated(output_ratio, rank, name, "output_ratio")
            output_size = [int(size * ratio) for size, ratio in zip(sizes, ratios, strict=True)]
        kernel = _repeated(kernel_size, rank, name, "kernel_size")
        out = _repeated(output_size, rank, name, "output_size")
        for axis, size, window, count in zip(("time", "height", "width")[-rank:], sizes, kernel, out, strict=True):
            if count + window - 1 > size:
                raise RuntimeError(f"{name}: pool {axis} {window} too large relative to input {axis} {size}")
        x = input if input.dim() == rank + 2 else input.unsqueeze(0)
        places = _places(_samples(x, rank, _random_samples), sizes, kernel, out)
        windows = x.flatten(2).gather(2, places.flatten(2)).reshape(places.shape)
        values, positions = windows.max(-1)
        shape = (*input.shape[:-rank], *out)
        if not return_indices:
            return values.reshape(shape)
        return values.reshape(shape), places.gather(-1, positions.unsqueeze(-1)).reshape(shape)

    fractional_max_pool.__name__ = fractional_max_pool.__qualname__ = name
    fractional_max_pool.__doc__ = f"The largest element of each window of the last {rank} axes (arXiv 1412.6071)."
    return fractional_max_pool


def _samples(x: _T, rank: int, samples: _T | None) -> _T:
    """Numbers from 0 to 1 for each channel and axis: those of the caller, or drawn."""
    if samples is None:
        return _random.rand(*x.shape[:2], rank, dtype=x.dtype, device=x.device)
    if samples.shape[0] < x.shape[0]:
        raise RuntimeError("Expect _random_samples.size(0) no less then input batch size.")
    if tuple(samples.shape[1:]) != (x.shape[1], rank):
        raise RuntimeError(f"Expect _random_samples of shape {(*x.shape[:2], rank)}, got {list(samples.shape)}")
    return samples[: x.shape[0]]


def _repeated(value: float | _Sequence[float] | None, rank: int, name: str, argument: str) -> list[_Any]:
    values: list[_Any] = [value] * rank if isinstance(value, int | float) else list(value or ())
    if len(values) != rank:
        number = "Ints" if rank == 2 else "three Ints"
        raise RuntimeError(f"{name}: {argument} must either be a single Int or tuple of {number}, but got {value}")
    return values


def _places(samples: _T, sizes: tuple[int, ...], kernel: list[int], out: list[int]) -> _T:
    """Where in the flattened axes each element of each window lies. Shapes: samples (n, c, rank) -> (n, c, *out, k)."""
    rank, device = len(sizes), samples.device
    flat: _Any = 0
    for axis, (size, window, count) in enumerate(zip(sizes, kernel, out, strict=True)):
        # PyTorch's draws of two axes are those of the columns, then of the rows.
        sample = samples[:, :, rank - 1 - axis if rank == 2 else axis].unsqueeze(-1)
        steps = _create.arange(max(count - 1, 0), dtype=samples.dtype, device=device)
        ratio = (size - window) / (count - 1) if count > 1 else 0.0
        starts = ((steps + sample) * ratio).trunc() - (sample * ratio).trunc()
        last = _create.full((*samples.shape[:2], 1), size - window, dtype=samples.dtype, device=device)
        starts = _functions.cat([starts, last[..., :count]], -1).to(_dtypes.int64)
        inside = _create.arange(window, device=device)
        place = starts.unsqueeze(-1) + inside  # (n, c, count, window)
        shape = [1] * (2 * rank)
        shape[axis], shape[rank + axis] = count, window
        flat = flat * size + place.reshape(*samples.shape[:2], *shape)
    return flat.reshape(*samples.shape[:2], *out, _prod(kernel))  # type: ignore[no-any-return]


fractional_max_pool2d, fractional_max_pool3d = (_fractional(rank) for rank in (2, 3))


def fractional_max_pool2d_with_indices(*args: _Any, **kwargs: _Any) -> _Pooled:
    """As fractional_max_pool2d, with where the elements lie."""
    return fractional_max_pool2d(*args[:4], **{**kwargs, "return_indices": True})


def fractional_max_pool3d_with_indices(*args: _Any, **kwargs: _Any) -> _Pooled:
    """As fractional_max_pool3d, with where the elements lie."""
    return fractional_max_pool3d(*args[:4], **{**kwargs, "return_indices": True})


globals().update(_dispatch.all_public(globals(), __name__))
