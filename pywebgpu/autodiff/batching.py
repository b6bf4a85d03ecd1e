"""A graph over single samples as the same graph over batches: one rule for each kind of op, not one a function.

A function is recorded once, over stand-ins; what depends on them is made anew with one more axis in front.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

from pywebgpu.ir import composite, walk
from pywebgpu.ir.graph import (
    HOST,
    NO_ATTRS,
    OUTPUT,
    Composite,
    Custom,
    Fused,
    FusedNode,
    Movement,
    Node,
    Pointwise,
    Reduction,
    Spec,
    Structural,
    thread_state,
)
from pywebgpu.ops import contraction, indexing, movement, packing, pointwise, random, reduction
from pywebgpu.support.shapes import Shape

Rule = Callable[["_Batch", Node], Node]
AttributesRule = Callable[[int, Mapping[str, Any]], dict[str, object]]
Path = tuple[tuple[Any, Any], ...]  # views, one after the other: their ops and attributes


class NoBatchError(RuntimeError):
    """Raised for what has no rule: samples have to be computed one by one."""


def batched(
    roots: Sequence[Node], samples: dict[Node, Node], size: int, draws: Callable[[Node], bool] = lambda node: False
) -> list[tuple[Node, bool]]:
    """The nodes over batches, and whether each has the axis in front; one that no stand-in reaches is as it was.

    given: stand-in -> the value with an axis of `size` samples in front. draws: which random words differ by sample.
    Raises NoBatchError where an op has no rule.
    """
    _expand(roots, samples, draws)
    batch = _Batch(samples, size)
    before = thread_state.grad
    try:
        for node in walk.toposort(roots):
            if node in batch.made:
                continue
            if draws(node):
                spec = Spec((size, *node.spec.shape), node.spec.dtype)
                batch.made[node] = Node(node.op, node.inputs, node.attrs, spec)
            elif any(source in batch.made for source in node.inputs):
                thread_state.grad = node.requires  # What was recorded without history stays so.
                batch.made[node] = _again(batch, node)
    finally:
        thread_state.grad = before
    return [(batch.made.get(root, root), root in batch.made) for root in roots]


def _expand(roots: Sequence[Node], samples: dict[Node, Node], draws: Callable[[Node], bool]) -> None:
    """Puts what composite and fused ops are made of below their nodes, which nobody but this graph reads."""
    expansions: composite.Made = {}
    parts: dict[Node, Sequence[Node]] = {}
    before, changed = thread_state.grad, True
    while changed:
        order, changed = walk.toposort(roots), False
        reached = set(samples) | {node for node in order if draws(node)}
        for node in order:
            if reached.isdisjoint(node.inputs):
                continue
            reached.add(node)
            thread_state.grad = node.requires
            if type(node.op) is Composite:
                node.inputs, changed = (composite.decomposed(node.op, node.inputs, expansions),), True
                node.op = movement.alias
            elif node.op is OUTPUT:
                fused = node.inputs[0]
                assert isinstance(fused, FusedNode)
                assert isinstance(fused.op, Fused)
                if fused not in parts:
                    thread_state.grad = fused.requires  # This output may be the one that has no history.
                    parts[fused] = fused.op.fallback(*fused.inputs, **fused.attrs)
                node.inputs, changed = (parts[fused][node.attrs["index"]],), True
                node.op, node.attrs = movement.alias, NO_ATTRS
    thread_state.grad = before


class _Batch:
    """The nodes that were made: each has an axis of `size` in front."""

    def __init__(self, samples: dict[Node, Node], size: int) -> None:
        self.made, self.size = dict(samples), size

    def full(self, node: Node, shape: Shape | None = None) -> Node:
        """A node of the old graph with the axis in front, grown to (size, *shape)."""
        own = node.spec.shape
        shape = own if shape is None else shape
        batched_node = self.made.get(node)
        if batched_node is None:
            return _grown(node, (self.size, *shape))
        if own != shape:
            batched_node = movement.reshape(batched_node, shape=(self.size, *(1,) * (len(shape) - len(own)), *own))
        return _grown(batched_node, (self.size, *shape))

    def has(self, node: Node) -> bool:
        return node in self.made


def _grown(node: Node, shape: Shape) -> Node:
    return node if node.spec.shape == shape else reduction.expand(node, shape=shape)


def _again(batch: _Batch, node: Node) -> Node:
    op = node.op
    match op:
        case Pointwise():
            return _pointwise(batch, node, op)
        case Movement():
            attrs = _MOVED[op.name](batch.size, node.attrs) if op.name in _MOVED else dict(node.attrs)
            return _moved(batch, node, op, attrs)
        case Reduction():
            return op(batch.full(node.inputs[0]), tuple([axis + 1 for axis in node.attrs["axes"]]))
        case Custom():
            return _custom(batch, node)
    rule = _STRUCTURAL.get(op.name)
    if rule is None:
        raise NoBatchError(f"vmap: there is no rule for {op.name}")
    return rule(batch, node)


def _pointwise(batch: _Batch, node: Node, op: Pointwise) -> Node:
    shape = node.spec.shape
    inputs = [batch.full(source, shape) if batch.has(source) or source.spec.shape else source for source in node.inputs]
    return op(*inputs, **node.attrs)


def _custom(batch: _Batch, node: Node) -> Node:
    """The value of a user's function. Its gradient was written for one sample."""
    if any(batch.made.get(source, source).requires for source in node.inputs):
        raise NoBatchError("vmap: a function with a gradient of its own, which is asked for")
    return batch.full(node.inputs[0])


