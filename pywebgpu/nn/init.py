"""Initial values, written in place and without history: torch.nn.init."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING

from pywebgpu.autodiff import grad_mode
from pywebgpu.support import lazy as _lazy
from pywebgpu.tensor.tensor import Tensor

if TYPE_CHECKING:
    from pywebgpu.tensor.generator import Source

CONVOLUTIONS = ("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d")


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor by which a nonlinearity's input should be wider. Raises ValueError for an unknown one."""
    if nonlinearity in ("linear", "sigmoid", *CONVOLUTIONS):
        return 1
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        if param is not None and (isinstance(param, bool) or not isinstance(param, int | float)):
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + (0.01 if param is None else param) ** 2))
    if nonlinearity == "selu":
        return 3.0 / 4
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Source | None = None) -> Tensor:
    """Draws from [a, b)."""
    with grad_mode.no_grad():
        return tensor.uniform_(a, b, generator=generator)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Source | None = None) -> Tensor:
    """Draws from the normal distribution."""
    with grad_mode.no_grad():
        return tensor.normal_(mean, std, generator=generator)


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Source | None = None,
) -> Tensor:
    """Draws from the part of the normal distribution within [a, b], through its inverse."""
    if (mean < a - 2 * std) or (mean > b + 2 * std):
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution may be incorrect.",
            stacklevel=2,
        )
    low, high = (math.erf((bound - mean) / std / math.sqrt(2)) for bound in (a, b))
    with grad_mode.no_grad():
        tensor.uniform_(low, high, generator=generator)
        tensor.erfinv_()
        tensor.mul_(std * math.sqrt(2)).add_(mean)
        return tensor.clamp_(min=a, max=b)


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fills with `val`."""
    with grad_mode.no_grad():
        return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """Fills with 1."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fills with 0."""
    return constant_(tensor, 0.0)


def eye_(tensor: Tensor) -> Tensor:
    """1 on the diagonal, 0 elsewhere. Raises ValueError when the tensor is not a matrix."""
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with grad_mode.no_grad():
        tensor.zero_()
        for position in range(min(tensor.shape)):
            tensor[position, position] = 1
    return tensor


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """A convolution weight that keeps its input: 1 in the centre of channel i of output i, in every group."""
    if tensor.ndim not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    if tensor.shape[0] % groups:
        raise ValueError("dim 0 must be divisible by groups")
    each = tensor.shape[0] // groups
    centre = tuple(n // 2 for n in tensor.shape[2:])
    with grad_mode.no_grad():
        tensor.zero_()
        for group in range(groups):
            for position in range(min(each, tensor.shape[1])):
                tensor[(group * each + position, position, *centre)] = 1
    return tensor


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Source | None = None) -> Tensor:
    """Uniform with variance gain^2 2 / (fan_in + fan_out) (Glorot, Bengio 2010)."""
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    bound = math.sqrt(3.0) * gain * math.sqrt(2.0 / float(fan_in + fan_out))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Source | None = None) -> Tensor:
    """Normal with variance gain^2 2 / (fan_in + fan_out) (Glorot, Bengio 2010)."""
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / float(fan_in + fan_out)), generator)


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Source | None = None,
) -> Tensor:
    """Uniform with variance gain^2 / fan (He et al. 2015, arXiv 1502.01852)."""
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=2)
        return tensor
    bound = math.sqrt(3.0) * calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Source | None = None,
) -> Tensor:
    """Normal with variance gain^2 / fan (He et al. 2015, arXiv 1502.01852)."""
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=2)
        return tensor
    return normal_(
        tensor, 0.0, calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode)), generator
    )


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Source | None = None) -> Tensor:
    """Rows, or columns if there are fewer, that are orthonormal, times gain (Saxe et al. 2013, arXiv 1312.6120).

    The polar factor of a normal matrix, which is as evenly distributed as torch's QR factor and needs products only.
    """
    if tensor.ndim < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    rows = tensor.shape[0]
    columns = tensor.numel() // rows
    long, short = max(rows, columns), min(rows, columns)
    with grad_mode.no_grad():
        drawn = normal_(tensor.new_empty((long, short)), generator=generator)
        q = _polar(drawn / (1.1 * (math.sqrt(long) + math.sqrt(short))))
        return tensor.copy_((q.t() if rows < columns else q).reshape(tensor.shape)).mul_(gain)


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Source | None = None) -> Tensor:
    """Normal, but for a share `sparsity` of zeros in each column."""
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows = tensor.shape[0]
    n_zeros = math.ceil(sparsity * rows)
    with grad_mode.no_grad():
        normal_(tensor, 0, std, generator)
        order = uniform_(tensor.new_empty(tensor.shape), generator=generator).argsort(0).argsort(0)
        return tensor.mul_((order >= n_zeros).to(dtype=tensor.dtype))


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return fan_in if mode == "fan_in" else fan_out


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    """How many numbers meet in one output, and in how many outputs one number counts."""
    if tensor.ndim < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


def _polar(x: Tensor) -> Tensor:
    """x (x^T x)^(-1/2) for singular values up to 1.

    First polynomials that bring them all near 1 (Jordan 2024, Muon), then Newton and Schulz's, which converges there.
    """
    for _ in range(14):  # Singular values from 1e-7 on: those below are rarer than one matrix in a thousand.
        square = x.t() @ x
        x = x * 3.4445 + x @ (square * -4.775 + (square @ square) * 2.0315)
    for _ in range(8):
        x = x * 1.5 - x @ (x.t() @ x) * 0.5
    return x


__getattr__ = _lazy.absent(__name__)
