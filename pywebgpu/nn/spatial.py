"""Layers that move elements: flattening, padding, resampling, pixels and channels, columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pywebgpu.nn import functional
from pywebgpu.nn.function_layers import FunctionLayer
from pywebgpu.nn.module import Module
from pywebgpu.tensor.tensor import Tensor

if TYPE_CHECKING:
    from pywebgpu.nn.types import Scale
    from pywebgpu.tensor.types import Sizes


class Flatten(Module):
    """Axes start_dim to end_dim as one."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input: Tensor) -> Tensor:
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Axis `dim` as several."""

    def __init__(self, dim: int, unflattened_size: Sequence[int]) -> None:
        super().__init__()
        if not isinstance(unflattened_size, tuple | list):
            raise TypeError(
                f"unflattened_size must be a tuple of ints, but found type {type(unflattened_size).__name__}"
            )
        for position, size in enumerate(unflattened_size):
            if not isinstance(size, int):
                raise TypeError(
                    f"unflattened_size must be tuple of ints, but found element of type {type(size).__name__} at pos "
                    f"{position}"
                )
        self.dim, self.unflattened_size = dim, unflattened_size

    def forward(self, input: Tensor) -> Tensor:
        return input.unflatten(self.dim, tuple(self.unflattened_size))

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"


class Unfold(FunctionLayer):
    """(n, c, h, w) -> (n, c kernel, positions): what a kernel sees, as columns."""

    function, _arguments = "unfold", ("kernel_size", "dilation", "padding", "stride")

    def __init__(self, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1) -> None:
        super().__init__()
        self.kernel_size, self.dilation, self.padding, self.stride = kernel_size, dilation, padding, stride


class Fold(FunctionLayer):
    """(n, c kernel, positions) -> (n, c, *output_size): columns laid back and added where they overlap."""

    function, _arguments = "fold", ("output_size", "kernel_size", "dilation", "padding", "stride")

    def __init__(
        self, output_size: Sizes, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1
    ) -> None:
        super().__init__()
        self.output_size, self.kernel_size = output_size, kernel_size
        self.dilation, self.padding, self.stride = dilation, padding, stride


# Resampling


class Upsample(Module):
    """The picture on another grid; see functional.interpolate."""

    def __init__(
        self,
        size: Sizes | None = None,
        scale_factor: Scale | None = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.size, self.mode, self.align_corners = size, mode, align_corners
        self.scale_factor = tuple(scale_factor) if isinstance(scale_factor, tuple | list) else scale_factor
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        return functional.interpolate(
            input, self.size, self.scale_factor, self.mode, self.align_corners, self.recompute_scale_factor
        )

    def extra_repr(self) -> str:
        scale = self.scale_factor
        if isinstance(scale, int | float):
            scale = float(scale)
        size = f"size={self.size}" if scale is None else f"scale_factor={scale}"
        return f"{size}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Upsample by repeating pixels."""

    def __init__(self, size: Sizes | None = None, scale_factor: Scale | None = None) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """Upsample by lines between the corners."""

    def __init__(self, size: Sizes | None = None, scale_factor: Scale | None = None) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)


class PixelShuffle(FunctionLayer):
    """(..., c r^2, h, w) -> (..., c, h r, w r)."""

    function, _arguments = "pixel_shuffle", ("upscale_factor",)

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor


class PixelUnshuffle(FunctionLayer):
    """(..., c, h r, w r) -> (..., c r^2, h, w)."""

    function, _arguments = "pixel_unshuffle", ("downscale_factor",)

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor


class ChannelShuffle(FunctionLayer):
    """Channel (i, j) of (groups, c) at (j, i)."""

    function, _arguments = "channel_shuffle", ("groups",)

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups


# Padding


class _Pad(Module):
    rank: int
    mode: str

    def __init__(self, padding: Sizes) -> None:
        super().__init__()
        self.padding = (padding,) * (2 * self.rank) if isinstance(padding, int) else tuple(padding)

    def forward(self, input: Tensor) -> Tensor:
        return functional.pad(input, self.padding, self.mode)

    def extra_repr(self) -> str:
        return str(self.padding)


class _ConstantPad(_Pad):
    mode = "constant"

    def __init__(self, padding: Sizes, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return functional.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPad):
    """`value` around the last axis."""

    rank = 1


class ConstantPad2d(_ConstantPad):
    """`value` around the last two axes."""

    rank = 2


class ConstantPad3d(_ConstantPad):
    """`value` around the last three axes."""

    rank = 3


class _ZeroPad(_Pad):
    mode = "constant"


class ZeroPad1d(_ZeroPad):
    """Zeros around the last axis."""

    rank = 1


class ZeroPad2d(_ZeroPad):
    """Zeros around the last two axes."""

    rank = 2


class ZeroPad3d(_ZeroPad):
    """Zeros around the last three axes."""

    rank = 3


class _ReflectionPad(_Pad):
    mode = "reflect"


class ReflectionPad1d(_ReflectionPad):
    """The last axis mirrored at its ends."""

    rank = 1


class ReflectionPad2d(_ReflectionPad):
    """The last two axes mirrored at their ends."""

    rank = 2


class ReflectionPad3d(_ReflectionPad):
    """The last three axes mirrored at their ends."""

    rank = 3


class _ReplicationPad(_Pad):
    mode = "replicate"


class ReplicationPad1d(_ReplicationPad):
    """The ends of the last axis repeated."""

    rank = 1


class ReplicationPad2d(_ReplicationPad):
    """The ends of the last two axes repeated."""

    rank = 2


class ReplicationPad3d(_ReplicationPad):
    """The ends of the last three axes repeated."""

    rank = 3


class _CircularPad(_Pad):
    mode = "circular"

    def forward(self, input: Tensor) -> Tensor:
        ranks = (self.rank + 1, self.rank + 2)
        if input.ndim not in ranks:
            raise ValueError(f"expected {ranks[0]}D or {ranks[1]}D input (got {input.ndim}D input)")
        return super().forward(input)


class CircularPad1d(_CircularPad):
    """The last axis as a ring."""

    rank = 1


class CircularPad2d(_CircularPad):
    """The last two axes as rings."""

    rank = 2


class CircularPad3d(_CircularPad):
    """The last three axes as rings."""

    rank = 3
