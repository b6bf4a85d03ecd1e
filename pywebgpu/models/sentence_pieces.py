"""SentencePiece's byte-pair tokenizers, as Llama 2, Mistral and Gemma have them: neighbours with the best score join.

A space is written as "\\u2581"; a character that is no token becomes the tokens of its bytes.
Source: Kudo, Richardson 2018 (arXiv 1808.06226).  Against the packages `sentencepiece` and `tokenizers`: the same ids.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from pywebgpu.models.vocabulary import Vocabulary, any_of

SPACE = "\u2581"
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)  # types of tokens, by GGUF's numbers


class SentencePieces(Vocabulary):
    """A tokenizer of tokens with scores.

    types: of the tokens.  add_space: whether a text begins with a space of its own, which decoded text has not.
    """

    def __init__(
        self, tokens: Sequence[str], scores: Sequence[float], types: Sequence[int], *, add_space: bool = True
    ) -> None:
        if not len(tokens) == len(scores) == len(types):
            raise ValueError(f"{len(tokens)} tokens have {len(scores)} scores and {len(types)} types")

        def named(*kinds: int) -> list[str]:
            return [token for token, kind in zip(tokens, types, strict=True) if kind in kinds and token]

        super().__init__(tokens, named(CONTROL, USER_DEFINED))
        self._types, self._scores, self.add_space = types, scores, add_space
        self._controls = any_of(named(CONTROL))
        # Tokens that text is made of; what others are called is not text.
        self._pieces = {token: i for token, i in self._ids.items() if types[i] in (NORMAL, USER_DEFINED, UNUSED)}
        self._bytes = [self._ids.get(f"<0x{byte:02X}>") for byte in range(256)]
        self._byte_of = {i: byte for byte, i in enumerate(self._bytes) if i is not None and types[i] == BYTE}
        self._unknown = next((i for i, kind in enumerate(types) if kind == UNKNOWN), None)

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

    def _prepare(self, text: str) -> str:
        text = text.replace(" ", SPACE)
        return SPACE + text if self.add_space and text and not self._controls.match(text) else text

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
