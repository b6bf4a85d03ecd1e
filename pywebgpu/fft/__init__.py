"""torch.fft: Fourier transforms with gradients, by NumPy on device cpu and by products of matrices elsewhere."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from operator import index
from typing import TYPE_CHECKING, Protocol, Unpack

from pywebgpu.composites import fourier
from pywebgpu.errors import ShapeError
from pywebgpu.support import shapes
from pywebgpu.support.shapes import Shape
from pywebgpu.tensor import create, dispatch, formats, memory_format, outputs
from pywebgpu.tensor.apply import apply, called
from pywebgpu.tensor.layout import strides_of
from pywebgpu.tensor.memory_format import laid_out
from pywebgpu.tensor.methods import named_by_numpy

if TYPE_CHECKING:
    from pywebgpu.ir.graph import Node
    from pywebgpu.tensor.tensor import Tensor
    from pywebgpu.tensor.types import Made

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "hfft2", "hfftn", "ifft", "ifft2", "ifftn", "ifftshift",
    "ihfft", "ihfft2", "ihfftn", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip
Dims = int | Sequence[int] | None
Rule = Callable[..., "Node"]  # (x, axes, sizes, norm, inverse=...): one of composites/fourier.py


class OfOne(Protocol):
    """A transform along one axis, which is first cut or padded to n."""

    def __call__(
        self, input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None
    ) -> Tensor: ...


class OfSeveral(Protocol):
    """A transform along several axes, which are first cut or padded to `s`."""

    def __call__(
        self, input: Tensor, s: Dims = None, dim: Dims = ..., norm: str | None = None, *, out: Tensor | None = None
    ) -> Tensor: ...


def _of_one(name: str, rule: Rule, says: str, *, inverse: bool = False) -> OfOne:
    def transform(
        input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None
    ) -> Tensor:
        return _transform(name, rule, input, [n], [shapes.axis(dim, input.ndim)], norm, out, inverse=inverse)

    transform.__name__ = transform.__qualname__ = name
    transform.__doc__ = f"{says} Along one axis, which is first cut or padded to n."
    return named_by_numpy(transform)


def _of_several(name: str, rule: Rule, *, inverse: bool = False) -> OfSeveral:
    is_plane = name.endswith("2")

    def transform(
        input: Tensor,
        s: Dims = None,
        dim: Dims = (-2, -1) if is_plane else None,
        norm: str | None = None,
        *,
        out: Tensor | None = None,
    ) -> Tensor:
        sizes, axes = _several(input, s, dim)
        if not axes and rule is not fourier.complex_to_complex:
            raise ShapeError(f"{name} must transform at least one axis")
        return _transform(name, rule, input, sizes, axes, norm, out, inverse=inverse)

    transform.__name__ = transform.__qualname__ = name
    axes_text = "the last two axes" if is_plane else "all axes"
    transform.__doc__ = f"As {name[:-1]} along {axes_text}, or those of `dim`, which are first cut or padded to `s`."
    return named_by_numpy(transform)


def _transform(
    name: str, rule: Rule, x: Tensor, sizes: Sequence[int | None], axes: Sequence[int], norm: str | None,
    out: Tensor | None, *, inverse: bool,
) -> Tensor:  # fmt: skip
    """A rule for axes that are known, with sizes where they are given."""
    if rule is fourier.real_to_complex and x.dtype.is_complex:
        raise RuntimeError(f"{name} expects a real input tensor, but got {x.dtype.title}")
    have = [x.shape[axis] for axis in axes]
    if rule is fourier.complex_to_real:
        have[-1] = 2 * (have[-1] - 1)
    wanted = [n if size is None or size == -1 else size for n, size in zip(have, sizes, strict=True)]
    if wanted and min(wanted) < 1:
        raise ShapeError(f"Invalid number of data points ({min(wanted)}) specified")
    result = apply(rule, x, tuple(axes), tuple(wanted), norm, inverse=inverse)
    if axes and result.ndim > 1:
        laid_out(result, _layout(name, rule, x, axes, wanted, tuple(result.shape)))
    if len(axes) == 1 and rule is fourier.complex_to_complex and not (x.dtype.is_complex or inverse):
        called(result, "aten::fft_r2c")
    return outputs.finished(f"fft.{name}", result, out, x)


def _layout(name: str, rule: Rule, x: Tensor, axes: Sequence[int], sizes: Sequence[int], shape: Shape) -> Shape:
    """The strides of a transform: those axes that it leaves come first, each stage of a transform for itself."""
    known = list(x.shape)
    for axis, n in zip(axes, sizes, strict=True):
        known[axis] = n // 2 + 1 if rule is fourier.complex_to_real and axis == axes[-1] else n
    steps = strides_of(x)[0]
    if rule is not fourier.real_to_complex and not x.dtype.is_complex and name not in ("fft", "ifft"):
        # It is made complex first.
        steps = formats.combined(memory_format.described(x))[1]
    if any(n > have for n, have in zip(known, x.shape, strict=True)):  # Padded, so copied.
        steps = shapes.strides(tuple(known))
    rest, last = list(axes[:-1]), axes[-1]
    stages = {"complex_to_complex": [list(axes)], "complex_to_real": [rest, [last]], "real_to_complex": [list(axes)]}
    parts = stages[rule.__name__]
    if name.startswith("ihfft"):  # Its other axes are transformed after the last.
        parts = [[last], rest]
    for part in parts:
        if part:
            is_real = rule is fourier.real_to_complex and part[-1] == last
            steps = memory_format.of_order(shape, _order(steps, part, keeps_last=is_real))
    return steps


def _order(steps: Shape, axes: Sequence[int], *, keeps_last: bool) -> list[int]:
    """The axes of one stage's result, the one with the largest stride first. keeps_last: the last axis is the last."""
    end = list(axes[-1:]) if keeps_last else []
    inner = sorted(axes[: len(axes) - len(end)], key=lambda axis: -steps[axis])
    outer = sorted((axis for axis in range(len(steps)) if axis not in axes), key=lambda axis: -steps[axis])
    return [*outer, *inner, *end]


