"""Functions of numeric work that are a few methods each: distances, covariance, windows, polynomials' bases."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from math import inf, log, pi, prod
from operator import index
from typing import TYPE_CHECKING, Any, Unpack

from pywebgpu import dtypes
from pywebgpu.composites import arithmetic, joining, precision
from pywebgpu.dtypes import DType, Kind
from pywebgpu.errors import DTypeError, ShapeError
from pywebgpu.ir.graph import Node, Pointwise
from pywebgpu.ops import gamma, pointwise
from pywebgpu.support import shapes
from pywebgpu.support.argument_types import typed
from pywebgpu.support.closed_types import contiguous_format
from pywebgpu.tensor import complex_numbers, create, dispatch, functions, outputs, sorting
from pywebgpu.tensor.apply import apply, aten, called
from pywebgpu.tensor.memory_format import relaid
from pywebgpu.tensor.methods import named_by_numpy
from pywebgpu.tensor.tensor import Tensor
from pywebgpu.torch_api import return_types

_builtin_range = range  # PyTorch calls an argument by this name.

if TYPE_CHECKING:
    from pywebgpu.tensor.types import Made, Operand


@aten("linalg_cross")
def cross(input: Tensor, other: Tensor, dim: int | None) -> Tensor:
    """The vector product along an axis of size 3."""
    if input.ndim != other.ndim:
        raise ShapeError("linalg.cross: inputs must have the same number of dimensions.")
    shape = shapes.broadcast(tuple(input.shape), tuple(other.shape))
    axis = next((a for a, n in enumerate(shape) if n == 3), -1) if dim is None else dim
    if not shape or shape[axis] != 3:
        raise RuntimeError(f"linalg.cross: inputs dimension {axis} must have length 3. Got {list(shape)}")
    x, y = input.expand(shape), other.expand(shape)
    return x.roll(-1, axis).mul(y.roll(-2, axis)).sub(x.roll(-2, axis).mul(y.roll(-1, axis)))


@aten("rot90")
def rot90(input: Tensor, k: int, dims: Sequence[int]) -> Tensor:
    """A quarter turn, k times, in the plane of two axes."""
    if len(dims) != 2 or input.ndim < 2:
        raise ShapeError(f"expected total rotation dims == 2, but got dims = {list(dims)} of {input.ndim} dims")
    a, b = (shapes.axis(axis, input.ndim) for axis in dims)
    if a == b:
        raise ShapeError(f"expected rotation dims to be different, but got dim0 = {a} and dim1 = {b}")
    if k % 4 == 0:
        return input.clone(memory_format=contiguous_format)
    if k % 4 == 2:
        return input.flip(a, b)
    turned = input.flip(b if k % 4 == 1 else a)
    return turned.transpose(a, b).clone()


_WAYS_OF_CDIST = (
    None, "use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist",
)  # fmt: skip


@aten("cdist")
def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str | None = None) -> Tensor:
    """The p-norm of every row of x1 minus every row of x2: (..., m, d), (..., n, d) -> (..., m, n)."""
    if compute_mode not in _WAYS_OF_CDIST:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    if not p >= 0:
        raise RuntimeError(f"cdist only supports non-negative p values, got {p}")
    if x1.ndim < 2 or x2.ndim < 2 or x1.shape[-1] != x2.shape[-1]:
        raise RuntimeError(f"cdist: needs (..., m, d) and (..., n, d), got {list(x1.shape)} and {list(x2.shape)}")
    return _length(x1.unsqueeze(-2).sub(x2.unsqueeze(-3)), p)


@aten("pdist")
def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """The p-norm of every row minus every later row, as a vector."""
    if input.ndim != 2:
        raise ShapeError(f"pdist only supports 2D tensors, got: {input.ndim}D")
    if not input.dtype.is_floating_point:
        raise DTypeError("pdist only supports floating-point dtypes")
    n = input.shape[0]
    rows = create.triu_indices(n, n, 1, device=input.device)
    return _length(input.index_select(0, rows[0]).sub(input.index_select(0, rows[1])), p)


def _length(difference: Tensor, p: float) -> Tensor:
    """The p-norm of rows. For p = inf each of the largest has the whole gradient; 0 of rows without elements."""
    if p != inf:
        return difference.norm(p, -1)
    size = difference.abs()
    if not difference.shape[-1]:
        return size.sum(-1)
    far: Tensor = size.detach().amax(-1, keepdim=True)
    return apply(pointwise.graft, far.squeeze(-1), size.where(size.detach() == far, 0).sum(-1))


@named_by_numpy
@aten("squeeze")
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
    correction = index(correction)
    x = input.reshape(1, -1) if input.ndim < 2 else input
    x = x if x.dtype.is_floating_point or x.dtype.is_complex else x.to(dtypes.default())
    weights = _observed(x, fweights, aweights)
    if weights is None:
        centred = x.sub(x.mean(1, keepdim=True))
        product: Tensor = centred.matmul(centred.H).div(max(x.shape[1] - correction, 0))
    else:
        total = weights.sum()
        centred = x.sub(x.mul(weights).sum(1, keepdim=True).div(total))
        spent = 0.0 if aweights is None else weights.mul(aweights).sum().div(total).mul(correction)
        free = total.sub(spent if aweights is not None else correction).clamp_min(0)
        product = centred.mul(weights).matmul(centred.H).div(free)
    return product.reshape(()) if x.shape[0] == 1 else product


def _observed(x: Tensor, fweights: Tensor | None, aweights: Tensor | None) -> Tensor | None:
    """The weight of each column of x."""
    observed: Tensor | None = None
    for name, weights, is_whole in (("fweights", fweights, True), ("aweights", aweights, False)):
        if weights is None:
            continue
        if weights.ndim > 1 or weights.numel() != x.shape[1]:
            raise ShapeError(
                f"cov(): expected {name} to have one weight for each of {x.shape[1]} observations, but got shape "
                f"{list(weights.shape)}"
            )
        if weights.dtype.is_floating_point == is_whole:
            raise RuntimeError(f"cov(): expected {name} to have {'integral' if is_whole else 'floating point'} dtype")
        if weights.numel() and weights.min().item() < 0:
            raise RuntimeError(f"cov(): {name} cannot be negative")
        observed = weights if observed is None else observed.mul(weights)
    return observed


@named_by_numpy
def corrcoef(input: Tensor) -> Tensor:
    """The correlation of rows over columns."""
    if input.ndim > 2:
        raise ShapeError(f"corrcoef(): expected input to have two or fewer dimensions but got {input.ndim} dimensions")
    c = cov(input)
    if c.ndim == 0:
        return c.div(c)
    spread = c.diagonal().real.sqrt()
    coefficients = c.div(spread.unsqueeze(1)).div(spread.unsqueeze(0))
    if not coefficients.is_complex():
        return coefficients.clamp(-1, 1)
    return complex_numbers.complex(coefficients.real.clamp(-1, 1), coefficients.imag.clamp(-1, 1))


def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, *, dx: float = 1, dim: int = -1) -> Tensor:
    """The running integral along `dim` of the straight lines between points y."""
    precision.refuse_bool("cumulative_trapezoid", y._node)
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
    if x.ndim != 1:
        raise ShapeError("x must be a one-dimensional tensor.")
    if N is not None and N < 0:
        raise ShapeError("N must be non-negative.")
    count = x.shape[0] if N is None else N
    powers = x.unsqueeze(-1).expand(*x.shape, count).clone()
    columns = create.arange(count, device=x.device)
    matrix = powers.pow(columns)
    return matrix if increasing else matrix.flip(-1)


@named_by_numpy
@outputs.writable()
@aten("renorm")
def renorm(input: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """Every slice along `dim` scaled down so that its p-norm is at most maxnorm."""
    if not p > 0 or not maxnorm >= 0 or input.ndim < 2:
        raise RuntimeError(
            f"renorm: needs two axes, a positive p and maxnorm >= 0, got {input.ndim}, {p} and {maxnorm}"
        )
    own = shapes.axis(dim, input.ndim)
    axes = [axis for axis in range(input.ndim) if axis != own]
    size = input.norm(p, axes, keepdim=True)
    scaled: Tensor = input.mul(functions.where(size > maxnorm, size.add(1e-7).reciprocal().mul(maxnorm), 1.0))
    return relaid(scaled, None)  # Row by row, however the input lies.


def unravel_index(indices: Tensor, shape: int | Sequence[int]) -> tuple[Any, ...]:
    """Places in a flattened tensor -> their coordinates, one tensor an axis.

    Raises: TypeError for places that are no whole numbers, ValueError for a negative size.
    """
    if indices.dtype.kind is not Kind.INT:
        raise DTypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype!r}")
    if not isinstance(shape, int | list | tuple):
        raise TypeError(f"expected 'shape' to be int or sequence of ints, but got {type(shape)}")
    sizes = [shape] if isinstance(shape, int) else list(shape)
    for size in sizes:
        if not hasattr(size, "__index__"):
            raise TypeError(f"expected 'shape' sequence to only contain ints, but got {type(size)}")
        if size < 0:
            raise ValueError(f"'shape' cannot have negative values, but got {tuple(sizes)}")
    indices = indices.long()
    coordinates: list[Any] = []
    for n in reversed(sizes):
        coordinates.insert(0, indices.remainder(n))
        indices = indices.floor_divide(n)
    return tuple(coordinates)


@named_by_numpy
def constant_pad_nd(input: Tensor, pad: Sequence[int], value: float = 0) -> Tensor:
    """Numbers around the last axes; see nn.functional.pad."""
    return apply(joining.pad_constant, input, list(pad), value)


@named_by_numpy
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
    values: Tensor = window.mul(0).add(1) if length == 1 else window
    return values._require_grad(bool(options.get("requires_grad")))


def _dtype(options: Made) -> DType:
    dtype: DType = options.get("dtype") or dtypes.default()
    if not dtype.is_floating_point:
        raise RuntimeError(f"a window expects floating point dtypes, got: {dtype}")
    return dtype


@named_by_numpy
@outputs.writable()
@aten("cholesky")
def cholesky(input: Tensor, upper: bool = False) -> Tensor:
    """torch's old name of linalg.cholesky."""
    factor: Tensor = importlib.import_module("pywebgpu.linalg").cholesky(input, upper=upper)
    return factor