# Movements: their attributes with one axis more


def _moved(batch: _Batch, node: Node, op: Movement, attrs: dict[str, object]) -> Node:
    (source,) = node.inputs
    x = batch.full(source)
    if op is reduction.expand:
        rank = len(node.spec.shape)
        x = movement.reshape(x, shape=(batch.size, *(1,) * (rank - len(source.spec.shape)), *source.spec.shape))
    elif op is packing.piece:
        start, shape = node.attrs["start"], node.attrs["shape"]
        part = movement.slice_(x, starts=(0, start), sizes=(batch.size, prod(shape)), steps=(1, 1))
        return movement.reshape(part, shape=(batch.size, *shape))
    return op(x, **attrs)


def views(path: Path, shape: Shape, size: int) -> Path | None:
    """The views of a batch of `size` that show what `path` shows of a sample of a shape; None where one has no rule."""
    steps: list[tuple[Any, Any]] = []
    for op, attrs in path:
        if not isinstance(op, Movement) or op is packing.piece:
            return None
        after = op.infer(shape, **attrs)
        if op is reduction.expand:
            steps.append((movement.reshape, {"shape": (size, *(1,) * (len(after) - len(shape)), *shape)}))
        steps.append((op, _MOVED[op.name](size, attrs) if op.name in _MOVED else attrs))
        shape = after
    return tuple(steps)


def _with(**first: Callable[[int], object] | None) -> AttributesRule:
    """Attributes that get an element in front; None counts an axis up, or each of several."""

    def rule(size: int, of_sample: Mapping[str, Any]) -> dict[str, object]:
        attrs = dict(of_sample)
        for name, front in first.items():
            value = attrs[name]
            if front is not None:
                attrs[name] = (front(size), *value)
            else:
                attrs[name] = value + 1 if isinstance(value, int) else tuple([axis + 1 for axis in value])
        return attrs

    return rule


def _size(size: int) -> int:
    return size


def _start(size: int) -> int:
    return 0


def _step(size: int) -> int:
    return 1


def _order(size: int, attrs: Mapping[str, Any]) -> dict[str, object]:
    return {"order": (0, *(axis + 1 for axis in attrs["order"]))}


_MOVED: dict[str, AttributesRule] = {
    "reshape": _with(shape=_size),
    "expand": _with(shape=_size),
    "permute": _order,
    "slice": _with(starts=_start, sizes=_size, steps=_step),
    "pad": _with(shape=_size, starts=_start, steps=_step),
    "flip": _with(axes=None),
    "window": _with(axis=None),
    "unwindow": _with(axis=None),
}


# Ops of other kinds


