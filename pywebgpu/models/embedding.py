"""Texts as vectors whose angles say how alike the texts are: BERT, and the mean over a text's tokens.

Source: Reimers, Gurevych 2019 (arXiv 1908.10084).
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pywebgpu.autograd import no_grad
from pywebgpu.models.bert import Bert
from pywebgpu.models.wordpiece import WordPiece
from pywebgpu.nn import functional as F
from pywebgpu.step_capture import function
from pywebgpu.tensor import create, functions
from pywebgpu.tensor.tensor import Tensor

if TYPE_CHECKING:
    from pywebgpu.tensor.factory_options import DeviceLike

LENGTH = 256  # tokens of a text, where a folder says nothing else
STEP = 16  # Texts are filled up to a multiple of so many tokens, so that few sizes are compiled.


class TextEncoder:
    """A model and its tokenizer, which make vectors of texts.

    length: how many tokens of a text count; the rest is cut off.
    """

    def __init__(self, model: Bert, tokenizer: WordPiece, *, length: int = LENGTH) -> None:
        self.model, self.tokenizer = model, tokenizer
        self.length = min(length, model.config.max_position_embeddings)
        self._vectors = function.compile(_Vectors(model))

    @classmethod
    def from_file(cls, folder: str | os.PathLike[str], device: DeviceLike = None) -> TextEncoder:
        """The model of a folder as sentence-transformers saves it: weights, config.json, vocab.txt.

        Raises: as `Bert.from_file`; ValueError for a pooling other than the mean.
        """
        folder = Path(folder)
        pooling = _facts(folder / "1_Pooling" / "config.json")
        if not pooling.get("pooling_mode_mean_tokens", True):
            raise ValueError(f"{folder}: it does not pool by the mean of tokens, which is all that is known here")
        length = _facts(folder / "sentence_bert_config.json").get("max_seq_length", LENGTH)
        lowercase = _facts(folder / "tokenizer_config.json").get("do_lower_case", True)
        tokenizer = WordPiece.from_file(folder / "vocab.txt", lowercase=lowercase)
        return cls(Bert.from_file(folder, device), tokenizer, length=length)

    def encode(self, texts: str | Sequence[str], *, batch_size: int = 32) -> Tensor:
        """Vectors of length 1, float32: (texts, hidden_size), or (hidden_size) for a single text."""
        if isinstance(texts, str):
            return self.encode([texts])[0]
        if not texts:
            return create.zeros(0, self.model.config.hidden_size, device=self._device)
        tokens = [self.tokenizer.encode(text, self.length) for text in texts]
        order = sorted(range(len(texts)), key=lambda i: len(tokens[i]))  # Texts of one length share a batch.
        parts = []
        for begin in range(0, len(order), batch_size):
            rows = [tokens[i] for i in order[begin : begin + batch_size]]
            parts.append(self._batch(rows, min(batch_size, len(order)))[: len(rows)])
        places = sorted(range(len(order)), key=order.__getitem__)
        return functions.cat(parts)[create.tensor(places, device=self._device)]

    def n_tokens(self, text: str) -> int:
        """How many tokens of a text count."""
        return len(self.tokenizer.encode(text, self.length))

    @property
    def _device(self) -> DeviceLike:
        return self.model.embeddings.word_embeddings.weight.device

    def _batch(self, rows: Sequence[Sequence[int]], size: int) -> Tensor:
        """The vectors of rows of ids, filled up with empty rows."""
        length = min(-(-max(map(len, rows)) // STEP) * STEP, self.length)
        filled = [[*row, *[self.tokenizer.pad] * (length - len(row))] for row in rows]
        filled += [[self.tokenizer.pad] * length] * (size - len(rows))
        lengths = [len(row) for row in rows] + [1] * (size - len(rows))
        device = self._device
        vectors: Tensor = self._vectors(create.tensor(filled, device=device), create.tensor(lengths, device=device))
        return vectors


class _Vectors:
    """What is compiled: it holds nothing but the model."""

    def __init__(self, model: Bert) -> None:
        self.model = model

    @no_grad()
    def __call__(self, ids: Tensor, lengths: Tensor) -> Tensor:
        mask = create.arange(ids.shape[1], device=ids.device) < lengths.unsqueeze(1)
        hidden = self.model(ids, mask).float()
        mean = (hidden * mask.unsqueeze(-1)).sum(1) / lengths.unsqueeze(1)
        return F.normalize(mean, dim=1)


def similarity(a: Tensor, b: Tensor) -> Tensor:
    """The cosines between the rows of `a` (n, width) and those of `b` (m, width): (n, m)."""
    return F.normalize(a, dim=-1) @ F.normalize(b, dim=-1).transpose(-2, -1)


def _facts(path: Path) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.exists() else {}
    return facts
