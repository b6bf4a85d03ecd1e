"""torch.nn.grad: the gradients of convolutions, of their inputs and of their weights."""

from __future__ import annotations

from collections.abc import Sequence

from pywebgpu.autodiff import grad_mode
from pywebgpu.nn import functional
from pywebgpu.nn.functional.ranks import of_each_rank
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


def _leaf(size: Sequence[int], like: Tensor) -> Tensor:
    return create.zeros(tuple(size), dtype=like.dtype, device=like.device, requires_grad=True)


def _convnd_input(
    input_size: Sequence[int],
    weight: Tensor,
    grad_output: Tensor,
    stride: _Steps = 1,
    padding: _Steps = 0,
    dilation: _Steps = 1,
    groups: int = 1,
    *,
    rank: int = 2,
) -> Tensor:
    """The gradient of convnd's input, of a size, from that of its output."""
    leaf = _leaf(input_size, weight)
    return _gradient(rank, [leaf, weight], leaf, grad_output, stride, padding, dilation, groups)


def _convnd_weight(
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: _Steps = 1,
    padding: _Steps = 0,
    dilation: _Steps = 1,
    groups: int = 1,
    *,
    rank: int = 2,
) -> Tensor:
    """The gradient of convnd's weight, of a size, from that of its output."""
    leaf = _leaf(weight_size, input)
    return _gradient(rank, [input, leaf], leaf, grad_output, stride, padding, dilation, groups)


conv1d_input, conv2d_input, conv3d_input = of_each_rank(_convnd_input)
conv1d_weight, conv2d_weight, conv3d_weight = of_each_rank(_convnd_weight)
__getattr__ = lazy.absent(__name__)
