"""torch.masked: reductions and normalizations of the elements that a mask chooses.

What the mask leaves out becomes what changes no result: 0 in a sum, -inf in a maximum.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pywebgpu import dtypes, linalg
from pywebgpu.dtypes import DType, Kind
from pywebgpu.sparse import SparseTensor, made, to_sparse
from pywebgpu.support import closed_types, lazy, numbers, shapes
from pywebgpu.tensor import create, functions
from pywebgpu.tensor.formats import combined
from pywebgpu.tensor.memory_format import by_operands, described
from pywebgpu.tensor.tensor import Tensor

if TYPE_CHECKING:
    Mask = Tensor | None
    Dims = int | Sequence[int] | None

INF, NAN = float("inf"), float("nan")


def _of_layouts(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The function for sparse tensors and masks, too: what is nowhere in a mask is not chosen, as where it is False."""

    @functools.wraps(function)
    def call(input: Tensor, *args: Any, mask: Mask = None, **options: Any) -> Tensor:
        if not isinstance(input, SparseTensor):
            return function(input, *args, mask=None if mask is None else mask.to_dense(), **options)
        name = function.__name__
        if mask is None and name not in ("sum", "cumsum"):
            if input.layout is closed_types.sparse_coo:
                raise NotImplementedError(f"masked {name} expects explicit mask for sparse_coo tensor input")
            mask = input._like(create.ones_like(input._values()).to(dtypes.bool_))
        result = function(input.to_dense(), *args, mask=None if mask is None else mask.to_dense(), **options)
        if name in _REDUCTIONS and mask is not None:  # What nothing was chosen for is not in the result.
            result = result.masked_fill(
                _output_mask(call, input, *args, mask=mask, **options).to_dense().logical_not(), 0
            )
        return to_sparse(result, layout=input.layout)

    return call


def _inside(input: Tensor, mask: Mask) -> Tensor:
    """The mask as bool, in the input's shape."""
    if mask is None:
        return input.new_ones(input.shape, dtype=dtypes.bool_)
    if mask.ndim > input.ndim:
        raise IndexError("_input_mask expected broadcastable mask (got mask dimensionality higher than of the input)")
    return mask.to(dtypes.bool_).broadcast_to(input.shape)


def _filled(input: Tensor, mask: Mask, value: float, *, as_floats: bool = False) -> Tensor:
    """`input` with one number where the mask is False; an infinity is the end of a dtype of whole numbers.

    as_floats: what is made of it are floats, so where no int64 reaches its end, floats of the same values do.
    """
    if mask is None:
        return input
    dtype = input.dtype
    if abs(value) == INF and dtype.kind is not Kind.FLOAT:
        low, high = dtype.low, dtype.high
        if dtype is dtypes.int64 and input._storage.device.target.wgsl:
            if as_floats:
                input = input.float()
            else:
                low, high = numbers.WORD
        value = low if value < 0 else high
    return input.masked_fill(_inside(input, mask).logical_not(), value)


def _axes(dim: Dims, ndim: int) -> tuple[int, ...]:
    if dim is None or (not isinstance(dim, int) and not len(dim)):
        return tuple(range(ndim))
    return (dim,) if isinstance(dim, int) else tuple(dim)


