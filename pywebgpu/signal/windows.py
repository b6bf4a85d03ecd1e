"""torch.signal.windows: M numbers that rise from the ends to the middle. `sym` is False for one period of a repeated
window, which is one number short."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from math import pi
from typing import TYPE_CHECKING, Unpack

from pywebgpu import dtypes
from pywebgpu.support import closed_types
from pywebgpu.tensor import create

if TYPE_CHECKING:
    from pywebgpu.tensor.tensor import Tensor
    from pywebgpu.tensor.types import Made


def exponential(
    M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, **options: Unpack[Made]
) -> Tensor:
    """exp(-|n - center| / tau). Raises ValueError for tau <= 0, and for a center of a symmetric window."""
    _check("exponential", M, options)
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    if M == 0:
        return create.empty((0,), **options)
    middle = (M if not sym and M > 1 else M - 1) / 2.0 if center is None else center
    return _made(_steps(M, options).sub(middle).abs().div(-tau).exp(), options)


def cosine(M: int, *, sym: bool = True, **options: Unpack[Made]) -> Tensor:
    """Half a wave: sin(pi (n + 0.5) / M)"""
    _check("cosine", M, options)
    if M == 0:
        return create.empty((0,), **options)
    return _made(_steps(M, options).add(0.5).mul(pi / (M + 1 if not sym and M > 1 else M)).sin(), options)


def gaussian(M: int, *, std: float = 1.0, sym: bool = True, **options: Unpack[Made]) -> Tensor:
    """exp(-x^2 / (2 std^2)), x the distance from the middle. Raises ValueError for std <= 0."""
    _check("gaussian", M, options)
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    if M == 0:
        return create.empty((0,), **options)
    middle = (M if not sym and M > 1 else M - 1) / 2.0
    return _made(_steps(M, options).sub(middle).div(std * 2.0**0.5).square().neg().exp(), options)


def kaiser(M: int, *, beta: float = 12.0, sym: bool = True, **options: Unpack[Made]) -> Tensor:
    """I0(beta sqrt(1 - x^2)) / I0(beta) for x from -1 to 1. Raises ValueError for beta < 0."""
    _check("kaiser", M, options)
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    if M == 0:
        return create.empty((0,), **options)
    if M == 1:
        return create.ones((1,), **options)
    position = _steps(M, options).mul(2 / (M - 1 if sym else M)).sub(1)
    return _made(bessel(position.square().neg().add(1).clamp_min(0).sqrt().mul(beta), beta), options)


def bessel(x: Tensor, beta: float) -> Tensor:
    """I0(x) / I0(beta) for 0 <= x <= beta, the modified Bessel function of order 0: the sum of ((x/2)^k / k!)^2.

    Each term is over the largest sum, so that none overflows.
    """
    square = x.square().mul(0.25)
    terms, series, term = [1.0], 1.0, 1.0
    while term > 1e-17 * series:
        term *= (beta / 2) ** 2 / len(terms) ** 2
        series += term
        terms.append(term)
    total = x.mul(0)
    for k in range(len(terms) - 1, 0, -1):
        total = total.add(1).mul(square).mul(1.0 / k**2)
    return total.add(1).mul(1.0 / series)


def hamming(M: int, *, sym: bool = True, **options: Unpack[Made]) -> Tensor:
    """0.54 - 0.46 cos"""
    return general_hamming(M, sym=sym, **options)


def hann(M: int, *, sym: bool = True, **options: Unpack[Made]) -> Tensor:
    """0.5 - 0.5 cos"""
    return general_hamming(M, alpha=0.5, sym=sym, **options)


def blackman(M: int, *, sym: bool = True, **options: Unpack[Made]) -> Tensor:
    """0.42 - 0.5 cos + 0.08 cos of twice the angle"""
    _check("blackman", M, options)
    return general_cosine(M, a=[0.42, 0.5, 0.08], sym=sym, **options)


def bartlett(M: int, *, sym: bool = True, **options: Unpack[Made]) -> Tensor:
    """A triangle from 0 over 1 to 0."""
    _check("bartlett", M, options)
    if M == 0:
        return create.empty((0,), **options)
    if M == 1:
        return create.ones((1,), **options)
    position = _steps(M, options).mul(2 / (M - 1 if sym else M)).sub(1)
    return _made(position.abs().neg().add(1), options)


def general_cosine(M: int, *, a: Iterable[float], sym: bool = True, **options: Unpack[Made]) -> Tensor:
    """a[0] - a[1] cos + a[2] cos of twice the angle and so on.

    Raises: TypeError, ValueError where `a` is no list of weights.
    """
    _check("general_cosine", M, options)
    if not isinstance(a, Iterable):
        raise TypeError("Coefficients must be a list/tuple")
    weights = list(a)
    if not weights:
        raise ValueError("Coefficients cannot be empty")
    if M == 0:
        return create.empty((0,), **options)
    if M == 1:
        return create.ones((1,), **options)
    angle = _steps(M, options).mul(2 * pi / (M - 1 if sym else M))
    total = angle.mul(0).add(weights[0])
    for k, weight in enumerate(weights[1:], 1):
        total = total.add(angle.mul(k).cos().mul(weight * (-1) ** k))
    return _made(total, options)


def general_hamming(M: int, *, alpha: float = 0.54, sym: bool = True, **options: Unpack[Made]) -> Tensor:
    """alpha - (1 - alpha) cos"""
    return general_cosine(M, a=[alpha, 1.0 - alpha], sym=sym, **options)


def nuttall(M: int, *, sym: bool = True, **options: Unpack[Made]) -> Tensor:
    """The four weights of Nuttall, by which the lobes beside the main one are least."""
    return general_cosine(M, a=[0.3635819, 0.4891775, 0.1365995, 0.0106411], sym=sym, **options)


def kaiser_window(window_length: int, periodic: bool = True, beta: float = 12.0, **options: Unpack[Made]) -> Tensor:
    """As kaiser, under torch's older name."""
    if window_length < 0:
        raise RuntimeError(f"kaiser_window requires non-negative window_length, got window_length={window_length}")
    dtype = options.get("dtype")
    if dtype is not None and not dtype.is_floating_point:
        raise RuntimeError(f"kaiser_window expects floating point dtypes, got: {dtype}")
    return kaiser(window_length, beta=beta, sym=not periodic, **options)


def _check(name: str, M: int, options: Made) -> None:
    dtype = options.get("dtype") or dtypes.default()
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if options.get("layout", closed_types.strided) is not closed_types.strided:
        raise ValueError(f"{name} is implemented for strided tensors only, got: {options.get('layout')}")
    if dtype not in (dtypes.float32, dtypes.float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dtype}")


def _steps(M: int, options: Made) -> Tensor:
    return create.arange(float(M), dtype=options.get("dtype"), device=options.get("device"))


def _made(window: Tensor, options: Made) -> Tensor:
    return window.detach().requires_grad_() if options.get("requires_grad") else window


windows = sys.modules[__name__]  # torch.signal.windows.windows is PyTorch's own file of them.
