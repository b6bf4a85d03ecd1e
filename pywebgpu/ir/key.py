"""The fingerprint of a graph: everything that a Program may depend on, and no value."""

from collections.abc import Iterable, Sequence
from typing import Any

from pywebgpu.ir.graph import HOST, Composite, Custom, Generator, Movement, Node


class Structure:
    """Ops, wiring, attributes and specs of a graph, one after the other. Equal structures compute the same function."""

    __slots__ = ("_hash", "_words")

    def __init__(self, words: tuple[Any, ...]) -> None:
        self._words, self._hash = words, hash(words)

    def __hash__(self) -> int:
        return self._hash

    def text(self) -> str:
        """The same in every process."""
        return repr([word.text if type(word) is Composite else getattr(word, "name", word) for word in self._words])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Structure) and self._hash == other._hash and self._words == other._words


def structure(order: Sequence[Node], roots: Iterable[Node]) -> Structure:
    """The structure of a toposorted graph. A node is its op, its attributes and the numbers of its inputs."""
    number = dict(zip(order, range(len(order)), strict=True))
    numbered = number.__getitem__
    tokens: dict[Any, int] = {}
    words: list[Any] = []
    for node in order:
        op = node.op
        if node.buffer is not None:
            words += ("host" if op is HOST else "data", node.spec)
            continue
        words.append(op)
        if not node.inputs or type(op) is Generator:
            words.append(node.spec)  # Of any other node it follows from what is said of it.
        if node.attrs and not isinstance(op, Custom):
            attrs: tuple[Any, ...] = tuple(node.attrs.values())
            if "value" in node.attrs:
                attrs = tuple(map(repr, attrs))  # -0.0 equals 0.0, and NaN does not equal itself.
            elif isinstance(op, Movement) and op.is_barrier:
                attrs = (tokens.setdefault(attrs, len(tokens)),)
            words.append(attrs)
        words.extend(map(numbered, node.inputs))
    words.append(tuple([number[root] for root in roots]))
    return Structure(tuple(words))


def attributes(node: Node) -> tuple[Any, ...]:
    """A node's attributes by name, so that equal ones mean the same: see `structure`."""
    return tuple([(name, repr(value) if name == "value" else value) for name, value in node.attrs.items()])
