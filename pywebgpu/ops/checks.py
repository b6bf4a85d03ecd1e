"""Arithmetic of int64 stored in 32 bits: the same ops, which leave a note where the true result does not fit.

compiler/passes/checks.py puts them instead of ops whose result it cannot bound. Nobody records them, so they have
no gradient, and no line in the tables of ops.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pywebgpu import dtypes
from pywebgpu.dtypes import DType
from pywebgpu.ir.graph import Node, Pointwise
from pywebgpu.ops import indexing, pointwise

if TYPE_CHECKING:
    from types import ModuleType

    from numpy.typing import NDArray


def _checked(op: Pointwise, wgsl: str) -> Pointwise:
    return Pointwise(f"{op.name}_checked", wgsl, op.reference, vjp=(None,) * len(op.vjp), cost=op.cost + 4)


OF: dict[Pointwise, Pointwise] = {
    pointwise.add: _checked(pointwise.add, "p_add_checked({0}, {1})"),
    pointwise.sub: _checked(pointwise.sub, "p_sub_checked({0}, {1})"),
    pointwise.mul: _checked(pointwise.mul, "p_mul_checked({0}, {1})"),
    pointwise.neg: _checked(pointwise.neg, "p_neg_checked({0})"),
    pointwise.abs_: _checked(pointwise.abs_, "p_abs_checked({0})"),
    pointwise.pow_: _checked(pointwise.pow_, "p_pow_checked({0}, {1})"),
    pointwise.shift_left: _checked(pointwise.shift_left, "p_shl_checked({0}, {1})"),
    pointwise.floor_divide: _checked(pointwise.floor_divide, "p_floordiv_checked({0}, {1})"),
}


def _to_int64(*inputs: DType, **attrs: Any) -> DType:
    return dtypes.int64


def _first(xp: ModuleType, value: NDArray[Any], *others: Any, **attrs: Any) -> NDArray[Any]:
    return value


whole: Pointwise = Pointwise(
    "whole",  # a float or a uint32 as int64
    lambda source: "p_whole_f32({0})" if source.compute == "f32" else "p_whole_u32({0})",
    lambda xp, a: a.astype("int64"),
    vjp=(None,),
    result=_to_int64,
    cost=3,
)

sum_: Pointwise = Pointwise(
    # The sum of `count` numbers as 32 bits have it, and the sum of those numbers shifted right by `shift`.
    "sum_checked",
    lambda total, high, shift, count: f"p_sum_checked({{0}}, {{1}}, {shift}u, {count})",
    _first,
    vjp=(None, None),
    cost=4,
)

long_sum: Pointwise = Pointwise(
    # The same of more numbers: the sums of their upper bytes stand beside it, the highest, which has the sign, first.
    "long_sum_checked",
    lambda *inputs, count: f"p_long_sum_checked({{0}}, {{1}}, {{2}}, {{3}}, {count})",
    _first,
    vjp=(None,) * 4,
    cost=10,
)

near: Pointwise = Pointwise(
    # A result as 32 bits have it, and a float32 whose size is as large as the true one's, or larger: below `limit`?
    "near_checked",
    lambda value, size, limit, name: f"p_{name}_near({{0}}, {{1}}, {limit!r})",
    _first,
    vjp=(None, None),
    result=_to_int64,
    cost=3,
)

_OPS = {*OF.values(), whole, sum_, long_sum, near}
MODES = {"add": "add_checked", "prod": "prod_checked"}  # of scans and scatters
_MODES = set(MODES.values())


def may_fail(node: Node) -> bool:
    """Whether its kernel checks something on the device."""
    return node.op is pointwise.index or node.op in _OPS or node.attrs.get("mode") in _MODES


def binds_words(node: Node) -> bool:
    """Whether its kernel binds the device's own words: it leaves a note there, or its workgroups tell each other."""
    return may_fail(node) or node.op is indexing.scan_chain
