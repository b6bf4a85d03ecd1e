"""The module tokenizers.trainers: vocabularies learned from texts.

Source: Sennrich, Haddow, Birch 2016 (arXiv 1508.07909) for pairs.  Against tokenizers: the same vocabulary; ties are
decided by the numbers of the two tokens, the smaller first.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import islice, pairwise
from typing import Any, ClassVar

from pywebgpu.packages.tokenizers import models
from pywebgpu.packages.tokenizers.components import Fields

BATCH = 1000  # texts that are split by one call of JavaScript


class Trainer:
    """The base of all. special_tokens: the first of the vocabulary, in their order."""

    DEFAULTS: ClassVar[Fields] = {}

    def __init__(self, **options: Any) -> None:
        if unknown := options.keys() - self.DEFAULTS.keys():
            raise TypeError(f"{type(self).__name__} has no argument {', '.join(sorted(unknown))}")
        vars(self).update({**self.DEFAULTS, **options})
        self.special_tokens = list(vars(self).get("special_tokens") or ())

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def train(self, tokenizer: Any, texts: Iterable[Any]) -> None:
        """Gives a tokenizer a model that is learned from the texts, and the special tokens."""
        tokenizer.model = self.learned(tokenizer.model, Counter(_words(tokenizer, texts)))
        tokenizer.add_special_tokens(self.special_tokens)

    def learned(self, model: Any, counts: Counter[str]) -> models.Model:
        """A model of words and of how often each occurs."""
        raise NotImplementedError

    def __getstate__(self) -> dict[str, Any]:
        return dict(vars(self))


_COMMON = {"vocab_size": 30000, "min_frequency": 0, "show_progress": True, "special_tokens": ()}
_LETTERS = {
    "limit_alphabet": None,
    "initial_alphabet": (),
    "continuing_subword_prefix": None,
    "end_of_word_suffix": None,
}


class BpeTrainer(Trainer):
    DEFAULTS: ClassVar[Fields] = {**_COMMON, **_LETTERS, "max_token_length": None, "progress_format": None}

    def learned(self, model: Any, counts: Counter[str]) -> models.Model:
        vocab, merges = _joined(self, counts)
        kept = {name: getattr(model, name) for name in models.BPE.FIELDS if name not in ("vocab", "merges")}
        kept |= {name: getattr(self, name) for name in ("continuing_subword_prefix", "end_of_word_suffix")}
        return models.BPE(vocab, merges, **kept)


class WordPieceTrainer(Trainer):
    DEFAULTS: ClassVar[Fields] = {**_COMMON, **_LETTERS, "continuing_subword_prefix": "##", "progress_format": None}

    def learned(self, model: Any, counts: Counter[str]) -> models.Model:
        kept = {name: getattr(model, name) for name in ("unk_token", "max_input_chars_per_word")}
        return models.WordPiece(
            _joined(self, counts)[0], **kept | {"continuing_subword_prefix": self.continuing_subword_prefix}
        )


class WordLevelTrainer(Trainer):
    DEFAULTS: ClassVar[Fields] = _COMMON

    def learned(self, model: Any, counts: Counter[str]) -> models.Model:
        specials = [str(token) for token in self.special_tokens]
        ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        words = (word for word, count in ranked if count >= self.min_frequency and word not in specials)
        tokens = [*specials, *words][: self.vocab_size]
        return models.WordLevel({token: number for number, token in enumerate(tokens)}, unk_token=model.unk_token)


class UnigramTrainer(Trainer):
    DEFAULTS: ClassVar[Fields] = {
        **_COMMON, "vocab_size": 8000, "unk_token": None, "initial_alphabet": (), "shrinking_factor": 0.75,
        "max_piece_length": 16, "n_sub_iterations": 2, "progress_format": None,
    }  # fmt: skip

    def learned(self, model: Any, counts: Counter[str]) -> models.Model:
        raise NotImplementedError("a Unigram model is not trained here: train a BPE, or load one that is trained")


def _words(tokenizer: Any, texts: Iterable[Any]) -> Iterator[str]:
    """The words of texts, or of lists of texts, as the tokenizer splits them."""
    lines = (line for entry in texts for line in ([entry] if isinstance(entry, str) else entry))
    splitter = tokenizer.splitter()
    while batch := list(islice(lines, BATCH)):
        yield from splitter(batch)


def _joined(trainer: Any, counts: Counter[str]) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """The vocabulary, and the pairs in the order in which they were joined."""
    vocab: dict[str, int] = {}
    names: list[str] = []

    def number(token: str) -> int:
        if token not in vocab:
            vocab[token] = len(names)
            names.append(token)
        return vocab[token]

    for token in trainer.special_tokens:
        number(str(token))
    for letter in _alphabet(trainer, counts):
        number(letter)
    prefix, suffix = trainer.continuing_subword_prefix or "", trainer.end_of_word_suffix or ""
    words = []
    for word in counts:
        letters = [letter for letter in word if letter in vocab]
        last = len(letters) - 1
        parts = [
            (prefix if index else "") + letter + (suffix if index == last else "")
            for index, letter in enumerate(letters)
        ]
        words.append([number(part) for part in parts])
    return vocab, _merged(trainer, words, list(counts.values()), number, names, prefix)


Pair = tuple[int, int]


def _pairs(words: list[list[int]], counts: list[int]) -> tuple[Counter[Pair], dict[Pair, set[int]]]:
    """How often neighbours stand in the text, and in which words."""
    totals: Counter[Pair] = Counter()
    holders: dict[Pair, set[int]] = defaultdict(set)
    for index, word in enumerate(words):
        for pair in pairwise(word):
            totals[pair] += counts[index]
            holders[pair].add(index)
    return totals, holders


def _merged(
    trainer: Any, words: list[list[int]], counts: list[int], number: Any, names: list[str], prefix: str
) -> list[tuple[str, str]]:
    totals, holders = _pairs(words, counts)
    queue = [(-total, pair) for pair, total in totals.items()]
    heapq.heapify(queue)
    merges: list[tuple[str, str]] = []
    limit = getattr(trainer, "max_token_length", None)
    while queue and len(names) < trainer.vocab_size:
        negative, pair = heapq.heappop(queue)
        if -negative != totals[pair]:
            if totals[pair] > 0:
                heapq.heappush(queue, (-totals[pair], pair))
            continue
        if totals[pair] < max(1, trainer.min_frequency):
            break
        first, second = names[pair[0]], names[pair[1]]
        token = first + second.removeprefix(prefix)
        if limit is not None and len(token) > limit:
            continue
        merges.append((first, second))
        new = number(token)
        changed: set[Pair] = set()
        for index in holders.pop(pair):
            before = Counter(pairwise(words[index]))
            words[index] = _replaced(words[index], pair, new)
            after = Counter(pairwise(words[index]))
            for other in before.keys() | after.keys():
                if difference := after[other] - before[other]:
                    totals[other] += difference * counts[index]
                    changed.add(other)
            for other in after.keys() - before.keys():
                holders[other].add(index)
        totals[pair] = 0
        for other in changed:
            if other != pair and new in other and totals[other] > 0:
                heapq.heappush(queue, (-totals[other], other))
    return merges


def _replaced(word: list[int], pair: tuple[int, int], new: int) -> list[int]:
    """A word in which a pair is one token."""
    result: list[int] = []
    index = 0
    while index < len(word):
        if tuple(word[index : index + 2]) == pair:
            result.append(new)
            index += 2
        else:
            result.append(word[index])
            index += 1
    return result


def _alphabet(trainer: Any, counts: Counter[str]) -> list[str]:
    """The letters of the words, sorted; the rarest go where there are too many."""
    letters: Counter[str] = Counter()
    for word, count in counts.items():
        for letter in word:
            letters[letter] += count
    kept = {text[0] for text in trainer.initial_alphabet if text}
    if trainer.limit_alphabet is not None:
        room = max(0, trainer.limit_alphabet - len(kept))
        common = [letter for letter, _ in letters.most_common() if letter not in kept][:room]
        return sorted(kept | set(common))
    return sorted(kept | letters.keys())
