"""What the tokenizers in Python have in common: tokens by their ids, and names of tokens within text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Encoding(NamedTuple):
    """The ids of a text."""

    ids: list[int]


class Vocabulary:
    """Tokens, of which those of `names` are recognised in text by their names.

    With the methods of `tokenizers.Tokenizer` that the models call.
    """

    def __init__(self, tokens: Sequence[str], names: Iterable[str]) -> None:
        self._tokens, self._ids = tokens, {token: i for i, token in enumerate(tokens)}
        self._names = any_of(names)

    def token_to_id(self, token: str) -> int | None:
        return self._ids.get(token)

    def id_to_token(self, id: int) -> str | None:
        return self._tokens[id] if 0 <= id < len(self._tokens) else None

    def encode(self, text: str, *, add_special_tokens: bool = False) -> Encoding:
        """The ids of a text; names of special tokens in it are those tokens. No template adds others."""
        text = self._prepare(text)
        ids: list[int] = []
        start = 0
        for match in self._names.finditer(text):
            ids += self._encode_plain(text[start : match.start()])
            ids.append(self._ids[match[0]])
            start = match.end()
        return Encoding(ids + self._encode_plain(text[start:]))

    def _prepare(self, text: str) -> str:
        """The text as its tokens spell it."""
        return text

    def _encode_plain(self, text: str) -> list[int]:
        """The ids of a text in which no name is."""
        raise NotImplementedError


def any_of(names: Iterable[str]) -> re.Pattern[str]:
    """A pattern of any of some names, the longest first; of none where there are none."""
    return re.compile("|".join(map(re.escape, sorted(names, key=len, reverse=True))) or r"(?!)")
