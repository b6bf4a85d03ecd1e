"""torch.nn.grad: the gradients of convolutions, of their inputs and of their weights."""

from __future__ import annotations

from collections.abc import Sequence

from pywebgpu.autodiff import grad_mode
from pywebgpu.nn import functional
from pywebgpu.support import lazy
from pywebgpu.tensor import create, gradient
from pywebgpu.tensor.tensor import Tensor

_Steps = int | Sequence[int]


def _of_input(
    rank: int,
    input_size: Sequence[int],
    weight: Tensor,
    grad_output: Tensor,
    stride: _Steps,
    padding: _Steps,
    dilation: _Steps,
    groups: int,
) -> Tensor:
    with grad_mode.enable_grad():
        x = create.zeros(tuple(input_size), dtype=weight.dtype, device=weight.device, requires_grad=True)
        convolution = getattr(functional, f"conv{rank}d")
        out = convolution(x, weight, None, stride, padding, dilation, groups)
    return gradient.grad(out, x, grad_output, create_graph=grad_mode.is_grad_enabled())[0]  # type: ignore[no-any-return]


def _of_weight(
    rank: int,
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: _Steps,
    padding: _Steps,
    dilation: _Steps,
    groups: int,
) -> Tensor:
    with grad_mode.enable_grad():
        weight = create.zeros(tuple(weight_size), dtype=input.dtype, device=input.device, requires_grad=True)
        convolution = getattr(functional, f"conv{rank}d")
        out = convolution(input, weight, None, stride, padding, dilation, groups)
    return gradient.grad(out, weight, grad_output, create_graph=grad_mode.is_grad_enabled())[0]  # type: ignore[no-any-return]


def conv1d_input(
    input_size: Sequence[int],
    weight: Tensor,
    grad_output: Tensor,
    stride: _Steps = 1,
    padding: _Steps = 0,
    dilation: _Steps = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of conv1d's input, of a size, from that of its output."""
    return _of_input(1, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv1d_weight(
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: _Steps = 1,
    padding: _Steps = 0,
    dilation: _Steps = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of conv1d's weight, of a size, from that of its output."""
    return _of_weight(1, input, weight_size, grad_output, stride, padding, dilation, groups)


def conv2d_input(
    input_size: Sequence[int],
    weight: Tensor,
    grad_output: Tensor,
    stride: _Steps = 1,
    padding: _Steps = 0,
    dilation: _Steps = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of conv2d's input, of a size, from that of its output."""
    return _of_input(2, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv2d_weight(
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: _Steps = 1,
    padding: _Steps = 0,
    dilation: _Steps = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of conv2d's weight, of a size, from that of its output."""
    return _of_weight(2, input, weight_size, grad_output, stride, padding, dilation, groups)


def conv3d_input(
    input_size: Sequence[int],
    weight: Tensor,
    grad_output: Tensor,
    stride: _Steps = 1,
    padding: _Steps = 0,
    dilation: _Steps = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of conv3d's input, of a size, from that of its output."""
    return _of_input(3, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv3d_weight(
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: _Steps = 1,
    padding: _Steps = 0,
    dilation: _Steps = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of conv3d's weight, of a size, from that of its output."""
    return _of_weight(3, input, weight_size, grad_output, stride, padding, dilation, groups)


__getattr__ = lazy.absent(__name__)
