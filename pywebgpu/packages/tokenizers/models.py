"""The module tokenizers.models: which numbers the pieces of a word get."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from pywebgpu.packages.tokenizers import backend, components
from pywebgpu.packages.tokenizers.components import Component, Fields
from pywebgpu.packages.tokenizers.encoding import Token


class Model(Component):
    """The base of all. vocab: a number for each token."""

    def token_to_id(self, token: str) -> int | None:
        return self.tokens().get(token)

    def id_to_token(self, id: int) -> str | None:
        return self.names().get(id)

    def tokens(self) -> dict[str, int]:
        """A number for each token."""
        tokens: dict[str, int] = self.vocab
        return tokens

    def names(self) -> dict[int, str]:
        """A token for each number."""
        tokens = self.tokens()
        kept = self.__dict__.get("_names")
        if kept is None or kept[0] is not tokens or len(kept[1]) != len(tokens):
            kept = tokens, {number: token for token, number in tokens.items()}
            self.__dict__["_names"] = kept
        names: dict[int, str] = kept[1]
        return names

    def tokenize(self, sequence: str) -> list[Token]:
        """The tokens of a word, each with where it stands."""
        ids, tokens = backend.part("model", self).word(sequence)
        spans = [span for _, span in backend.placed(sequence, tokens)]
        return [Token(*fields) for fields in zip(ids, tokens, spans, strict=True)]

    def save(self, folder: str, prefix: str | None = None) -> list[str]:
        """Writes the vocabulary as vocab.json; returns the names of the files."""
        path = Path(folder) / f"{prefix + '-' if prefix else ''}vocab.json"
        path.write_text(json.dumps(self.tokens(), ensure_ascii=False), encoding="utf-8")
        return [str(path)]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.tokens())} tokens)"

    def __getstate__(self) -> Any:
        return {name: value for name, value in vars(self).items() if name != "_names"}


class BPE(Model):
    """Pairs that are joined, the first pairs first."""

    FIELDS: ClassVar[Fields] = {
        "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
        "fuse_unk": False, "byte_fallback": False, "ignore_merges": False, "vocab": {}, "merges": (),
    }  # fmt: skip

    def __init__(
        self,
        vocab: Mapping[str, int] | str | None = None,
        merges: Any = None,
        *,
        cache_capacity: int | None = None,
        **options: Any,
    ) -> None:
        if isinstance(vocab, str):
            vocab, merges = self.read_file(vocab, merges)
        pairs = [tuple(pair.split(" ")) if isinstance(pair, str) else tuple(pair) for pair in merges or ()]
        super().__init__(vocab=dict(vocab or {}), merges=pairs, **options)

    @staticmethod
    def read_file(vocab: str, merges: str) -> tuple[dict[str, int], list[tuple[str, ...]]]:
        """The vocabulary of a JSON file, and the pairs of a file of lines."""
        lines = Path(merges).read_text(encoding="utf-8").split("\n")
        pairs = [tuple(line.split(" ")) for line in lines if line and not line.startswith("#version")]
        return json.loads(Path(vocab).read_text(encoding="utf-8")), pairs

    @classmethod
    def from_file(cls, vocab: str, merges: str, **options: Any) -> BPE:
        return cls(*cls.read_file(vocab, merges), **options)

    @classmethod
    def of_fields(cls, fields: Mapping[str, Any]) -> Component:
        return cls(**{name: fields.get(name, default) for name, default in cls.FIELDS.items()})

    def save(self, folder: str, prefix: str | None = None) -> list[str]:
        """Also writes the pairs as merges.txt."""
        path = Path(folder) / f"{prefix + '-' if prefix else ''}merges.txt"
        path.write_text("\n".join(["#version: 0.2", *map(" ".join, self.merges), ""]), encoding="utf-8")
        return [*super().save(folder, prefix), str(path)]


class _Plain(Model):
    """A vocabulary, and what stands for what is not in it."""

    def __init__(
        self, vocab: Mapping[str, int] | str | None = None, unk_token: str | None = None, **options: Any
    ) -> None:
        if isinstance(vocab, str):
            vocab = self.read_file(vocab)
        unknown = self.FIELDS["unk_token"] if unk_token is None else unk_token
        super().__init__(vocab=dict(vocab or {}), unk_token=unknown, **options)

    @staticmethod
    def read_file(vocab: str) -> dict[str, int]:
        """The tokens of a file of lines, or of a JSON file."""
        text = Path(vocab).read_text(encoding="utf-8")
        if text.startswith("{"):
            return dict(json.loads(text))
        return {line: number for number, line in enumerate(text.removesuffix("\n").split("\n"))}

    @classmethod
    def from_file(cls, vocab: str, **options: Any) -> _Plain:
        return cls(cls.read_file(vocab), **options)

    @classmethod
    def of_fields(cls, fields: Mapping[str, Any]) -> Component:
        return cls(**{name: fields.get(name, default) for name, default in cls.FIELDS.items()})


class WordPiece(_Plain):
    """The longest pieces of a word, from its start."""

    FIELDS: ClassVar[Fields] = {
        "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": {},
    }  # fmt: skip

    @staticmethod
    def from_bpe(model: BPE) -> WordPiece:
        """The vocabulary of another model."""
        return WordPiece(model.vocab)


class WordLevel(_Plain):
    """Whole words."""

    FIELDS: ClassVar[Fields] = {"vocab": {}, "unk_token": "<unk>"}


class Unigram(Model):
    """The likeliest pieces. vocab: pairs of a token and its logarithmic likelihood."""

    FIELDS: ClassVar[Fields] = {"unk_id": None, "vocab": (), "byte_fallback": False}

    def __init__(self, vocab: Any = None, unk_id: int | None = None, byte_fallback: bool = False) -> None:
        pairs = [(token, float(score)) for token, score in vocab or ()]
        super().__init__(unk_id=unk_id, vocab=pairs, byte_fallback=byte_fallback)

    @classmethod
    def of_fields(cls, fields: Mapping[str, Any]) -> Component:
        return cls(**{name: fields.get(name, default) for name, default in cls.FIELDS.items()})

    def tokens(self) -> dict[str, int]:
        kept = self.__dict__.get("_tokens")
        if kept is None or kept[0] is not self.vocab:
            kept = self.vocab, {token: number for number, (token, _) in enumerate(self.vocab)}
            self.__dict__["_tokens"] = kept
        tokens: dict[str, int] = kept[1]
        return tokens


read = components.reader(Model)
