"""Elements of a node that are wanted together, as one vector: a statement where one by one they would be four.

What is written is what takes time, here and in drivers. Values are those of `Builder.value`.
"""

from __future__ import annotations

from collections.abc import Sequence

from pywebgpu.ir.graph import Movement, Node, Pointwise
from pywebgpu.kernels import intrinsics, ir
from pywebgpu.kernels.builder import Builder, Coords
from pywebgpu.kernels.ir import Expr, Type
from pywebgpu.support.symbolic import Sym, flatten


def value(build: Builder, node: Node, ats: Sequence[Coords]) -> Expr:
    """The node's elements at some coordinates: a vector, or where all are one element, this."""
    while isinstance(node.op, Movement) and not build.has_buffer(node):
        source = node.inputs[0]
        mapped = [node.op.index(coords, source.spec.shape, **node.attrs) for coords in ats]
        if any(bounds for _, bounds in mapped):
            return joined(build, [build.value(node, coords) for coords in ats])
        node, ats = source, [coords for coords, _ in mapped]
    flats = [flatten(coords, node.spec.shape) for coords in ats]
    if all(flat == flats[0] for flat in flats):
        return build.value(node, ats[0])
    known = [build.known(node, flat) for flat in flats]
    elements = [element for element in known if element is not None]
    if len(elements) < len(known):
        if isinstance(node.op, Pointwise) and not build.has_buffer(node):
            args = [value(build, source_node, ats if source_node.spec.shape else [()]) for source_node in node.inputs]
            return _defined(build, node, flats, _applied(build, node, args, len(ats)))
        elements = build.loads(node, flats) or [build.value(node, coords) for coords in ats]
    return _defined(build, node, flats, joined(build, elements))


def joined(build: Builder, elements: Sequence[Expr]) -> Expr:
    """Numbers as a vector: the one that they are of, or a new one."""
    vector = ir.whole(elements)
    return (
        vector if vector is not None else build.let(ir.construct(Type(elements[0].type.kind, len(elements)), *elements))
    )


def _defined(build: Builder, node: Node, flats: Sequence[Sym], vector: Expr) -> Expr:
    for number, flat in enumerate(flats):
        build.define(node, flat, vector[number] if vector.type.width > 1 else vector)
    return vector


def _applied(build: Builder, node: Node, args: list[Expr], width: int) -> Expr:
    """A pointwise op of vectors, and of numbers that are the same for all elements."""
    if all(arg.type.width == 1 for arg in args):
        return build.applied(node, args)
    return build.let(intrinsics.called_by_vectors(node, args, width)) if intrinsics.computes(node) else args[0]
