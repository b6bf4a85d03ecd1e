"""Functions of numeric work that are a few methods each: distances, covariance, windows, polynomials' bases."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from math import log, pi
from typing import TYPE_CHECKING, Any, Unpack

from pywebgpu import dtypes
from pywebgpu.composites import arithmetic, joining
from pywebgpu.dtypes import DType
from pywebgpu.errors import ShapeError
from pywebgpu.ir.graph import Node, Pointwise
from pywebgpu.ops import gamma
from pywebgpu.tensor import complex_numbers, create, functions
from pywebgpu.tensor.apply import apply
from pywebgpu.tensor.tensor import Tensor

if TYPE_CHECKING:
    from pywebgpu.tensor.types import Made, Operand


def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str | None = None) -> Tensor:
    """The p-norm of every row of x1 minus every row of x2: (..., m, d), (..., n, d) -> (..., m, n)."""
    if x1.ndim < 2 or x2.ndim < 2 or x1.shape[-1] != x2.shape[-1]:
        raise RuntimeError(f"cdist: needs (..., m, d) and (..., n, d), got {list(x1.shape)} and {list(x2.shape)}")
    return x1.unsqueeze(-2).sub(x2.unsqueeze(-3)).norm(p, -1)


def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """The p-norm of every row minus every later row, as a vector."""
    n = input.shape[0]
    rows = create.triu_indices(n, n, 1, device=str(input.device))
    return input.index_select(0, rows[0]).sub(input.index_select(0, rows[1])).norm(p, -1)


def cov(
    input: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None
) -> Tensor:
    """The covariance of rows (variables) over columns (observations).

    fweights: how often each observation counts; aweights: how much. Raises RuntimeError where they do not fit.
    """
    if input.ndim > 2:
        raise ShapeError(f"cov(): expected input to have two or fewer dimensions but got {input.ndim} dimensions")
    if input.dtype is dtypes.bool_:
        raise RuntimeError("cov(): bool dtype is not supported for input")
    x = input.reshape(1, -1) if input.ndim < 2 else input
    x = x if x.dtype.is_floating_point or x.dtype.is_complex else x.to(dtypes.default())
    weights = _observed(x, fweights, aweights)
    if weights is None:
        apart = x.sub(x.mean(1, keepdim=True))
        product: Tensor = apart.matmul(apart.H).div(max(x.shape[1] - correction, 0))
    else:
        total = weights.sum()
        apart = x.sub(x.mul(weights).sum(1, keepdim=True).div(total))
        spent = 0.0 if aweights is None else weights.mul(aweights).sum().div(total).mul(correction)
        free = total.sub(spent if aweights is not None else correction).clamp_min(0)
        product = apart.mul(weights).matmul(apart.H).div(free)
    return product.reshape(()) if x.shape[0] == 1 else product


def _observed(x: Tensor, fweights: Tensor | None, aweights: Tensor | None) -> Tensor | None:
    """The weight of each column of x."""
    found: Tensor | None = None
    for name, given, is_whole in (("fweights", fweights, True), ("aweights", aweights, False)):
        if given is None:
            continue
        if given.ndim > 1 or given.numel() != x.shape[1]:
            raise ShapeError(
                f"cov(): expected {name} to have one weight for each of {x.shape[1]} observations, but got shape "
                f"{list(given.shape)}"
            )
        if given.dtype.is_floating_point == is_whole:
            raise RuntimeError(f"cov(): expected {name} to have {'integral' if is_whole else 'floating point'} dtype")
        if given.numel() and given.min().item() < 0:
            raise RuntimeError(f"cov(): {name} cannot be negative")
        found = given.to(x.dtype) if found is None else found.mul(given)
    return found


def corrcoef(input: Tensor) -> Tensor:
    """The correlation of rows over columns."""
    if input.ndim > 2:
        raise ShapeError(f"corrcoef(): expected input to have two or fewer dimensions but got {input.ndim} dimensions")
    c = cov(input)
    if c.ndim == 0:
        return c.div(c)
    spread = c.diagonal().real.sqrt()
    found = c.div(spread.unsqueeze(1)).div(spread.unsqueeze(0))
    if not found.is_complex():
        return found.clamp(-1, 1)
    return complex_numbers.complex(found.real.clamp(-1, 1), found.imag.clamp(-1, 1))


def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, *, dx: float = 1, dim: int = -1) -> Tensor:
    """The running integral along `dim` of the straight lines between points y."""
    n = y.shape[dim]
    pairs = y.narrow(dim, 1, n - 1).add(y.narrow(dim, 0, n - 1))
    if x is None:
        return pairs.mul(dx / 2).cumsum(dim)
    steps = x.diff(dim=-1 if x.ndim == 1 else dim)
    if x.ndim == 1:
        steps = steps.reshape([n - 1 if axis == dim % y.ndim else 1 for axis in range(y.ndim)])
    return pairs.mul(steps).mul(0.5).cumsum(dim)


def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """Powers of the elements of a vector, a row each, the highest first unless `increasing`."""
    count = x.shape[0] if N is None else N
    powers = x.unsqueeze(-1).expand(*x.shape, count).clone()
    columns = create.arange(count, device=str(x.device))
    made = powers.pow(columns)
    return made if increasing else made.flip(-1)


def renorm(input: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """Every slice along `dim` scaled down so that its p-norm is at most maxnorm."""
    if p <= 0 or maxnorm < 0 or input.ndim < 2:
        raise RuntimeError(
            f"renorm: needs two axes, a positive p and maxnorm >= 0, got {input.ndim}, {p} and {maxnorm}"
        )
    axes = [axis for axis in range(input.ndim) if axis != dim % input.ndim]
    size = input.norm(p, axes, keepdim=True)
    return input.mul(functions.where(size > maxnorm, size.add(1e-7).reciprocal().mul(maxnorm), 1.0))


def unravel_index(indices: Tensor, shape: Sequence[int]) -> tuple[Any, ...]:
    """Places in a flattened tensor -> their coordinates, one tensor an axis."""
    found: list[Any] = []
    for n in reversed(list(shape)):
        found.insert(0, indices.remainder(n))
        indices = indices.floor_divide(n)
    return tuple(found)


def constant_pad_nd(input: Tensor, pad: Sequence[int], value: float = 0) -> Tensor:
    """Numbers around the last axes; see nn.functional.pad."""
    return apply(joining.pad_constant, input, list(pad), value)


def fill(input: Tensor, value: Operand) -> Tensor:
    """A copy with one number everywhere."""
    return input.clone().fill_(value)


def hann_window(window_length: int, periodic: bool = True, **options: Unpack[Made]) -> Tensor:
    """sin^2 from 0 to 0."""
    return _cosines(window_length, periodic, (0.5, 0.5), options)


def hamming_window(
    window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, **options: Unpack[Made]
) -> Tensor:
    """alpha - beta cos"""
    return _cosines(window_length, periodic, (alpha, beta), options)


def blackman_window(window_length: int, periodic: bool = True, **options: Unpack[Made]) -> Tensor:
    """0.42 - 0.5 cos + 0.08 cos of twice the angle"""
    return _cosines(window_length, periodic, (0.42, 0.5, 0.08), options)


def bartlett_window(window_length: int, periodic: bool = True, **options: Unpack[Made]) -> Tensor:
    """A triangle from 0 over 1 to 0."""
    position = _positions(window_length, periodic, options)
    return _one_if_short(window_length, 1 - (position.mul(2).sub(1)).abs(), options)


def _positions(length: int, periodic: bool, options: Made) -> Tensor:
    """0 to 1 over the window."""
    steps = length if periodic else length - 1
    return create.arange(length, dtype=_dtype(options), device=options.get("device")).div(max(steps, 1))


def _cosines(length: int, periodic: bool, weights: tuple[float, ...], options: Made) -> Tensor:
    position = _positions(length, periodic, options)
    total: Any = position.mul(0).add(weights[0])
    for order, weight in enumerate(weights[1:], 1):
        total = total.add(position.mul(2 * pi * order).cos().mul(weight if order % 2 == 0 else -weight))
    return _one_if_short(length, total, options)


def _one_if_short(length: int, window: Tensor, options: Made) -> Tensor:
    made: Tensor = window.mul(0).add(1) if length == 1 else window
    return made.requires_grad_(bool(options.get("requires_grad")))


def _dtype(options: Made) -> DType:
    found: DType = options.get("dtype") or dtypes.default()
    return found


def cholesky(input: Tensor, upper: bool = False) -> Tensor:
    """torch's old name of linalg.cholesky."""
    found: Tensor = importlib.import_module("pywebgpu.linalg").cholesky(input, upper=upper)
    return found


