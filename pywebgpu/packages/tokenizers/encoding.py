"""What encoding a text gives: rows of numbers of one length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Origin = tuple[Any, int] | None  # what says where a token stands (spans.py), and its number there
_ROWS = ("ids", "tokens", "type_ids", "sequence_ids", "attention_mask", "special_tokens_mask", "origins")


class Token(NamedTuple):
    """A piece of a word, and where it stands."""

    id: int
    value: str
    offsets: tuple[int, int]

    def as_tuple(self) -> tuple[int, str, tuple[int, int]]:
        return self.id, self.value, self.offsets


@dataclass(slots=True)
class Encoding:
    """The tokens of a text, or of two. sequence_ids: of which each is, None of a special token."""

    ids: list[int] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)
    type_ids: list[int] = field(default_factory=list)
    sequence_ids: list[int | None] = field(default_factory=list)
    attention_mask: list[int] = field(default_factory=list)
    special_tokens_mask: list[int] = field(default_factory=list)
    origins: list[Origin] = field(default_factory=list)
    overflowing: list[Encoding] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return (
            f"Encoding(num_tokens={len(self)}, attributes=[ids, type_ids, tokens, attention_mask, special_tokens_mask])"
        )

    @property
    def n_sequences(self) -> int:
        return max(1, len({number for number in self.sequence_ids if number is not None}))

    @property
    def offsets(self) -> list[tuple[int, int]]:
        """Where each token stands in its text. Raises NotImplementedError where it is not known."""
        return [(0, 0) if origin is None else origin[0].span(origin[1]) for origin in self.origins]

    @property
    def word_ids(self) -> list[int | None]:
        """Of which word each token is. Raises as `offsets`."""
        return [None if origin is None else origin[0].word(origin[1]) for origin in self.origins]

    words = word_ids

    def char_to_token(self, char_pos: int, sequence_index: int = 0) -> int | None:
        """The token in which a letter is; None where there is none."""
        spans = zip(self.offsets, self.sequence_ids, strict=True)
        places = (
            place for place, (span, number) in enumerate(spans) if number == sequence_index and char_pos in range(*span)
        )
        return next(places, None)

    def token_to_chars(self, token_index: int) -> tuple[int, tuple[int, int]] | None:
        """A token's sequence, and where it stands there; None of a special token."""
        number = self.sequence_ids[token_index]
        return None if number is None else (number, self.offsets[token_index])

    def add(self, id: int, token: str, type_id: int, sequence: int | None, origin: Origin) -> None:
        """One more token; a special one is of no sequence."""
        self.ids.append(id)
        self.tokens.append(token)
        self.type_ids.append(type_id)
        self.sequence_ids.append(sequence)
        self.attention_mask.append(1)
        self.special_tokens_mask.append(int(sequence is None))
        self.origins.append(origin)

    def pad(
        self, length: int, *, direction: str = "right", pad_id: int = 0, pad_type_id: int = 0, pad_token: str = "[PAD]"
    ) -> None:
        """As many tokens as are missing, at an end."""
        for part in self.overflowing:
            part.pad(length, direction=direction, pad_id=pad_id, pad_type_id=pad_type_id, pad_token=pad_token)
        count = length - len(self)
        rows: list[tuple[list[Any], Any]] = [
            (self.ids, pad_id), (self.tokens, pad_token), (self.type_ids, pad_type_id), (self.sequence_ids, None),
            (self.attention_mask, 0), (self.special_tokens_mask, 1), (self.origins, None),
        ]  # fmt: skip
        for row, value in rows if count > 0 else ():
            end = 0 if direction == "left" else len(row)
            row[end:end] = [value] * count

    def truncate(self, max_length: int, stride: int = 0, direction: str = "right") -> None:
        """At most so many tokens; what is cut is in no other encoding."""
        kept = slice(max(0, len(self) - max_length), None) if direction == "left" else slice(max_length)
        for name in _ROWS:
            setattr(self, name, getattr(self, name)[kept])

    @staticmethod
    def merge(encodings: Sequence[Encoding], growing_offsets: bool = True) -> Encoding:
        """All of them, one behind the other."""
        merged = Encoding()
        for part in encodings:
            for name in _ROWS:
                getattr(merged, name).extend(getattr(part, name))
        return merged
