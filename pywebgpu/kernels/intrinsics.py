"""Pointwise ops as calls in a kernel, and what brings a result of 32 bits to what its dtype can hold."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pywebgpu import dtypes
from pywebgpu.dtypes import DType
from pywebgpu.ir.graph import Node, Pointwise
from pywebgpu.kernels import ir
from pywebgpu.kernels.ir import Expr, Type, scalar
from pywebgpu.ops import pointwise

_NARROW = (dtypes.int8, dtypes.uint8, dtypes.int16, dtypes.float16, dtypes.bfloat16)
_ROUNDED = {
    "float16": ir.template("p_half({0})"),
    "bfloat16": ir.template("p_bfloat({0})"),
    "uint8": ir.template("({0} & 0xffu)"),
    "int8": ir.template("(({0} << 24u) >> 24u)"),
    "int16": ir.template("(({0} << 16u) >> 16u)"),
}
_SAME = ir.template("{0}")
# What WGSL takes vectors for as it takes numbers: arithmetic, and some functions of one operand.
_OF_VECTORS = re.compile(r"[-+*/ (){}\d.]+|(sqrt|inverseSqrt|abs|floor|ceil|trunc)\(\{0\}\)")


def rounded(value: Expr, dtype: DType) -> Expr:
    """Brings a value of the 32-bit type to one that the dtype can hold."""
    intrinsic = _ROUNDED.get(dtype.name)
    return value if intrinsic is None else ir.Call(intrinsic, value.type, value)


def computes(node: Node) -> bool:
    """Whether a pointwise op does anything to its operand."""
    return _of(node) is not _SAME


def called(node: Node, args: Sequence[Expr]) -> Expr:
    """A pointwise op of numbers."""
    call = ir.Call(_of(node), scalar(node.spec.dtype), *args)
    return call if _is_exact(node) else rounded(call, node.spec.dtype)


def called_by_vectors(node: Node, args: Sequence[Expr], width: int) -> Expr:
    """The same of vectors, and of numbers that are the same for all elements."""
    kind, intrinsic = Type(scalar(node.spec.dtype).kind, width), _of(node)
    if _is_exact(node) and _OF_VECTORS.fullmatch(intrinsic.template):
        return ir.Call(intrinsic, kind, *args)
    parts = [[arg[index] if arg.type.width > 1 else arg for arg in args] for index in range(width)]
    return ir.construct(kind, *[called(node, part) for part in parts])


def _of(node: Node) -> ir.Intrinsic:
    op = node.op
    assert isinstance(op, Pointwise)
    text = op.wgsl if isinstance(op.wgsl, str) else op.wgsl(*(n.spec.dtype for n in node.inputs), **node.attrs)
    return ir.template(text)


def _is_exact(node: Node) -> bool:
    """Whether what the op gives in 32 bits is what its dtype holds."""
    return node.op is not pointwise.cast and node.spec.dtype not in _NARROW
