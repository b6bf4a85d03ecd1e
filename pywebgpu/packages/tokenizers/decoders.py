"""The module tokenizers.decoders: how tokens become text again."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence as Strings
from typing import Any, ClassVar

from pywebgpu.packages.tokenizers import backend, components
from pywebgpu.packages.tokenizers.components import Component, Fields, Listed


class Decoder(Component):
    """The base of all."""

    def decode(self, tokens: Strings[str]) -> str:
        """The text of tokens."""
        return backend.part("decoder", self).join(tokens)


class ByteLevel(Decoder):
    FIELDS: ClassVar[Fields] = {"add_prefix_space": True, "trim_offsets": True, "use_regex": True}


class WordPiece(Decoder):
    FIELDS: ClassVar[Fields] = {"prefix": "##", "cleanup": True}


class Metaspace(Decoder):
    FIELDS: ClassVar[Fields] = {"replacement": "▁", "prepend_scheme": "always", "split": True}


class BPEDecoder(Decoder):
    FIELDS: ClassVar[Fields] = {"suffix": "</w>"}


class CTC(Decoder):
    FIELDS: ClassVar[Fields] = {"pad_token": "<pad>", "word_delimiter_token": "|", "cleanup": True}


class Replace(Decoder):
    FIELDS: ClassVar[Fields] = {"pattern": None, "content": ""}

    def _field(self, name: str, value: Any) -> Any:
        return components.pattern(value) if name == "pattern" else value


class Strip(Decoder):
    FIELDS: ClassVar[Fields] = {"content": " ", "start": 0, "stop": 0}
    ARGUMENTS: ClassVar[Mapping[str, str]] = {"left": "start", "right": "stop"}


class Fuse(Decoder):
    """All tokens as one."""


class ByteFallback(Decoder):
    """Tokens that name bytes, as <0x61>, as the text of these bytes."""


class Sequence(Listed, Decoder):
    FIELDS: ClassVar[Fields] = {"decoders": ()}
    PARTS = "decoders"


class DecodeStream:
    """Text of tokens that come one by one: each step gives what is new, None while letters are not whole."""

    def __init__(self, ids: Strings[int] | None = None, skip_special_tokens: bool = False) -> None:
        self._ids, self._skips, self._shown = list(ids or ()), skip_special_tokens, ""

    def step(self, tokenizer: Any, id: int | Strings[int]) -> str | None:
        self._ids += [id] if isinstance(id, int) else id
        text = tokenizer.decode(self._ids, skip_special_tokens=self._skips)
        if text.endswith("\ufffd") or not text.startswith(self._shown):
            return None
        shown, self._shown = self._shown, text
        return text[len(shown) :] or None


read = components.reader(Decoder)