@named_by_numpy
@outputs.writable()
@typed
def qr(input: Tensor, some: bool = True) -> tuple[Tensor, Tensor]:
    """torch's old name of linalg.qr."""
    factors = importlib.import_module("pywebgpu.linalg").qr(input, "reduced" if some else "complete")
    return return_types.of("qr", factors)


@named_by_numpy
@outputs.writable()
@typed
def svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    """torch's old name of linalg.svd, with V instead of its transpose."""
    u, s, vh = importlib.import_module("pywebgpu.linalg").svd(input, not some)
    return return_types.of("svd", (u, s, vh.mH))


@named_by_numpy
@outputs.writable()
def lgamma(input: Tensor) -> Tensor:
    """log |gamma(x)|, by element."""
    return apply(_real, gamma.lgamma, input)


@named_by_numpy
@outputs.writable()
def digamma(input: Tensor) -> Tensor:
    """The derivative of lgamma, by element."""
    return apply(_real, gamma.digamma, input)


def trigamma(input: Tensor) -> Tensor:
    """The derivative of digamma, by element. It has no gradient: see special.polygamma."""
    return apply(_real, gamma.trigamma, input)


@named_by_numpy
@outputs.writable()
@aten("mvlgamma")
def mvlgamma(input: Tensor, p: int) -> Tensor:
    """The multivariate lgamma of dimension p."""
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    offsets = create.arange(p, device=input.device).mul(-0.5)
    offsets = offsets.to(input.dtype) if input.dtype.is_floating_point else offsets
    return lgamma(input.unsqueeze(-1).add(offsets)).sum(-1).add(p * (p - 1) / 4 * log(pi))


