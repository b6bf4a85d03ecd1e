"""All sequences of calls with gradients kept, set to None or to zero before each: what every call leaves.

Sequences share their beginnings, so the reference is a tree: each of its edges is one call.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

KEEP, NONE, ZERO = "keep", "none", "zero"
ZEROING = (KEEP, NONE, ZERO)
Sequence = tuple[str, ...]
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
    """Three weights, a rule, and a step; `again` brings all back to where it was when they were made."""

    torch: Any
    rule: str
    kind: str
    params: list[Any] = field(init=False)
    optimizer: Any = field(init=False)
    call: Callable[[Any], Any] = field(init=False)
    start: list[Any] = field(init=False)
    x: Any = field(init=False)

    def __post_init__(self) -> None:
        torch = self.torch
        shapes = ((2, 3), (3,), (3,))
        self.params = [torch.nn.Parameter(filled(torch, n, *shape)) for n, shape in enumerate(shapes)]
        self.start = [p.detach().clone() for p in self.params]
        self.optimizer = OPTIMIZERS[self.rule](torch, self.params)
        self.x = filled(torch, 7, 2)
        self.call = self.step

    def step(self, x: Any) -> Any:
        weight, bias, scale = self.params
        kind, optimizer = self.kind, self.optimizer
        if kind == "zeroes_first":
            optimizer.zero_grad()
        if kind == "zeroes_in_place_first":
            optimizer.zero_grad(set_to_none=False)
        loss = ((x @ weight + bias).tanh() * (1.0 if kind == "one_weight_unused" else scale)).square().sum()
        loss.backward()
        if kind == "backward_twice":
            (weight * 0.5).sum().backward()
        if kind != "no_update":
            optimizer.step()
        if kind == "zeroes_last":
            optimizer.zero_grad()
        return loss.detach()

    def again(self) -> None:
        """Moments of zeros at step 0 are what a new optimizer starts with, in tensors that the step knows."""
        with self.torch.no_grad():
            for p, start in zip(self.params, self.start, strict=True):
                p.copy_(start)
                p.grad = None
            for state in self.optimizer.state.values():
                for name, value in state.items():
                    state[name] = value.zero_() if hasattr(value, "zero_") else value and 0

    def zero(self, how: str) -> None:
        if how != KEEP:
            self.optimizer.zero_grad(set_to_none=how == NONE)

    def left(self, loss: Any) -> Left:
        values = [*self.params, *[p.grad for p in self.params], loss]
        return [None if value is None else np.ravel(value.detach().tolist()).tolist() for value in values]

    def state(self) -> Any:
        """What a call may change, to go on from there."""
        copies = [(p.detach().clone(), None if p.grad is None else p.grad.clone()) for p in self.params]
        rule = [
            {k: v.clone() if hasattr(v, "clone") else v for k, v in self.optimizer.state.get(p, {}).items()}
            for p in self.params
        ]
        return copies, rule

    def restore(self, state: Any) -> None:
        copies, rule = state
        with self.torch.no_grad():
            for p, (value, grad) in zip(self.params, copies, strict=True):
                p.copy_(value)
                p.grad = None if grad is None else grad.clone()
        self.optimizer.state.clear()
        for p, values in zip(self.params, rule, strict=True):
            if values:
                self.optimizer.state[p] = {k: v.clone() if hasattr(v, "clone") else v for k, v in values.items()}


def filled(torch: Any, n: int, *shape: int) -> Any:
    size = int(np.prod(shape))
    return torch.sin(torch.arange(float(size)).reshape(shape) * 0.7 + n)


def sequences(longest: int) -> Iterator[Sequence]:
    """The longest ones: each shorter one is the beginning of some."""
    return itertools.product(ZEROING, repeat=longest)


def tree(torch: Any, rule: str, kind: str, longest: int) -> dict[Sequence, Left]:
    """By sequence, what its last call leaves."""
    world, found = Trained(torch, rule, kind), {}
    states: dict[Sequence, Any] = {(): world.state()}
    for length in range(1, longest + 1):
        for sequence in itertools.product(ZEROING, repeat=length):
            world.restore(states[sequence[:-1]])
            world.zero(sequence[-1])
            found[sequence] = world.left(world.call(world.x))
            if length < longest:
                states[sequence] = world.state()
    return found


def differs(one: Left, other: Left, tolerance: float) -> str | None:
    for name, a, b in zip(
        ("weight", "bias", "scale", "its gradient", "gradient of bias", "gradient of scale", "loss"),
        one,
        other,
        strict=True,
    ):
        if (a is None) != (b is None) or (
            a is not None and b is not None and not np.allclose(a, b, rtol=tolerance, atol=tolerance)
        ):
            return f"{name}: {a} and {b}"
    return None
