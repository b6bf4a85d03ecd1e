"""Folding axes and growing axes: each is the other's gradient, so they share a file.

A folded axis stays, with size 1. An axis grows from size 1, or is added in front.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any

from pywebgpu import dtypes
from pywebgpu.dtypes import DType
from pywebgpu.ir.graph import Movement, Node, Reduction
from pywebgpu.ops import pointwise, special
from pywebgpu.shapes import Shape
from pywebgpu.symbolic import ZERO

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


def _index(*given: DType) -> DType:
    return dtypes.int64


SHORT = 8  # elements of a row that NumPy folds faster column by column, in the same order
MANY = 1024  # rows from which that is so


def _is_short(a: NDArray[Any], axes: Shape) -> bool:
    return axes == (a.ndim - 1,) and 0 < a.shape[-1] < SHORT and a.size >= MANY * a.shape[-1]


def _fold(name: str, join: str) -> Callable[..., NDArray[Any]]:
    def reference(xp: ModuleType, a: NDArray[Any], axes: Shape) -> NDArray[Any]:
        if not _is_short(a, axes) or a.dtype.kind != "f":
            return getattr(xp, name)(a, axis=axes, keepdims=True)
        out = a[..., :1].copy()
        for at in range(1, a.shape[-1]):
            getattr(xp, join)(out, a[..., at : at + 1], out=out)
        return out

    return reference


_sum, _max, _min = _fold("sum", "add"), _fold("max", "maximum"), _fold("min", "minimum")


def _arg(name: str, value: Callable[..., NDArray[Any]]) -> Callable[..., NDArray[Any]]:
    def reference(xp: ModuleType, a: NDArray[Any], axes: Shape) -> NDArray[Any]:
        extreme = value(xp, a, axes) if _is_short(a, axes) and a.dtype.kind == "f" else None
        if extreme is not None and not xp.isnan(extreme).any():
            position, before = xp.zeros(extreme.shape, xp.int64), xp.ones(extreme.shape, bool)
            for at in range(a.shape[-1] - 1):
                before &= a[..., at : at + 1] != extreme
                position += before
            return position
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
    index=lambda at, x, shape: (
        tuple(ZERO if n == 1 else i for i, n in zip(at[len(shape) - len(x) :], x, strict=True)),
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