def _named(name: str, text: str, function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{text} of the elements where `mask` is True."
    return _of_layouts(function)


def _summed(name: str, text: str, value: float) -> Callable[..., Tensor]:
    def function(
        input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: DType | None = None, mask: Mask = None
    ) -> Tensor:
        wanted = dtype or (input.dtype if input.dtype.kind is Kind.FLOAT else dtypes.int64)
        x = _filled(input, mask, value)
        if name == "sum":
            return x.sum(_axes(dim, x.ndim), keepdim, dtype=wanted)
        for axis in sorted({shapes.axis(axis, x.ndim) for axis in _axes(dim, x.ndim)}, reverse=True):
            x = x.prod(axis, keepdim, dtype=wanted)
        return x.to(wanted)

    return _named(name, text, function)


def _extreme(name: str, text: str, value: float) -> Callable[..., Tensor]:
    def function(
        input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: DType | None = None, mask: Mask = None
    ) -> Tensor:
        x = _filled(input, mask, value, as_floats=name == "logsumexp")
        axes = dim if name.startswith("arg") else _axes(dim, x.ndim)
        reduced: Tensor = getattr(x, name)(axes, keepdim=keepdim)
        return reduced.to(dtype or input.dtype)

    return _named(name, text, function)


def _along(name: str, text: str, value: float) -> Callable[..., Tensor]:
    def function(input: Tensor, dim: int, *, dtype: DType | None = None, mask: Mask = None) -> Tensor:
        x = _filled(input, mask, value, as_floats="softmax" in name)
        reduced: Tensor = getattr(x, name)(dim, dtype=dtype or input.dtype)
        return reduced

    return _named(name, text, function)


sum, prod = _summed("sum", "The sum", 0), _summed("prod", "The product", 1)
amax, amin = _extreme("amax", "The largest", -INF), _extreme("amin", "The smallest", INF)
argmax, argmin = _extreme("argmax", "Where the largest is", -INF), _extreme("argmin", "Where the smallest is", INF)
logsumexp = _extreme("logsumexp", "The logarithm of the sum of exponentials", -INF)
softmax, log_softmax = _along("softmax", "The softmax", -INF), _along("log_softmax", "Its logarithm, softmax", -INF)
cumsum, cumprod = _along("cumsum", "The running sum", 0), _along("cumprod", "The running product", 1)


@_of_layouts
def softmin(input: Tensor, dim: int, *, dtype: DType | None = None, mask: Mask = None) -> Tensor:
    """The softmax of the negatives of the elements where `mask` is True."""
    return _filled(input, mask, INF, as_floats=True).neg().softmax(dim, dtype or input.dtype)


@_of_layouts
def mean(
    input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: DType | None = None, mask: Mask = None
) -> Tensor:
    """The mean of the elements where `mask` is True; NaN of none."""
    if (dtype or input.dtype).kind is not Kind.FLOAT:
        raise ValueError(
            "mean(): Could not infer output dtype. Input dtype must be either a floating point or complex dtype. "
            f"Got: {dtype or input.dtype}"
        )
    count = _inside(input, mask).sum(_axes(dim, input.ndim), keepdim)
    return sum(input, dim, keepdim=keepdim, dtype=dtype, mask=mask) / count


@_of_layouts
def median(
    input: Tensor, dim: int = -1, *, keepdim: bool = False, dtype: DType | None = None, mask: Mask = None
) -> Tensor:
    """The median of the elements where `mask` is True; NaN of none."""
    x = input if input.dtype.is_floating_point else input.float()
    medians: Tensor = _filled(x, mask, NAN).nanmedian(dim, keepdim)[0]
    if input.dtype.is_floating_point:
        return medians
    if medians.isnan().any():
        raise ValueError("masked median expects no fully masked out rows if dtype is not floating point")
    return medians.to(dtype or input.dtype)


@_of_layouts
def norm(
    input: Tensor,
    ord: float | None = 2.0,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Mask = None,
) -> Tensor:
    """The norm of the elements where `mask` is True."""
    x = _filled(input, mask, INF if ord == -INF else 0)
    return linalg.vector_norm(x, 2 if ord is None else ord, _axes(dim, x.ndim), keepdim, dtype=dtype or input.dtype)


@_of_layouts
def normalize(
    input: Tensor, ord: float, dim: int, *, eps: float = 1e-12, dtype: DType | None = None, mask: Mask = None
) -> Tensor:
    """The elements where `mask` is True, divided by their norm."""
    size = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    return _filled(input, mask, 0) / size.maximum(size.new_full((), eps))


def logaddexp(
    input: Tensor, other: Tensor, *, dtype: DType | None = None, input_mask: Mask = None, other_mask: Mask = None
) -> Tensor:
    """log(exp(input) + exp(other)), of each where its mask is True."""
    added = _filled(input, input_mask, -INF).logaddexp(_filled(other, other_mask, -INF))
    filled = [
        described(part) if mask is None else combined(described(mask.broadcast_to(part.shape)), described(part))
        for part, mask in ((input, input_mask), (other, other_mask))
    ]
    added = by_operands(added, *filled)
    return added.to(dtype or input.dtype)


@_of_layouts
def var(
    input: Tensor,
    dim: Dims = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Mask = None,
) -> Tensor:
    """The variance of the elements where `mask` is True."""
    if unbiased is not None and correction is not None:
        raise AssertionError("Only one of unbiased and correction may be given")
    less = (1.0 if unbiased is None else float(unbiased)) if correction is None else float(correction)
    wanted = dtype or (input.dtype if input.dtype.kind is Kind.FLOAT else dtypes.float32)
    wide = wanted if wanted.kind is Kind.FLOAT else dtypes.float32
    axes = _axes(dim, input.ndim)
    count = _inside(input, mask).sum(axes, True)
    deviations = input - sum(input, axes, keepdim=True, dtype=wanted, mask=mask) / count
    total = sum(deviations * deviations.conj(), axes, keepdim=keepdim, dtype=wide, mask=mask)
    count = count.reshape(total.shape)
    return (total / ((count.to(wide.part or wide) - less).clamp_min(0) if less else count)).to(wanted)


@_of_layouts
def std(input: Tensor, dim: Dims = None, unbiased: bool | None = None, **options: Any) -> Tensor:
    """The standard deviation of the elements where `mask` is True."""
    return var(input, dim, unbiased, **options).sqrt()


# Private to PyTorch, and read by libraries


def _canonical_dim(dim: Dims, ndim: int) -> tuple[int, ...]:
    """The axes in order, none of them negative; all of them for None. Raises IndexError, RuntimeError."""
    if dim is None or dim == ():
        return tuple(range(ndim))
    count, axes = max(ndim, 1), []
    for axis in (dim,) if isinstance(dim, int) else dim:
        if not -count <= axis < count:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-count}, {count - 1}], but got {axis})"
            )
        if axis % count in axes:
            raise RuntimeError(f"dim={axis} appears multiple times in the list of dims")
        axes.append(axis % count)
    return tuple(sorted(axes))


