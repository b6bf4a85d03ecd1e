"""Normalisations of the channels of a batch."""

from pywebgpu.autodiff import grad_mode as _modes
from pywebgpu.composites import channel_norm as _channel_norm
from pywebgpu.errors import ShapeError as _ShapeError
from pywebgpu.tensor import dispatch as _dispatch
from pywebgpu.tensor import tensor as _tensor
from pywebgpu.tensor.apply import apply as _apply

_T = _tensor.Tensor


def group_norm(input: _T, num_groups: int, weight: _T | None = None, bias: _T | None = None, eps: float = 1e-5) -> _T:
    """Groups of channels of each sample to mean 0 and variance 1, then by weight and bias of each channel."""
    return _apply(_channel_norm.group_norm, input, num_groups, weight, bias, eps)


def batch_norm(
    input: _T,
    running_mean: _T | None,
    running_var: _T | None,
    weight: _T | None = None,
    bias: _T | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> _T:
    """Each channel to mean 0 and variance 1: of this batch in training, which moves the running ones, else of those."""
    if eps < 0 or (training and eps == 0):
        rule = "positive during training" if training else "non-negative"
        raise ValueError(f"batch_norm eps must be {rule}, but got {eps}")
    if not training:
        if running_mean is None or running_var is None:
            raise ValueError("Expected running_mean and running_var to be given when training=False")
        return _apply(_channel_norm.batch_norm_fixed, input, running_mean, running_var, weight, bias, eps)
    for name, running in (("running_mean", running_mean), ("running_var", running_var)):
        if running is not None and input.ndim > 1 and running.shape != (input.shape[1],):
            raise _ShapeError(f"batch_norm: {name} should be of shape ({input.shape[1]},), not {[*running.shape]}")
    out, mean, variance = _apply(_channel_norm.batch_norm, input, weight, bias, eps)
    _move(running_mean, mean, momentum, seen=input.numel())
    _move(running_var, variance, momentum, seen=input.numel())
    return out


def instance_norm(
    input: _T,
    running_mean: _T | None = None,
    running_var: _T | None = None,
    weight: _T | None = None,
    bias: _T | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> _T:
    """Each channel of each sample to mean 0 and variance 1, or by the running ones without `use_input_stats`."""
    if not use_input_stats:
        return batch_norm(input, running_mean, running_var, weight, bias, eps=eps)
    out, mean, variance = _apply(_channel_norm.instance_norm, input, weight, bias, eps)
    _move(running_mean, mean, momentum, seen=1)
    _move(running_var, variance, momentum, seen=1)
    return out


def _move(running: _T | None, statistic: _T, momentum: float, *, seen: int) -> None:
    if running is not None and seen:  # No batch says nothing of its channels.
        with _modes.no_grad():
            running.mul_(1 - momentum).add_(statistic.to(dtype=running.dtype) * momentum)


def local_response_norm(input: _T, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> _T:
    """x over a power of the squares of its neighbours in channel order."""
    return _apply(_channel_norm.local_response_norm, input, size, alpha, beta, k)


globals().update(_dispatch.all_public(globals(), __name__))
