"""make_tensor: a tensor of a shape and dtype for a test, with values drawn from a range."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pywebgpu.dtypes import DType, Kind
from pywebgpu.tensor import create, limits, random
from pywebgpu.tensor.complex_numbers import view_as_real

if TYPE_CHECKING:
    from pywebgpu.tensor.factory_options import DeviceLike
    from pywebgpu.tensor.tensor import Tensor


def make_tensor(
    *shape: int | Sequence[int],
    dtype: DType,
    device: DeviceLike,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: str | None = None,
) -> Tensor:
    """Draws from [low, high): -9 to 9 if not given, whole numbers to 9 inclusive, both bools.

    noncontiguous: every second element of a larger tensor. exclude_zero: 1, or the smallest normal number, for 0.
    Raises: ValueError for an empty range, or one that the dtype has not.
    """
    sizes = _sizes(shape)
    is_whole = dtype.kind in (Kind.INT, Kind.BOOL)
    if noncontiguous and memory_format is not None:
        raise ValueError(
            "The parameters `noncontiguous` and `memory_format` are mutually exclusive, but got "
            f"{noncontiguous=} and {memory_format=}"
        )
    if requires_grad and is_whole:
        raise ValueError(
            f"`requires_grad=True` is not supported for boolean and integral dtypes, but got dtype={dtype}"
        )
    has_gaps = noncontiguous and math.prod(sizes) > 1
    drawn = _drawn([*sizes[:-1], 2 * sizes[-1]] if has_gaps else sizes, dtype, device, *_range(dtype, low, high))
    if has_gaps:
        drawn = drawn[..., 1::2]
    elif memory_format is not None:
        drawn = drawn.clone(memory_format=memory_format)
    if exclude_zero:
        drawn.masked_fill_(drawn == 0, 1 if is_whole else limits.finfo(dtype).tiny)
    return drawn if is_whole else drawn._require_grad(requires_grad)


def _sizes(shape: tuple[int | Sequence[int], ...]) -> list[int]:
    first = shape[0] if len(shape) == 1 else None
    return list(first) if isinstance(first, Sequence) else [int(size) for size in shape]  # type: ignore[arg-type]


def _drawn(sizes: list[int], dtype: DType, device: DeviceLike, low: float, high: float) -> Tensor:
    if dtype.kind in (Kind.INT, Kind.BOOL):
        return random.randint(int(low), int(high), sizes, device=device, dtype=dtype)
    drawn = create.empty(sizes, device=device, dtype=dtype)
    values = view_as_real(drawn) if dtype.is_complex else drawn
    if high - low >= limits.finfo(values.dtype).max:  # A range of more than a number's is drawn at half its size.
        values.uniform_(low / 2, high / 2).mul_(2)
    else:
        values.uniform_(low, high)
    return drawn


def _range(dtype: DType, low: float | None, high: float | None) -> tuple[float, float]:
    """What is drawn from, inside of what the dtype has."""
    is_bool, is_whole = dtype.kind is Kind.BOOL, dtype.kind in (Kind.INT, Kind.BOOL)
    bounds = None if is_bool else limits.iinfo(dtype) if is_whole else limits.finfo(dtype)
    least, most = (0, 2) if bounds is None else (bounds.min, bounds.max + (is_whole and dtype.name != "int64"))
    low = (0 if is_bool else -9) if low is None else low
    high = (2 if is_bool else 10 if is_whole else 9) if high is None else high
    if math.isnan(low) or math.isnan(high):
        raise ValueError(f"`low` and `high` cannot be NaN, but got {low=} and {high=}")
    if low == high and not is_whole:
        warnings.warn(
            "Passing `low==high` to `torch.testing.make_tensor` for floating or complex types is deprecated since 2.1 "
            "and will be removed in 2.3. Use `torch.full(...)` instead.",
            FutureWarning,
            stacklevel=3,
        )
    elif low >= high:
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    elif high < least or low >= most:
        raise ValueError(
            f"The value interval specified by `low` and `high` is [{low}, {high}), "
            f"but {dtype} only supports [{least}, {most})"
        )
    low, high = min(max(low, least), most), min(max(high, least), most)
    return (math.ceil(low), math.ceil(high)) if is_whole else (low, high)
