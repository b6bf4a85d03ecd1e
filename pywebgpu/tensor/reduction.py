"""Methods that fold axes, and scans along one."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, overload

from pywebgpu.composites import joining, reduce, scan
from pywebgpu.dtypes import DType
from pywebgpu.errors import ShapeError
from pywebgpu.ir.graph import Node, thread_state, used
from pywebgpu.tensor.apply import apply, aten, called
from pywebgpu.tensor.base import TensorBase
from pywebgpu.tensor.memory_format import laid_out, of_order
from pywebgpu.tensor.methods import aliased, require_tensor
from pywebgpu.tensor.pointwise import PointwiseMethods
from pywebgpu.torch_api import return_types

if TYPE_CHECKING:
    from pywebgpu.tensor.tensor import Tensor
    from pywebgpu.tensor.types import Dims


class Extreme(NamedTuple):
    """What a search along an axis finds: values, and where they are. For annotations: see return_types.py."""

    values: Tensor
    indices: Tensor


class Ends(NamedTuple):
    """Smallest and largest. For annotations."""

    min: Tensor
    max: Tensor


def extreme(name: str, parts: Sequence[Tensor]) -> Extreme:
    """Values and where they are, as a function of this name returns them."""
    return return_types.of(name, parts)  # type: ignore[return-value]


class ReductionMethods(PointwiseMethods):
    """Sums, extremes, statistics, norms, row functions and scans."""

    __slots__ = ()

    # Sums and products

    @aliased
    def sum(self, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
        """The sum over `dim` (None: all axes); of whole numbers and bools in int64."""
        if used.autocast is not None and thread_state.autocast:
            total = apply(reduce.sum, self, dim, keepdim, dtype=dtype)
        else:
            total = self._new(reduce.sum(self._node, dim, keepdim, dtype=dtype), self._storage.device)
        return total if dim is None else called(total, "aten::sum.1")

    @aliased
    def nansum(self, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
        """The sum over `dim`, where NaN counts as 0."""
        return apply(reduce.nansum, self, dim, keepdim, dtype=dtype)

    @aliased
    def mean(self, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
        """The mean over `dim` (None: all axes)."""
        average = self._new(reduce.mean(self._node, dim, keepdim, dtype=dtype), self._storage.device)
        return average if dim is None else called(average, "aten::mean.1")

    @aliased
    def nanmean(self, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
        """The mean over `dim` of what is not NaN."""
        return apply(reduce.nanmean, self, dim, keepdim, dtype=dtype)

    @aliased
    def prod(self, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
        """The product over one axis, or over all."""
        product = apply(reduce.prod, self, dim, keepdim, dtype=dtype)
        return product if dim is None else called(product, "aten::prod.1")

    @aliased
    def count_nonzero(self, dim: Dims = None) -> Tensor:
        """How many elements are not 0."""
        return apply(reduce.count_nonzero, self, dim)

    @aliased
    def any(self, dim: Dims = None, keepdim: bool = False) -> Tensor:
        """Whether some element is not 0."""
        return apply(reduce.any, self, dim, keepdim)

    @aliased
    def all(self, dim: Dims = None, keepdim: bool = False) -> Tensor:
        """Whether no element is 0."""
        return apply(reduce.all, self, dim, keepdim)

    # Extremes

    @aliased
    def amax(self, dim: Dims = (), keepdim: bool = False) -> Tensor:
        """The largest element over `dim`; equal ones share the gradient."""
        return apply(reduce.amax, self, None if type(dim) is tuple and not dim else dim, keepdim)

    @aliased
    def amin(self, dim: Dims = (), keepdim: bool = False) -> Tensor:
        """The smallest element over `dim`; equal ones share the gradient."""
        return apply(reduce.amin, self, None if type(dim) is tuple and not dim else dim, keepdim)

    @overload
    def max(self) -> Tensor: ...
    @overload
    def max(self, dim: Tensor) -> Tensor: ...
    @overload
    def max(self, dim: int, keepdim: bool = False) -> Extreme: ...
    @overload
    def max(self, *, other: Tensor) -> Tensor: ...
    @aliased
    def max(self, dim: Dims | Tensor = None, keepdim: bool = False, *, other: Tensor | None = None) -> Tensor | Extreme:
        """The largest of all; with an axis, values and indices along it; with a tensor, the larger of both."""
        return self._extreme("max", dim, keepdim, other)

    @overload
    def min(self) -> Tensor: ...
    @overload
    def min(self, dim: Tensor) -> Tensor: ...
    @overload
    def min(self, dim: int, keepdim: bool = False) -> Extreme: ...
    @overload
    def min(self, *, other: Tensor) -> Tensor: ...
    @aliased
    def min(self, dim: Dims | Tensor = None, keepdim: bool = False, *, other: Tensor | None = None) -> Tensor | Extreme:
        """The smallest of all; with an axis, values and indices along it; with a tensor, the smaller of both."""
        return self._extreme("min", dim, keepdim, other)

    def _extreme(self, name: str, dim: Dims | TensorBase, keepdim: bool, other: Tensor | None) -> Tensor | Extreme:
        if isinstance(dim, TensorBase):
            dim, other = None, dim
        if other is not None:
            return (self.maximum if name == "max" else self.minimum)(other)
        if dim is None:
            of_all = apply(reduce.largest if name == "max" else reduce.smallest, self)
            return called(of_all, f"aten::{name}.1")
        result = apply(reduce.max if name == "max" else reduce.min, self, dim, keepdim)
        return extreme(name, result)

    @aliased
    def aminmax(self, *, dim: int | None = None, keepdim: bool = False) -> Ends:
        """Smallest and largest element, over one axis or over all."""
        return return_types.of("aminmax", apply(reduce.aminmax, self, dim=dim, keepdim=keepdim))  # type: ignore[return-value]

    @aliased
    def argmax(self, dim: int | None = None, keepdim: bool = False) -> Tensor:
        """Where the first of the largest elements is: along `dim`, or in the flattened tensor."""
        return apply(reduce.argmax, self, dim, keepdim)

    @aliased
    def argmin(self, dim: int | None = None, keepdim: bool = False) -> Tensor:
        """Where the first of the smallest elements is: along `dim`, or in the flattened tensor."""
        return apply(reduce.argmin, self, dim, keepdim)

    # Statistics

    @aliased
    def var(
        self, dim: Dims = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: float | None = None
    ) -> Tensor:
        """The variance over `dim`: squares around the mean over count - correction, which is 1."""
        dim, correction = _spread(dim, unbiased, correction)
        return apply(reduce.var, self, dim, correction=correction, keepdim=keepdim)

    @aliased
    def std(
        self, dim: Dims = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: float | None = None
    ) -> Tensor:
        """The root of the variance."""
        dim, correction = _spread(dim, unbiased, correction)
        return apply(reduce.std, self, dim, correction=correction, keepdim=keepdim)

    @aliased
    def var_mean(
        self, dim: Dims = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: float | None = None
    ) -> tuple[Tensor, Tensor]:
        """The variance and the mean."""
        dim, correction = _spread(dim, unbiased, correction)
        return apply(reduce.var_mean, self, dim, correction=correction, keepdim=keepdim)

    @aten("std_mean")
    @aliased
    def std_mean(
        self, dim: Dims = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: float | None = None
    ) -> tuple[Tensor, Tensor]:
        """The standard deviation and the mean."""
        dim, correction = _spread(dim, unbiased, correction)
        return apply(reduce.std_mean, self, dim, correction=correction, keepdim=keepdim)

    @aliased
    def quantile(
        self, q: Tensor | float, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
    ) -> Tensor:
        """The value below which a share q of a row lies; q is a number or a vector."""
        result = apply(_later("quantile"), self, q, dim, keepdim, interpolation=interpolation)
        return _shares_last(result, q)

    @aliased
    def nanquantile(
        self, q: Tensor | float, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
    ) -> Tensor:
        """The quantile of what is not NaN."""
        result = apply(_later("nanquantile"), self, q, dim, keepdim, interpolation=interpolation)
        return _shares_last(result, q)

    @aliased
    def norm(
        self, p: float | str = "fro", dim: Dims = None, keepdim: bool = False, dtype: DType | None = None
    ) -> Tensor:
        """(sum of |x|^p)^(1/p) over `dim`; p may be inf, -inf or 0, or "nuc" of matrices."""
        if p == "nuc":
            axes = tuple(range(self.ndim)) if dim is None else dim
            return importlib.import_module("pywebgpu.linalg").matrix_norm(self, "nuc", axes, keepdim, dtype=dtype)  # type: ignore[no-any-return]
        return apply(reduce.norm, self, p, dim, keepdim, dtype=dtype)

    @aten("dist")
    @aliased
    def dist(self, other: Tensor, p: float = 2) -> Tensor:
        """The p-norm of self - other."""
        require_tensor("dist", "other", 2, other)
        return self.sub(other).norm(p)

    @aliased
    def logsumexp(self, dim: Dims, keepdim: bool = False) -> Tensor:
        """log(sum(exp(x))) over `dim`."""
        return apply(reduce.logsumexp, self, dim, keepdim)

    @aliased
    def softmax(self, dim: int, dtype: DType | None = None) -> Tensor:
        """exp(x) over its sum along `dim`."""
        if used.autocast is not None and thread_state.autocast:
            return apply(reduce.softmax, self, dim, dtype=dtype)
        return self._new(reduce.softmax(self._node, dim, dtype=dtype), self._storage.device)

    @aliased
    def log_softmax(self, dim: int, dtype: DType | None = None) -> Tensor:
        """x - logsumexp(x) along `dim`."""
        if used.autocast is not None and thread_state.autocast:
            return apply(reduce.log_softmax, self, dim, dtype=dtype)
        return self._new(reduce.log_softmax(self._node, dim, dtype=dtype), self._storage.device)

    # Scans

    @aliased
    def cumsum(self, dim: int, *, dtype: DType | None = None) -> Tensor:
        """Running sums along `dim`."""
        return apply(scan.cumsum, self, dim, dtype=dtype)

    @aliased
    def cumprod(self, dim: int, *, dtype: DType | None = None) -> Tensor:
        """Running products along `dim`."""
        return apply(scan.cumprod, self, dim, dtype=dtype)

    @aliased
    def cummax(self, dim: int) -> Extreme:
        """Running maxima along `dim`, and where they are."""
        return extreme("cummax", apply(scan.cummax, self, dim))

    @aliased
    def cummin(self, dim: int) -> Extreme:
        """Running minima along `dim`, and where they are."""
        return extreme("cummin", apply(scan.cummin, self, dim))

    @aliased
    def logcumsumexp(self, dim: int) -> Tensor:
        """Running logarithms of sums of exponentials along `dim`."""
        return apply(scan.logcumsumexp, self, dim)

    @aliased
    def diff(
        self, n: int = 1, dim: int = -1, prepend: TensorBase | None = None, append: TensorBase | None = None
    ) -> Tensor:
        """x[i + 1] - x[i] along `dim`, n times, with rows before and after it."""
        parts = [part for part in (prepend, self, append) if part is not None]
        if self.ndim == 0:
            raise ShapeError("diff expects input to be at least one-dimensional")
        if any(part.ndim != self.ndim for part in parts):
            raise ShapeError("diff expects prepend or append to be the same dimension as input")
        for part, axis in itertools.product(parts, range(self.ndim)):
            if axis != dim % self.ndim and part.shape[axis] != self.shape[axis]:
                raise ShapeError(
                    "diff expects the shape of tensor to prepend or append to match that of input except along the "
                    f"differencing dimension; input.size({axis}) = {self.shape[axis]}, but got tensor.size({axis}) = "
                    f"{part.shape[axis]}"
                )
        parts = [self] if n == 0 else parts
        joined: Any = apply(joining.cat, parts, dim) if len(parts) > 1 else self
        return apply(scan.diff, joined, n, dim)


def _shares_last(result: Tensor, q: Tensor | float) -> Tensor:
    """What quantiles of several shares give: their axis is the first, and changes fastest in memory."""
    if not getattr(q, "ndim", 0) or result.ndim < 2:
        return result
    return laid_out(result, of_order(tuple(result.shape), (*range(1, result.ndim), 0)))


def _later(name: str) -> Callable[..., Node]:
    """A function of composites/quantile, which few programs need."""
    function: Callable[..., Node] = getattr(importlib.import_module("pywebgpu.composites.quantile"), name)
    return function


def _spread(dim: Dims, unbiased: bool | None, correction: float | None) -> tuple[Dims, float]:
    """The axes, and the correction, of all ways in which a variance is asked for."""
    if isinstance(dim, bool):  # var(unbiased)
        dim, unbiased = None, dim
    if correction is None:
        correction = 1 if unbiased is None or unbiased else 0
    return dim, correction


@aliased
def trapezoid(y: TensorBase, x: Tensor | None = None, *, dx: float = 1, dim: int = -1) -> Tensor:
    """The integral along `dim` of the straight lines between points y, which lie dx apart or at x."""
    return apply(scan.trapezoid, y, x, dx=dx, dim=dim)
