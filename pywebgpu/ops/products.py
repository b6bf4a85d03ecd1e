"""Products over axes, and the gradients of products and running products.

A gradient is a product of the other factors. Where it will not be differentiated, that is a quotient, with what is 0
counted apart. Where it will be, a quotient forgets what a step away from 0 would do: then partial products are joined
in about log2(n) steps that only multiply and add, so that derivatives of every order are right.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from pywebgpu.ir.graph import Node, Reduction, thread_state
from pywebgpu.ops import movement, pointwise, reduction, special
from pywebgpu.support.shapes import Shape

if TYPE_CHECKING:
    from types import ModuleType

    from numpy.typing import NDArray


def _reference(xp: ModuleType, a: NDArray[Any], axes: Shape) -> NDArray[Any]:
    return xp.prod(special.upcast(xp, a), axis=axes, keepdims=True).astype(a.dtype)


def _prod_vjp(g: Node, out: Node, x: Node, axes: Shape) -> Node:
    others = _others(x, axes) if thread_state.grad else _quotient(x, axes)
    return pointwise.mul(reduction.grown(g, x), others)


prod_: Reduction = Reduction("prod", combine="({0} * {1})", reference=_reference, vjp=_prod_vjp)


def _quotient(x: Node, axes: Shape) -> Node:
    """The product of the others. Where one factor is 0, its own is the product of the rest."""
    nothing, ones = pointwise.scalar(0.0, x.spec.dtype), pointwise.scalar(1.0, x.spec.dtype)
    zero = pointwise.eq(x, nothing)
    safe = pointwise.where(zero, ones, x)
    rest = prod_(safe, axes=axes)  # the product over the factors that are not 0
    zeros = reduction.sum_(pointwise.where(zero, ones, nothing), axes=axes)
    none, single = pointwise.eq(zeros, nothing), pointwise.eq(zeros, ones)
    at_zero = reduction.grown(pointwise.where(single, rest, nothing), x)
    elsewhere = pointwise.div(reduction.grown(pointwise.where(none, rest, nothing), x), safe)
    return pointwise.where(zero, at_zero, elsewhere)


def _others(x: Node, axes: Shape) -> Node:
    """The same by multiplication alone."""
    shape = x.spec.shape
    order = (*(axis for axis in range(len(shape)) if axis not in axes), *axes)
    turned = movement.permute(x, order=order)
    kept = turned.spec.shape[: len(shape) - len(axes)]
    rows = movement.reshape(turned, shape=(*kept, prod(shape[axis] for axis in axes)))
    products = pointwise.mul(earlier(rows), _later(rows))
    back = tuple(order.index(axis) for axis in range(len(shape)))
    return movement.permute(movement.reshape(products, shape=turned.spec.shape), order=back)


# Along the last axis


def earlier(x: Node) -> Node:
    """out[k] = x[0] * ... * x[k - 1]"""
    return _joined(x, -1)


def _later(x: Node) -> Node:
    """out[k] = x[k + 1] * ... * x[n - 1]"""
    return _joined(x, 1)


def _joined(x: Node, direction: int) -> Node:
    out, step = _shifted(x, direction, 1.0), 1
    while step < x.spec.shape[-1]:
        out = pointwise.mul(out, _shifted(out, direction * step, 1.0))
        step *= 2
    return out


def weighed_tails(x: Node, g: Node) -> Node:
    """out[k] = g[k] + x[k + 1] * out[k + 1]: the sum of g[i] * x[k + 1] * ... * x[i] over i."""
    out, factor, step = g, _shifted(x, 1, 0.0), 1
    while step < x.spec.shape[-1]:
        out = pointwise.add(out, pointwise.mul(factor, _shifted(out, step, 0.0)))
        factor = pointwise.mul(factor, _shifted(factor, step, 0.0))
        step *= 2
    return out


def _shifted(x: Node, by: int, fill: float) -> Node:
    """out[k] = x[k + by], and `fill` where there is none."""
    shape, rank = x.spec.shape, len(x.spec.shape)
    size = shape[-1] - abs(by)
    if size <= 0:
        return pointwise.full(fill, x.spec)
    start, end, ones = (*(0,) * (rank - 1), max(by, 0)), (*(0,) * (rank - 1), max(-by, 0)), (1,) * rank
    part = movement.slice_(x, starts=start, sizes=(*shape[:-1], size), steps=ones)
    return movement.pad(part, shape=shape, starts=end, steps=ones, value=fill)
