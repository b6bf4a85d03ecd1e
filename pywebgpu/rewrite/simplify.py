"""Algebra, equal subgraphs merged, names without meaning dropped, constants folded.

Dead code needs no pass: a node that no root reaches is never seen. Random bits of different draws have different host
numbers below them, so they never merge.
"""

from collections.abc import Callable
from math import copysign, inf, prod
from typing import Any

from pywebgpu import dtypes
from pywebgpu.dtypes import Kind
from pywebgpu.graph import walk
from pywebgpu.graph.ir import Custom, Movement, Node, Pointwise, Reduction, Spec
from pywebgpu.ops import contraction, indexing, movement, packing, pointwise, products, reduction
from pywebgpu.shapes import Shape


def simplify(roots: tuple[Node, ...]) -> tuple[Node, ...]:
    """The same values from fewer nodes."""
    seen: dict[Any, Node] = {}

    def rule(node: Node) -> Node:
        node = _rewrite(node)
        if node.buffer is not None or node.op is movement.barrier:
            return node
        attrs = repr(node.attrs) if node.op is pointwise.const else tuple(node.attrs.items())
        key = (node.op, tuple([id(source) for source in node.inputs]), attrs, node.spec)
        return seen.setdefault(key, node)

    return walk.rebuild(roots, rule)


def _rewrite(node: Node) -> Node:
    for _ in range(8):  # Each rule shortens; a handful of rounds reaches the end.
        found = _once(node)
        if found is node:
            return node
        node = found
        if node.buffer is not None or not node.inputs:
            return node
    return node


def _once(node: Node) -> Node:
    op = node.op
    if node.buffer is not None:
        return node
    if isinstance(op, Custom) or op in (pointwise.copy, pointwise.graft, pointwise.overwrite, movement.alias):
        return node.inputs[0]
    if isinstance(op, Movement):
        return _movement(node)
    if isinstance(op, Pointwise):
        return _grown(_pointwise(node), node.spec.shape)
    if op is indexing.write_slice and node.inputs[1].spec.shape == node.spec.shape:
        return node.inputs[1]
    if op is packing.pack:
        return _pack(node)
    if op is reduction.sum_ or op is products.prod_:
        if all(node.inputs[0].spec.shape[axis] == 1 for axis in node.attrs["axes"]):
            return node.inputs[0]
        value = constant(node.inputs[0])
        if value is not None and op is reduction.sum_:
            count = prod(node.inputs[0].spec.shape[axis] for axis in node.attrs["axes"])
            return pointwise.full(value * count, node.spec)
    if isinstance(op, Reduction) and op in (reduction.max_, reduction.min_) and not node.attrs["axes"]:
        return node.inputs[0]
    return node


def _pack(node: Node) -> Node:
    """Packing the pieces of one vector again gives that vector, where it does not matter what lies between them."""
    first, starts = node.inputs[0], node.attrs["starts"]
    if first.op is not packing.piece or first.buffer is not None or node.attrs["clean"]:
        return node
    whole = first.inputs[0]
    for part, start in zip(node.inputs, starts, strict=True):
        if part.op is not packing.piece or part.buffer is not None or part.inputs[0] is not whole:
            return node
        if part.attrs["start"] != start:
            return node
    return whole if whole.spec == node.spec else node


def constant(node: Node) -> float | None:
    """The value that every element has, where the graph says so; a stored value is data, which no Program holds."""
    value: float | None = node.attrs["value"] if node.op is pointwise.const and node.buffer is None else None
    return value


def _grown(x: Node, shape: Shape) -> Node:
    """x itself, or a value of shape () that stood beside operands of `shape`, in that shape."""
    if x.spec.shape == shape:
        return x
    value = constant(x)
    if value is not None:
        return pointwise.full(value, Spec(shape, x.spec.dtype))
    return reduction.expand(x, shape=shape)


