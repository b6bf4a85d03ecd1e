"""How the nodes of kernels read: through views, down to a value that another kernel stored or the same one has.

A view changes only where its input is read, and constants cost nothing: both are part of whoever needs them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from pywebgpu.ir import graph
from pywebgpu.ir.graph import HOST, Generator, Movement, Node, Op, Pointwise, Structural
from pywebgpu.kernels import ir
from pywebgpu.kernels.ir import Expr
from pywebgpu.support.shapes import Shape
from pywebgpu.support.symbolic import Sym, flatten, unflatten

Chain = tuple[tuple[Movement | None, tuple[tuple[str, Any], ...], Shape], ...]  # views down to a producer
Edge = tuple[Node, Chain, Shape]  # producer, views, shape at which the consumer reads
Edges = Mapping[int, list[Edge]]  # by id of a node, what it reads


def gathers(op: Op) -> bool:
    """Whether an element of the op is read at another position of an input."""
    return isinstance(op, Structural) and op.gathers


def is_free(node: Node) -> bool:
    """Costs nothing wherever it is needed: constants, counters, host numbers."""
    if node.op is HOST:
        return True
    return node.buffer is None and isinstance(node.op, Generator) and node.op.is_free


def is_view(node: Node) -> bool:
    """Changes where its input is read, and nothing else."""
    return node.buffer is None and graph.is_view(node.op)


def below(node: Node) -> Node:
    """The node under a chain of views."""
    while is_view(node):
        node = node.inputs[0]
    return node


@lru_cache(4096)
def read_at(start: Sym, shape: Shape, chain: Chain) -> Sym | None:
    """The flat index of the producer's element that is read for the consumer's element `start`."""
    coords = unflatten(start, shape)
    last = shape
    for op, attrs, source in chain:
        if op is None:
            return None
        coords, bounds = op.index(coords, source, **dict(attrs))
        if bounds:
            return None
        last = source
    return flatten(coords, last)


def reads_inside(edges: list[Edge], node: Node, inside: set[int], position: Sym) -> bool:
    """Whether what the node reads of its own kernel is the very element that it computes."""
    for producer, chain, shape in edges:
        if id(producer) in inside:
            if shape != node.spec.shape or gathers(node.op):
                return False
            if read_at(position, shape, chain) != position:
                return False
    return True


def down(node: Node, coords: tuple[Sym, ...]) -> tuple[int, Sym] | None:
    """The id of the node below a chain of views, and the flat index there; None where an element may lie outside."""
    while is_view(node):
        if not isinstance(node.op, Movement):
            return None
        coords, bounds = node.op.index(coords, node.inputs[0].spec.shape, **node.attrs)
        if bounds:
            return None
        node = node.inputs[0]
    return id(node), flatten(coords, node.spec.shape)


def only_moves(node: Node) -> bool:
    """Whether a node's elements are elements of its input, as they are."""
    if not node.inputs or node.inputs[0].spec.dtype != node.spec.dtype:
        return False
    return isinstance(node.op, Movement) or (isinstance(node.op, Pointwise) and node.op.wgsl == "{0}")


def conditions(bounds: Sequence[Any]) -> list[Expr]:
    """Tests in unsigned arithmetic, where a negative number is larger than any bound. None of what is known."""
    return [
        (ir.Index(part) % high).eq(0) if low == "multiple" else ir.Index(part) <= high
        for part, low, high in bounds
        if not part.is_constant
    ]


def is_outside(bounds: Sequence[Any]) -> bool:
    """Whether it is known that a test fails: a translator refuses constants below 0."""
    return any(
        part.is_constant and (part.const % high != 0 if low == "multiple" else not 0 <= part.const <= high)
        for part, low, high in bounds
    )
