"""All sequences of calls with gradients kept, set to None or to zero before each: what every call leaves."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

KEEP, NONE, ZERO = "keep", "none", "zero"
ZEROING = (KEEP, NONE, ZERO)
Left = list[list[float] | None]  # weights, gradients and the loss, each as a list

OPTIMIZERS: dict[str, Callable[[Any, Any], Any]] = {
    "sgd": lambda torch, params: torch.optim.SGD(params, lr=0.1, momentum=0.9),
    "adamw": lambda torch, params: torch.optim.AdamW(params, lr=0.05),
}
STEPS = (
    "plain",
    "backward_twice",
    "zeroes_first",
    "zeroes_last",
    "zeroes_in_place_first",
    "one_weight_unused",
    "no_update",
)


@dataclass
class Trained:
    """Three weights, a rule, and a step of some kind. Its targets move, so that no gradient vanishes."""

    torch: Any
    rule: str
    kind: str
    params: list[Any] = field(init=False)
    optimizer: Any = field(init=False)
    call: Callable[[Any], Any] = field(init=False)
    n_calls: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.params = [self.torch.nn.Parameter(self.numbers(n, *shape)) for n, shape in enumerate(((2, 3), (3,), (3,)))]
        self.optimizer = OPTIMIZERS[self.rule](self.torch, self.params)
        self.call = make_step(self.torch, self.kind, self.params, self.optimizer)

    def numbers(self, n: int, *shape: int) -> Any:
        count = float(np.prod(shape))
        return self.torch.sin(self.torch.arange(count).reshape(shape) * 0.7 + n)

    def after(self, how: str) -> Left:
        """Zeroes gradients as it is told, calls, and says what that leaves."""
        if how != KEEP:
            self.optimizer.zero_grad(set_to_none=how == NONE)
        self.n_calls += 1
        loss = self.call(self.numbers(self.n_calls, 4, 2))
        values = [*self.params, *[p.grad for p in self.params], loss]
        return [None if value is None else np.ravel(value.detach().tolist()).tolist() for value in values]


def make_step(torch: Any, kind: str, params: list[Any], optimizer: Any) -> Callable[[Any], Any]:
    weight, bias, scale = params

    def step(x: Any) -> Any:
        if kind == "zeroes_first":
            optimizer.zero_grad()
        if kind == "zeroes_in_place_first":
            optimizer.zero_grad(set_to_none=False)
        found = (x @ weight + bias).tanh()
        loss = ((found if kind == "one_weight_unused" else found * scale) - x.sum()).square().mean()
        loss.backward()
        if kind == "backward_twice":
            (weight * 0.5).square().sum().backward()
        if kind != "no_update":
            optimizer.step()
        if kind == "zeroes_last":
            optimizer.zero_grad()
        return loss.detach()

    return step


def walk(longest: int) -> Iterator[str]:
    """The shortest walk that has every sequence of this length in it: of de Bruijn, then its beginning once more.

    Without gradients all three ways of zeroing are one, so this also has each sequence that begins with none.
    Source: Fredricksen, Maiorana 1978: the Lyndon words whose length divides that of the sequences, in their order.
    """
    word, found = [-1], []
    while word:
        word[-1] += 1
        if longest % len(word) == 0:
            found += word
        word = (word * longest)[:longest]
        while word and word[-1] == len(ZEROING) - 1:
            word.pop()
    return (ZEROING[n] for n in found + found[: longest - 1])


def sequences(longest: int) -> Iterator[tuple[str, ...]]:
    """The longest ones: each shorter one is the beginning of some."""
    return itertools.product(ZEROING, repeat=longest)


NAMES = ("weight", "bias", "scale", "gradient of weight", "gradient of bias", "gradient of scale", "loss")


def difference(one: Left, other: Left, tolerance: float) -> str | None:
    for name, a, b in zip(NAMES, one, other, strict=True):
        if a is None or b is None:
            if a is not b:
                return f"{name}: {a} and {b}"
        elif not np.allclose(a, b, rtol=tolerance, atol=tolerance):
            return f"{name}: {a} and {b}"
    return None
