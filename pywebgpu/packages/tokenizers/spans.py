"""Where tokens stand in a text, as far as it can be said: the JavaScript that encodes does not tell.

It is said where words are parts of the text, and tokens parts of words: the text is normalised letter by letter, its
words are searched in it, and the tokens of each word are laid side by side. Where they do not fit, nothing is said.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NoReturn

from pywebgpu.packages.tokenizers import backend, pre_tokenizers

if TYPE_CHECKING:
    from pywebgpu.packages.tokenizers.tokenizer import Tokenizer

Span = tuple[int, int]
_SPLITTING = (
    pre_tokenizers.BertPreTokenizer, pre_tokenizers.Whitespace, pre_tokenizers.WhitespaceSplit,
    pre_tokenizers.Punctuation, pre_tokenizers.Digits,
)  # fmt: skip


class Spans:
    """Of the tokens of one text; found when they are first asked for. word: the number of a word that was given."""

    def __init__(self, tokenizer: Tokenizer, text: str, tokens: list[str], word: int | None) -> None:
        self._tokenizer, self._text, self._tokens, self._word = tokenizer, text, tokens, word
        self._kept: list[tuple[Span, int | None]] | None = None

    def span(self, index: int) -> Span:
        """Where a token begins and ends. Raises NotImplementedError where it cannot be said."""
        return self._all()[index][0]

    def word(self, index: int) -> int | None:
        """Of which word a token is: None of a token that was added. Raises as `span`."""
        return self._all()[index][1] if self._word is None else self._word

    def _all(self) -> list[tuple[Span, int | None]]:
        if self._kept is None:
            self._kept = self._found()
        return self._kept

    def _found(self) -> list[tuple[Span, int | None]]:
        """Looks for all of them."""
        if not _splits(self._tokenizer.pre_tokenizer):
            _refuse()
        placed: list[tuple[Span, int | None]] = []
        names: list[str] = []
        n_words = 0
        for start, part, is_added in self._sections():
            if is_added:
                placed.append(((start, start + len(part)), None))
                names.append(part)
                continue
            for tokens, spans in self._words(start, part):
                placed += [(span, n_words) for span in spans]
                names += tokens
                n_words += 1
        if names != self._tokens:
            _refuse()
        return placed

    def _sections(self) -> list[tuple[int, str, bool]]:
        """Added tokens, and what stands between them."""
        contents = sorted((str(token) for token in self._tokenizer.get_added_tokens_decoder().values()), key=len)
        pattern = "|".join(re.escape(content) for content in reversed(contents))
        parts = re.split(f"({pattern})", self._text) if pattern else [self._text]
        sections, start = [], 0
        for number, part in enumerate(parts):
            if part:
                sections.append((start, part, bool(number % 2)))
            start += len(part)
        return sections

    def _words(self, start: int, text: str) -> list[tuple[list[str], list[Span]]]:
        """The tokens of each word, with where they stand in the whole text."""
        normalizing = backend.of(self._tokenizer)
        letters = [normalizing.normalize(letter) for letter in text] if self._tokenizer.normalizer else list(text)
        normal = "".join(letters)
        if self._tokenizer.normalizer and normalizing.normalize(text) != normal:
            _refuse()
        origins = [start + number for number, letter in enumerate(letters) for _ in letter]
        words = []
        position = 0
        for word in normalizing.split(normal):
            begin = normal.find(word, position)
            if begin < 0 or normal[position:begin].strip():
                _refuse()
            position = begin + len(word)
            tokens = normalizing.word(word)[1]
            spans = [
                (begin + first, begin + last) for first, last in _side_by_side(self._tokenizer.model, word, tokens)
            ]
            words.append((tokens, [(origins[first], origins[last - 1] + 1) for first, last in spans]))
        return words


def _splits(component: Any) -> bool:
    """Whether words are parts of the text as it is."""
    if isinstance(component, pre_tokenizers.Sequence):
        return all(map(_splits, component.pretokenizers))
    return isinstance(component, _SPLITTING)


def _side_by_side(model: Any, word: str, tokens: list[str]) -> list[Span]:
    """Where the tokens of a word stand in it; a token alone is all of it, whatever it is called."""
    if len(tokens) == 1:
        return [(0, len(word))]
    prefix, suffix = (getattr(model, name, None) or "" for name in ("continuing_subword_prefix", "end_of_word_suffix"))
    spans: list[Span] = []
    end = 0
    for token in tokens:
        piece = (token.removeprefix(prefix) if spans else token).removesuffix(suffix)
        if not word.startswith(piece, end):
            _refuse()
        spans.append((end, end + len(piece)))
        end += len(piece)
    if end != len(word):
        _refuse()
    return spans


def _refuse() -> NoReturn:
    raise NotImplementedError(
        "where tokens stand in the text is not known of such a tokenizer here: leave out return_offsets_mapping"
    )
