"""Dropouts of whole channels, with what PyTorch says of inputs of other ranks."""

import warnings as _warnings

from pywebgpu.composites import activation as _composites
from pywebgpu.nn.functional import activation as _activation
from pywebgpu.tensor import dispatch as _dispatch
from pywebgpu.tensor import tensor as _tensor

_T = _tensor.Tensor


def dropout1d(input: _T, p: float = 0.5, training: bool = True, inplace: bool = False) -> _T:
    """Dropout of whole channels of (n, c, l) or (c, l)."""
    return _by_channel(input, p, training, inplace, rank=1)


def dropout2d(input: _T, p: float = 0.5, training: bool = True, inplace: bool = False) -> _T:
    """Dropout of whole channels of (n, c, h, w)."""
    return _by_channel(input, p, training, inplace, rank=2)


def dropout3d(input: _T, p: float = 0.5, training: bool = True, inplace: bool = False) -> _T:
    """Dropout of whole channels of (n, c, d, h, w) or (c, d, h, w)."""
    return _by_channel(input, p, training, inplace, rank=3)


_CHANNELS = "assuming that channel-wise 1D dropout behavior is desired: use dropout1d"


def _by_channel(input: _T, p: float, training: bool, inplace: bool, *, rank: int) -> _T:
    unbatched = input.ndim == rank + 1 and rank != 2  # torch takes (n, c, l) for two axes as a batch.
    name, is_misfit = f"dropout{rank}d", input.ndim not in (rank + 1, rank + 2)
    if is_misfit and rank == 1:
        raise RuntimeError(f"{name}: Expected 2D or 3D input, but received a {input.ndim}D input")
    if is_misfit or (rank == 2 and input.ndim == 3):
        what = "which is deprecated: use dropout" if is_misfit else _CHANNELS
        _warnings.warn(f"{name}: Received a {input.ndim}-D input to {name}, {what}.", stacklevel=3)
    axis = 0 if unbatched else 1
    return _activation._dropped(input, p, training, inplace, _composites.feature_dropout, channel_axis=axis)


globals().update(_dispatch.all_public(globals(), __name__))
