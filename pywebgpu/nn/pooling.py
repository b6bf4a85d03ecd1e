"""Pooling layers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pywebgpu.nn import functional
from pywebgpu.nn.function_layers import FunctionLayer
from pywebgpu.nn.module import Module
from pywebgpu.support import shapes
from pywebgpu.tensor.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pywebgpu.nn.types import OutputSizes
    from pywebgpu.tensor.types import Sizes


class _IndexedPool(FunctionLayer):
    """Gives the largest elements, or with `return_indices` also where they were."""

    def forward(self, input: Tensor) -> Tensor | tuple[Tensor, Tensor]:  # type: ignore[override]  # as torch
        return super().forward(input)

    def extra_repr(self) -> str:
        return super().extra_repr().removesuffix(f", return_indices={self.return_indices}")


class _MaxPoolNd(_IndexedPool):
    _arguments = "kernel_size", "stride", "padding", "dilation", "ceil_mode", "return_indices"

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        dilation: Sizes = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding, self.dilation = padding, dilation
        self.return_indices, self.ceil_mode = return_indices, ceil_mode


class MaxPool1d(_MaxPoolNd):
    """The largest element of each window of the last axis."""

    function = "max_pool1d"


class MaxPool2d(_MaxPoolNd):
    """The largest element of each window of the last two axes."""

    function = "max_pool2d"


class MaxPool3d(_MaxPoolNd):
    """The largest element of each window of the last three axes."""

    function = "max_pool3d"


class _AveragePool(FunctionLayer):
    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool1d(_AveragePool):
    """The mean of each window of the last axis."""

    function = "avg_pool1d"
    _arguments = "kernel_size", "stride", "padding", "ceil_mode", "count_include_pad"

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size = _single(kernel_size)
        self.stride = self.kernel_size if stride is None else _single(stride)
        self.padding, self.ceil_mode, self.count_include_pad = _single(padding), ceil_mode, count_include_pad


class _AvgPoolNd(_AveragePool):
    _arguments = *AvgPool1d._arguments, "divisor_override"

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding, self.ceil_mode = padding, ceil_mode
        self.count_include_pad, self.divisor_override = count_include_pad, divisor_override


class AvgPool2d(_AvgPoolNd):
    """The mean of each window of the last two axes."""

    function = "avg_pool2d"


class AvgPool3d(_AvgPoolNd):
    """The mean of each window of the last three axes."""

    function = "avg_pool3d"


class _LPPoolNd(FunctionLayer):
    _arguments = "norm_type", "kernel_size", "stride", "ceil_mode"

    def __init__(
        self, norm_type: float, kernel_size: Sizes, stride: Sizes | None = None, ceil_mode: bool = False
    ) -> None:
        super().__init__()
        self.norm_type, self.kernel_size, self.stride, self.ceil_mode = norm_type, kernel_size, stride, ceil_mode


class LPPool1d(_LPPoolNd):
    """(sum of x^p)^(1/p) over each window of the last axis."""

    function = "lp_pool1d"


class LPPool2d(_LPPoolNd):
    """(sum of x^p)^(1/p) over each window of the last two axes."""

    function = "lp_pool2d"


class LPPool3d(_LPPoolNd):
    """(sum of x^p)^(1/p) over each window of the last three axes."""

    function = "lp_pool3d"


class _AdaptiveAvg(FunctionLayer):
    _arguments = ("output_size",)

    def __init__(self, output_size: OutputSizes) -> None:
        super().__init__()
        self.output_size = output_size


class AdaptiveAvgPool1d(_AdaptiveAvg):
    """Means of `output_size` windows which cover the last axis."""

    function = "adaptive_avg_pool1d"


class AdaptiveAvgPool2d(_AdaptiveAvg):
    """Means of `output_size` windows which cover the last two axes."""

    function = "adaptive_avg_pool2d"


class AdaptiveAvgPool3d(_AdaptiveAvg):
    """Means of `output_size` windows which cover the last three axes."""

    function = "adaptive_avg_pool3d"


class _AdaptiveMax(_IndexedPool):
    _arguments = "output_size", "return_indices"

    def __init__(self, output_size: OutputSizes, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size, self.return_indices = output_size, return_indices


class AdaptiveMaxPool1d(_AdaptiveMax):
    """The largest elements of `output_size` windows which cover the last axis."""

    function = "adaptive_max_pool1d"


class AdaptiveMaxPool2d(_AdaptiveMax):
    """The largest elements of `output_size` windows which cover the last two axes."""

    function = "adaptive_max_pool2d"


class AdaptiveMaxPool3d(_AdaptiveMax):
    """The largest elements of `output_size` windows which cover the last three axes."""

    function = "adaptive_max_pool3d"


def _single(value: Sizes) -> tuple[int, ...]:
    value = shapes.plain(value)
    return (value,) if isinstance(value, int) else tuple(value)


class _MaxUnpoolNd(Module):
    rank: int

    def __init__(self, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0) -> None:
        super().__init__()
        options = (kernel_size, kernel_size if stride is None else stride, padding)
        self.kernel_size, self.stride, self.padding = (
            (option,) * self.rank if isinstance(option, int) else tuple(option) for option in options
        )

    def forward(self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        function = getattr(functional, f"max_unpool{self.rank}d")
        out: Tensor = function(input, indices, self.kernel_size, self.stride, self.padding, output_size)
        return out

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpoolNd):
    """Zeros, with each maximum where MaxPool1d found it."""

    rank = 1


class MaxUnpool2d(_MaxUnpoolNd):
    """Zeros, with each maximum where MaxPool2d found it."""

    rank = 2


class MaxUnpool3d(_MaxUnpoolNd):
    """Zeros, with each maximum where MaxPool3d found it."""

    rank = 3


class _FractionalMaxPool(Module):
    rank: int

    def __init__(
        self,
        kernel_size: Sizes,
        output_size: Sizes | None = None,
        output_ratio: float | Sequence[float] | None = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:
        super().__init__()
        if output_size is None and output_ratio is None:
            name = type(self).__name__
            raise ValueError(f"{name} requires specifying either an output size, or a pooling ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        self.register_buffer("_random_samples", _random_samples)
        self.kernel_size = (kernel_size,) * self.rank if isinstance(kernel_size, int) else tuple(kernel_size)
        self.output_size, self.return_indices = output_size, return_indices
        self.output_ratio = (output_ratio,) * self.rank if isinstance(output_ratio, float | int) else output_ratio
        if self.output_ratio is not None and not all(0 < ratio < 1 for ratio in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def forward(self, input: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        function = getattr(functional, f"fractional_max_pool{self.rank}d")
        out: Tensor | tuple[Tensor, Tensor] = function(
            input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices, self._random_samples
        )
        return out


class FractionalMaxPool2d(_FractionalMaxPool):
    """The largest element of windows of the last two axes that lie at random steps (arXiv 1412.6071)."""

    rank = 2


class FractionalMaxPool3d(_FractionalMaxPool):
    """The largest element of windows of the last three axes that lie at random steps."""

    rank = 3
