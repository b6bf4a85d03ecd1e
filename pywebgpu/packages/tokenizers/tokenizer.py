"""The class Tokenizer: its components, the tokens added to its vocabulary, and what is cut and padded."""

from __future__ import annotations

import importlib
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pywebgpu.packages.tokenizers import (
    backend,
    components,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from pywebgpu.packages.tokenizers.encoding import Encoding, Origin
from pywebgpu.packages.tokenizers.spans import Spans

KINDS: dict[str, Any] = {
    "normalizer": normalizers.read,
    "pre_tokenizer": pre_tokenizers.read,
    "post_processor": processors.read,
    "decoder": decoders.read,
    "model": models.read,
}
Row = tuple[list[int], list[str], list[Origin]]


class AddedToken:
    """A token beside a model's own. special: decoding may skip it."""

    __slots__ = ("content", "lstrip", "normalized", "rstrip", "single_word", "special")

    def __init__(
        self,
        content: str = "",
        *,
        single_word: bool = False,
        lstrip: bool = False,
        rstrip: bool = False,
        normalized: bool | None = None,
        special: bool = False,
    ) -> None:
        self.content, self.single_word, self.lstrip, self.rstrip = content, single_word, lstrip, rstrip
        self.normalized = not special if normalized is None else normalized
        self.special = special

    def __getstate__(self) -> dict[str, Any]:
        return {
            name: getattr(self, name)
            for name in ("content", "single_word", "lstrip", "rstrip", "normalized", "special")
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AddedToken) and self.__getstate__() == other.__getstate__()

    def __hash__(self) -> int:
        return hash(self.content)

    def __str__(self) -> str:
        return self.content

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in list(self.__getstate__().items())[1:])
        return f'AddedToken("{self.content}", {fields})'


@dataclass(frozen=True, slots=True)
class _Truncation:
    max_length: int
    stride: int = 0
    strategy: str = "longest_first"
    direction: str = "right"

    def to_json(self) -> components.Json:
        fields = asdict(self)
        return fields | {"strategy": components.camel(self.strategy), "direction": self.direction.capitalize()}


@dataclass(frozen=True, slots=True)
class _Padding:
    length: int | None = None
    pad_to_multiple_of: int | None = None
    pad_id: int = 0
    pad_token: str = "[PAD]"
    pad_type_id: int = 0
    direction: str = "right"

    def to_json(self) -> components.Json:
        fields = asdict(self)
        length = fields.pop("length")
        strategy = "BatchLongest" if length is None else {"Fixed": length}
        return fields | {"strategy": strategy, "direction": self.direction.capitalize()}


