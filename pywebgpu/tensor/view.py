"""A chain of views: followed from a storage's value to what a tensor shows, and taken back by a write."""

from __future__ import annotations

from pywebgpu.dtypes import bool_
from pywebgpu.graph.ir import HOST, Attrs, Movement, Node, Spec
from pywebgpu.ops import indexing, movement, pointwise, reduction

Path = tuple[tuple[Movement, Attrs], ...]


def through(node: Node, path: Path) -> Node:
    """What a chain of views shows of a value."""
    for op, attrs in path:
        node = op(node, **attrs)
    return node


def written(whole: Node, path: Path, value: Node) -> Node:
    """The value of `whole` after what `path` shows of it became `value`. A node that is nobody's value yet."""
    chain = [whole]
    for op, attrs in path[:-1]:
        chain.append(op(chain[-1], **attrs))
    for (op, attrs), before in zip(reversed(path), reversed(chain[: len(path)]), strict=True):
        value = _back(op, attrs, before, value)
    return pointwise.copy(value) if value is whole or is_shared(value) else value


def is_shared(node: Node) -> bool:
    """Whether others have this node, or what it is a view of. A storage's is its own: a write marks it as overwritten."""
    op = node.op
    return op.__class__ is Movement or op is HOST or (op is pointwise.const and not node.spec.shape)


def _back(op: Movement, attrs: Attrs, before: Node, value: Node) -> Node:
    """The value of `before` after its view op(before) became `value`."""
    if op is movement.reshape:
        return movement.reshape(value, shape=before.spec.shape)
    if op is movement.permute:
        order = attrs["order"]
        return movement.permute(value, order=tuple(order.index(axis) for axis in range(len(order))))
    if op is movement.slice_:
        return indexing.write_slice(before, value, starts=attrs["starts"], steps=attrs["steps"])
    if op is reduction.expand and before.spec.shape == value.spec.shape:
        return value
    if op is movement.window and attrs["step"] >= attrs["size"] and attrs["dilation"] == 1:
        back = {"axis": attrs["axis"], "length": before.spec.shape[attrs["axis"]], "step": attrs["step"], "dilation": 1}
        last = (len(before.spec.shape),)
        whole = reduction.sum_(movement.unwindow(value, **back), last)
        covered = reduction.max_(movement.unwindow(pointwise.full(True, Spec(value.spec.shape, bool_)), **back), last)
        whole, covered = (movement.reshape(x, shape=before.spec.shape) for x in (whole, covered))
        return pointwise.where(covered, whole, before)
    raise RuntimeError(
        "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
        "Please clone() the tensor before performing the operation."
    )
