"""What encoding a text gives: rows of numbers of one length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn


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
    word_ids: Any = None
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
    def words(self) -> Any:
        return self.word_ids

    @property
    def offsets(self) -> NoReturn:
        """Raises NotImplementedError: the JavaScript that encodes does not say where tokens stand in the text."""
        raise NotImplementedError("where tokens stand in the text is not known here: leave out return_offsets_mapping")

    def char_to_token(self, char_pos: int, sequence_index: int = 0) -> NoReturn:
        raise NotImplementedError("where tokens stand in the text is not known here")

    token_to_chars = word_to_chars = char_to_word = char_to_token

    def add(self, id: int, token: str, type_id: int, sequence: int | None, *, is_special: bool) -> None:
        """One more token."""
        self.ids.append(id)
        self.tokens.append(token)
        self.type_ids.append(type_id)
        self.sequence_ids.append(sequence)
        self.attention_mask.append(1)
        self.special_tokens_mask.append(int(is_special))

    def pad(
        self, length: int, *, direction: str = "right", pad_id: int = 0, pad_type_id: int = 0, pad_token: str = "[PAD]"
    ) -> None:
        """As many tokens as are missing, at an end."""
        for part in self.overflowing:
            part.pad(length, direction=direction, pad_id=pad_id, pad_type_id=pad_type_id, pad_token=pad_token)
        count = length - len(self)
        rows: list[tuple[list[Any], Any]] = [
            (self.ids, pad_id), (self.tokens, pad_token), (self.type_ids, pad_type_id), (self.sequence_ids, None),
            (self.attention_mask, 0), (self.special_tokens_mask, 1),
        ]  # fmt: skip
        for row, value in rows if count > 0 else ():
            end = 0 if direction == "left" else len(row)
            row[end:end] = [value] * count

    def truncate(self, max_length: int, stride: int = 0, direction: str = "right") -> None:
        """At most so many tokens; what is cut is in no other encoding."""
        kept = slice(max(0, len(self) - max_length), None) if direction == "left" else slice(max_length)
        for name in ("ids", "tokens", "type_ids", "sequence_ids", "attention_mask", "special_tokens_mask"):
            setattr(self, name, getattr(self, name)[kept])

    @staticmethod
    def merge(encodings: Sequence[Encoding], growing_offsets: bool = True) -> Encoding:
        """All of them, one behind the other."""
        merged = Encoding()
        for part in encodings:
            for name in ("ids", "tokens", "type_ids", "sequence_ids", "attention_mask", "special_tokens_mask"):
                getattr(merged, name).extend(getattr(part, name))
        return merged
