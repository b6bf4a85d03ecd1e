"""Convolutions and their transposes, over one, two or three axes."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod, sqrt
from typing import TYPE_CHECKING

from pywebgpu.nn import functional, init
from pywebgpu.nn.module import Module
from pywebgpu.nn.parameter import Parameter
from pywebgpu.support import shapes
from pywebgpu.tensor import create
from pywebgpu.tensor.tensor import Tensor

if TYPE_CHECKING:
    from pywebgpu.dtypes import DType
    from pywebgpu.tensor.factory_options import DeviceLike
    from pywebgpu.tensor.types import Sizes

PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


def sizes(value: Sizes, rank: int) -> tuple[int, ...]:
    value = shapes.plain(value)
    return (value,) * rank if isinstance(value, int) else tuple(value)


class _ConvNd(Module):
    """What all convolutions hold."""

    rank: int
    transposed = False

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes,
        padding: Sizes | str,
        dilation: Sizes,
        groups: int,
        bias: bool,
        padding_mode: str,
        device: DeviceLike,
        dtype: DType | None,
        output_padding: Sizes = 0,
    ) -> None:
        super().__init__()
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups:
            raise ValueError("out_channels must be divisible by groups")
        if padding_mode not in PADDING_MODES:
            raise ValueError(f"padding_mode must be one of {', '.join(PADDING_MODES)}, but got {padding_mode!r}")
        if isinstance(padding, str) and padding not in ("same", "valid"):
            raise ValueError(f"Invalid padding string {padding!r}, should be one of 'same', 'valid'")
        if padding == "same" and any(s != 1 for s in sizes(stride, self.rank)):
            raise ValueError("padding='same' is not supported for strided convolutions")
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size, self.stride = sizes(kernel_size, self.rank), sizes(stride, self.rank)
        self.padding = padding if isinstance(padding, str) else sizes(padding, self.rank)
        self.dilation, self.output_padding = sizes(dilation, self.rank), sizes(output_padding, self.rank)
        self.padding_mode = padding_mode
        self._reversed_padding_repeated_twice = self._around()
        first, second = (in_channels, out_channels) if self.transposed else (out_channels, in_channels)
        shape = (first, second // groups, *self.kernel_size)
        self.weight = Parameter(create.empty(shape, device=device, dtype=dtype))
        parameter = Parameter(create.empty(out_channels, device=device, dtype=dtype)) if bias else None
        self.register_parameter("bias", parameter)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws all from the interval of 1 / sqrt(inputs of one output) around 0."""
        init.kaiming_uniform_(self.weight, a=sqrt(5))
        if self.bias is not None:
            fan_in = self.weight.shape[1] * prod(self.kernel_size)
            if fan_in:
                init.uniform_(self.bias, -1 / sqrt(fan_in), 1 / sqrt(fan_in))

    def forward(self, input: Tensor) -> Tensor:
        padding = self.padding
        if self.padding_mode != "zeros":
            input = functional.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
            padding = (0,) * self.rank
        function = getattr(functional, f"conv{self.rank}d")
        out: Tensor = function(input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)
        return out

    def _around(self) -> list[int]:
        """The padding as functional.pad takes it: before and after of the last axis first."""
        if self.padding == "valid":
            return [0] * (2 * self.rank)
        out = []
        for axis in reversed(range(self.rank)):
            if isinstance(self.padding, str):
                total = self.dilation[axis] * (self.kernel_size[axis] - 1)
                out += [total // 2, total - total // 2]
            else:
                out += [self.padding[axis]] * 2
        return out

    def extra_repr(self) -> str:
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        if self.padding != (0,) * self.rank:
            text += f", padding={self.padding}"
        if self.dilation != (1,) * self.rank:
            text += f", dilation={self.dilation}"
        if self.output_padding != (0,) * self.rank:
            text += f", output_padding={self.output_padding}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        if self.padding_mode != "zeros":
            text += f", padding_mode={self.padding_mode}"
        return text


class _Conv(_ConvNd):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes | str = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: DeviceLike = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, device, dtype
        )


class Conv1d(_Conv):
    """Shapes: (n, in_channels, l) -> (n, out_channels, positions); the batch axis may be absent."""

    rank = 1


class Conv2d(_Conv):
    """Shapes: (n, in_channels, h, w) -> (n, out_channels, *positions); the batch axis may be absent."""

    rank = 2


class Conv3d(_Conv):
    """Shapes: (n, in_channels, d, h, w) -> (n, out_channels, *positions); the batch axis may be absent."""

    rank = 3


class _ConvTransposeNd(_ConvNd):
    transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes = 0,
        output_padding: Sizes = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Sizes = 1,
        padding_mode: str = "zeros",
        device: DeviceLike = None,
        dtype: DType | None = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, device,
            dtype, output_padding,
        )  # fmt: skip

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        extra = self.output_padding if output_size is None else self._extra(input, output_size)
        function = getattr(functional, f"conv_transpose{self.rank}d")
        out: Tensor = function(
            input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation
        )
        return out

    def _extra(self, input: Tensor, output_size: Sequence[int]) -> tuple[int, ...]:
        """The output padding that gives `output_size`."""
        wanted = tuple(output_size)[-self.rank :]
        out = []
        for axis, (n, size) in enumerate(zip(input.shape[-self.rank :], wanted, strict=True)):
            pad = self.padding[axis]
            assert isinstance(pad, int)
            least = (n - 1) * self.stride[axis] - 2 * pad + self.dilation[axis] * (self.kernel_size[axis] - 1) + 1
            if not least <= size < least + self.stride[axis]:
                raise ValueError(
                    f"requested an output size of {wanted}, but valid sizes of axis {axis} range from {least} to "
                    f"{least + self.stride[axis] - 1} (for an input of {list(input.shape)})"
                )
            out.append(size - least)
        return tuple(out)


class ConvTranspose1d(_ConvTransposeNd):
    """The gradient of Conv1d as a layer. Shapes: (n, in_channels, l) -> (n, out_channels, positions)."""

    rank = 1


class ConvTranspose2d(_ConvTransposeNd):
    """The gradient of Conv2d as a layer. Shapes: (n, in_channels, h, w) -> (n, out_channels, *positions)."""

    rank = 2


class ConvTranspose3d(_ConvTransposeNd):
    """The gradient of Conv3d as a layer. Shapes: (n, in_channels, d, h, w) -> (n, out_channels, *positions)."""

    rank = 3
