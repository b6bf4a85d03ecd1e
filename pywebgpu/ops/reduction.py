"""Folding axes and growing axes: each is the other's gradient, so they share a file.

A folded axis stays, with size 1. An axis grows from size 1, or is added in front.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any

from pywebgpu import dtypes
from pywebgpu.dtypes import DType
from pywebgpu.ir.graph import Movement, Node, Reduction, Spec, Structural
from pywebgpu.ops import pointwise, special
from pywebgpu.support.shapes import Shape
from pywebgpu.support.symbolic import ZERO

if TYPE_CHECKING:
    from types import ModuleType

    from numpy.typing import NDArray


def grown(small: Node, like: Node) -> Node:
    return expand(small, shape=like.spec.shape)


def _selected(g: Node, out: Node, x: Node, axes: Shape) -> Node:
    """The gradient of max and min over axes: shared evenly among equal elements, as torch.amax does."""
    hit = pointwise.eq(x, grown(out, x))
    ones = pointwise.where(hit, pointwise.scalar(1.0, x.spec.dtype), pointwise.scalar(0.0, x.spec.dtype))
    return pointwise.mul(ones, grown(pointwise.div(g, sum_(ones, axes=axes)), x))


def _index(*inputs: DType) -> DType:
    return dtypes.int64


SHORT, FEW = 8, 64  # elements of a row, and rows above each other, that NumPy folds faster one after the other
MANY = 1024  # rows from which that is so


def _parts(a: NDArray[Any], axes: Shape) -> list[NDArray[Any]]:
    """What a short axis of floats folds, in order, each with size 1 there; nothing where NumPy's own fold is faster."""
    if len(axes) != 1 or a.dtype.kind != "f":
        return []
    (axis,) = axes
    size = a.shape[axis]
    if not 0 < size < (SHORT if axis == a.ndim - 1 else FEW) or a.size < MANY * size:
        return []
    before = (slice(None),) * axis
    return [a[(*before, slice(index, index + 1))] for index in range(size)]


def _fold(join: str) -> Callable[..., NDArray[Any]]:
    def reference(xp: ModuleType, a: NDArray[Any], axes: Shape) -> NDArray[Any]:
        first, *others = _parts(a, axes) or (None,)
        if first is None:
            return getattr(xp, join).reduce(a, axis=axes, keepdims=True)
        out = first.copy()
        for part in others:
            getattr(xp, join)(out, part, out=out)
        return out

    return reference


_sum, _max, _min = _fold("add"), _fold("maximum"), _fold("minimum")


def _arg(name: str, value: Callable[..., NDArray[Any]]) -> Callable[..., NDArray[Any]]:
    def reference(xp: ModuleType, a: NDArray[Any], axes: Shape) -> NDArray[Any]:
        parts = _parts(a, axes)
        extreme = value(xp, a, axes) if parts else None
        if extreme is not None and not xp.isnan(extreme).any():
            position, before = xp.zeros(extreme.shape, xp.int8), xp.ones(extreme.shape, bool)
            for part in parts[:-1]:
                before &= part != extreme
                position += before
            return position.astype(xp.int64)
        kept = [axis for axis in range(a.ndim) if axis not in axes]
        size = prod(a.shape[axis] for axis in axes)
        rows = xp.transpose(a, (*kept, *axes)).reshape([a.shape[axis] for axis in kept] + [size])
        shape = [1 if axis in axes else n for axis, n in enumerate(a.shape)]
        return getattr(xp, name)(rows, axis=-1).reshape(shape)

    return reference


def _expand_vjp(g: Node, out: Node, x: Node, shape: Shape) -> Node:
    """The axes stay, those that were added too: the walk drops them."""
    front, have = len(shape) - len(x.spec.shape), x.spec.shape
    return sum_(g, axes=tuple([axis for axis, n in enumerate(shape) if axis < front or have[axis - front] != n]))


expand: Movement = Movement(
    "expand",  # (3, 1) -> (2, 3, 4)
    infer=lambda x, shape: shape,
    index=lambda coords, x, shape: (
        tuple(ZERO if n == 1 else i for i, n in zip(coords[len(shape) - len(x) :], x, strict=True)),
        (),
    ),
    reference=lambda xp, a, shape: xp.broadcast_to(a, shape),
    vjp=_expand_vjp,
)

sum_: Reduction = Reduction(
    "sum",
    combine="({0} + {1})",
    reference=lambda xp, a, axes: _sum(xp, special.upcast(xp, a), axes).astype(a.dtype, copy=False),
    vjp=lambda g, out, x, axes: grown(g, x),
)
max_: Reduction = Reduction(
    "max",
    combine="max",
    reference=_max,
    vjp=_selected,
)
min_: Reduction = Reduction(
    "min",
    combine="min",
    reference=_min,
    vjp=_selected,
)
argmax: Reduction = Reduction("argmax", combine="argmax", reference=_arg("argmax", _max), vjp=None, result=_index)
argmin: Reduction = Reduction("argmin", combine="argmin", reference=_arg("argmin", _min), vjp=None, result=_index)


sum_rows: Structural = Structural(
    "sum_rows",  # (rows, columns) -> (rows / each, columns): what neighbours add up to; fewer in the last
    infer=lambda x, each: Spec((-(-x.shape[0] // each), x.shape[1]), dtypes.float32),
    reference=lambda xp, a, each: xp.add.reduceat(a.astype("float32"), range(0, a.shape[0], each), axis=0),
    vjp=(None,),
)
