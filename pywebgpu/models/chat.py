"""A conversation with a language model: messages go in, text comes out piece by piece."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pywebgpu.io import gguf
from pywebgpu.models.generation import Decoder, Sampling
from pywebgpu.models.llama import Llama
from pywebgpu.models.tokenizer import Tokenizer

if TYPE_CHECKING:
    from pywebgpu.tensor.factory_options import DeviceLike
    from pywebgpu.tensor.random import Generator


class Chat:
    """A conversation, with room for `length` tokens of it.

    messages: what was said, by "role" and "content".  tokens, seconds: those of the last reply.
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
        self.tokens, self.seconds = 0, 0.0
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
    ) -> Chat:
        """A conversation with the model of a GGUF file. Raises as `Llama.from_file` and `Tokenizer.from_file`."""
        file = gguf.File(path)
        tokenizer = Tokenizer.from_file(file)
        return cls(Llama.from_file(file, device), tokenizer, system=system, length=length, sampling=sampling)

    def reset(self) -> None:
        """Forgets what was said."""
        self.messages = [] if self.system is None else [{"role": "system", "content": self.system}]

    def reply(self, text: str, *, max_new_tokens: int = 512) -> Iterator[str]:
        """What the model answers, in pieces as soon as they are whole characters.

        The answer counts as said as far as it was taken. Raises: ValueError when there is no room for the conversation.
        """
        ids = self.tokenizer.chat([*self.messages, {"role": "user", "content": text}])
        if len(ids) >= self.length:
            raise ValueError(f"chat: the conversation has {len(ids)} tokens; there is room for {self.length}")
        self.messages.append({"role": "user", "content": text})
        answer = ""
        try:
            for piece in self.tokenizer.pieces(self._tokens(ids, min(max_new_tokens, self.length - len(ids)))):
                answer += piece
                yield piece
        finally:
            self.messages.append({"role": "assistant", "content": answer})

    def _tokens(self, ids: list[int], most: int) -> Iterator[int]:
        self.tokens, start = 0, time.perf_counter()
        token = self._decoder.prompt(ids)
        while token not in self.tokenizer.stop:
            self.tokens += 1
            self.seconds = time.perf_counter() - start
            yield token
            if self.tokens == most:
                return
            token = self._decoder.step()
