"""Dropout layers: noise in training, nothing in evaluation."""

from collections.abc import Callable

from pywebgpu.nn import functional
from pywebgpu.nn.module import Module
from pywebgpu.tensor.tensor import Tensor


class _DropoutNd(Module):
    function: Callable[..., Tensor]

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p, self.inplace = p, inplace

    def forward(self, input: Tensor) -> Tensor:
        return type(self).function(input, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_DropoutNd):
    """Each element is 0 with probability p, and else divided by 1 - p."""

    function = staticmethod(functional.dropout)


class Dropout1d(_DropoutNd):
    """Dropout of whole channels of (n, c, l) or (c, l)."""

    function = staticmethod(functional.dropout1d)


class Dropout2d(_DropoutNd):
    """Dropout of whole channels of (n, c, h, w)."""

    function = staticmethod(functional.dropout2d)


class Dropout3d(_DropoutNd):
    """Dropout of whole channels of (n, c, d, h, w) or (c, d, h, w)."""

    function = staticmethod(functional.dropout3d)


class AlphaDropout(_DropoutNd):
    """Dropout that keeps mean and variance of what SELU gives."""

    function = staticmethod(functional.alpha_dropout)


class FeatureAlphaDropout(_DropoutNd):
    """AlphaDropout of whole channels."""

    function = staticmethod(functional.feature_alpha_dropout)
