"""Methods and functions that put in order, search what is ordered, and count: sort, top k, unique, histograms."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, overload

from pywebgpu import dtypes, shapes
from pywebgpu.composites import indexing, masks, matrix, ordering, reduce, scan
from pywebgpu.dtypes import Kind
from pywebgpu.errors import ShapeError
from pywebgpu.ir.graph import Node, Spec
from pywebgpu.ops import indexing as ops
from pywebgpu.ops import pointwise
from pywebgpu.tensor import index
from pywebgpu.tensor.apply import apply
from pywebgpu.tensor.methods import aliased
from pywebgpu.tensor.reduction import extreme
from pywebgpu.tensor.reshaping import ReshapingMethods

if TYPE_CHECKING:
    from pywebgpu.shapes import Shape
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
        return extreme("topk", apply(ordering.topk, self, int(k), dim, largest, sorted))

    @aliased
    def kthvalue(self, k: int, dim: int = -1, keepdim: bool = False) -> Extreme:
        """The k-th smallest element along an axis, and where it stands."""
        return extreme("kthvalue", apply(ordering.kthvalue, self, int(k), dim, keepdim))

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
        return extreme("mode", apply(ordering.mode, self, dim, keepdim))

    # Kinds of elements. How many there are is read from the device.

    @aliased
    def unique(
        self, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
    ) -> Any:
        """The different elements in order; with `dim`, the different rows of that axis. Reads their number.

        return_inverse: where each element went. return_counts: how often each occurs.
        """
        flat = self.reshape(-1) if dim is None else _rows(self, dim)
        order = _row_order(flat)
        found, inverse, counts = _runs(flat, order)
        shape = tuple(self.shape) if dim is None else None
        found = found if dim is None else _columns(found, self, dim)
        return _asked(found, inverse, counts, shape, return_inverse, return_counts)

    @aliased
    def unique_consecutive(
        self, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
    ) -> Any:
        """As unique, of neighbours only: 1 1 2 1 -> 1 2 1. Reads their number."""
        flat = self.reshape(-1) if dim is None else _rows(self, dim)
        found, inverse, counts = _runs(flat, None)
        shape = tuple(self.shape) if dim is None else None
        found = found if dim is None else _columns(found, self, dim)
        return _asked(found, inverse, counts, shape, return_inverse, return_counts)

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
        if weights is not None and weights.dtype.kind is not Kind.FLOAT:
            weights = weights.to(dtypes.float32 if self._storage.device.target.wgsl else dtypes.float64)
        return apply(masks.bincount, self, size, weights)

    def histc(self, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
        """How many elements lie in each of `bins` equal parts of min..max."""
        return apply(masks.histc, self, bins, min, max)


def _middle(x: ReshapingMethods, name: str, dim: int | None, keepdim: bool) -> Tensor | Extreme:
    function = getattr(ordering, name)
    if dim is not None:
        return extreme(name, apply(function, x, dim, keepdim))
    flat = x.reshape(-1)
    if not flat.shape[0]:
        return x.new_full((), float("nan"))
    values: Tensor = apply(function, flat, 0)[0]
    return values


# Unique


def _rows(x: ReshapingMethods, dim: int) -> Tensor:
    """An axis as rows: (n, everything else)."""
    axis = shapes.axis(dim, x.ndim)
    return x.movedim(axis, 0).reshape(x.shape[axis], -1)


def _columns(found: Tensor, x: ReshapingMethods, dim: int) -> Tensor:
    """The opposite of _rows."""
    axis = shapes.axis(dim, x.ndim)
    rest = [n for a, n in enumerate(x.shape) if a != axis]
    return found.reshape(found.shape[0], *rest).movedim(0, axis)


def _row_order(flat: Tensor) -> Node:
    """The order of a vector, or of rows by their first column, then the second, and so on."""
    node: Node = flat._node
    if len(node.spec.shape) == 1:
        return ordering.argsort(node)
    n, width = node.spec.shape
    order = pointwise.iota(spec=Spec((n,), dtypes.int64), axis=0)
    for column in reversed(range(width)):  # Stable sorts, the weightiest last.
        values = ops.take(indexing.shaped(flat[:, column]._node, (n, 1)), order)
        order = ops.take(indexing.shaped(order, (n, 1)), ordering.argsort(indexing.shaped(values, (n,))))
        order = indexing.shaped(order, (n,))
    return order


def _runs(flat: Tensor, order: Node | None) -> tuple[Any, Any, Any]:
    """The first of each run of equal rows, the run of each row of `flat`, and the lengths of runs."""
    node, device = flat._node, flat._storage.device
    n = node.spec.shape[0]
    if n == 0:
        empty = flat._new(pointwise.full(0, Spec((0,), dtypes.int64)), device)
        return flat.clone(), empty, empty
    rows = indexing.shaped(node, (n, prod(node.spec.shape[1:])))
    ordered = rows if order is None else ops.take(rows, order)
    ends = flat._new(masks.counted(_starts(ordered)), device)
    count = index.read_last(ends)
    run = pointwise.sub(ends._node, pointwise.full(1, ends._node.spec))
    first = masks.held(ends._node, count)
    after = ops.cat(scan.part(first, 0, 1, count), pointwise.full(n, Spec((1,), dtypes.int64)), axis=0)
    if order is not None:  # Back to where each row came from.
        run = indexing.shaped(ops.take(indexing.shaped(run, (n, 1)), ordering.argsort(order)), (n,))
    found = indexing.shaped(ops.take(ordered, first), (count, *node.spec.shape[1:]))
    return flat._new(found, device), flat._new(run, device), flat._new(pointwise.sub(after, first), device)


def _starts(ordered: Node) -> Node:
    """Whether a row differs from the one before it."""
    n, width = ordered.spec.shape
    if width == 1:
        return ordering.starts_run(indexing.shaped(ordered, (n,)))
    columns = ordering.starts_run(indexing.permuted(ordered, (1, 0)))
    return reduce.any(columns, 0)


def _asked(
    found: Tensor, inverse: Tensor, counts: Tensor, shape: Shape | None, return_inverse: bool, return_counts: bool
) -> Tensor | tuple[Tensor, ...]:
    out = [found]
    if return_inverse:
        out.append(inverse if shape is None else inverse.reshape(shape))
    if return_counts:
        out.append(counts)
    return tuple(out) if len(out) > 1 else found


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
    found = apply(ordering.searchsorted, sorted_sequence, input, right or side == "right", out_int32)
    return found if out is None else out.copy_(found)


def bucketize(
    input: Operand, boundaries: Tensor, *, out_int32: bool = False, right: bool = False, out: Tensor | None = None
) -> Tensor:
    """As searchsorted, with one row of boundaries for all elements."""
    found = apply(ordering.bucketize, input, boundaries, out_int32, right)
    return found if out is None else out.copy_(found)


def isin(elements: Operand, test_elements: Operand, *, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """Whether each element is one of the test elements."""
    return apply(masks.isin, elements, test_elements, invert=invert)


@aliased
def repeat_interleave(
    input: Tensor, repeats: Tensor | int | None = None, dim: int | None = None, *, output_size: int | None = None
) -> Tensor:
    """Each row `repeats` times in a row; of repeats alone, each index that often. Reads the sum of repeats."""
    if repeats is not None:
        return input.repeat_interleave(repeats, dim, output_size=output_size)
    if input.numel() and input.min().item() < 0:
        raise ShapeError("repeats can not be negative")
    total = int(input.sum().item()) if output_size is None else output_size
    return apply(matrix.spread, input, total)