def _matmul(batch: _Batch, node: Node) -> Node:
    a, b = node.inputs
    left, right = batch.full(a), batch.full(b) if batch.has(b) or len(b.spec.shape) > 2 else b
    if len(right.spec.shape) == 3 and len(a.spec.shape) > 2:  # One matrix a sample, for many rows of each.
        rows = movement.reshape(left, shape=(batch.size, prod(a.spec.shape[:-1]), a.spec.shape[-1]))
        return movement.reshape(contraction.matmul(rows, right), shape=(batch.size, *node.spec.shape))
    return contraction.matmul(left, right)


def _beside(batch: _Batch, x: Node) -> Node:
    """(size, n, d) -> (n, size * d)"""
    n, d = x.spec.shape
    turned = movement.permute(batch.full(x), order=(1, 0, 2))
    return movement.reshape(turned, shape=(n, batch.size * d))


def _apart(batch: _Batch, x: Node, rows: int) -> Node:
    """(rows, size * d) -> (size, rows, d)"""
    split = movement.reshape(x, shape=(rows, batch.size, x.spec.shape[1] // batch.size))
    return movement.permute(split, order=(1, 0, 2))


def _flat(batch: _Batch, x: Node) -> Node:
    """(size, n, d) -> (size * n, d)"""
    n, *rest = x.spec.shape
    return movement.reshape(batch.full(x), shape=(batch.size * n, *rest))


def _numbers(batch: _Batch, index: Node, rows: int) -> Node:
    """Row numbers of each sample, among the rows of all."""
    (count,) = index.spec.shape
    spec = Spec((batch.size, count), index.spec.dtype)
    first = pointwise.mul(pointwise.iota(spec=spec, axis=0), pointwise.full(rows, spec))
    return movement.reshape(pointwise.add(batch.full(index), first), shape=(batch.size * count,))


def _take(batch: _Batch, node: Node) -> Node:
    x, index = node.inputs
    (rows, _), (count,) = x.spec.shape, index.spec.shape
    if not batch.has(index):
        return _apart(batch, indexing.take(_beside(batch, x), index), count)
    if batch.has(x):
        rows_taken = indexing.take(_flat(batch, x), _numbers(batch, index, rows))
    else:
        rows_taken = indexing.take(x, movement.reshape(batch.made[index], shape=(batch.size * count,)))
    return movement.reshape(rows_taken, shape=(batch.size, *node.spec.shape))


def _scatter(batch: _Batch, node: Node) -> Node:
    base, index, source = node.inputs
    rows = base.spec.shape[0]
    if batch.has(index):
        numbers = _numbers(batch, index, rows)
        scattered = indexing.scatter(_flat(batch, base), numbers, _flat(batch, source), **node.attrs)
        return movement.reshape(scattered, shape=(batch.size, *base.spec.shape))
    scattered = indexing.scatter(_beside(batch, base), index, _beside(batch, source), **node.attrs)
    return _apart(batch, scattered, rows)


def _cat(batch: _Batch, node: Node) -> Node:
    return indexing.cat(*map(batch.full, node.inputs), axis=node.attrs["axis"] + 1)


def _write_slice(batch: _Batch, node: Node) -> Node:
    attrs = _with(starts=_start, steps=_step)(batch.size, node.attrs)
    return indexing.write_slice(*map(batch.full, node.inputs), **attrs)


def _row(batch: _Batch, node: Node) -> Node:
    """What goes along the last axis."""
    assert isinstance(node.op, Structural)
    return node.op(batch.full(node.inputs[0]), **node.attrs)


_STRUCTURAL: dict[str, Rule] = {
    "matmul": _matmul,
    "take": _take,
    "scatter": _scatter,
    "cat": _cat,
    "write_slice": _write_slice,
    "scan": _row,
    "argsort": _row,
    "dft": _row,
}


def is_draw(node: Node, drawn: frozenset[tuple[Node, int]]) -> bool:
    """Whether a node is random words of one of some draws, each the first word of a seed and a number."""
    if node.op is not random.bits:
        return False
    number = node.inputs[-1]
    return number.op is HOST and (node.inputs[0], number.buffer) in drawn