def _real(op: Pointwise, x: Node) -> Node:
    return arithmetic.unary_float(op, x)


@named_by_numpy
def gradient(
    input: Tensor,
    *,
    spacing: float | Tensor | Sequence[float | Tensor] | None = None,
    dim: int | Sequence[int] | None = None,
    edge_order: int = 1,
) -> tuple[Tensor, ...]:
    """Slopes along axes, of second order inside and of `edge_order` at the ends.

    spacing: how far points lie apart, a number or one an axis, or where they lie, a vector an axis.
    """
    axes = list(range(input.ndim)) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    if isinstance(spacing, list | tuple) and any(isinstance(s, Tensor) and s.device != input.device for s in spacing):
        raise RuntimeError("torch.gradient expected each tensor to be on the same device as the input")
    places = [axis % max(input.ndim, 1) for axis in axes if -input.ndim <= axis < input.ndim]
    if len(set(places)) < len(places):
        raise RuntimeError(f"torch.gradient: an axis appears multiple times in the list of dims: {axes}")
    distances = 1.0 if spacing is None else spacing
    steps = [distances] * len(axes) if isinstance(distances, int | float | complex | Tensor) else list(distances)
    if len(steps) != len(axes):
        raise RuntimeError(
            f"torch.gradient expected spacing to be unspecified, a scalar or a list of length {len(axes)}, "
            f"but got {len(steps)}"
        )
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    if any(input.shape[axis] < edge_order + 1 for axis in axes):
        raise RuntimeError("torch.gradient expected each dimension size to be at least edge_order+1")
    x = input if input.dtype.kind is dtypes.Kind.FLOAT else input.to(dtypes.default())
    return tuple(_slope(x, axis, step, edge_order) for axis, step in zip(axes, steps, strict=True))