def qr(input: Tensor, some: bool = True) -> Any:
    """torch's old name of linalg.qr."""
    return importlib.import_module("pywebgpu.linalg").qr(input, "reduced" if some else "complete")


def svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> Any:
    """torch's old name of linalg.svd, with V instead of its transpose."""
    u, s, vh = importlib.import_module("pywebgpu.linalg").svd(input, not some)
    return u, s, vh.mT


def lgamma(input: Tensor) -> Tensor:
    """log |gamma(x)|, by element."""
    return apply(_real, gamma.lgamma, input)


def digamma(input: Tensor) -> Tensor:
    """The derivative of lgamma, by element."""
    return apply(_real, gamma.digamma, input)


def trigamma(input: Tensor) -> Tensor:
    """The derivative of digamma, by element. It has no gradient: see special.polygamma."""
    return apply(_real, gamma.trigamma, input)


def mvlgamma(input: Tensor, p: int) -> Tensor:
    """The multivariate lgamma of dimension p."""
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    halves = create.arange(p, device=str(input.device)).mul(-0.5)
    halves = halves.to(input.dtype) if input.dtype.is_floating_point else halves
    return lgamma(input.unsqueeze(-1).add(halves)).sum(-1).add(p * (p - 1) / 4 * log(pi))


def _real(op: Pointwise, x: Node) -> Node:
    return arithmetic.unary_float(op, x)
