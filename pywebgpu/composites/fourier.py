"""Fourier transforms of any axes, of real and of complex numbers, scaled as torch's names of norms say."""

from collections.abc import Sequence
from math import prod, sqrt

from pywebgpu.composites import arithmetic, slicing
from pywebgpu.errors import ShapeError
from pywebgpu.ir.graph import Node
from pywebgpu.ops import complex_parts, fourier, indexing, movement, pointwise

NORMS = (None, "backward", "ortho", "forward")


def as_complex(x: Node) -> Node:
    """The same numbers as complex ones. Raises: RuntimeError for half floats, which have none."""
    dtype = arithmetic.floating(x)
    if dtype.family == "half":
        raise RuntimeError(f"Unsupported dtype {dtype.name}: take x.float()")
    if dtype.part is not None:
        return x
    real = arithmetic.cast(x, dtype)
    return complex_parts.complex_(real, pointwise.scalar(0.0, dtype))


def resized(x: Node, axis: int, size: int) -> Node:
    """The first `size` numbers along an axis, with zeros behind where there are fewer."""
    if size < 1:
        raise ShapeError(f"Invalid number of data points ({size}) specified")
    shape = x.spec.shape
    if size <= shape[axis]:
        return slicing.part(x, axis, 0, size)
    rank = len(shape)
    return movement.pad(x, shape=(*shape[:axis], size, *shape[axis + 1 :]), starts=(0,) * rank, steps=(1,) * rank)


def factor(norm: str | None, size: int, *, inverse: bool) -> float:
    """What a transform of `size` numbers is multiplied with."""
    if norm not in NORMS:
        raise RuntimeError(f'Invalid normalization mode: "{norm}"')
    if norm == "ortho":
        return 1 / sqrt(size)
    return 1 / size if inverse is (norm != "forward") else 1.0


def transformed(x: Node, axes: Sequence[int], norm: str | None, *, inverse: bool) -> Node:
    """The transform of complex numbers along some axes."""
    scale = factor(norm, prod([x.spec.shape[axis] for axis in axes]), inverse=inverse)
    for axis in axes:
        x = slicing.swapped(fourier.dft(slicing.swapped(x, axis), inverse=inverse), axis)
    return x if scale == 1 else pointwise.mul(x, arithmetic.like(x, scale))


def complex_to_complex(x: Node, axes: Sequence[int], sizes: Sequence[int], norm: str | None, *, inverse: bool) -> Node:
    """fft and ifft. sizes: what the axes are cut or padded to."""
    x = as_complex(x)
    for axis, size in zip(axes, sizes, strict=True):
        x = resized(x, axis, size)
    return transformed(x, axes, norm, inverse=inverse)


def real_to_complex(x: Node, axes: Sequence[int], sizes: Sequence[int], norm: str | None, *, inverse: bool) -> Node:
    """rfft and ihfft: the last of the axes has the frequencies up to the half, since the others are conjugates."""
    for axis, size in zip(axes, sizes, strict=True):
        x = resized(x, axis, size)
    x = as_complex(x)
    scale = factor(norm, prod(sizes), inverse=inverse)
    last, size = axes[-1], sizes[-1]
    spectrum = slicing.swapped(fourier.dft(slicing.swapped(x, last), inverse=inverse), last)
    spectrum = slicing.part(spectrum, last, 0, size // 2 + 1)
    for axis in axes[:-1]:
        spectrum = slicing.swapped(fourier.dft(slicing.swapped(spectrum, axis), inverse=inverse), axis)
    return spectrum if scale == 1 else pointwise.mul(spectrum, arithmetic.like(spectrum, scale))


def complex_to_real(x: Node, axes: Sequence[int], sizes: Sequence[int], norm: str | None, *, inverse: bool) -> Node:
    """irfft and hfft, of what real_to_complex gives: the missing half of the last axis is its conjugate."""
    x = as_complex(x)
    *others, last = axes
    scale = factor(norm, prod(sizes), inverse=inverse)
    for axis, size in zip(others, sizes, strict=False):
        x = resized(x, axis, size)
    x = resized(x, last, sizes[-1] // 2 + 1)
    for axis in others:
        x = slicing.swapped(fourier.dft(slicing.swapped(x, axis), inverse=inverse), axis)
    missing = sizes[-1] - x.spec.shape[last]
    if missing > 0:
        middle = slicing.part(x, last, 1, 1 + missing)
        x = indexing.cat(x, complex_parts.conj(movement.flip(middle, axes=(last,))), axis=last)
    signal = complex_parts.real(slicing.swapped(fourier.dft(slicing.swapped(x, last), inverse=inverse), last))
    return signal if scale == 1 else pointwise.mul(signal, arithmetic.like(signal, scale))


def rolled(x: Node, axes: Sequence[int], *, back: bool) -> Node:
    """Half of each axis exchanged with the other: frequency 0 comes to the middle, or back to the start."""
    for axis in axes:
        n = x.spec.shape[axis]
        cut = n // 2 if back else (n + 1) // 2
        if 0 < cut < n:
            x = indexing.cat(slicing.part(x, axis, cut, n), slicing.part(x, axis, 0, cut), axis=axis)
    return x
