"""The module tokenizers.pre_tokenizers: the words into which a text is split."""

from __future__ import annotations

from typing import Any, ClassVar

from pywebgpu.packages.tokenizers import backend, components
from pywebgpu.packages.tokenizers.components import Component, Fields, Listed


class PreTokenizer(Component):
    """The base of all."""

    def pre_tokenize_str(self, sequence: str) -> list[tuple[str, tuple[int, int]]]:
        """The words of a text, each with where it stands: as far as it stands in the text as it is."""
        return backend.placed(sequence, backend.part("pre_tokenizer", self).split(sequence))

    @staticmethod
    def custom(pretok: Any) -> PreTokenizer:
        raise NotImplementedError("a splitter written in Python is not possible here: combine those that there are")


class BertPreTokenizer(PreTokenizer):
    """At spaces and at each sign of punctuation."""


class Whitespace(PreTokenizer):
    r"""Words and signs: \\w+|[^\\w\\s]+."""


class WhitespaceSplit(PreTokenizer):
    """At spaces."""


class UnicodeScripts(PreTokenizer):
    """Where one script ends and another begins."""


class ByteLevel(PreTokenizer):
    FIELDS: ClassVar[Fields] = {"add_prefix_space": True, "trim_offsets": True, "use_regex": True}

    @staticmethod
    def alphabet() -> list[str]:
        """The letters that stand for bytes."""
        return list(LETTERS.values())


class Metaspace(PreTokenizer):
    FIELDS: ClassVar[Fields] = {"replacement": "▁", "prepend_scheme": "always", "split": True}


class Split(PreTokenizer):
    FIELDS: ClassVar[Fields] = {"pattern": None, "behavior": "Isolated", "invert": False}

    def _field(self, name: str, value: Any) -> Any:
        return components.pattern(value) if name == "pattern" else components.camel(value)


class Punctuation(PreTokenizer):
    FIELDS: ClassVar[Fields] = {"behavior": "Isolated"}

    def _field(self, name: str, value: Any) -> Any:
        return components.camel(value)


class Digits(PreTokenizer):
    FIELDS: ClassVar[Fields] = {"individual_digits": False}


class CharDelimiterSplit(PreTokenizer):
    FIELDS: ClassVar[Fields] = {"delimiter": " "}


class FixedLength(PreTokenizer):
    FIELDS: ClassVar[Fields] = {"length": 5}


class Sequence(Listed, PreTokenizer):
    FIELDS: ClassVar[Fields] = {"pretokenizers": ()}
    PARTS = "pretokenizers"


def _letters() -> dict[int, str]:
    """A letter for each byte: itself where it can be seen, and else one behind Latin-1."""
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in shown]
    return {byte: chr(byte) for byte in shown} | {byte: chr(256 + index) for index, byte in enumerate(hidden)}


LETTERS = _letters()
read = components.reader(PreTokenizer)
