"""The fingerprint of a graph: everything that a Program may depend on, and no value."""

from collections.abc import Iterable, Sequence
from typing import Any

from pywebgpu.graph.ir import HOST, Custom, Node


def structure(order: Sequence[Node], roots: Iterable[Node]) -> tuple[Any, ...]:
    """Ops, wiring, attributes and specs of a toposorted graph. Equal structures compute the same function."""
    number: dict[int, int] = {}
    tokens: dict[Any, int] = {}
    lines: list[Any] = []
    for at, node in enumerate(order):
        number[id(node)] = at
        if node.buffer is not None:
            lines.append(("host" if node.op is HOST else "data", node.spec))
        else:
            attrs: tuple[Any, ...] = tuple(node.attrs.values())
            if isinstance(node.op, Custom):
                attrs = ()
            elif node.op.name == "const":
                attrs = (repr(attrs[0]),)  # -0.0 equals 0.0, and NaN does not equal itself.
            elif node.op.name == "barrier":
                attrs = (tokens.setdefault(attrs, len(tokens)),)
            lines.append((node.op, tuple([number[id(source)] for source in node.inputs]), attrs, node.spec))
    return tuple(lines), tuple([number[id(root)] for root in roots])
