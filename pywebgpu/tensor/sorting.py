"""Methods and functions that put in order, search what is ordered, and count: sort, top k, histograms."""

from __future__ import annotations

import operator
from importlib import import_module
from typing import TYPE_CHECKING, Any, overload

from pywebgpu import dtypes
from pywebgpu.composites import masks, matrix, order_statistics, ordering, reduce, searching
from pywebgpu.dtypes import Kind
from pywebgpu.errors import ShapeError
from pywebgpu.tensor import gather_scatter, outputs
from pywebgpu.tensor.apply import apply, called
from pywebgpu.tensor.methods import aliased, named_by_numpy, require_tensor
from pywebgpu.tensor.reduction import extreme
from pywebgpu.tensor.reshaping import ReshapingMethods

if TYPE_CHECKING:
    from pywebgpu.tensor.reduction import Extreme
    from pywebgpu.tensor.tensor import Tensor
    from pywebgpu.tensor.types import Operand


class SortingMethods(ReshapingMethods):
    """Order, frequencies, membership."""

    __slots__ = ()

    @aliased
    def sort(self, dim: int = -1, descending: bool = False, stable: bool = False) -> Extreme:
        """Values in order along an axis, and where they stood. Always stable; NaN is the largest."""
        return extreme("sort", apply(ordering.sort, self, dim, descending, stable))

    @aliased
    def argsort(self, dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
        """Where the elements of a sorted row stand."""
        return apply(ordering.argsort, self, dim, descending, stable)

    def msort(self) -> Tensor:
        """Values in order along the first axis."""
        return self.sort(0).values

    @aliased
    def topk(self, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Extreme:
        """The k largest (or smallest) elements along an axis, in order, and where they stand."""
        if isinstance(dim, bool):
            raise TypeError("topk(): argument 'dim' (position 2) must be int, not bool")
        return extreme("topk", apply(ordering.topk, self, int(k), dim, largest, sorted))

    @aliased
    def kthvalue(self, k: int, dim: int = -1, keepdim: bool = False) -> Extreme:
        """The k-th smallest element along an axis, and where it stands."""
        return extreme("kthvalue", apply(order_statistics.kthvalue, self, int(k), dim, keepdim))

    @overload
    def median(self) -> Tensor: ...
    @overload
    def median(self, dim: int, keepdim: bool = False) -> Extreme: ...
    @aliased
    def median(self, dim: int | None = None, keepdim: bool = False) -> Tensor | Extreme:
        """The middle element, of two the smaller one: of all, or along an axis with its index."""
        return _middle(self, "median", dim, keepdim)

    @overload
    def nanmedian(self) -> Tensor: ...
    @overload
    def nanmedian(self, dim: int, keepdim: bool = False) -> Extreme: ...
    @aliased
    def nanmedian(self, dim: int | None = None, keepdim: bool = False) -> Tensor | Extreme:
        """The median of what is not NaN."""
        return _middle(self, "nanmedian", dim, keepdim)

    @aliased
    def mode(self, dim: int = -1, keepdim: bool = False) -> Extreme:
        """The most frequent element along an axis, of several the smallest, and where the last of its kind stands."""
        return extreme("mode", apply(order_statistics.mode, self, dim, keepdim))

    # Kinds of elements. How many there are is read from the device.

    @aliased
    def unique(
        self, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
    ) -> Any:
        """The different elements in order; with `dim`, the different rows of that axis. Reads their number.

        return_inverse: where each element went. return_counts: how often each occurs.
        """
        return _runs(self, dim, return_inverse, return_counts, sorted, in_order=True)

    @aliased
    def unique_consecutive(
        self, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
    ) -> Any:
        """As unique, of neighbours only: 1 1 2 1 -> 1 2 1. Reads their number."""
        return _runs(self, dim, return_inverse, return_counts, in_order=False)

    def bincount(self, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
        """How often each whole number occurs, or the sum of its weights. Reads the largest number."""
        if self.dtype.kind is not Kind.INT:
            raise NotImplementedError(f'"bincount" not implemented for {self.dtype.name!r}')
        if self.ndim != 1:
            raise ShapeError("bincount only supports 1-d non-negative integral inputs.")
        if weights is not None and weights.numel() != self.shape[0]:
            raise ShapeError("weights should be 1-d and have the same length as input")
        if minlength < 0:
            raise ShapeError("minlength should be >= 0")
        size = minlength
        if self.shape[0]:
            low, high = (self.min().item(), self.max().item())
            if low < 0:
                raise ShapeError("bincount only supports 1-d non-negative integral inputs.")
            size = max(minlength, int(high) + 1)
        if weights is not None and weights.dtype not in (dtypes.float32, dtypes.float64):
            weights = weights.to(dtypes.float32 if self._storage.device.target.wgsl else dtypes.float64)
        return apply(masks.bincount, self, size, weights)

    def histc(self, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
        """How many elements lie in each of `bins` equal parts of min..max; of whole numbers on webgpu only."""
        if self.dtype.kind is Kind.INT and self._storage.device.target.wgsl:
            return self.to(dtypes.float32).histc(bins, min, max).to(self.dtype)
        return apply(masks.histc, self, bins, min, max)


def _middle(x: ReshapingMethods, name: str, dim: int | None, keepdim: bool) -> Tensor | Extreme:
    function = getattr(order_statistics, name)
    if dim is not None:
        result = apply(function, x, dim, keepdim)
        return extreme(name, (called(result[0], f"aten::{name}.1"), result[1]))
    flat = x.reshape(-1)
    if not flat.shape[0]:
        return x.new_full((), float("nan"))
    values: Tensor = apply(lambda node: reduce.shared(function(node, 0)[0], node), flat)
    return called(values, f"aten::{name}")


def _runs(*args: object, in_order: bool) -> object:
    return import_module("pywebgpu.tensor.unique").unique(*args, in_order=in_order)


# Functions


def searchsorted(
    sorted_sequence: Tensor, input: Operand, *, out_int32: bool = False, right: bool = False, side: str | None = None,
    sorter: Tensor | None = None, out: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """How many of the ascending numbers lie below each element of `input`; with `right`, how many do not lie above."""
    if side not in (None, "left", "right"):
        raise ShapeError(f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}")
    if right and side == "left":
        raise ShapeError("torch.searchsorted(): side and right can't be set to opposites")
    if sorter is not None:
        sorted_sequence = sorted_sequence.gather(-1, sorter)
    positions = apply(searching.searchsorted, sorted_sequence, input, right or side == "right", out_int32)
    return outputs.finished("searchsorted", positions, out, sorted_sequence, input)


@named_by_numpy
def bucketize(
    input: Operand, boundaries: Tensor, *, out_int32: bool = False, right: bool = False, out: Tensor | None = None
) -> Tensor:
    """As searchsorted, with one row of boundaries for all elements."""
    require_tensor("bucketize", "boundaries", 2, boundaries)
    positions = apply(searching.bucketize, input, boundaries, out_int32, right)
    return outputs.finished("bucketize", positions, out, input, boundaries)


@outputs.writable()
def isin(elements: Operand, test_elements: Operand, *, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """Whether each element is one of the test elements."""
    return apply(masks.isin, elements, test_elements, invert=invert)


@named_by_numpy
@aliased
def repeat_interleave(
    input: Tensor, repeats: Tensor | int | None = None, dim: int | None = None, *, output_size: int | None = None
) -> Tensor:
    """Each row `repeats` times in a row; of repeats alone, each index that often. Reads the sum of repeats."""
    if repeats is not None:
        return input.repeat_interleave(repeats, dim, output_size=output_size)
    if input.ndim != 1:
        raise ShapeError("repeat_interleave only accept 1D vector as repeat")
    gather_scatter.require_repeats(input)
    total = int(input.sum().item()) if output_size is None else operator.index(output_size)
    return apply(matrix.spread, input, total)