class Tokenizer:
    """Text to numbers and back. model, normalizer, pre_tokenizer, post_processor, decoder: what it is made of."""

    def __init__(self, model: models.Model) -> None:
        self.model = model
        self.normalizer: Any = None
        self.pre_tokenizer: Any = None
        self.post_processor: Any = None
        self.decoder: Any = None
        self._added: dict[int, AddedToken] = {}
        self._numbers: dict[str, int] = {}  # of what was added
        self._truncation: _Truncation | None = None
        self._padding: _Padding | None = None
        self.encode_special_tokens = False
        self._kept: tuple[Any, backend.Backend] | None = None

    def __setattr__(self, name: str, value: Any) -> None:
        if name in KINDS:
            components.changes[0] += 1
        object.__setattr__(self, name, value)

    def __getstate__(self) -> str:
        return self.to_str()

    def __setstate__(self, text: str) -> None:
        vars(self).update(vars(Tokenizer.from_str(text)))

    def __deepcopy__(self, memory: Any) -> Tokenizer:
        return Tokenizer.from_str(self.to_str())

    # Files.

    def to_str(self, pretty: bool = False) -> str:
        """The file of the tokenizer."""
        return json.dumps(self._file(), ensure_ascii=False, indent=2 if pretty else None)

    def save(self, path: str, pretty: bool = True) -> None:
        Path(path).write_text(self.to_str(pretty), encoding="utf-8")

    @staticmethod
    def from_file(path: str) -> Tokenizer:
        return Tokenizer.from_str(Path(path).read_text(encoding="utf-8"))

    @staticmethod
    def from_buffer(buffer: bytes) -> Tokenizer:
        return Tokenizer.from_str(bytes(buffer).decode())

    @staticmethod
    def from_str(json_text: str) -> Tokenizer:
        """A tokenizer of its file. Raises ValueError where a component is not known."""
        file = json.loads(json_text)
        tokenizer = Tokenizer(models.read(_typed(file["model"])))
        for kind in ("normalizer", "pre_tokenizer", "post_processor", "decoder"):
            setattr(tokenizer, kind, KINDS[kind](file.get(kind)))
        for entry in file.get("added_tokens") or ():
            fields = {name: value for name, value in entry.items() if name != "id"}
            tokenizer._keep(entry["id"], AddedToken(**fields))
        if cut := file.get("truncation"):
            words = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in cut["strategy"])
            options = {"strategy": words.strip("_"), "direction": cut.get("direction", "Right").lower()}
            tokenizer.enable_truncation(cut["max_length"], stride=cut.get("stride", 0), **options)
        if fill := file.get("padding"):
            strategy = fill.get("strategy")
            length = strategy["Fixed"] if isinstance(strategy, dict) else None
            names = ("pad_to_multiple_of", "pad_id", "pad_token", "pad_type_id")
            options = {name: fill[name] for name in names if name in fill}
            tokenizer.enable_padding(length=length, direction=fill.get("direction", "Right").lower(), **options)
        return tokenizer

    @staticmethod
    def from_pretrained(identifier: str, revision: str = "main", token: str | None = None) -> Tokenizer:
        """The file tokenizer.json of a folder, or of a model's page by huggingface_hub."""
        path = Path(identifier) / "tokenizer.json"
        if not path.is_file():
            hub: Any = importlib.import_module("huggingface_hub")
            path = Path(hub.hf_hub_download(identifier, "tokenizer.json", revision=revision, token=token))
        return Tokenizer.from_file(str(path))

    def _file(self) -> components.Json:
        added = [{"id": number, **token.__getstate__()} for number, token in sorted(self._added.items())]
        parts = {kind: getattr(self, kind) and getattr(self, kind).to_json() for kind in KINDS}
        cut, fill = self._truncation, self._padding
        head = {"version": "1.0", "truncation": cut and cut.to_json(), "padding": fill and fill.to_json()}
        return {**head, "added_tokens": added, **parts}

    # The vocabulary.

    def get_vocab(self, with_added_tokens: bool = True) -> dict[str, int]:
        """A number for each token."""
        return {**self.model.tokens(), **(self._numbers if with_added_tokens else {})}

    def get_vocab_size(self, with_added_tokens: bool = True) -> int:
        own = self.model.tokens()
        return len(own) + sum(token not in own for token in self._numbers if with_added_tokens)

    def token_to_id(self, token: str) -> int | None:
        number = self._numbers.get(token)
        return self.model.token_to_id(token) if number is None else number

    def id_to_token(self, id: int) -> str | None:
        token = self._added.get(id)
        return self.model.id_to_token(id) if token is None else token.content

    def get_added_tokens_decoder(self) -> dict[int, AddedToken]:
        """The added tokens by number."""
        return dict(sorted(self._added.items()))

    def add_tokens(self, tokens: Iterable[str | AddedToken]) -> int:
        """Adds tokens that are not there; returns how many were not."""
        return self._add(tokens, special=False)

    def add_special_tokens(self, tokens: Iterable[str | AddedToken]) -> int:
        """Adds tokens that decoding may skip."""
        return self._add(tokens, special=True)

    def _add(self, tokens: Iterable[str | AddedToken], *, special: bool) -> int:
        count = 0
        for entry in tokens:
            token = AddedToken(entry, special=special) if isinstance(entry, str) else AddedToken(**entry.__getstate__())
            token.special = token.special or special
            number = self._numbers.get(token.content)
            if not token.content or (number is not None and self._added[number] == token):
                continue
            number = self.token_to_id(token.content)
            if number is None:
                size, last = len(self.model.tokens()), max(self._added, default=-1)
                number = last + 1 if last >= size else size
            self._keep(number, token)
            count += 1
        return count

    def _keep(self, number: int, token: AddedToken) -> None:
        components.changes[0] += 1
        self._added[number], self._numbers[token.content] = token, number

    # What is cut and padded.

    @property
    def truncation(self) -> dict[str, Any] | None:
        return asdict(self._truncation) if self._truncation else None

    @property
    def padding(self) -> dict[str, Any] | None:
        return asdict(self._padding) if self._padding else None

    def enable_truncation(self, max_length: int, **options: Any) -> None:
        """Cuts to so many tokens. options: stride, strategy (longest_first, only_first, only_second), direction."""
        self._truncation = _Truncation(max_length, **options)

    def no_truncation(self) -> None:
        self._truncation = None

    def enable_padding(self, **options: Any) -> None:
        """Fills up to the longest of a batch, or to `length`. options: direction, pad_id, pad_type_id, pad_token,
        pad_to_multiple_of."""
        self._padding = _Padding(**options)

    def no_padding(self) -> None:
        self._padding = None

    def num_special_tokens_to_add(self, is_pair: bool) -> int:
        return self.post_processor.num_special_tokens_to_add(is_pair) if self.post_processor else 0

    # Encoding.

    def encode(
        self, sequence: Any, pair: Any = None, is_pretokenized: bool = False, add_special_tokens: bool = True
    ) -> Encoding:
        """The numbers of a text, or of a pair of texts. is_pretokenized: texts are lists of words."""
        batch = [sequence if pair is None else (sequence, pair)]
        return self.encode_batch(batch, is_pretokenized, add_special_tokens)[0]

    def encode_batch(
        self, input: Sequence[Any], is_pretokenized: bool = False, add_special_tokens: bool = True
    ) -> list[Encoding]:
        """As encode, of many; padded to one length where padding is enabled."""
        pairs = [_pair(entry, is_pretokenized=is_pretokenized) for entry in input]
        texts = [text for pair in pairs for text in pair]
        rows = iter(self._rows(texts))
        encodings = []
        for pair in pairs:
            sequences = [next(rows) for _ in pair]
            encodings.append(self._around(sequences, add_special_tokens=add_special_tokens))
        return self._padded(encodings)

    encode_batch_fast = encode_batch

    def _rows(self, texts: Sequence[str | list[str]]) -> list[Row]:
        """The numbers and tokens of texts, or of lists of words."""
        words = [text if isinstance(text, list) else [text] for text in texts]
        rows = iter(self.backend().encode([word for text in words for word in text]))
        joined = []
        for text, source in zip(words, texts, strict=True):
            ids: list[int] = []
            tokens: list[str] = []
            origins: list[Origin] = []
            for number, word in enumerate(text):
                row = next(rows)
                spans = Spans(self, word, row[1], number if isinstance(source, list) else None)
                ids += row[0]
                tokens += row[1]
                origins += [(spans, index) for index in range(len(row[0]))]
            joined.append((ids, tokens, origins))
        return joined

    def _around(self, sequences: list[Row], *, add_special_tokens: bool) -> Encoding:
        """One encoding of one row or two, cut, with special tokens."""
        is_pair = len(sequences) == 2
        bare = processors.BARE_PAIR if is_pair else processors.BARE
        items = self.post_processor.row(is_pair=is_pair) if self.post_processor and add_special_tokens else bare
        parts, rest = self._cut(sequences, sum(len(item) == 3 for item in items))
        encoding = _assembled(items, parts)
        encoding.overflowing = [_assembled(items, more) for more in rest]
        return encoding

    def _cut(self, sequences: list[Row], n_special: int) -> tuple[list[Row], list[list[Row]]]:
        """The sequences as far as they have room, and further pieces of what was cut."""
        cut = self._truncation
        if cut is None:
            return sequences, []
        room = max(0, cut.max_length - n_special)
        lengths = [len(row[0]) for row in sequences]
        surplus = sum(lengths) - room
        if surplus <= 0:
            return sequences, []
        if len(lengths) == 1 or cut.strategy != "longest_first":
            index = 1 if cut.strategy == "only_second" else 0
            if index >= len(lengths):
                raise ValueError("Truncation error: Second sequence not provided")
            if lengths[index] <= surplus and len(lengths) > 1:
                raise ValueError("Truncation error: Sequence to truncate too short to respect the provided max_length")
            pieces = _pieces(sequences[index], lengths[index] - surplus, cut)
            variants = [[*sequences[:index], piece, *sequences[index + 1 :]] for piece in pieces]
            return variants[0], variants[1:]
        short, long = sorted(lengths)
        long = short if short > room else max(short, room - short)
        if short + long > room:
            short, long = room // 2, room - room // 2
        sizes = (short, long) if lengths[0] <= lengths[1] else (long, short)
        first, second = (_pieces(row, size, cut) for row, size in zip(sequences, sizes, strict=True))
        rest = [[a, b] for a in first[1:] for b in second] + [[first[0], b] for b in second[1:]]
        return [first[0], second[0]], rest

    def _padded(self, encodings: list[Encoding]) -> list[Encoding]:
        fill = self._padding
        if fill is None or not encodings:
            return encodings
        length = max(map(len, encodings)) if fill.length is None else fill.length
        if fill.pad_to_multiple_of:
            length = math.ceil(length / fill.pad_to_multiple_of) * fill.pad_to_multiple_of
        options: dict[str, Any] = {
            name: getattr(fill, name) for name in ("direction", "pad_id", "pad_type_id", "pad_token")
        }
        for encoding in encodings:
            encoding.pad(length, **options)
        return encodings

    def post_process(
        self, encoding: Encoding, pair: Encoding | None = None, add_special_tokens: bool = True
    ) -> Encoding:
        """Special tokens around encodings that have none."""
        rows = [(part.ids, part.tokens, part.origins) for part in (encoding, pair) if part is not None]
        return self._padded([self._around(rows, add_special_tokens=add_special_tokens)])[0]

    def decode(self, ids: Iterable[int], skip_special_tokens: bool = True) -> str:
        """The text of numbers; those that are of no token are left out."""
        tokens = []
        for number in ids:
            added = self._added.get(number)
            if added is not None and added.special and skip_special_tokens:
                continue
            token = self.id_to_token(number)
            if token is not None:
                tokens.append(token)
        if self.decoder is None:
            return " ".join(tokens)
        return self.backend().join(tokens) if tokens else ""

    def decode_batch(self, sequences: Iterable[Iterable[int]], skip_special_tokens: bool = True) -> list[str]:
        return [self.decode(ids, skip_special_tokens) for ids in sequences]

    def backend(self) -> backend.Backend:
        """What computes; made anew where a component changed."""
        key = components.changes[0], self.encode_special_tokens
        if self._kept is None or self._kept[0] != key:
            file = self._file() | {"post_processor": None}
            if self.encode_special_tokens:
                file["added_tokens"] = [entry for entry in file["added_tokens"] if not entry["special"]]
            self._kept = key, backend.Backend(file)
        return self._kept[1]

    # Training.

    def train_from_iterator(self, iterator: Iterable[Any], trainer: Any = None, length: int | None = None) -> None:
        """Learns the model's vocabulary from texts."""
        kinds = {
            "BPE": trainers.BpeTrainer,
            "WordPiece": trainers.WordPieceTrainer,
            "WordLevel": trainers.WordLevelTrainer,
        }
        trainer = trainer or kinds.get(type(self.model).__name__, trainers.UnigramTrainer)()
        trainer.train(self, iterator)

    def splitter(self) -> Any:
        """What gives the words of texts, normalised and split, for a trainer."""
        return self.backend().words

    def train(self, files: Sequence[str], trainer: Any = None) -> None:
        """Learns the model's vocabulary from the lines of files."""
        lines = (line for name in files for line in Path(name).read_text(encoding="utf-8").splitlines(keepends=True))
        self.train_from_iterator(lines, trainer)


