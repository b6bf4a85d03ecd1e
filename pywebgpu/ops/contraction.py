"""Sums of products over a shared axis."""

from typing import Any

from pywebgpu.errors import DTypeError, ShapeError
from pywebgpu.graph.ir import Node, Spec, Structural
from pywebgpu.ops import special
from pywebgpu.ops.movement import permute


def _matmul_spec(a: Spec, b: Spec) -> Spec:
    if len(a.shape) != 3 or len(b.shape) != 3 or a.shape[0] != b.shape[0] or a.shape[2] != b.shape[1]:
        raise ShapeError(f"matmul: needs (batch, m, k) and (batch, k, n), got {a.shape} and {b.shape}")
    if a.dtype is not b.dtype:
        raise DTypeError(f"matmul: needs one dtype, got {a.dtype} and {b.dtype}")
    return Spec((a.shape[0], a.shape[1], b.shape[2]), a.dtype)


def _t(x: Node) -> Node:
    return permute(x, order=(0, 2, 1))


def _reference(xp: Any, a: Any, b: Any) -> Any:
    return xp.matmul(special.wide(xp, a), special.wide(xp, b)).astype(a.dtype, copy=False)


matmul: Structural = Structural(
    "matmul",
    infer=_matmul_spec,
    reference=_reference,
    vjp=(lambda g, out, a, b: matmul(g, _t(b)), lambda g, out, a, b: matmul(_t(a), g)),
)
