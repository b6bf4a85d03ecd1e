"""torch.nn.grad: the gradients of convolutions, of their inputs and of their weights."""

from __future__ import annotations

from collections.abc import Sequence

from pywebgpu.autodiff import grad_mode
from pywebgpu.nn import functional
from pywebgpu.support import lazy
from pywebgpu.tensor import create, gradient
from pywebgpu.tensor.tensor import Tensor

_Steps = int | Sequence[int]


def _gradient(rank: int, operands: list[Tensor], leaf: Tensor, grad_output: Tensor, *options: _Steps) -> Tensor:
    """The gradient of an operand of a convolution, whose own values do not count: it is linear in each."""
    with grad_mode.enable_grad():
        out = getattr(functional, f"conv{rank}d")(*operands, None, *options)
    (result,) = gradient.grad(out, leaf, grad_output, create_graph=grad_mode.is_grad_enabled())
    return result  # type: ignore[no-any-return]


def _of_input(rank: int, size: Sequence[int], weight: Tensor, grad_output: Tensor, *options: _Steps) -> Tensor:
    leaf = _leaf(size, weight)
    return _gradient(rank, [leaf, weight], leaf, grad_output, *options)


def _of_weight(rank: int, input: Tensor, size: Sequence[int], grad_output: Tensor, *options: _Steps) -> Tensor:
    leaf = _leaf(size, input)
    return _gradient(rank, [input, leaf], leaf, grad_output, *options)


def _leaf(size: Sequence[int], like: Tensor) -> Tensor:
    return create.zeros(tuple(size), dtype=like.dtype, device=like.device, requires_grad=True)


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
