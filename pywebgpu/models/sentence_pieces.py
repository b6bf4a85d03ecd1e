"""SentencePiece's byte-pair tokenizers, as Llama 2, Mistral and Gemma have them: neighbours with the best score join.

A space is written as "\\u2581"; a character that is no token becomes the tokens of its bytes.
Source: Kudo, Richardson 2018 (arXiv 1808.06226).  Against the packages `sentencepiece` and `tokenizers`: the same ids.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Sequence

from pywebgpu.models.byte_pairs import Encoding

SPACE = "\u2581"
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)  # types of tokens, by GGUF's numbers


class SentencePieces:
    """A tokenizer of tokens with scores, with the methods of `tokenizers.Tokenizer` that the models call.

    types: of the tokens.  add_space: whether a text begins with a space of its own, which decoded text has not.
    """

    def __init__(
        self, tokens: Sequence[str], scores: Sequence[float], types: Sequence[int], *, add_space: bool = True
    ) -> None:
        if not len(tokens) == len(scores) == len(types):
            raise ValueError(f"{len(tokens)} tokens have {len(scores)} scores and {len(types)} types")
        self._tokens, self._types, self._scores, self.add_space = tokens, types, scores, add_space
        self._ids = {token: i for i, token in enumerate(tokens)}
        self._names, self._controls = self._pattern(CONTROL, USER_DEFINED), self._pattern(CONTROL)
        # Tokens that text is made of; what others are called is not text.
        self._pieces = {token: i for token, i in self._ids.items() if types[i] in (NORMAL, USER_DEFINED, UNUSED)}
        self._bytes = [self._ids.get(f"<0x{byte:02X}>") for byte in range(256)]
        self._byte_of = {i: byte for byte, i in enumerate(self._bytes) if i is not None and types[i] == BYTE}
        self._unknown = next((i for i, kind in enumerate(types) if kind == UNKNOWN), None)

    def token_to_id(self, token: str) -> int | None:
        return self._ids.get(token)

    def id_to_token(self, id: int) -> str | None:
        return self._tokens[id] if 0 <= id < len(self._tokens) else None

    def encode(self, text: str, *, add_special_tokens: bool = False) -> Encoding:
        """The ids of a text; names of special tokens in it are those tokens. No template adds others."""
        text = text.replace(" ", SPACE)
        if self.add_space and text and not self._controls.match(text):
            text = SPACE + text
        ids: list[int] = []
        start = 0
        for match in self._names.finditer(text):
            ids += self._encode_plain(text[start : match.start()])
            ids.append(self._ids[match[0]])
            start = match.end()
        return Encoding(ids + self._encode_plain(text[start:]))

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool = True) -> str:
        """The text of ids, those that are unknown left out. Bytes that are no character become U+FFFD."""
        data = bytearray()
        for i in ids:
            if not 0 <= i < len(self._tokens) or (skip_special_tokens and self._types[i] in (CONTROL, UNKNOWN)):
                continue
            text = self._tokens[i].replace(SPACE, " ")
            data += bytes([self._byte_of[i]]) if i in self._byte_of else text.encode()
        text = data.decode(errors="replace")
        return text.removeprefix(" ") if self.add_space else text

    def _pattern(self, *kinds: int) -> re.Pattern[str]:
        """The names of the tokens of some types, the longest first."""
        names = [token for token, kind in zip(self._tokens, self._types, strict=True) if kind in kinds and token]
        return re.compile("|".join(map(re.escape, sorted(names, key=len, reverse=True))) or r"(?!)")

    def _encode_plain(self, text: str) -> list[int]:
        return [i for part in self._join(text) for i in self._ids_of(part)]

    def _ids_of(self, part: str) -> list[int]:
        """The id of a token, or those of the bytes of a character that is none."""
        if part in self._pieces:
            return [self._pieces[part]]
        ids = [self._bytes[byte] for byte in part.encode(errors="replace")]
        known = [i for i in ids if i is not None]
        if len(known) == len(ids):
            return known
        return [] if self._unknown is None else [self._unknown]

    def _join(self, text: str) -> list[str]:
        """The parts of a text after all joins, the best first, and of equal ones the first in the text."""
        parts: list[str] = list(text)
        before, after = list(range(-1, len(parts) - 1)), list(range(1, len(parts) + 1))
        waiting: list[tuple[float, int, str]] = []

        def propose(left: int) -> None:
            right = after[left] if left >= 0 else len(parts)
            if left >= 0 and right < len(parts):
                joined = parts[left] + parts[right]
                if joined in self._pieces:
                    heapq.heappush(waiting, (-self._scores[self._pieces[joined]], left, joined))

        for left in range(len(parts) - 1):
            propose(left)
        while waiting:
            _, left, joined = heapq.heappop(waiting)
            right = after[left]
            if not parts[left] or right >= len(parts) or parts[left] + parts[right] != joined:
                continue  # Another join took one of them.
            parts[left], parts[right] = joined, ""
            after[left] = after[right]
            if after[left] < len(parts):
                before[after[left]] = left
            propose(before[left])
            propose(left)
        return [part for part in parts if part]
