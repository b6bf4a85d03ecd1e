"""Orthogonal polynomials by their recurrences. Where degrees are a tensor, the largest of them is read first."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pywebgpu.special.elementwise import finished, real
from pywebgpu.tensor import dispatch
from pywebgpu.tensor.base import TensorBase
from pywebgpu.tensor.functions import where

if TYPE_CHECKING:
    from pywebgpu.tensor.tensor import Tensor
    from pywebgpu.tensor.types import Operand

    First = Callable[[Tensor], Tensor]
    Next = Callable[[Tensor, int, Tensor, Tensor], Tensor]

HERMITE_MOST = 128  # Above this degree, as with PyTorch, float32 cannot hold them.


def _family(name: str, text: str, first: First, following: Next, shift: bool = False) -> Callable[..., Tensor]:
    """first(x) is the polynomial of degree 1; following(x, k, q, p) that of degree k, of the two before it."""

    def function(input: Operand, n: Operand, *, out: Tensor | None = None) -> Tensor:
        (x, degree), dtype = real(input, n)
        x, degree = 2 * x - 1 if shift else x, degree.detach().trunc()
        if isinstance(n, TensorBase):  # Without values nobody knows the degrees, nor needs them for the shape.
            largest = int(degree.max().item()) if degree.numel() and not degree.is_meta else 0
        else:
            largest = int(n)
        result = where(degree < 0, 0.0, where(degree == 0, 1.0, first(x)))
        before, last = x * 0 + 1, first(x)
        for k in range(2, min(largest, HERMITE_MOST) + 1 if "hermite" in name else largest + 1):
            before, last = last, following(x, k, last, before)
            result = where(degree >= k, last, result)
        if "hermite" in name:
            result = where(degree > HERMITE_MOST, float("nan"), result)
        return finished(f"special.{name}", result.to(dtype), out, input, n)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{text} of degree n."
    return function


def _chebyshev(kind: str, order: str, first: First, shift: bool) -> Callable[..., Tensor]:
    name = f"{'shifted_' * shift}chebyshev_polynomial_{kind}"
    text = f"Chebyshev's polynomial of the {order} kind{', over [0, 1],' * shift}"
    return _family(name, text, first, lambda x, k, q, p: 2 * x * q - p, shift)


_KINDS: tuple[tuple[str, str, First], ...] = (
    ("t", "first", lambda x: x),
    ("u", "second", lambda x: 2 * x),
    ("v", "third", lambda x: 2 * x - 1),
    ("w", "fourth", lambda x: 2 * x + 1),
)
chebyshev_polynomial_t, chebyshev_polynomial_u, chebyshev_polynomial_v, chebyshev_polynomial_w = (
    _chebyshev(*kind, False) for kind in _KINDS
)
(
    shifted_chebyshev_polynomial_t,
    shifted_chebyshev_polynomial_u,
    shifted_chebyshev_polynomial_v,
    shifted_chebyshev_polynomial_w,
) = (_chebyshev(*kind, True) for kind in _KINDS)
hermite_polynomial_h = _family(
    "hermite_polynomial_h",
    "Hermite's polynomial of the physicists",
    lambda x: 2 * x,
    lambda x, k, q, p: 2 * x * q - 2 * (k - 1) * p,
)
hermite_polynomial_he = _family(
    "hermite_polynomial_he", "Hermite's polynomial", lambda x: x, lambda x, k, q, p: x * q - (k - 1) * p
)
laguerre_polynomial_l = _family(
    "laguerre_polynomial_l",
    "Laguerre's polynomial",
    lambda x: 1 - x,
    lambda x, k, q, p: ((2 * k - 1 - x) * q - (k - 1) * p) / k,
)
legendre_polynomial_p = _family(
    "legendre_polynomial_p",
    "Legendre's polynomial",
    lambda x: x,
    lambda x, k, q, p: ((2 * k - 1) * x * q - (k - 1) * p) / k,
)


globals().update(dispatch.all_public(globals(), __name__))