def _several(x: Tensor, s: Dims, dim: Dims) -> tuple[list[int | None], list[int]]:
    """Sizes and axes. Raises: ShapeError where they do not fit."""
    sizes = None if s is None else [s] if isinstance(s, int) else [index(n) for n in s]
    if dim is None:
        count = x.ndim if sizes is None else len(sizes)
        if count > x.ndim:
            raise ShapeError(f"Got shape with {count} values but input tensor only has {x.ndim} dimensions.")
        axes = list(range(x.ndim - count, x.ndim))
    else:
        axes = [shapes.axis(d, x.ndim) for d in ([dim] if isinstance(dim, int) else dim)]
    if len(set(axes)) != len(axes):
        raise ShapeError("FFT dims must be unique")
    if sizes is not None and len(sizes) != len(axes):
        raise ShapeError("When given, dim and shape arguments must have the same length")
    return [None] * len(axes) if sizes is None else list(sizes), axes


_DIRECT, _REAL, _HALF = fourier.complex_to_complex, fourier.real_to_complex, fourier.complex_to_real
fft = _of_one("fft", _DIRECT, "The discrete Fourier transform.")
ifft = _of_one("ifft", _DIRECT, "The inverse of fft.", inverse=True)
rfft = _of_one("rfft", _REAL, "The first n // 2 + 1 frequencies of real numbers; the others are their conjugates.")
irfft = _of_one("irfft", _HALF, "The inverse of rfft; without n the length is even.", inverse=True)
hfft = _of_one("hfft", _HALF, "The real transform of numbers of which the later half are conjugates, and not given.")
ihfft = _of_one("ihfft", _REAL, "The inverse of hfft.", inverse=True)
fft2, fftn = (_of_several(name, _DIRECT) for name in ("fft2", "fftn"))
ifft2, ifftn = (_of_several(name, _DIRECT, inverse=True) for name in ("ifft2", "ifftn"))
rfft2, rfftn = (_of_several(name, _REAL) for name in ("rfft2", "rfftn"))
irfft2, irfftn = (_of_several(name, _HALF, inverse=True) for name in ("irfft2", "irfftn"))
hfft2, hfftn = (_of_several(name, _HALF) for name in ("hfft2", "hfftn"))
ihfft2, ihfftn = (_of_several(name, _REAL, inverse=True) for name in ("ihfft2", "ihfftn"))


def fftfreq(n: int, d: float = 1.0, **options: Unpack[Made]) -> Tensor:
    """The frequencies of fft of n numbers that are d apart: 0, 1, ..., then the negative ones, over n d."""
    return ifftshift(_counted(-(n // 2), (n + 1) // 2, options).mul(_step(n, d)))


def rfftfreq(n: int, d: float = 1.0, **options: Unpack[Made]) -> Tensor:
    """The frequencies of rfft of n numbers that are d apart."""
    return _counted(0, n // 2 + 1, options).mul(_step(n, d))


def _step(n: int, d: float) -> float:
    return 1.0 / (n * d) if n * d else math.inf


def _counted(start: int, end: int, options: Made) -> Tensor:
    return create.arange(float(start), float(end), **options)


@named_by_numpy
def fftshift(input: Tensor, dim: Dims = None) -> Tensor:
    """Frequency 0 in the middle of each axis, or of those of `dim`."""
    return apply(fourier.rolled, input, tuple(_several(input, None, dim)[1]), back=False)


@named_by_numpy
def ifftshift(input: Tensor, dim: Dims = None) -> Tensor:
    """The inverse of fftshift."""
    return apply(fourier.rolled, input, tuple(_several(input, None, dim)[1]), back=True)


globals().update(dispatch.all_public(globals(), __name__))
