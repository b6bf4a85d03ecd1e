"""The discrete Fourier transform along the last axis, not scaled: by NumPy on device cpu, elsewhere as products with
matrices (compiler/passes/fourier_products.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pywebgpu.ir.graph import Structural

if TYPE_CHECKING:
    from types import ModuleType

    from numpy.typing import NDArray


def _reference(xp: ModuleType, a: NDArray[Any], inverse: bool) -> NDArray[Any]:
    transformed = xp.fft.ifft(a, norm="forward") if inverse else xp.fft.fft(a)
    return transformed.astype(a.dtype, copy=False)


dft: Structural = Structural(
    "dft",  # out[k] = sum over j of x[j] exp(-2 pi i j k / n); of the inverse without the minus
    infer=lambda x, inverse: x,
    reference=_reference,
    vjp=(lambda g, out, x, inverse: dft(g, inverse=not inverse),),
)
