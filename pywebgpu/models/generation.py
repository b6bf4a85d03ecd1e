"""Text from a language model, token by token: prompts in chunks of one size, then one compiled step a token."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from pywebgpu import dtypes
from pywebgpu.autograd import no_grad
from pywebgpu.models.cache import Cache
from pywebgpu.step_capture import function
from pywebgpu.tensor import create, functions
from pywebgpu.tensor.tensor import Tensor

if TYPE_CHECKING:
    from pywebgpu.tensor.random import Generator

CHUNK = 32  # tokens of a prompt in one step
LARGEST = 1e6  # temperature or penalty: float32 has them, and all that is computed of them
NGRAM = 3  # tokens that are looked for in what was said before, at most
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
            "temperature": 0 <= self.temperature <= LARGEST,
            "top_k": self.top_k >= 0,
            "top_p": 0 < self.top_p <= 1,
            "min_p": 0 <= self.min_p < 1,
            "repetition_penalty": 0 < self.repetition_penalty <= LARGEST,
        }
        wrong = [name for name, holds in rules.items() if not holds]
        if wrong:
            raise ValueError(f"generate: {wrong[0]} is {getattr(self, wrong[0])}, out of its range")

    @property
    def kind(self) -> Kind:
        """What is done to logits, whatever the numbers are."""
        return Kind(
            draws=self.temperature > 0,
            top_k=self.top_k > 0,
            top_p=self.top_p < 1,
            min_p=self.min_p > 0,
            penalises=self.repetition_penalty != 1,
        )

    def numbers(self, vocab_size: int) -> list[float]:
        """Temperature, the least rank that is not drawn from, top_p, min_p and the penalty, as `choose` takes them."""
        top_k = min(self.top_k, vocab_size)
        return [*map(float, (self.temperature, top_k, self.top_p, self.min_p, self.repetition_penalty))]


class Kind(NamedTuple):
    """What is done to logits before a token is chosen: each kind is compiled once, and takes any numbers."""

    draws: bool
    top_k: bool
    top_p: bool
    min_p: bool
    penalises: bool


class Steps:
    """What runs on the device: one sequence's cache, its next token, the tokens that occurred, and how one is chosen.

    It holds nothing that the host changes between two tokens, so that each step is captured once a kind of sampling.
    """

    def __init__(self, model: LanguageModel, length: int, generator: Generator | None) -> None:
        self.model, self.generator = model, generator
        self.cache = model.new_cache(length)
        device = self.cache.used.device
        self.next_ids = create.zeros(1, 1, dtype=dtypes.int64, device=device)
        self.numbers = create.zeros(len(Kind._fields), device=device)
        self.seen = create.zeros(1, model.vocab_size, dtype=dtypes.bool_, device=device)
        self.check = function.compile(self._check)

    def of_kind(self, kind: Kind) -> tuple[Callable[..., Any], function.Compiled]:
        """The steps that read tokens of a prompt, and one token."""

        @no_grad()
        def read_chunk(ids: Tensor, last: Tensor) -> None:
            """Reads tokens of a prompt, of which those after `last` count for nothing."""
            end = self.cache.used + last + 1
            logits = self.model(ids, self.cache, only=last)[:, -1]
            self.cache.used.copy_(end)
            self._choose(logits, kind)

        @no_grad()
        def decode() -> None:
            """Reads the next token, and chooses the one after it."""
            if kind.penalises:
                self.seen.index_fill_(1, self.next_ids[0], True)
            self._choose(self.model(self.next_ids, self.cache)[:, -1], kind)

        return function.compile(read_chunk), function.compile(decode)

    def _choose(self, logits: Tensor, kind: Kind) -> None:
        seen = self.seen if kind.penalises else None
        self.next_ids.copy_(choose(logits, kind, self.numbers, seen=seen, generator=self.generator))

    @no_grad()
    def _check(self, ids: Tensor) -> Tensor:
        """Reads the next token and guesses of those after it, and keeps the guesses that are the most likely tokens.

        Shapes: ids (1, length) -> (length): the most likely token after each. Up to the first wrong guess they count.
        """
        begin = self.cache.used + 0
        likely = self.model(ids, self.cache).argmax(-1)[0]
        n_right = (likely[:-1] == ids[0, 1:]).long().cumprod(0).sum()
        self.cache.used.copy_(begin + n_right + 1)
        self.next_ids.copy_(likely.index_select(0, n_right.reshape(1)).unsqueeze(0))
        return likely

    def see(self, ids: Sequence[int]) -> None:
        """Takes a prompt's tokens as those that occurred."""
        self.seen.zero_()
        self.seen.index_fill_(1, create.tensor(list(ids), device=self.seen.device), True)


