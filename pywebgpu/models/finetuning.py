"""A language model learns a text: rows of its tokens, the loss of each next token, and one compiled step a batch."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import TYPE_CHECKING

from pywebgpu.models import lora
from pywebgpu.nn import functional as F
from pywebgpu.nn.module import Module
from pywebgpu.optim.adam import AdamW
from pywebgpu.step_capture import function
from pywebgpu.tensor import create, random
from pywebgpu.tensor.tensor import Tensor

if TYPE_CHECKING:
    from pywebgpu.tensor.factory_options import DeviceLike
    from pywebgpu.tensor.random import Generator


def rows(ids: Sequence[int], length: int, device: DeviceLike = None) -> Tensor:
    """The tokens of a text as rows (n, length + 1), each of which begins with the last token of the one before.

    What is left at the end, or all of a short text, is no row. Raises: ValueError when there is none.
    """
    count = (len(ids) - 1) // length
    if count < 1:
        raise ValueError(f"finetune: the text has {len(ids)} tokens; a row needs {length + 1}")
    tokens = create.tensor(list(ids[: count * length + 1]), device=device)
    return tokens.unfold(0, length + 1, length).contiguous()


def loss(model: Module, tokens: Tensor) -> Tensor:
    """The mean cross-entropy of each next token in rows (batch, length + 1)."""
    logits = model(tokens[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten())


class Finetuning:
    """Training of a model's adapters, step by step."""

    def __init__(self, model: Module, *, learning_rate: float = 2e-4, weight_decay: float = 0.0) -> None:
        self.model = model.train()
        self.optimizer = AdamW(lora.parameters(model), lr=learning_rate, weight_decay=weight_decay)
        self._step = function.compile(self._update)

    def step(self, tokens: Tensor) -> Tensor:
        """Learns rows (batch, length + 1) of tokens; returns the loss before."""
        result: Tensor = self._step(tokens)
        return result

    def _update(self, tokens: Tensor) -> Tensor:
        value = loss(self.model, tokens)
        self.optimizer.zero_grad()
        value.backward()
        self.optimizer.step()
        return value.detach()

    def run(
        self, tokens: Tensor, n_steps: int, batch_size: int = 1, generator: Generator | None = None
    ) -> Iterator[float]:
        """The losses of so many steps over rows of tokens, in an order drawn anew for each pass."""
        for batch in _batches(tokens, n_steps, batch_size, generator):
            yield self.step(batch).item()

    async def run_async(
        self, tokens: Tensor, n_steps: int, batch_size: int = 1, generator: Generator | None = None
    ) -> AsyncIterator[float]:
        """The same, for pages: other work goes on while the GPU computes."""
        for batch in _batches(tokens, n_steps, batch_size, generator):
            yield await self.step(batch).item_async()


def _batches(tokens: Tensor, n_steps: int, batch_size: int, generator: Generator | None) -> Iterator[Tensor]:
    waiting: list[int] = []
    for _ in range(n_steps):
        while len(waiting) < batch_size:
            waiting += random.randperm(tokens.shape[0], generator=generator, device="cpu").tolist()
        batch, waiting = waiting[:batch_size], waiting[batch_size:]
        yield tokens[create.tensor(batch, device=tokens.device)]
