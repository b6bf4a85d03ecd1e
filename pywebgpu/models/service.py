"""A language model that several threads ask: requests take turns, and share what their prompts have in common."""

from __future__ import annotations

import threading
from collections.abc import Generator as Pieces
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field

from pywebgpu.models.chat import Answer
from pywebgpu.models.generation import Decoder, Sampling
from pywebgpu.models.llama import Llama
from pywebgpu.models.tokenizer import Tokenizer
from pywebgpu.tensor.random import Generator


@dataclass(frozen=True, slots=True)
class Request:
    """A text to be continued.

    ids: its tokens.  max_tokens: of the answer; None for all that there is room for.  stop: texts that end it.
    seed: of what is drawn; None for another each time.
    """

    ids: Sequence[int]
    max_tokens: int | None = None
    sampling: Sampling = field(default_factory=Sampling)
    stop: Sequence[str] = ()
    seed: int | None = None


class Service:
    """A model with room for `length` tokens of a prompt and its answer."""

    def __init__(self, model: Llama, tokenizer: Tokenizer, *, length: int = 2048) -> None:
        self.tokenizer = tokenizer
        self.length = min(length, model.config.max_position_embeddings)
        self.vocab_size = model.vocab_size
        self._generator = Generator(model.model.norm.weight.device)
        self._decoder = Decoder(model, self.length, generator=self._generator)
        self._turn = threading.Lock()

    def answer(self, request: Request) -> tuple[Answer, Pieces[str, None, None]]:
        """The state of an answer, and its pieces, which are computed as they are taken.

        Raises: ValueError for a prompt that is empty, or that leaves no room for an answer.
        """
        room = self.length - len(request.ids)
        if not request.ids or room < 1:
            raise ValueError(f"the prompt has {len(request.ids)} tokens; 1 to {self.length - 1} are possible")
        most = room if request.max_tokens is None else min(request.max_tokens, room)
        if most < 1:
            raise ValueError(f"max_tokens is {request.max_tokens}; at least 1 is needed")
        answer = Answer(self.tokenizer, most, request.stop)
        return answer, self._pieces(request, answer)

    def _pieces(self, request: Request, answer: Answer) -> Pieces[str, None, None]:
        with self._turn, closing(self._tokens(request)) as tokens:
            for token in tokens:
                piece = answer.take(token)
                if piece:
                    yield piece
                if answer.is_over:
                    return

    def _tokens(self, request: Request) -> Pieces[int, None, None]:
        if request.seed is None:
            self._generator.seed()
        else:
            self._generator.manual_seed(request.seed)
        self._decoder.sampling = request.sampling
        yield self._decoder.prompt(request.ids)
        while True:
            yield self._decoder.step()
