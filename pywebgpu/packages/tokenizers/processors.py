"""The module tokenizers.processors: the special tokens around one sequence, or two.

Each gives a row of items: ("A" or "B", type id) for a sequence, (token, id, type id) for a special token.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pywebgpu.packages.tokenizers import components
from pywebgpu.packages.tokenizers.components import Component, Fields, Listed

Row = list[tuple[Any, ...]]
BARE: Row = [("A", 0)]
BARE_PAIR: Row = [("A", 0), ("B", 1)]


class PostProcessor(Component):
    """The base of all."""

    def row(self, *, is_pair: bool) -> Row:
        """What stands where."""
        return BARE_PAIR if is_pair else BARE

    def num_special_tokens_to_add(self, is_pair: bool) -> int:
        """How many special tokens there will be."""
        return sum(len(item) == 3 for item in self.row(is_pair=is_pair))


class ByteLevel(PostProcessor):
    """Changes where tokens stand, and no token."""

    FIELDS: ClassVar[Fields] = {"add_prefix_space": True, "trim_offsets": True, "use_regex": True}


class _Framed(PostProcessor):
    """A token before, and one behind."""

    ARGUMENTS: ClassVar[Mapping[str, str]] = {}

    def _field(self, name: str, value: Any) -> Any:
        return tuple(value) if name in ("sep", "cls") else value


class BertProcessing(_Framed):
    FIELDS: ClassVar[Fields] = {"sep": ("[SEP]", 102), "cls": ("[CLS]", 101)}

    def row(self, *, is_pair: bool) -> Row:
        first = [(*self.cls, 0), ("A", 0), (*self.sep, 0)]
        return [*first, ("B", 1), (*self.sep, 1)] if is_pair else first


class RobertaProcessing(_Framed):
    FIELDS: ClassVar[Fields] = {"sep": ("</s>", 2), "cls": ("<s>", 0), "trim_offsets": True, "add_prefix_space": True}

    def row(self, *, is_pair: bool) -> Row:
        first = [(*self.cls, 0), ("A", 0), (*self.sep, 0)]
        return [*first, (*self.sep, 0), ("B", 0), (*self.sep, 0)] if is_pair else first


class TemplateProcessing(PostProcessor):
    """Pieces as "[CLS]:0 $A:0 [SEP]:0", and the numbers of the special tokens."""

    FIELDS: ClassVar[Fields] = {"single": "$0", "pair": "$A:0 $B:1", "special_tokens": ()}

    def _field(self, name: str, value: Any) -> Any:
        if name == "special_tokens":
            return value if isinstance(value, dict) else dict(map(_special, value))
        pieces = value.split(" ") if isinstance(value, str) else value
        return [piece if isinstance(piece, dict) else _piece(piece) for piece in pieces or ()]

    def row(self, *, is_pair: bool) -> Row:
        items: Row = []
        for piece in self.pair if is_pair else self.single:
            ((kind, fields),) = piece.items()
            if kind == "Sequence":
                items.append((fields["id"], fields["type_id"]))
                continue
            special = self.special_tokens[fields["id"]]
            items += [(*pair, fields["type_id"]) for pair in zip(special["tokens"], special["ids"], strict=True)]
        return items


class Sequence(Listed, PostProcessor):
    FIELDS: ClassVar[Fields] = {"processors": ()}
    PARTS = "processors"

    def row(self, *, is_pair: bool) -> Row:
        items: Row = PostProcessor.row(self, is_pair=is_pair)
        for part in self.processors:
            if not isinstance(part, ByteLevel):
                items = part.row(is_pair=is_pair)
        return items


def _special(entry: Any) -> tuple[str, dict[str, Any]]:
    """A special token: a pair of name and number in any order, or a record of several tokens."""
    if isinstance(entry, dict):
        return entry["id"], dict(entry)
    token, number = entry if isinstance(entry[0], str) else reversed(entry)
    return token, {"id": token, "ids": [number], "tokens": [token]}


def _piece(text: str) -> dict[str, Any]:
    """A piece of a template: "$A", "$B:1", "$0" (the first sequence, of this type), "[SEP]:1"."""
    name, _, number = text.rpartition(":") if text.rpartition(":")[2].isdigit() and ":" in text else (text, "", "0")
    type_id = int(number)
    if not name.startswith("$"):
        return {"SpecialToken": {"id": name, "type_id": type_id}}
    rest = name[1:]
    if rest.isdigit():
        return {"Sequence": {"id": "A", "type_id": int(rest)}}
    return {"Sequence": {"id": (rest or "A").upper(), "type_id": type_id}}


read = components.reader(PostProcessor)
