"""What layers are made of, under the names that PyTorch's own library has: conv_tbc, lstm_cell, convolution …"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from pywebgpu import linalg
from pywebgpu.errors import ShapeError
from pywebgpu.nn import functional
from pywebgpu.tensor import dispatch
from pywebgpu.tensor.tensor import Tensor

Maybe = Tensor | None


# Convolutions and what stands beside them


def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """conv1d of a time axis that comes first.

    Shapes: input (t, b, c), weight (k, c, n), bias (n,) -> (t + 2 * pad - k + 1, b, n).
    """
    if (input.dim(), weight.dim(), bias.dim()) != (3, 3, 1):
        raise RuntimeError("conv_tbc: needs input (t, b, c), weight (k, c, n) and bias (n,)")
    result: Tensor = functional.conv1d(input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad)
    return result.permute(2, 0, 1)


def convolution(
    input: Tensor,
    weight: Tensor,
    bias: Maybe,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Tensor:
    """conv1d, 2d or 3d, or the transposed one, by the number of axes. Shapes: input (b, c, ...), weight (n, c, ...)."""
    name = f"{'conv_transpose' if transposed else 'conv'}{weight.dim() - 2}d"
    layer = getattr(functional, name)
    if transposed:
        return cast(Tensor, layer(input, weight, bias, stride, padding, output_padding, groups, dilation))
    return cast(Tensor, layer(input, weight, bias, stride, padding, dilation, groups))


def _convolution(*args: Any) -> Tensor:
    """convolution; what follows its nine arguments is about cuDNN."""
    return convolution(*args[:9])


def affine_grid_generator(theta: Tensor, size: Sequence[int], align_corners: bool) -> Tensor:
    """affine_grid, with all of its arguments. Shapes: theta (b, 2, 3) -> (b, h, w, 2)."""
    return functional.affine_grid(theta, list(size), align_corners)


def native_channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """channel_shuffle."""
    return functional.channel_shuffle(input, groups)


def max_pool1d_with_indices(
    input: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] = (),
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    ceil_mode: bool = False,
) -> tuple[Tensor, Tensor]:
    """max_pool1d, and where each maximum was. Shapes: (b, c, t) -> (b, c, t'), twice."""
    pooled = functional.max_pool1d(
        input, kernel_size, stride or None, padding, dilation, ceil_mode, return_indices=True
    )
    return cast("tuple[Tensor, Tensor]", pooled)


def norm_except_dim(v: Tensor, pow: int = 2, dim: int = 0) -> Tensor:
    """The norm over all axes but one, which stay with size 1; over all of them, as a number, for dim -1."""
    if dim == -1:
        return linalg.vector_norm(v, pow)
    if v.dim() == 1:
        return v.abs()
    if dim not in (0, v.dim() - 1):
        return norm_except_dim(v.transpose(0, dim), pow, 0).transpose(0, dim)
    return linalg.vector_norm(v, pow, [axis for axis in range(v.dim()) if axis != dim], keepdim=True)


# One step of a recurrent layer


def _gates(x: Tensor, h: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Maybe, b_hh: Maybe) -> tuple[Tensor, Tensor]:
    for name, part in (("input", x), ("hx", h), ("w_ih", w_ih), ("w_hh", w_hh)):
        if part.ndim != 2:
            raise ShapeError(f"{name}: needs 2 dimensions, got {[*part.shape]}")
    return functional.linear(x, w_ih, b_ih), functional.linear(h, w_hh, b_hh)


def rnn_tanh_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Maybe = None, b_hh: Maybe = None
) -> Tensor:
    """nn.RNNCell's next state. Shapes: input (b, n), hx (b, h), w_ih (h, n), w_hh (h, h) -> (b, h)."""
    new, old = _gates(input, hx, w_ih, w_hh, b_ih, b_hh)
    return (new + old).tanh()


def rnn_relu_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Maybe = None, b_hh: Maybe = None
) -> Tensor:
    """As rnn_tanh_cell, with relu."""
    new, old = _gates(input, hx, w_ih, w_hh, b_ih, b_hh)
    return (new + old).relu()


def gru_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Maybe = None, b_hh: Maybe = None) -> Tensor:
    """nn.GRUCell's next state. Shapes: input (b, n), hx (b, h), w_ih (3h, n), w_hh (3h, h) -> (b, h)."""
    new, old = (gates.chunk(3, 1) for gates in _gates(input, hx, w_ih, w_hh, b_ih, b_hh))
    reset, update = (new[0] + old[0]).sigmoid(), (new[1] + old[1]).sigmoid()
    candidate = (new[2] + reset * old[2]).tanh()
    return candidate + update * (hx - candidate)


def lstm_cell(
    input: Tensor, hx: Sequence[Tensor], w_ih: Tensor, w_hh: Tensor, b_ih: Maybe = None, b_hh: Maybe = None
) -> tuple[Tensor, Tensor]:
    """nn.LSTMCell's next h and c. Shapes: input (b, n), hx two of (b, h), w_ih (4h, n), w_hh (4h, h)."""
    h, c = hx
    if c.shape != h.shape:
        raise ShapeError(f"lstm_cell: needs hx of two equal shapes, got {[*h.shape]} and {[*c.shape]}")
    new, old = _gates(input, h, w_ih, w_hh, b_ih, b_hh)
    enter, forget, candidate, leave = (new + old).chunk(4, 1)
    c = forget.sigmoid() * c + enter.sigmoid() * candidate.tanh()
    return leave.sigmoid() * c.tanh(), c


globals().update(dispatch.all_public(globals(), __name__))