def _input_mask(input: Tensor, *args: object, mask: Mask = None, **options: object) -> Tensor:
    """The mask as bool, in the input's shape and layout. Raises ValueError where there is none."""
    if mask is None:
        raise ValueError("input mask must be given explicitly")
    if mask.ndim > input.ndim:
        raise IndexError("_input_mask expected broadcastable mask (got mask dimensionality higher than of the input)")
    if mask.layout is input.layout and mask.shape == input.shape:
        return mask.to(dtypes.bool_)
    chosen = _inside(input, mask.to_dense())
    if not isinstance(input, SparseTensor):
        return chosen
    count = input.sparse_dim() if input.layout is closed_types.sparse_coo else None
    return to_sparse(chosen, count, layout=input.layout)


def _output_mask(op: Callable[..., Tensor], input: Tensor, *args: Any, **options: Any) -> Tensor:
    """Which elements of the result of a function here were made of any that its mask chose.

    Raises ValueError for other functions.
    """
    name = op.__name__
    chosen = _input_mask(input, *args, **options)
    if name in ("softmax", "log_softmax", "softmin", "normalize", "cumsum", "cumprod"):
        return chosen
    if name not in _REDUCTIONS:
        raise ValueError(f"_output_mask expected masked operation (got callable {op.__module__}.{name})")
    place = 1 if name == "norm" else 0
    dim = args[place] if len(args) > place else options.get("dim")
    axes, keepdim = _canonical_dim(dim, input.ndim), bool(options.get("keepdim"))
    reached: Tensor = chosen.to_dense().any(axes, keepdim) if input.ndim else chosen.to_dense()
    return to_sparse(reached, layout=input.layout) if isinstance(input, SparseTensor) else reached


_REDUCTIONS = (
    "amax", "amin", "argmax", "argmin", "logsumexp", "mean", "median", "norm", "prod", "std", "sum", "var",
)  # fmt: skip


def _reduction_identity(op_name: str, input: Tensor, *args: Any) -> Tensor | None:
    """What an element must be to change no result of a reduction; None where there is no such number."""
    name, dtype, number = op_name.rpartition(".")[2], input.dtype, 0.0
    match name:
        case "prod" | "cumprod":
            number = 1.0
        case "amax" | "argmax" | "logaddexp" | "logsumexp":
            number = -INF if dtype.kind is Kind.FLOAT else dtype.low
        case "amin" | "argmin":
            number = INF if dtype.kind is Kind.FLOAT else dtype.high
        case "norm":
            number = INF if args and args[0] == -INF else 0.0
        case "median":
            return create.tensor(NAN, dtype=dtype if dtype.is_floating_point else dtypes.float32, device=input.device)
        case "mean" | "var" | "std":
            return None
        case "sum" | "cumsum":
            pass
        case _:
            raise NotImplementedError(f"identity of {op_name} on {dtype} input")
    return create.tensor(number, dtype=dtype, device=input.device)


def _where(mask: Tensor, input: Tensor, fill_value: Tensor) -> Tensor:
    """The input where the mask is True. Sparse where both are: what is nowhere in the mask is nowhere in the result,
    and has the fill value beside what is chosen."""
    if not (isinstance(mask, SparseTensor) and isinstance(input, SparseTensor)):
        return functions.where(mask, input, fill_value)
    coo = mask._as_coo().coalesce()
    chosen = coo._values().to(dtypes.bool_)
    kept = chosen.flatten(1).any(1) if chosen.ndim > 1 else chosen
    coordinates = coo._indices()[:, kept]
    picked = input.to_dense()[tuple(coordinates)]
    values = functions.where(chosen[kept], picked, fill_value.to(picked.dtype))
    result = made(coordinates, values, input.shape, is_coalesced=True)
    return result if input.layout is closed_types.sparse_coo else result.to_sparse(layout=input.layout)


def _combine_input_and_mask(op: Callable[..., Tensor], input: Tensor, mask: Mask, *args: Any) -> Tensor:
    """The input, with what changes no result of a reduction where the mask is False."""
    if mask is None:
        return input
    chosen, number = _input_mask(input, mask=mask), _reduction_identity(op.__name__, input, *args)
    return _where(chosen, input, create.tensor(0, dtype=input.dtype) if number is None else number)


__getattr__ = lazy.absent(__name__)
