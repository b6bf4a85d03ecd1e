"""Semantic search: the passages of text files whose meaning is nearest to a question's."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pywebgpu.models.embedding import TextEncoder
from pywebgpu.tensor.tensor import Tensor

WORDS = 120  # of a passage at most, but for a longer line


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of a file: its lines from `line` on, counted from 1."""

    path: Path
    line: int
    text: str


class Search:
    """Passages with their vectors, computed once. Raises: ValueError when there are none.

    vectors: of the passages, (passages, hidden_size), where they are there already.
    """

    def __init__(self, encoder: TextEncoder, passages: Sequence[Passage], vectors: Tensor | None = None) -> None:
        if not passages:
            raise ValueError("search: there is no text to search in")
        self.encoder, self.passages = encoder, list(passages)
        self.vectors = encoder.encode([passage.text for passage in passages]) if vectors is None else vectors

    def nearest(self, question: str, count: int = 5) -> list[tuple[float, Passage]]:
        """The passages nearest in meaning, the nearest first, each with its cosine."""
        best = self._best(question, count)
        return self._pairs(best.values.tolist(), best.indices.tolist())

    async def nearest_async(self, question: str, count: int = 5) -> list[tuple[float, Passage]]:
        """The same, for pages: other work goes on while the GPU computes."""
        best = self._best(question, count)
        return self._pairs(await best.values.tolist_async(), await best.indices.tolist_async())

    def _best(self, question: str, count: int) -> Any:
        return (self.vectors @ self.encoder.encode(question)).topk(min(count, len(self.passages)))

    def _pairs(self, scores: list[float], indices: list[int]) -> list[tuple[float, Passage]]:
        return [(score, self.passages[index]) for score, index in zip(scores, indices, strict=True)]


def text_files(paths: Iterable[str | os.PathLike[str]]) -> Iterator[Path]:
    """The files named, and those below the folders named but for hidden ones. Raises: FileNotFoundError."""
    for path in map(Path, paths):
        if not path.exists():
            raise FileNotFoundError(f"search: there is no {path}")
        if path.is_file():
            yield path
            continue
        for folder, folders, names in os.walk(path):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            yield from (Path(folder, name) for name in sorted(names) if not name.startswith("."))


def read_passages(path: Path) -> Iterator[Passage]:
    """The paragraphs of a text file, long ones in parts; nothing of a file that is no UTF-8 text."""
    try:
        text = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        return
    if "\0" not in text:
        yield from split(path, text)


def split(path: Path, text: str) -> Iterator[Passage]:
    """The paragraphs of a text, which blank lines part, in parts of up to WORDS words of whole lines."""
    lines: list[str] = []
    n_words = 0
    for number, line in enumerate([*text.splitlines(), ""], 1):
        length = len(line.split())
        if lines and (not length or n_words + length > WORDS):
            yield Passage(path, number - len(lines), "\n".join(lines))
            lines, n_words = [], 0
        if length:
            lines.append(line)
            n_words += length