def _typed(node: components.Json) -> components.Json:
    """The node of a model; older files do not say its type."""
    if "type" in node:
        return node
    kind = "BPE" if "merges" in node else "Unigram" if isinstance(node["vocab"], list) else "WordPiece"
    return {**node, "type": kind if kind != "WordPiece" or "max_input_chars_per_word" in node else "WordLevel"}


def _pair(entry: Any, *, is_pretokenized: bool) -> tuple[Any, ...]:
    """The one sequence of an input, or its two."""
    if is_pretokenized:
        is_pair = bool(entry) and not isinstance(entry[0], str)
        return tuple(list(words) for words in entry) if is_pair else (list(entry),)
    if isinstance(entry, str):
        return (entry,)
    if isinstance(entry, (tuple, list)) and len(entry) in (1, 2) and all(isinstance(text, str) for text in entry):
        return tuple(entry)
    raise TypeError("TextEncodeInput must be Union[TextInputSequence, Tuple[InputSequence, InputSequence]]")


def _pieces(row: Row, size: int, cut: _Truncation) -> list[Row]:
    """The pieces of a row of at most `size` tokens; each begins `stride` tokens before the end of the one before."""
    length = len(row[0])
    if size <= 0:
        return [([], [], [])]
    step = size - cut.stride
    if step <= 0:
        raise ValueError("tokenizers: stride must be less than the room for tokens")
    if cut.direction == "left":
        ends = range(length, 0, -step)
        spans = [(max(0, end - size), end) for end in ends]
        stop = next((index for index, (start, _) in enumerate(spans) if start == 0), len(spans) - 1)
    else:
        spans = [(start, min(length, start + size)) for start in range(0, length, step)]
        stop = next(index for index, (_, end) in enumerate(spans) if end == length)
    return [(row[0][start:end], row[1][start:end], row[2][start:end]) for start, end in spans[: stop + 1]]


def _assembled(items: processors.Row, sequences: list[Row]) -> Encoding:
    encoding = Encoding()
    for item in items:
        if len(item) == 3:
            token, number, type_id = item
            encoding.add(number, token, type_id, None, None)
            continue
        index = "AB".index(item[0])
        for number, token, origin in zip(*sequences[index], strict=True):
            encoding.add(number, token, item[1], index, origin)
    return encoding
