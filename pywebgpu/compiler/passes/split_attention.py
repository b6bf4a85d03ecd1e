"""Attention of few rows over many keys becomes several of a part of the keys each, and what joins them.

So more workgroups run side by side: a token that is decoded reads all keys and values there are.
"""

from collections.abc import Sequence
from math import e, log2
from typing import Any

from pywebgpu import dtypes
from pywebgpu.composites import arithmetic, attention_parts
from pywebgpu.composites.attention import HIDDEN
from pywebgpu.ir import walk
from pywebgpu.ir.graph import WHICH, Node
from pywebgpu.kernels.templates import Selection
from pywebgpu.kernels.templates.attention import is_few
from pywebgpu.ops import movement, pointwise

PARTS = 8  # at most: who reads the result joins them for each element
KEYS = 64  # of a part, at least


def split_attention(roots: tuple[Node, ...], order: Sequence[Node], selection: Selection) -> tuple[Node, ...]:
    """The same values but for the order of sums."""
    calls: dict[tuple[Any, ...], tuple[Node, ...]] = {}

    def rule(node: Node, fresh: Node) -> Node:
        if not is_few(node):
            return fresh
        options = {name: value for name, value in node.attrs.items() if name != WHICH}
        call = (*map(id, fresh.inputs), *options.items())
        if call not in calls:
            calls[call] = _split(node, fresh.inputs, options)
        return calls[call][node.attrs[WHICH]]

    return walk.replace(roots, order, rule)


def _split(node: Node, inputs: tuple[Node, ...], options: dict[str, Any]) -> tuple[Node, Node]:
    query, key = inputs[:2]
    steps = -(-key.spec.shape[2] // KEYS)
    attrs = {name: options[name] for name in ("scale", "window", "masked")} | {"span": -(-steps // PARTS) * KEYS}
    op = attention_parts.attention_parts
    specs = op.infer(*[source.spec for source in inputs], **attrs)
    values, logs = (Node(op, inputs, {**attrs, WHICH: index}, spec) for index, spec in enumerate(specs))
    out, log_sum = attention_parts.joined(values, logs)
    hidden = pointwise.lt(log_sum, arithmetic.like(log_sum, HIDDEN / 2))
    bits = pointwise.where(
        hidden, arithmetic.like(log_sum, 0), pointwise.mul(log_sum, arithmetic.like(log_sum, log2(e)))
    )
    batches, heads, length, _ = query.spec.shape
    sums = movement.permute(movement.reshape(bits, shape=(batches, length, heads)), order=(0, 2, 1))
    return out if query.spec.dtype is dtypes.float32 else pointwise.cast(out, dtype=query.spec.dtype), sums
