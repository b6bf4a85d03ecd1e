"""Text from a language model, token by token: prompts in chunks of one size, then one compiled step a token."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from pywebgpu import dtypes
from pywebgpu.autograd import no_grad
from pywebgpu.models.cache import Cache
from pywebgpu.step_capture import function
from pywebgpu.tensor import create, functions
from pywebgpu.tensor.tensor import Tensor

if TYPE_CHECKING:
    from pywebgpu.tensor.random import Generator

CHUNK = 32  # tokens of a prompt in one step
BLOCK = 256  # A cache has a multiple of so many tokens, so that few sizes are compiled.


class LanguageModel(Protocol):
    """What is asked of a model: see `llama.Llama`."""

    @property
    def vocab_size(self) -> int: ...

    def __call__(self, input_ids: Tensor, cache: Cache | None = None, *, only: Tensor | None = None) -> Tensor: ...

    def new_cache(self, length: int, batch: int = 1) -> Cache: ...


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the next token is chosen from the logits.

    temperature: 0 takes the most likely one; else logits are divided by it and one is drawn.
    top_k, top_p, min_p: only the k most likely are drawn from; the most likely that together have p; those with
    at least min_p of the most likely one's probability.  0, 1 and 0 leave all.
    repetition_penalty: logits of tokens that occurred are divided by it, negative ones multiplied.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0

    def __post_init__(self) -> None:
        rules = {
            "temperature": self.temperature >= 0,
            "top_k": self.top_k >= 0,
            "top_p": 0 < self.top_p <= 1,
            "min_p": 0 <= self.min_p < 1,
            "repetition_penalty": self.repetition_penalty > 0,
        }
        wrong = [name for name, holds in rules.items() if not holds]
        if wrong:
            raise ValueError(f"generate: {wrong[0]} is {getattr(self, wrong[0])}, out of its range")


class _Steps:
    """What runs on the device: one sequence's cache, its next token, and the tokens that occurred.

    It holds nothing that the host changes between two tokens, so that both steps are captured once.
    """

    def __init__(self, model: LanguageModel, length: int, sampling: Sampling, generator: Generator | None) -> None:
        self.model, self.sampling, self.generator = model, sampling, generator
        self.cache = model.new_cache(length)
        device = self.cache.used.device
        self.next_ids = create.zeros(1, 1, dtype=dtypes.int64, device=device)
        self.seen: Tensor | None = None
        if sampling.repetition_penalty != 1:
            self.seen = create.zeros(1, model.vocab_size, dtype=dtypes.bool_, device=device)
        self.read_chunk = function.compile(self._read_chunk)
        self.decode = function.compile(self._decode)

    @no_grad()
    def _read_chunk(self, ids: Tensor, last: Tensor) -> None:
        """Reads tokens of a prompt, of which those after `last` count for nothing."""
        end = self.cache.used + last + 1
        logits = self.model(ids, self.cache, only=last)[:, -1]
        self.cache.used.copy_(end)
        self._choose(logits)

    @no_grad()
    def _decode(self) -> None:
        """Reads the next token, and chooses the one after it."""
        if self.seen is not None:
            self.seen.index_fill_(1, self.next_ids[0], True)
        self._choose(self.model(self.next_ids, self.cache)[:, -1])

    def _choose(self, logits: Tensor) -> None:
        if self.seen is not None:
            penalty = self.sampling.repetition_penalty
            penalised = functions.where(logits > 0, logits / penalty, logits * penalty)
            logits = functions.where(self.seen, penalised, logits)
        self.next_ids.copy_(sample(logits, self.sampling, self.generator))

    def see(self, ids: Sequence[int]) -> None:
        """Takes a prompt's tokens as those that occurred."""
        if self.seen is not None:
            self.seen.zero_()
            self.seen.index_fill_(1, create.tensor(list(ids), device=self.seen.device), True)


