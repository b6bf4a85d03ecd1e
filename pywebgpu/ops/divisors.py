"""The greatest common divisor, which few programs need."""

from __future__ import annotations

from pywebgpu.ir.graph import Node, Pointwise
from pywebgpu.ops import pointwise


def _nothing(g: Node, *others: Node) -> Node:
    return pointwise.full(0.0, g.spec)


gcd: Pointwise = Pointwise(
    "gcd",  # of whole numbers
    wgsl=lambda a, b: "p_gcd({0}, {1})" if b.compute == "i32" else "p_gcd_u32({0}, {1})",
    reference="gcd",
    vjp=(_nothing, _nothing),
    cost=60,
)
