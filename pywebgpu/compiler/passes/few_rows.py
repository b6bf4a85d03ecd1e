"""Products of up to three rows become sums of products: a kernel that adds up rows reads a matrix at memory's speed.

A tile of a matrix product has rows for many more, which wait. Decoding a language model and models that see a sample
at a time are made of such products.
"""

from collections.abc import Sequence

from pywebgpu.compiler.passes.split_products import has_few_rows, wide, with_sums
from pywebgpu.ir import walk
from pywebgpu.ir.graph import Node
from pywebgpu.kernels.templates import Selection
from pywebgpu.ops import contraction, movement, pointwise, reduction


def sum_few_rows(roots: tuple[Node, ...], order: Sequence[Node], selection: Selection) -> tuple[Node, ...]:
    """The same values but for the order of sums. A product that adds up an operand on its way stays one kernel."""
    kept = with_sums(order)

    def rule(node: Node, fresh: Node) -> Node:
        return _summed(fresh, *fresh.inputs) if has_few_rows(node) and id(node) not in kept else fresh

    return walk.replace(roots, order, rule)


def _summed(node: Node, a: Node, b: Node) -> Node:
    """(..., m, k) x (..., k, n) or (k, n), added up in float32."""
    *batch, m, n = node.spec.shape
    k = a.spec.shape[-1]
    full_shape = (*batch, m, n, k)
    right = contraction.transposed(b)
    right = movement.reshape(right, shape=(*(batch if len(b.spec.shape) > 2 else (1,) * len(batch)), 1, n, k))
    left = movement.reshape(a, shape=(*batch, m, 1, k))
    product = pointwise.mul(_expanded(wide(left), full_shape), _expanded(wide(right), full_shape))
    total = movement.reshape(reduction.sum_(product, axes=(len(full_shape) - 1,)), shape=(*batch, m, n))
    return total if node.spec == total.spec else pointwise.cast(total, dtype=node.spec.dtype)


def _expanded(x: Node, shape: tuple[int, ...]) -> Node:
    return x if x.spec.shape == shape else reduction.expand(x, shape=shape)
