"""Activations, and the dropouts that follow them. `inplace=True` writes the result into the input, too."""

from collections.abc import Callable as _Callable
from typing import Any as _Any

from pywebgpu import dtypes as _dtypes
from pywebgpu.composites import activation as _activation
from pywebgpu.composites import rare_activations as _rare_activations
from pywebgpu.composites import reduce as _reduce
from pywebgpu.ir.graph import Node as _Node
from pywebgpu.ops import pointwise as _pointwise
from pywebgpu.tensor import create as _create
from pywebgpu.tensor import dispatch as _dispatch
from pywebgpu.tensor import outputs as _outputs
from pywebgpu.tensor import random as _random
from pywebgpu.tensor import tensor as _tensor
from pywebgpu.tensor.apply import apply as _apply
from pywebgpu.tensor.apply import called as _called
from pywebgpu.tensor.methods import named_by_numpy as _named_by_numpy

_T = _tensor.Tensor


def _out(input: _T, inplace: bool, function: _Callable[..., _Node], *args: object) -> _T:
    if not inplace:
        return _apply(function, input, *args)
    # The gradient may read the input as it was, so what is computed from is a copy, which fuses away.
    return input._written(_apply(function, _apply(_pointwise.copy, input), *args))


def relu(input: _T, inplace: bool = False) -> _T:
    """max(x, 0)"""
    return _out(input, inplace, _activation.relu)


def relu_(input: _T) -> _T:
    """relu, written into the input."""
    return relu(input, inplace=True)


def relu6(input: _T, inplace: bool = False) -> _T:
    """x held in [0, 6]."""
    return _out(input, inplace, _rare_activations.relu6)


