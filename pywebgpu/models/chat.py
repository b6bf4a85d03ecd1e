"""A conversation with a language model: messages go in, text comes out piece by piece."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import TYPE_CHECKING

from pywebgpu.models.generation import Decoder, Sampling
from pywebgpu.models.llama import Llama, open_source
from pywebgpu.models.tokenizer import Pieces, Tokenizer

if TYPE_CHECKING:
    from pywebgpu.tensor.factory_options import DeviceLike
    from pywebgpu.tensor.random import Generator


class Chat:
    """A conversation, with room for `length` tokens of it.

    messages: what was said, by "role" and "content".
    """

    def __init__(
        self,
        model: Llama,
        tokenizer: Tokenizer,
        *,
        system: str | None = None,
        length: int = 2048,
        sampling: Sampling | None = None,
        generator: Generator | None = None,
    ) -> None:
        self.model, self.tokenizer = model, tokenizer
        self.length = min(length, model.config.max_position_embeddings)
        self.system = system
        self.messages: list[dict[str, str]] = []
        self._answer: Answer | None = None
        self._decoder = Decoder(model, self.length, sampling, generator)
        self.reset()

    @classmethod
    def from_file(
        cls,
        path: str | os.PathLike[str],
        device: DeviceLike = None,
        *,
        system: str | None = None,
        length: int = 2048,
        sampling: Sampling | None = None,
        quantized: bool | None = None,
    ) -> Chat:
        """A conversation with the model of a GGUF file, or of a folder of `transformers`.

        quantized: see `Llama.from_file`.  Raises: as `Llama.from_file` and `Tokenizer.from_file`.
        """
        source = open_source(path)
        tokenizer = Tokenizer.from_file(source)
        model = Llama.from_file(source, device, quantized=quantized)
        return cls(model, tokenizer, system=system, length=length, sampling=sampling)

    @property
    def tokens(self) -> int:
        """The tokens of the last reply."""
        return self._answer.tokens if self._answer else 0

    @property
    def seconds(self) -> float:
        """What the last reply took, until its last token."""
        return self._answer.seconds if self._answer else 0.0

    def reset(self) -> None:
        """Forgets what was said."""
        self.messages = [] if self.system is None else [{"role": "system", "content": self.system}]

    def reply(self, text: str, *, max_new_tokens: int = 512) -> Iterator[str]:
        """What the model answers, in pieces as soon as they are whole characters.

        The answer counts as said as far as it was taken. Raises: ValueError when there is no room for the conversation.
        """
        answer = self._begin(text, max_new_tokens)
        while True:
            yield from self._say(answer.take(self._decoder.read()))
            if answer.is_over:
                return
            self._decoder.advance()

    async def reply_async(self, text: str, *, max_new_tokens: int = 512) -> AsyncIterator[str]:
        """The same, for pages: other work goes on while the GPU computes."""
        answer = self._begin(text, max_new_tokens)
        while True:
            for piece in self._say(answer.take(await self._decoder.read_async())):
                yield piece
            if answer.is_over:
                return
            self._decoder.advance()

    def _begin(self, text: str, most: int) -> Answer:
        ids = self.tokenizer.chat([*self.messages, {"role": "user", "content": text}])
        if len(ids) >= self.length:
            raise ValueError(f"chat: the conversation has {len(ids)} tokens; there is room for {self.length}")
        answer = Answer(self.tokenizer, min(most, self.length - len(ids)))
        self._decoder.begin(ids)
        self.messages += ({"role": "user", "content": text}, {"role": "assistant", "content": ""})
        self._answer = answer
        return answer

    def _say(self, piece: str) -> Iterator[str]:
        self.messages[-1]["content"] += piece
        if piece:
            yield piece


class Answer:
    """A text in the making: at most `most` tokens, of which `tokens` came in `seconds`, up to one of `stop`.

    is_over: whether it has ended.  is_cut: whether that was because of `most`.
    """

    def __init__(self, tokenizer: Tokenizer, most: int, stop: Sequence[str] = ()) -> None:
        self._pieces, self._ends, self._most = Pieces(tokenizer), tokenizer.stop, most
        self._stop, self._waiting = tuple(filter(None, stop)), ""
        self._start = time.perf_counter()
        self.tokens, self.seconds, self.is_over, self.is_cut = 0, 0.0, False, False

    def take(self, token: int) -> str:
        """The text that a token completes; what may be the beginning of one of `stop` waits for what follows."""
        self.seconds = time.perf_counter() - self._start
        if token in self._ends:
            self.is_over = True
            return self._release(self._pieces.rest())
        self.tokens += 1
        self.is_over = self.is_cut = self.tokens == self._most
        return self._release(self._pieces.add(token) + (self._pieces.rest() if self.is_over else ""))

    def _release(self, text: str) -> str:
        text = self._waiting + text
        starts = [index for index in map(text.find, self._stop) if index >= 0]
        if starts:
            self.is_over, self.is_cut, self._waiting = True, False, ""
            return text[: min(starts)]
        ends = (length for stop in self._stop for length in range(len(stop) - 1, 0, -1) if text.endswith(stop[:length]))
        n_waiting = 0 if self.is_over else max(ends, default=0)
        self._waiting = text[len(text) - n_waiting :]
        return text[: len(text) - n_waiting]
