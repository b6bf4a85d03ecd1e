"""Sums of products over a shared axis, whole and by parts of it."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from pywebgpu import dtypes
from pywebgpu.errors import DTypeError, ShapeError
from pywebgpu.ir.graph import Node, Spec, Structural, thread_state
from pywebgpu.ops import special
from pywebgpu.ops.movement import permute, reshape

if TYPE_CHECKING:
    from types import ModuleType

    from numpy.typing import NDArray


def _matmul_spec(a: Spec, b: Spec) -> Spec:
    left, right = a.shape, b.shape
    if min(len(left), len(right)) < 2 or left[-1] != right[-2] or (len(right) > 2 and left[:-2] != right[:-2]):
        raise ShapeError(f"matmul: needs (..., m, k) and (..., k, n) or (k, n), got {left} and {right}")
    if a.dtype is not b.dtype:
        raise DTypeError(f"matmul: needs one dtype, got {a.dtype} and {b.dtype}")
    return Spec((*left[:-1], right[-1]), a.dtype)


def transposed(x: Node) -> Node:
    """The last two axes exchanged; of a value that is one such, what it was made of, where no gradient asks the way."""
    rank = len(x.spec.shape)
    order = (*range(rank - 2), rank - 1, rank - 2)
    inputs = x.inputs  # Looked at once: another thread may compute x, which ends them.
    if x.op is permute and inputs and x.attrs["order"] == order and not thread_state.grad:
        return inputs[0]
    return permute(x, order=order)


def _right_vjp(g: Node, out: Node, a: Node, b: Node) -> Node:
    if len(b.spec.shape) < len(a.spec.shape):  # One matrix for all: its gradient is one product, of all rows.
        a, g = (reshape(x, shape=(prod(x.spec.shape[:-1]), x.spec.shape[-1])) for x in (a, g))
    return matmul(transposed(a), g)


def _reference(xp: ModuleType, a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    return xp.matmul(special.upcast(xp, a), special.upcast(xp, b)).astype(a.dtype, copy=False)


matmul: Structural = Structural(
    "matmul",  # (..., m, k) x (..., k, n), or x (k, n), which is one matrix for all
    infer=_matmul_spec,
    reference=_reference,
    vjp=(lambda g, out, a, b: matmul(g, transposed(b)), _right_vjp),
)


def _partial_spec(a: Spec, b: Spec, span: int) -> Spec:
    parts = -(-a.shape[-1] // span)
    return Spec((parts, *_matmul_spec(a, b).shape), dtypes.float32)


def _partial_reference(xp: ModuleType, a: NDArray[Any], b: NDArray[Any], span: int) -> NDArray[Any]:
    a, b = special.upcast(xp, a), special.upcast(xp, b)
    starts = range(0, a.shape[-1], span)
    products = [xp.matmul(a[..., start : start + span], b[..., start : start + span, :]) for start in starts]
    return xp.stack(products).astype("float32")


partial_matmul: Structural = Structural(
    "partial_matmul",  # (batch, m, k) x (batch, k, n) -> (parts, batch, m, n): sums over `span` steps of k each
    infer=_partial_spec,
    reference=_partial_reference,
    vjp=(None, None),
)
PRODUCTS = (matmul, partial_matmul)