def _movement(node: Node) -> Node:
    op, x = node.op, node.inputs[0]
    if op is movement.barrier:
        return node
    bounded = op in (movement.place, movement.unwindow)
    if constant(x) is not None and not bounded:
        return pointwise.full(x.attrs["value"], node.spec)
    if op in (movement.reshape, reduction.expand) and x.spec.shape == node.spec.shape:
        return x
    if op is movement.reshape and x.op is movement.reshape and x.buffer is None:
        return movement.reshape(x.inputs[0], shape=node.spec.shape)
    if op is movement.permute:
        order = node.attrs["order"]
        if order == tuple(range(len(order))):
            return x
        if x.op is movement.permute and x.buffer is None:
            return movement.permute(x.inputs[0], order=tuple(x.attrs["order"][axis] for axis in order))
        return _transposed_product(node, x, order)
    if op is movement.slice_ and node.spec.shape == x.spec.shape and not any(node.attrs["starts"]):
        return x
    if op is movement.slice_ and x.op is indexing.write_slice and x.buffer is None:
        value = x.inputs[1]
        same = all(node.attrs[key] == x.attrs[key] for key in ("starts", "steps"))
        if same and value.spec.shape == node.spec.shape:
            return value
    if op is movement.flip and not node.attrs["axes"]:
        return x
    if op is packing.piece and x.op is packing.pack and x.buffer is None:
        for part, start in zip(x.inputs, x.attrs["starts"], strict=True):
            if start == node.attrs["start"] and part.spec == node.spec and 0 not in part.spec.shape:
                return part
    return node


def _transposed_product(node: Node, x: Node, order: tuple[int, ...]) -> Node:
    """(a b)^T -> b^T a^T, so that a weight's gradient is made in the weight's own layout."""
    if x.op is not contraction.matmul or x.buffer is not None:
        return node
    (a, b), rank = x.inputs, len(order)
    if order != (*range(rank - 2), rank - 1, rank - 2) or len(b.spec.shape) != rank:
        return node
    return contraction.matmul(contraction.transposed(b), contraction.transposed(a))


_FOLD: dict[Any, Callable[..., float]] = {
    pointwise.add: lambda a, b: a + b,
    pointwise.sub: lambda a, b: a - b,
    pointwise.mul: lambda a, b: a * b,
    pointwise.neg: lambda a: -a,
}


def _pointwise(node: Node) -> Node:
    op, inputs = node.op, node.inputs
    values = [constant(source) for source in inputs]
    if op is pointwise.cast:
        return _cast(node)
    floating = node.spec.dtype.kind is Kind.FLOAT
    if floating and op in _FOLD and None not in values:
        return pointwise.full(_FOLD[op](*values), node.spec)
    if op is pointwise.where and values[0] is not None:
        return inputs[1] if values[0] else inputs[2]
    if op is pointwise.where and inputs[1] is inputs[2]:
        return inputs[1]
    if op is pointwise.add:
        if values[1] == 0:
            return inputs[0]
        if values[0] == 0:
            return inputs[1]
        if inputs[1].op is pointwise.neg and inputs[1].buffer is None:
            return pointwise.sub(inputs[0], inputs[1].inputs[0])
    if op is pointwise.sub and values[1] == 0:
        return inputs[0]
    if op is pointwise.mul:
        for this, other in ((0, 1), (1, 0)):
            if values[this] == 1:
                return inputs[other]
            if values[this] == -1 and floating:
                return pointwise.neg(inputs[other])
    if op is pointwise.div and values[1] == 1:
        return inputs[0]
    if op is pointwise.div and values[1] == 0:  # 0 / 0 is not NaN on every engine; 0 * infinity is.
        return pointwise.mul(inputs[0], pointwise.full(copysign(inf, values[1]), node.spec))
    if op is pointwise.neg and inputs[0].op is pointwise.neg and inputs[0].buffer is None:
        return inputs[0].inputs[0]
    if op is pointwise.pow_ and node.spec.dtype is dtypes.float32:
        return _power(node, values[1])
    return node


def _power(node: Node, exponent: float | None) -> Node:
    base = node.inputs[0]
    match exponent:
        case 1:
            return base
        case 2:
            return pointwise.mul(base, base)
        case 3:
            return pointwise.mul(base, pointwise.mul(base, base))
        case -1:
            return pointwise.reciprocal(base)
        case _:
            return node


def _cast(node: Node) -> Node:
    x, dtype = node.inputs[0], node.spec.dtype
    if x.spec.dtype is dtype:
        return x
    value = constant(x)
    if value is not None and dtype.kind is Kind.FLOAT and dtype.itemsize >= 4:
        return pointwise.full(float(value), node.spec)
    return node
