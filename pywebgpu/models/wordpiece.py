"""WordPiece: words as the longest pieces that a vocabulary has, after BERT's own rules of what a word is.

Source: Devlin et al. 2018 (arXiv 1810.04805).  Against the package `tokenizers`: the same ids.
"""

from __future__ import annotations

import functools
import os
import re
import unicodedata
from collections.abc import Iterator, Mapping

LONGEST_WORD = 100  # characters; a longer one is unknown
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
SPACES = re.compile(r"[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]")
IDEOGRAPHS = re.compile(
    "[\u4e00-\u9fff\u3400-\u4dbf\U00020000-\U0002a6df\U0002a700-\U0002b73f\U0002b740-\U0002b81f"
    "\U0002b920-\U0002ceaf\uf900-\ufaff\U0002f800-\U0002fa1f]"
)
ASCII_PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")


class WordPiece:
    """Text to the ids of word pieces.

    ids: each piece's id; pieces that continue a word begin with "##".  lowercase: letters lose case and accents.
    """

    def __init__(self, ids: Mapping[str, int], *, lowercase: bool = True) -> None:
        missing = [name for name in SPECIAL if name not in ids]
        if missing:
            raise ValueError(f"WordPiece: the vocabulary has no {missing[0]}")
        self.ids, self.lowercase = dict(ids), lowercase
        self.pad, self.unknown, self.begin, self.end = (self.ids[name] for name in SPECIAL[:4])
        self._special = re.compile("(" + "|".join(map(re.escape, SPECIAL)) + ")")
        self._pieces = functools.lru_cache(maxsize=1 << 16)(self._pieces_of)

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], *, lowercase: bool = True) -> WordPiece:
        """The pieces of a `vocab.txt`, one a line, whose number is the id. Raises: OSError, ValueError."""
        with open(path, encoding="utf-8", newline="\n") as file:
            return cls({line.rstrip("\r\n"): i for i, line in enumerate(file)}, lowercase=lowercase)

    def encode(self, text: str, length: int | None = None) -> list[int]:
        """[CLS], the pieces of the text, [SEP]: at most `length` ids. A special piece's name in it is that piece."""
        ids: list[int] = []
        for part in self._special.split(text):
            if part in SPECIAL:
                ids.append(self.ids[part])
                continue
            for word in self.words(part):
                ids += self._pieces(word)
        return [self.begin, *(ids if length is None else ids[: max(length - 2, 0)]), self.end]

    def words(self, text: str) -> Iterator[str]:
        """The words and marks of a text, in the letters of the vocabulary."""
        text = "".join(" " if SPACES.match(c) else c for c in text if c in "\t\n\r" or not _is_dropped(c))
        text = IDEOGRAPHS.sub(lambda match: f" {match[0]} ", text)
        if self.lowercase:
            text = "".join(c for c in unicodedata.normalize("NFD", text) if unicodedata.category(c) != "Mn")
            text = "".join(c.lower() for c in text)  # One by one: a sigma that ends a word is as any other.
        for chunk in SPACES.split(text):
            word = ""
            for c in chunk:
                if c in ASCII_PUNCTUATION or unicodedata.category(c).startswith("P"):
                    if word:
                        yield word
                    yield c
                    word = ""
                else:
                    word += c
            if word:
                yield word

    def _pieces_of(self, word: str) -> tuple[int, ...]:
        if len(word) > LONGEST_WORD:
            return (self.unknown,)
        pieces, start = [], 0
        while start < len(word):
            mark = "##" if start else ""
            lengths = range(len(word), start, -1)
            end = next((stop for stop in lengths if mark + word[start:stop] in self.ids), None)
            if end is None:
                return (self.unknown,)
            pieces.append(self.ids[mark + word[start:end]])
            start = end
        return tuple(pieces)


def _is_dropped(c: str) -> bool:
    return c in "\0\ufffd" or unicodedata.category(c) in ("Cc", "Cf", "Co", "Cs")