class Decoder:
    """One sequence that a model continues, with room for `length` tokens. From prompt to prompt the model stays itself.

    ids: what the cache holds, and the token after it.  sampling: how tokens are chosen; it may be changed between
    prompts.  n_guesses: see `steps`.
    """

    def __init__(
        self,
        model: LanguageModel,
        length: int,
        sampling: Sampling | None = None,
        generator: Generator | None = None,
        *,
        n_guesses: int = 0,
    ) -> None:
        self.length = -(-length // BLOCK) * BLOCK
        self.ids: list[int] = []
        self._is_steady = False  # whether a token was decoded since the last prompt
        self.sampling, self.n_guesses = sampling or Sampling(), n_guesses
        self._vocab_size = model.vocab_size
        self._steps = Steps(model, self.length, generator)
        self._of_kind = functools.cache(self._steps.of_kind)

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
        self._is_steady = False
        if not ids or len(ids) > self.length:
            raise ValueError(f"generate: a prompt of {len(ids)} tokens; 1 to {self.length} are possible")
        shared = 0
        while shared < min(len(ids), len(self.ids)) - 1 and ids[shared] == self.ids[shared]:
            shared += 1
        self._steps.cache.rewind(shared)
        if self.sampling.kind.penalises:
            self._steps.see(ids)
        device = self._steps.next_ids.device
        self._steps.numbers.copy_(create.tensor(self.sampling.numbers(self._vocab_size), device=device))
        read_chunk, _ = self._of_kind(self.sampling.kind)
        for begin in range(shared, len(ids), CHUNK):
            chunk = list(ids[begin : begin + CHUNK])
            # Filled up with tokens that later ones overwrite, so that all chunks have one size.
            padding = [0] * (min(CHUNK, self.length - begin) - len(chunk))
            last = create.tensor(len(chunk) - 1, device=device)
            read_chunk(create.tensor([chunk + padding], device=device), last)
        self.ids = list(ids)

    def advance(self) -> None:
        """Queues the step to the next token. Raises: ValueError when the cache is full."""
        if len(self.ids) > self.length:
            raise ValueError(f"generate: the cache of {self.length} tokens is full")
        _, decode = self._of_kind(self.sampling.kind)
        if not (self._is_steady and decode.again()):
            decode()
        self._is_steady = True

    def steps(self) -> list[int]:
        """The tokens after the last one: one, or up to n_guesses + 1 where the text goes on as it did before.

        What followed the last tokens where they occurred before is guessed to follow again, and checked in one step:
        the tokens are those of single steps. Where tokens are drawn nothing is guessed. Raises as `step`.
        Source: Saxena 2023, prompt lookup decoding; Leviathan et al. 2022 (arXiv 2211.17192).
        """
        is_greedy = not any(self.sampling.kind)
        guesses = guess(self.ids, self.n_guesses) if is_greedy and self.n_guesses else []
        if not guesses or len(self.ids) + self.n_guesses >= self.length:
            return [self.step()]
        row = [self.ids[-1], *guesses, *[0] * (self.n_guesses - len(guesses))]
        likely = self._steps.check(create.tensor([row], device=self._steps.next_ids.device)).tolist()
        n_right = 0
        while n_right < len(likely) - 1 and likely[n_right] == row[n_right + 1]:
            n_right += 1
        self.ids += likely[: n_right + 1]
        return self.ids[-n_right - 1 :]

    def read(self) -> int:
        """The token of the last step, which `ids` has from now on."""
        return self._keep(self._steps.next_ids.item())

    async def read_async(self) -> int:
        """The same, for pages: other work goes on while the GPU computes."""
        return self._keep(await self._steps.next_ids.item_async())

    def _keep(self, token: float) -> int:
        self.ids.append(int(token))
        return self.ids[-1]


def guess(ids: Sequence[int], count: int) -> list[int]:
    """The tokens, at most `count`, that followed the last 3, 2 or 1 where these occurred last; none where nowhere."""
    for length in range(min(NGRAM, len(ids) - 1), 0, -1):
        end = list(ids[-length:])
        for begin in range(len(ids) - length - 1, -1, -1):
            if ids[begin : begin + length] == end:
                return list(ids[begin + length : begin + length + count])
    return []


def sample(logits: Tensor, sampling: Sampling, generator: Generator | None = None) -> Tensor:
    """Tokens (batch, 1) chosen from logits (batch, vocab), of which none counts as having occurred."""
    numbers = create.tensor(sampling.numbers(logits.shape[-1]), device=logits.device)
    return choose(logits, sampling.kind._replace(penalises=False), numbers, generator=generator)


def choose(
    logits: Tensor, kind: Kind, numbers: Tensor, *, seen: Tensor | None = None, generator: Generator | None = None
) -> Tensor:
    """Tokens (batch, 1) chosen from logits (batch, vocab).

    numbers: those of `Sampling.numbers`, on the device.  seen: (1, vocab), the tokens that a penalty is for.
    """
    temperature, top_k, top_p, min_p, penalty = numbers.unbind()
    if seen is not None:
        penalised = functions.where(logits > 0, logits / penalty, logits * penalty)
        logits = functions.where(seen, penalised, logits)
    if not kind.draws:
        return logits.argmax(-1, keepdim=True)
    logits = logits.float() / temperature
    if kind.top_k:
        ordered = logits.sort(dim=-1, descending=True).values
        logits = logits.masked_fill(logits < ordered.index_select(1, (top_k - 1).long().reshape(1)), float("-inf"))
    if kind.top_p:
        ordered, order = logits.sort(dim=-1, descending=True)
        probabilities = ordered.softmax(-1)
        before = probabilities.cumsum(-1) - probabilities
        logits = logits.scatter(1, order, ordered.masked_fill(before >= top_p, float("-inf")))
    probabilities = logits.softmax(-1)
    if kind.min_p:
        least = probabilities.amax(-1, keepdim=True) * min_p
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
    n_guesses: int = 0,
) -> Iterator[int]:
    """The tokens that follow a prompt, each as soon as it is known, up to one of `stop`, which is not given.

    n_guesses: see `Decoder.steps`.  Raises: ValueError for an empty prompt.
    """
    decoder = Decoder(model, len(ids) + max_new_tokens, sampling, generator, n_guesses=n_guesses)
    tokens, count = [decoder.prompt(ids)], 0
    while True:
        for token in tokens:
            if token in stop or count == max_new_tokens:
                return
            yield token
            count += 1
        if count == max_new_tokens:
            return
        tokens = decoder.steps()
