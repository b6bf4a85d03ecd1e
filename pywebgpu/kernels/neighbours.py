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
        found = [node.op.index(at, source.spec.shape, **node.attrs) for at in ats]
        if any(bounds for _, bounds in found):
            return joined(build, [build.value(node, at) for at in ats])
        node, ats = source, [at for at, _ in found]
    flats = [flatten(at, node.spec.shape) for at in ats]
    if all(flat == flats[0] for flat in flats):
        return build.value(node, ats[0])
    known = [build.known(node, flat) for flat in flats]
    elements = [one for one in known if one is not None]
    if len(elements) < len(known):
        if isinstance(node.op, Pointwise) and not build.has_buffer(node):
            args = [value(build, one, ats if one.spec.shape else [()]) for one in node.inputs]
            return _defined(build, node, flats, _applied(build, node, args, len(ats)))
        elements = build.loads(node, flats) or [build.value(node, at) for at in ats]
    return _defined(build, node, flats, joined(build, elements))


def joined(build: Builder, elements: Sequence[Expr]) -> Expr:
    """Numbers as a vector: the one that they are of, or a new one."""
    whole = ir.whole(elements)
    return (
        whole if whole is not None else build.let(ir.construct(Type(elements[0].type.kind, len(elements)), *elements))
    )


def _defined(build: Builder, node: Node, flats: Sequence[Sym], found: Expr) -> Expr:
    for number, flat in enumerate(flats):
        build.define(node, flat, found[number] if found.type.width > 1 else found)
    return found


def _applied(build: Builder, node: Node, args: list[Expr], width: int) -> Expr:
    """A pointwise op of vectors, and of numbers that are the same for all elements."""
    if all(arg.type.width == 1 for arg in args):
        return build.applied(node, args)
    return build.let(intrinsics.called_by_vectors(node, args, width)) if intrinsics.computes(node) else args[0]