def hardtanh(input: _T, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> _T:
    """x held in [min_val, max_val]."""
    return _out(input, inplace, _rare_activations.hardtanh, min_val, max_val)


def hardtanh_(input: _T, min_val: float = -1.0, max_val: float = 1.0) -> _T:
    """hardtanh, written into the input."""
    return hardtanh(input, min_val, max_val, inplace=True)


def elu(input: _T, alpha: float = 1.0, inplace: bool = False) -> _T:
    """x where x > 0, else alpha (exp(x) - 1)."""
    return _out(input, inplace, _rare_activations.elu, alpha)


def elu_(input: _T, alpha: float = 1.0) -> _T:
    """elu, written into the input."""
    return elu(input, alpha, inplace=True)


def selu(input: _T, inplace: bool = False) -> _T:
    """elu with the constants that keep mean 0 and variance 1."""
    return _out(input, inplace, _rare_activations.selu)


def celu(input: _T, alpha: float = 1.0, inplace: bool = False) -> _T:
    """x where x > 0, else alpha (exp(x / alpha) - 1)."""
    return _out(input, inplace, _rare_activations.celu, alpha)


def selu_(input: _T) -> _T:
    """selu, written into the input."""
    return selu(input, inplace=True)


def celu_(input: _T, alpha: float = 1.0) -> _T:
    """celu, written into the input."""
    return celu(input, alpha, inplace=True)


def leaky_relu(input: _T, negative_slope: float = 0.01, inplace: bool = False) -> _T:
    """x where x > 0, else negative_slope x."""
    return _out(input, inplace, _rare_activations.leaky_relu, negative_slope)


def leaky_relu_(input: _T, negative_slope: float = 0.01) -> _T:
    """leaky_relu, written into the input."""
    return leaky_relu(input, negative_slope, inplace=True)


def prelu(input: _T, weight: _T) -> _T:
    """x where x > 0, else weight x, by channel."""
    return _out(input, False, _rare_activations.prelu, weight)


def rrelu(
    input: _T, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, inplace: bool = False
) -> _T:
    """leaky_relu with a slope drawn for each element in training, else with the mean slope."""
    if not lower <= upper:
        raise RuntimeError(f"Lower bound should be less than or equal to the upper bound, got {lower} and {upper}")
    if not training:
        return _called(leaky_relu(input, (lower + upper) / 2, inplace), "aten::rrelu_with_noise")
    return _out(input, inplace, _rare_activations.rrelu, lower, upper, _random.seed_node(input.device))


def rrelu_(input: _T, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False) -> _T:
    """rrelu, written into the input."""
    return rrelu(input, lower, upper, training, inplace=True)


@_named_by_numpy
@_outputs.writable("nn.functional.gelu")
def gelu(input: _T, approximate: str = "none") -> _T:
    """x P(normal < x), exact or by tanh (`approximate="tanh"`)."""
    return _out(input, False, _activation.gelu, approximate)


def silu(input: _T, inplace: bool = False) -> _T:
    """x sigmoid(x)"""
    return _out(input, inplace, _activation.silu)


def mish(input: _T, inplace: bool = False) -> _T:
    """x tanh(softplus(x))"""
    return _out(input, inplace, _rare_activations.mish)


def hardswish(input: _T, inplace: bool = False) -> _T:
    """x relu6(x + 3) / 6"""
    return _out(input, inplace, _rare_activations.hardswish)


def hardsigmoid(input: _T, inplace: bool = False) -> _T:
    """relu6(x + 3) / 6"""
    return _out(input, inplace, _rare_activations.hardsigmoid)


def sigmoid(input: _T) -> _T:
    """1 / (1 + exp(-x))"""
    out: _T = input.sigmoid()
    return out


def tanh(input: _T) -> _T:
    """The hyperbolic tangent."""
    out: _T = input.tanh()
    return out


@_named_by_numpy
@_outputs.writable("nn.functional.softplus")
def softplus(input: _T, beta: float = 1.0, threshold: float = 20.0) -> _T:
    """log(1 + exp(beta x)) / beta, and x where beta x > threshold."""
    return _out(input, False, _rare_activations.softplus, beta, threshold)


@_named_by_numpy
@_outputs.writable("nn.functional.logsigmoid")
def logsigmoid(input: _T) -> _T:
    """log(sigmoid(x))"""
    return _out(input, False, _rare_activations.logsigmoid)


@_named_by_numpy
@_outputs.writable("nn.functional.hardshrink")
def hardshrink(input: _T, lambd: float = 0.5) -> _T:
    """x where |x| > lambd, else 0."""
    return _out(input, False, _rare_activations.hardshrink, lambd)


@_named_by_numpy
@_outputs.writable("nn.functional.softshrink")
def softshrink(input: _T, lambd: float = 0.5) -> _T:
    """x moved towards 0 by lambd."""
    return _out(input, False, _rare_activations.softshrink, lambd)


def tanhshrink(input: _T) -> _T:
    """x - tanh(x)"""
    return _out(input, False, _rare_activations.tanhshrink)


def softsign(input: _T) -> _T:
    """x / (1 + |x|)"""
    return _out(input, False, _rare_activations.softsign)


def threshold(input: _T, threshold: float, value: float, inplace: bool = False) -> _T:
    """x where x > threshold, else value."""
    return _out(input, inplace, _rare_activations.threshold, threshold, value)


def threshold_(input: _T, threshold: float, value: float) -> _T:
    """threshold, written into the input."""
    return _out(input, True, _rare_activations.threshold, threshold, value)


def glu(input: _T, dim: int = -1) -> _T:
    """The first half of axis `dim` times the sigmoid of the second half."""
    return _out(input, False, _rare_activations.glu, dim)


# Rows


def softmax(input: _T, dim: int | None = None, _stacklevel: int = 3, dtype: _dtypes.DType | None = None) -> _T:
    """exp(x) over its sum along `dim`."""
    return _apply(_reduce.softmax, input, _implicit(dim, input), dtype=dtype)


def softmin(input: _T, dim: int | None = None, _stacklevel: int = 3, dtype: _dtypes.DType | None = None) -> _T:
    """softmax(-x)"""
    return softmax(-input, dim, dtype=dtype)


def log_softmax(input: _T, dim: int | None = None, _stacklevel: int = 3, dtype: _dtypes.DType | None = None) -> _T:
    """log(softmax(x)) along `dim`, computed as one."""
    return _apply(_reduce.log_softmax, input, _implicit(dim, input), dtype=dtype)


def gumbel_softmax(logits: _T, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> _T:
    """A sample near a one-hot vector, drawn by the logits; `hard` makes it one-hot, with the soft one's gradient."""
    uniform = _random.rand_like(logits)
    noise = -(-(uniform + 1e-20).log() + 1e-20).log()
    soft = softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    index = soft.detach().argmax(dim, keepdim=True)
    chosen = _create.zeros_like(soft).scatter(dim, index, 1.0)
    out: _T = chosen - soft.detach() + soft
    return out


def _implicit(dim: int | None, input: _T) -> int:
    """torch's choice where no axis is named, without its warning."""
    if dim is not None:
        return dim
    return 0 if input.ndim in (0, 1, 3) else 1


# Dropout


def dropout(input: _T, p: float = 0.5, training: bool = True, inplace: bool = False) -> _T:
    """In training, each element is 0 with probability p, and else divided by 1 - p."""
    return _dropped(input, p, training, inplace, _activation.dropout)


def alpha_dropout(input: _T, p: float = 0.5, training: bool = False, inplace: bool = False) -> _T:
    """Dropout that keeps mean and variance of what selu gives."""
    return _dropped(input, p, training, inplace, _activation.alpha_dropout)


def feature_alpha_dropout(input: _T, p: float = 0.5, training: bool = False, inplace: bool = False) -> _T:
    """alpha_dropout of whole channels."""
    return _dropped(input, p, training, inplace, _activation.alpha_dropout, channel_axis=1)


def _dropped(input: _T, p: float, training: bool, inplace: bool, function: _Callable[..., _Any], **options: _Any) -> _T:
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not isinstance(input, _T):
        raise TypeError(
            f"{function.__name__}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}"
        )
    if not training or p == 0.0:
        return input
    seed = _random.seed_node(input.device)
    return _out(input, inplace, lambda x: function(x, p, seed, **options))


globals().update(_dispatch.all_public(globals(), __name__))
