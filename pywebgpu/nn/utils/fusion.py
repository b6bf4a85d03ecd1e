"""A convolution or a linear layer and the batch normalization after it as one layer, for evaluation."""

import copy
from collections.abc import Callable
from typing import Any, TypeVar

from pywebgpu.nn.channel_norm import _BatchNorm
from pywebgpu.nn.conv import _ConvNd
from pywebgpu.nn.linear import Linear
from pywebgpu.nn.module import Module
from pywebgpu.nn.parameter import Parameter
from pywebgpu.tensor.tensor import Tensor

L = TypeVar("L", bound=Module)


def fuse_conv_bn_eval(conv: _ConvNd, bn: _BatchNorm, transpose: bool = False) -> _ConvNd:
    """A convolution that gives what `bn` gives of what `conv` gives; both are in evaluation mode."""
    if conv.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    return _fused(conv, bn, fuse_conv_bn_weights, transpose)


def fuse_linear_bn_eval(linear: Linear, bn: _BatchNorm) -> Linear:
    """A linear layer that gives what `bn` gives of what `linear` gives; both are in evaluation mode."""
    if linear.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    if linear.out_features != bn.num_features and bn.num_features != 1:
        raise AssertionError("To fuse, linear.out_features == bn.num_features or bn.num_features == 1")
    return _fused(linear, bn, fuse_linear_bn_weights)


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """The weight and bias of the one layer; `transpose` of a transposed convolution."""
    scale = (bn_rv + bn_eps).rsqrt() * (1 if bn_w is None else bn_w)
    shape = [1] * conv_w.dim()
    shape[1 if transpose else 0] = -1
    bias = (-bn_rm if conv_b is None else conv_b - bn_rm) * scale + (0 if bn_b is None else bn_b)
    needs = [True if parameter is None else parameter.requires_grad for parameter in (conv_w, conv_b)]
    weight = (conv_w * scale.reshape(shape)).to(conv_w.dtype)
    return Parameter(weight, needs[0]), Parameter(bias.to(conv_w.dtype), needs[1])


def fuse_linear_bn_weights(
    linear_w: Tensor,
    linear_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor,
    bn_b: Tensor,
) -> tuple[Parameter, Parameter]:
    """The weight and bias of the one layer."""
    return fuse_conv_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)


def _fused(layer: L, bn: _BatchNorm, weights: Callable[..., tuple[Parameter, Parameter]], *options: bool) -> L:
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("bn.running_mean and bn.running_var must not be None")
    fused: Any = copy.deepcopy(layer)
    fused.weight, fused.bias = weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, *options
    )
    return fused  # type: ignore[no-any-return]
