"""Byte-pair tokenizers in Python alone, for hosts where the package `tokenizers` is not: what the models need of it.

Text is cut at special tokens, then into words by a pattern; a word is its UTF-8 bytes, each spelled as one character,
and pairs of neighbours are joined in the order of the merges.
Source: Sennrich et al. 2016 (arXiv 1508.07909), with the bytes of GPT-2.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise

from pywebgpu.models.vocabulary import Vocabulary

# Python's patterns know no classes of Unicode: they run over a text in which each character beyond ASCII is replaced
# by one of its class. LONG_S is an s where case does not count.
LETTER, NUMBER, SPACE, OTHER, LONG_S = "\u00e9", "\u00b2", "\u00a0", "\u00a4", "\u017f"
CLASSES = {"L": f"A-Za-z{LETTER}{LONG_S}", "N": f"0-9{NUMBER}", "S": f" \\t\\n\\r\\f\\v{SPACE}"}
KEPT_WORDS = 1 << 14  # whose tokens are remembered


class BytePairs(Vocabulary):
    """A tokenizer of a vocabulary and merges.

    words: the patterns that cut text, one after another, with \\p{L}, \\p{N} and \\s; what none matches is a part too.
    special: tokens that are recognised by their names, and left out of decoded text.
    """

    def __init__(
        self, tokens: Sequence[str], merges: Sequence[tuple[str, str]], words: Sequence[str], special: Sequence[str]
    ) -> None:
        super().__init__(tokens, special)
        self._ranks = {pair: rank for rank, pair in enumerate(merges)}
        self._words = [re.compile(_over_classes(pattern)) for pattern in words]
        self._special = frozenset(special)
        self._word_ids = lru_cache(KEPT_WORDS)(self._join)

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool = True) -> str:
        """The text of ids, those that are unknown left out. Bytes that are no character become U+FFFD."""
        data = bytearray()
        for token in filter(None, map(self.id_to_token, ids)):
            if token in self._special and skip_special_tokens:
                continue
            try:
                data += bytes(BYTES[character] for character in token)
            except KeyError:  # A token that was added as text.
                data += token.encode()
        return data.decode(errors="replace")

    def _encode_plain(self, text: str) -> list[int]:
        parts = [text] if text else []
        for pattern in self._words:
            parts = [cut for part in parts for cut in _cut(pattern, part)]
        return [id for part in parts for id in self._word_ids(part)]

    def _join(self, word: str) -> tuple[int, ...]:
        """The tokens of a word: the pair that was learned first is joined wherever it stands, then the next."""
        parts = [CHARACTERS[byte] for byte in word.encode(errors="replace")]
        ranks = self._ranks
        last = len(ranks)
        while len(parts) > 1:
            pairs = list(pairwise(parts))
            best = min(pairs, key=lambda pair: ranks.get(pair, last))
            if best not in ranks:
                break
            joined, i = [], 0
            while i < len(parts):
                if i < len(pairs) and pairs[i] == best:
                    joined.append(parts[i] + parts[i + 1])
                    i += 2
                else:
                    joined.append(parts[i])
                    i += 1
            parts = joined
        return tuple(self._ids[part] for part in parts if part in self._ids)


def _cut(pattern: re.Pattern[str], text: str) -> Iterator[str]:
    """The parts of a text that a pattern matches, and those between."""
    start = 0
    for match in pattern.finditer(text.translate(_stand_ins)):
        if match.start() > start:
            yield text[start : match.start()]
        if match.end() > match.start():
            yield text[match.start() : match.end()]
        start = match.end()
    if start < len(text):
        yield text[start:]


class _StandIns(dict[int, str]):
    """A character by its code to the one that stands for its class."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        category = unicodedata.category(character)[0]
        if code < 128 or character == LONG_S:
            result = OTHER if 0x1C <= code <= 0x1F else character  # Python takes these four for spaces.
        elif category in "LN":
            result = LETTER if category == "L" else NUMBER
        else:
            result = SPACE if character.isspace() else OTHER
        self[code] = result
        return result


_stand_ins: Mapping[int, str] = _StandIns()


def _over_classes(pattern: str) -> str:
    """A pattern with classes of Unicode as one over the characters that stand for them."""
    spaces = CLASSES["S"]
    pattern = re.sub(r"\\p\{([LN])\}(?![^\[]*\])", lambda match: f"[{CLASSES[match[1]]}]", pattern)
    pattern = re.sub(r"\\p\{([LN])\}", lambda match: CLASSES[match[1]], pattern)
    pattern = re.sub(r"\\s(?![^\[]*\])", f"[{spaces}]", pattern).replace(r"\S", f"[^{spaces}]")
    return pattern.replace(r"\s", spaces)


def _spell_bytes() -> dict[int, str]:
    """A character for each byte: itself where it is printable, else one beyond Latin-1."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {byte: chr(byte) for byte in printable} | {byte: chr(256 + i) for i, byte in enumerate(others)}


CHARACTERS = _spell_bytes()
BYTES = {character: byte for byte, character in CHARACTERS.items()}