def _slope(x: Tensor, axis: int, step: complex | Tensor, order: int) -> Tensor:
    """Sums and quotients in the order of NumPy's and PyTorch's: the same bits."""
    x = x.movedim(axis, -1)
    x = x if not isinstance(step, complex) or x.is_complex() else x.to(x.dtype.to_complex())
    number: Any = step  # a complex one, too
    rise = x.diff(dim=-1)
    if not isinstance(step, Tensor):
        inside = (x[..., 2:] - x[..., :-2]) / (number * 2)
        first, last = rise[..., :1] / number, rise[..., -1:] / number
        if order == 2:
            first = _weighted(x[..., :3], (-1.5, 2, -0.5)) / number
            last = _weighted(x[..., -3:], (0.5, -2, 1.5)) / number
    else:
        h = step.diff()
        before, after = h[:-1], h[1:]
        both = before + after
        inside = _weighted(x, (-after / (before * both), (after - before) / (before * after), before / (after * both)))
        first, last = rise[..., :1] / h[:1], rise[..., -1:] / h[-1:]
        if order == 2:  # A parabola through three points.
            (d, e), (f, g) = (h[:1], h[1:2]), (h[-2:-1], h[-1:])
            first = _weighted(x[..., :3], (-(2.0 * d + e) / (d * (d + e)), (d + e) / (d * e), -d / (e * (d + e))))
            last = _weighted(x[..., -3:], (g / (f * (f + g)), -(g + f) / (f * g), (2.0 * g + f) / (g * (f + g))))
    return called(functions.cat([first, inside, last], -1).movedim(-1, axis).contiguous(), "aten::cat")


def _weighted(x: Tensor, weights: Sequence[Any]) -> Tensor:
    """Of each three neighbours along the last axis, their sum by weights."""
    n = x.shape[-1] - 2
    return weights[0] * x[..., :n] + weights[1] * x[..., 1 : n + 1] + weights[2] * x[..., 2:]  # type: ignore[no-any-return]