class Decoder:
    """One sequence that a model continues, with room for `length` tokens.

    ids: what the cache holds, and the token after it.
    """

    def __init__(
        self, model: LanguageModel, length: int, sampling: Sampling | None = None, generator: Generator | None = None
    ) -> None:
        self.length = -(-length // BLOCK) * BLOCK
        self.ids: list[int] = []
        self._steps = _Steps(model, self.length, sampling or Sampling(), generator)

    def prompt(self, ids: Sequence[int]) -> int:
        """Reads a prompt and returns the token that follows it. What it shares with `ids` is not read again.

        Raises: ValueError for an empty prompt, or one that the cache has no room for.
        """
        self.begin(ids)
        return self.read()

    def step(self) -> int:
        """The token after the last one. Raises: ValueError when the cache is full."""
        self.advance()
        return self.read()

    def begin(self, ids: Sequence[int]) -> None:
        """Queues the reading of a prompt, as `prompt` does; the token that follows is not waited for."""
        if not ids or len(ids) > self.length:
            raise ValueError(f"generate: a prompt of {len(ids)} tokens; 1 to {self.length} are possible")
        shared = 0
        while shared < min(len(ids), len(self.ids)) - 1 and ids[shared] == self.ids[shared]:
            shared += 1
        self._steps.cache.rewind(shared)
        self._steps.see(ids)
        device = self._steps.next_ids.device
        for begin in range(shared, len(ids), CHUNK):
            chunk = list(ids[begin : begin + CHUNK])
            # Filled up with tokens that later ones overwrite, so that all chunks have one size.
            padding = [0] * (min(CHUNK, self.length - begin) - len(chunk))
            last = create.tensor(len(chunk) - 1, device=device)
            self._steps.read_chunk(create.tensor([chunk + padding], device=device), last)
        self.ids = list(ids)

    def advance(self) -> None:
        """Queues the step to the next token. Raises: ValueError when the cache is full."""
        if len(self.ids) > self.length:
            raise ValueError(f"generate: the cache of {self.length} tokens is full")
        self._steps.decode()

    def read(self) -> int:
        """The token of the last step, which `ids` has from now on."""
        return self._keep(self._steps.next_ids.item())

    async def read_async(self) -> int:
        """The same, for pages: other work goes on while the GPU computes."""
        return self._keep(await self._steps.next_ids.item_async())

    def _keep(self, token: float) -> int:
        self.ids.append(int(token))
        return self.ids[-1]


def sample(logits: Tensor, sampling: Sampling, generator: Generator | None = None) -> Tensor:
    """Tokens (batch, 1) chosen from logits (batch, vocab)."""
    if sampling.temperature == 0:
        return logits.argmax(-1, keepdim=True)
    logits = logits.float() / sampling.temperature
    if sampling.top_k:
        least = logits.topk(min(sampling.top_k, logits.shape[-1])).values[:, -1:]
        logits = logits.masked_fill(logits < least, float("-inf"))
    if sampling.top_p < 1:
        ordered, order = logits.sort(dim=-1, descending=True)
        probabilities = ordered.softmax(-1)
        before = probabilities.cumsum(-1) - probabilities
        logits = logits.scatter(1, order, ordered.masked_fill(before >= sampling.top_p, float("-inf")))
    probabilities = logits.softmax(-1)
    if sampling.min_p:
        least = probabilities.amax(-1, keepdim=True) * sampling.min_p
        probabilities = probabilities.masked_fill(probabilities < least, 0.0)
    return probabilities.multinomial(1, generator=generator)


def generate(
    model: LanguageModel,
    ids: Sequence[int],
    *,
    max_new_tokens: int,
    stop: Collection[int] = (),
    sampling: Sampling | None = None,
    generator: Generator | None = None,
) -> Iterator[int]:
    """The tokens that follow a prompt, each as soon as it is known, up to one of `stop`, which is not given.

    Raises: ValueError for an empty prompt.
    """
    decoder = Decoder(model, len(ids) + max_new_tokens, sampling, generator)
    token = decoder.prompt(ids)
    for count in range(max_new_tokens):
        if token in stop:
            return
        yield token
        if count + 1 < max_new_tokens:
            token = decoder.step()
