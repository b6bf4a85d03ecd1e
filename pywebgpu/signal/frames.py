"""Short-time Fourier transforms: frames of a signal, each under a window."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING

from pywebgpu import fft
from pywebgpu.ir.graph import thread_state
from pywebgpu.nn import functional
from pywebgpu.tensor import complex_numbers, create

if TYPE_CHECKING:
    from pywebgpu.tensor.tensor import Tensor

LEAST = 1e-11  # what windows have to add up to, where a signal is found from its frames


def stft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Tensor:
    """The transforms of frames of n_fft numbers, hop_length apart: (..., time) -> (..., frequencies, frames).

    Raises: RuntimeError where the arguments do not fit.
    """
    hop, size = _steps("stft", n_fft, hop_length, win_length, window)
    is_complex = input.dtype.is_complex or (window is not None and window.dtype.is_complex)
    if align_to_window and center:
        raise RuntimeError("stft align_to_window should only be set when center = false")
    _check_signal(input, onesided, is_complex=is_complex, is_asked=return_complex is not None)
    rows = input.reshape(1, -1) if input.ndim == 1 else input
    if center:
        rows = functional.pad(rows.unsqueeze(0), (n_fft // 2, n_fft // 2), mode=pad_mode).squeeze(0)
    if not 0 < n_fft <= rows.shape[-1]:
        raise RuntimeError(f"stft: expected 0 < n_fft < {rows.shape[-1]}, but got n_fft={n_fft}")
    frames = rows.unfold(-1, n_fft, hop)
    if window is not None or size < n_fft:
        frames = frames.mul(_window(window, n_fft, size, input))
    half = (not is_complex) if onesided is None else onesided
    spectra = (fft.rfft if half else fft.fft)(frames, norm="ortho" if normalized else None).transpose(1, 2)
    spectra = spectra.squeeze(0) if input.ndim == 1 else spectra
    return complex_numbers.view_as_real(spectra) if return_complex is False else spectra


def _check_signal(input: Tensor, onesided: bool | None, *, is_complex: bool, is_asked: bool) -> None:
    if not is_asked and not is_complex:
        raise RuntimeError(
            "stft requires the return_complex parameter be given for real inputs, and will further require that "
            "return_complex=True in a future PyTorch release."
        )
    if onesided and is_complex:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    if input.ndim not in (1, 2):
        raise RuntimeError(f"stft({list(input.shape)}): expected a 1D or 2D tensor")


def istft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """The signal whose stft is the nearest: (..., frequencies, frames) -> (..., time).

    Raises: RuntimeError where the arguments do not fit, or windows leave a part of the signal open.
    """
    hop, size = _steps("istft", n_fft, hop_length, win_length, window)
    _check_frames(input, n_fft, onesided, return_complex=return_complex)
    rows = input.unsqueeze(0) if input.ndim == 2 else input
    half = rows.shape[1] != n_fft if onesided is None else onesided
    frames = rows.transpose(1, 2)
    if normalized:
        frames = frames.mul(sqrt(n_fft))
    if return_complex:
        signal = fft.ifft(frames, n_fft)
    else:
        signal = fft.irfft(frames if half else frames.narrow(-1, 0, n_fft // 2 + 1), n_fft)
    shape = _window(window, n_fft, size, signal)
    n_samples = n_fft + hop * (rows.shape[2] - 1)
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else n_samples - start
    kept = min(end, n_samples) - start
    envelope = _envelope(shape.expand(1, rows.shape[2], n_fft), hop, start, kept)
    samples = _added(signal.mul(shape), hop).narrow(1, start, kept).div(envelope)
    if end > n_samples:
        samples = functional.pad(samples, (0, end - n_samples))
    return samples.squeeze(0) if input.ndim == 2 else samples


def _steps(
    name: str, n_fft: int, hop_length: int | None, win_length: int | None, window: Tensor | None
) -> tuple[int, int]:
    """How far frames are apart, and how many numbers a window holds."""
    hop = n_fft // 4 if hop_length is None else hop_length
    size = n_fft if win_length is None else win_length
    if hop <= 0:
        raise RuntimeError(f"{name}: expected hop_length > 0, but got hop_length={hop}")
    if not 0 < size <= n_fft:
        raise RuntimeError(f"{name}: expected 0 < win_length <= n_fft, but got win_length={size}")
    if window is not None and tuple(window.shape) != (size,):
        raise RuntimeError(
            f"{name}: expected a 1D window tensor of size equal to win_length={size}, but got window with size "
            f"{list(window.shape)}"
        )
    return hop, size


def _window(window: Tensor | None, n_fft: int, size: int, like: Tensor) -> Tensor:
    """The window in the middle of n_fft numbers."""
    if window is None:
        window = create.ones(size, dtype=like.dtype.part or like.dtype, device=like.device)
    left = (n_fft - size) // 2
    return functional.pad(window, (left, n_fft - size - left)) if size < n_fft else window


def _check_frames(input: Tensor, n_fft: int, onesided: bool | None, *, return_complex: bool) -> None:
    if not input.dtype.is_complex:
        raise RuntimeError(
            "istft requires a complex-valued input tensor matching the output from stft with return_complex=True."
        )
    if input.numel() == 0 or input.ndim not in (2, 3):
        raise RuntimeError(f"istft({list(input.shape)}): expected a tensor of 2 or 3 dimensions that is not empty")
    frequencies = input.shape[-2]
    half = frequencies != n_fft if onesided is None else onesided
    if frequencies != (n_fft // 2 + 1 if half else n_fft):
        raise RuntimeError(
            f"istft: expected the frequency dimension (3rd to the last) of the input tensor to match n_fft "
            f"{'/ 2 + 1 ' if half else ''}when onesided={half}, but got {frequencies} for n_fft={n_fft}"
        )
    if half and return_complex:
        raise RuntimeError("Cannot have onesided output if window or input is complex")


def _envelope(windows: Tensor, hop: int, start: int, length: int) -> Tensor:
    """The sum of the squares of all windows over each sample. Raises RuntimeError where one is in no window.

    A compiled step has no values yet: there it is an IndexError of what reads the result.
    """
    envelope = _added(windows.square(), hop).narrow(1, start, length)
    least = envelope.abs().min()
    if thread_state.observer is not None:
        is_open = (least > LEAST).logical_not().long().reshape(1)  # beyond the single element where a part is in none
        return envelope * create.ones(1, dtype=envelope.dtype, device=envelope.device).index_select(0, is_open)
    if not least.item() > LEAST:
        raise RuntimeError(f"istft: window overlap add min: {least.item()}: a part of the signal is in no window")
    return envelope


def _added(frames: Tensor, hop: int) -> Tensor:
    """Frames laid where they came from, added where they overlap: (b, frames, n) -> (b, time)."""
    batch, count, n = frames.shape
    parts = -(-n // hop)
    if parts * hop > n:
        frames = functional.pad(frames, (0, parts * hop - n))
    total = None
    for index in range(parts):
        row = frames.narrow(2, index * hop, hop).reshape(batch, count * hop)
        row = functional.pad(row, (index * hop, (parts - 1 - index) * hop))
        total = row if total is None else total.add(row)
    assert total is not None
    return total.narrow(1, 0, n + hop * (count - 1))