@named_by_numpy
def nonzero_static(input: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    """The positions of the first `size` elements that are not 0, a row each; rows that are left hold `fill_value`."""
    if size < 0:
        raise RuntimeError(f"nonzero_static: 'size' must be an non-negative integer, not {size}")
    flat = input.detach().reshape(-1).ne(0)
    row = flat.cumsum(0).sub(1)
    row = functions.where(flat.logical_and(row < size), row, size)
    filled = create.full((size + 1, input.ndim), fill_value, dtype=dtypes.int64, device=input.device)
    if not input.ndim:
        return filled[:size]
    position = create.arange(flat.numel(), device=input.device)
    places = functions.stack(list(unravel_index(position, input.shape)), -1)
    return filled.scatter(0, row.unsqueeze(-1).expand(-1, input.ndim), places)[:size]


@named_by_numpy
@outputs.writable()
def histogram(
    input: Tensor,
    bins: int | Tensor = 100,
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> tuple[Tensor, Tensor]:
    """How many elements, or how much weight, lies between edges; and the edges."""
    if isinstance(bins, Tensor) and range is not None:
        raise RuntimeError("torch.histogram(): range is not supported when bins is a Tensor")
    flat = None if weight is None else weight.reshape(-1)
    counts, edges = histogramdd(input.reshape(-1, 1), [bins], range=range, weight=flat, density=density)
    edge = edges[0].clone(memory_format=contiguous_format) if isinstance(bins, Tensor) else edges[0]
    return return_types.of("histogram", (counts, edge))


def _bins(columns: Sequence[Tensor], edges: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """For each point, the position of its bin among all bins, and whether it lies in one."""
    place, inside = columns[0].new_zeros(columns[0].shape, dtype=dtypes.int64), columns[0].eq(columns[0])
    for x, edge in zip(columns, edges, strict=True):
        n = edge.numel() - 1
        position = sorting.bucketize(x.contiguous(), edge, right=True).sub(1)
        position = functions.where(x == edge[-1], n - 1, position)
        inside = inside.logical_and(position >= 0).logical_and(position < n)
        place = place.mul(n).add(position)
    return place, inside


@named_by_numpy
def histogramdd(
    input: Tensor,
    bins: int | Sequence[int | Tensor],
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """As histogram, of points of several coordinates (the last axis), with edges for each."""
    if input.ndim < 2:
        raise RuntimeError("torch.histogramdd: input tensor should have at least 2 dimensions")
    count = input.shape[-1]
    counts = [bins] * count if isinstance(bins, int) else list(bins)
    if len(counts) != count:
        raise RuntimeError(
            f"torch.histogramdd: expected {count} sequences of bin edges for a {count}-dimensional histogram but got "
            f"{len(counts)}"
        )
    if weight is not None and weight.shape != input.shape[:-1]:
        raise RuntimeError("torch.histogramdd: if weight tensor is provided it should have the shape of the input")
    points = input.detach().reshape(-1, count)
    columns = [points.select(1, axis) for axis in _builtin_range(count)]
    ends = [None] * count if range is None else [range[2 * axis : 2 * axis + 2] for axis in _builtin_range(count)]
    edges = tuple(_edges(x, n, end) for x, n, end in zip(columns, counts, ends, strict=True))
    place, inside = _bins(columns, edges)
    shape = [edge.numel() - 1 for edge in edges]
    total = prod(shape)
    held = points.new_ones(points.shape[0]) if weight is None else weight.detach().reshape(-1).to(points.dtype)
    sums = points.new_zeros(total + 1).scatter_add(0, functions.where(inside, place, total), held)
    densities = sums[:total].reshape(shape)
    if density:
        densities = densities.div(densities.sum())
        for axis, edge in enumerate(edges):
            densities = densities.div(edge.diff().reshape([-1 if a == axis else 1 for a in _builtin_range(count)]))
    return return_types.of("histogramdd", (densities, edges))


def _edges(x: Tensor, bins: int | Tensor, ends: Sequence[float] | None) -> Tensor:
    if isinstance(bins, Tensor):
        return bins.detach()
    if bins < 1:
        raise RuntimeError(f"torch.histogramdd(): bins must be > 0, but got {bins}")
    low, high = (
        (x.min(), x.max()) if ends is None and x.numel() else [x.new_full((), end) for end in ends or (0.0, 1.0)]
    )
    margin = functions.where(low == high, 0.5, 0.0)
    low, high = low - margin, high + margin
    share = create.arange(bins + 1, dtype=x.dtype, device=x.device).div(bins)
    return functions.where(share == 1, high, low + (high - low) * share)


globals().update(dispatch.all_public(globals(), __name__))
