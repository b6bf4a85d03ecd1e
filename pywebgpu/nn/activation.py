"""Activations as layers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pywebgpu.nn import functional
from pywebgpu.nn.function_layers import FunctionLayer
from pywebgpu.nn.module import Module
from pywebgpu.nn.parameter import Parameter
from pywebgpu.tensor import create
from pywebgpu.tensor.tensor import Tensor

if TYPE_CHECKING:
    from pywebgpu.dtypes import DType
    from pywebgpu.tensor.factory_options import DeviceLike


class _InPlace(FunctionLayer):
    """A function of the input, which may be written into it."""

    _arguments = ("inplace",)

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


class ReLU(_InPlace):
    """max(x, 0)"""

    function = "relu"


class ReLU6(_InPlace):
    """x held in [0, 6]."""

    function = "relu6"


class SELU(_InPlace):
    """ELU with the constants that keep mean 0 and variance 1."""

    function = "selu"


class SiLU(_InPlace):
    """x sigmoid(x)"""

    function = "silu"


class Mish(_InPlace):
    """x tanh(softplus(x))"""

    function = "mish"


class Hardswish(_InPlace):
    """x relu6(x + 3) / 6"""

    function = "hardswish"


class Hardsigmoid(_InPlace):
    """relu6(x + 3) / 6"""

    function = "hardsigmoid"


class Sigmoid(FunctionLayer):
    """1 / (1 + exp(-x))"""

    function = "sigmoid"


class Tanh(FunctionLayer):
    """The hyperbolic tangent."""

    function = "tanh"


class LogSigmoid(FunctionLayer):
    """log(sigmoid(x))"""

    function = "logsigmoid"


class Tanhshrink(FunctionLayer):
    """x - tanh(x)"""

    function = "tanhshrink"


class Softsign(FunctionLayer):
    """x / (1 + |x|)"""

    function = "softsign"


class GELU(FunctionLayer):
    """x P(normal < x), exact or by tanh (`approximate="tanh"`)."""

    function, _arguments = "gelu", ("approximate",)

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate


class ELU(FunctionLayer):
    """x where x > 0, else alpha (exp(x) - 1)."""

    function, _arguments = "elu", ("alpha", "inplace")

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha, self.inplace = alpha, inplace


class CELU(FunctionLayer):
    """x where x > 0, else alpha (exp(x / alpha) - 1)."""

    function, _arguments = "celu", ("alpha", "inplace")

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha, self.inplace = alpha, inplace


class LeakyReLU(FunctionLayer):
    """x where x > 0, else negative_slope x."""

    function, _arguments = "leaky_relu", ("negative_slope", "inplace")

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope, self.inplace = negative_slope, inplace


class PReLU(Module):
    """x where x > 0, else weight x, with one weight or one for each channel."""

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, device: DeviceLike = None, dtype: DType | None = None
    ) -> None:
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        self.weight = Parameter(create.full((num_parameters,), init, device=device, dtype=dtype))

    def reset_parameters(self) -> None:
        self.weight.detach().fill_(self.init)

    def forward(self, input: Tensor) -> Tensor:
        return functional.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class RReLU(Module):
    """LeakyReLU with slopes drawn from [lower, upper) in training, and their mean in evaluation."""

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False) -> None:
        super().__init__()
        self.lower, self.upper, self.inplace = lower, upper, inplace

    def forward(self, input: Tensor) -> Tensor:
        return functional.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"lower={self.lower}, upper={self.upper}" + ", inplace=True" * self.inplace


class Hardtanh(FunctionLayer):
    """x held in [min_val, max_val]."""

    function, _arguments = "hardtanh", ("min_val", "max_val", "inplace")

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: float | None = None,
        max_value: float | None = None,
    ) -> None:
        super().__init__()
        min_val, max_val = min_val if min_value is None else min_value, max_val if max_value is None else max_value
        self.min_val, self.max_val, self.inplace = min_val, max_val, inplace
        if max_val <= min_val:
            raise AssertionError(f"max_val must be larger than min_val, got {max_val} and {min_val}")


class Softplus(FunctionLayer):
    """log(1 + exp(beta x)) / beta, and x where beta x > threshold."""

    function, _arguments = "softplus", ("beta", "threshold")

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta, self.threshold = beta, threshold


class _Shrink(FunctionLayer):
    _arguments = ("lambd",)

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def extra_repr(self) -> str:
        return str(self.lambd)


class Hardshrink(_Shrink):
    """x where |x| > lambd, else 0."""

    function = "hardshrink"


class Softshrink(_Shrink):
    """x moved towards 0 by lambd."""

    function = "softshrink"


class Threshold(FunctionLayer):
    """x where x > threshold, else value."""

    function, _arguments = "threshold", ("threshold", "value", "inplace")

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold, self.value, self.inplace = threshold, value, inplace


class GLU(FunctionLayer):
    """The first half of axis `dim` times the sigmoid of the second half."""

    function, _arguments = "glu", ("dim",)

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim


class _Rows(FunctionLayer):
    _arguments = ("dim",)

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim


class Softmax(_Rows):
    """exp(x) over its sum along `dim`."""

    function = "softmax"


class Softmin(_Rows):
    """softmax(-x) along `dim`."""

    function = "softmin"


class LogSoftmax(_Rows):
    """log(softmax(x)) along `dim`, computed as one."""

    function = "log_softmax"


class Softmax2d(Module):
    """Softmax over the channels of (n, c, h, w) or (c, h, w)."""

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.ndim}D instead")
        return functional.softmax(input, -3)
