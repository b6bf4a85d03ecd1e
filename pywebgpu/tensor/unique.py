"""The different elements, or rows, of a tensor: runs of equal ones, once they are in order."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from pywebgpu import dtypes
from pywebgpu.composites import indexing, masks, ordering, reduce, slicing
from pywebgpu.ir.graph import Node, Spec
from pywebgpu.ops import indexing as ops
from pywebgpu.ops import pointwise
from pywebgpu.support import shapes
from pywebgpu.support.argument_types import typed
from pywebgpu.tensor import subscripts

if TYPE_CHECKING:
    from pywebgpu.support.shapes import Shape
    from pywebgpu.tensor.tensor import Tensor


@typed
def unique(
    x: Tensor, dim: int | None, return_inverse: bool, return_counts: bool, sorted: bool = True, *, in_order: bool
) -> Tensor | tuple[Tensor, ...]:
    """Tensor.unique; without `in_order`, of neighbours only: unique_consecutive."""
    flat = x.reshape(-1) if dim is None else _rows(x, dim)
    elements, inverse, counts = _runs(flat, _row_order(flat) if in_order else None)
    shape = tuple(x.shape) if dim is None else None
    elements = elements if dim is None else _columns(elements, x, dim)
    return _asked(elements, inverse, counts, shape, return_inverse, return_counts)


def _rows(x: Tensor, dim: int) -> Tensor:
    """An axis as rows: (n, everything else)."""
    axis = shapes.axis(dim, x.ndim)
    return x.movedim(axis, 0).reshape(x.shape[axis], prod(n for a, n in enumerate(x.shape) if a != axis))


def _columns(elements: Tensor, x: Tensor, dim: int) -> Tensor:
    """The opposite of _rows."""
    axis = shapes.axis(dim, x.ndim)
    rest = [n for a, n in enumerate(x.shape) if a != axis]
    return elements.reshape(elements.shape[0], *rest).movedim(0, axis)


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
    count = subscripts.read_last(ends)
    run = pointwise.sub(ends._node, pointwise.full(1, ends._node.spec))
    first = masks.held(ends._node, count)
    after = ops.cat(slicing.part(first, 0, 1, count), pointwise.full(n, Spec((1,), dtypes.int64)), axis=0)
    if order is not None:  # Back to where each row came from.
        run = indexing.shaped(ops.take(indexing.shaped(run, (n, 1)), ordering.argsort(order)), (n,))
    elements = indexing.shaped(ops.take(ordered, first), (count, *node.spec.shape[1:]))
    return flat._new(elements, device), flat._new(run, device), flat._new(pointwise.sub(after, first), device)


def _starts(ordered: Node) -> Node:
    """Whether a row differs from the one before it."""
    n, width = ordered.spec.shape
    if width == 1:
        return ordering.starts_run(indexing.shaped(ordered, (n,)))
    columns = ordering.starts_run(indexing.permuted(ordered, (1, 0)))
    return reduce.any(columns, 0)


def _asked(
    elements: Tensor, inverse: Tensor, counts: Tensor, shape: Shape | None, return_inverse: bool, return_counts: bool
) -> Tensor | tuple[Tensor, ...]:
    out = [elements]
    if return_inverse:
        out.append(inverse if shape is None else inverse.reshape(shape))
    if return_counts:
        out.append(counts)
    return tuple(out) if len(out) > 1 else elements
