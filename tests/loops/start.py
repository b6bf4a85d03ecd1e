"""What loops begin with, alike in both libraries: weights, and data that NumPy draws."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Step = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Loop:
    """`build(torch)` gives a function that does one step of training and returns its loss.

    draws: the loop itself draws numbers, by each library's own generator, so its curves agree only in the middle.
    """

    build: Callable[[Any], Step]
    draws: bool = False

    @property
    def name(self) -> str:
        return self.build.__name__


def fill(torch: Any, module: Any, seed: int = 0) -> Any:
    """The module, with normal weights, biases of zero and scales of one."""
    source = np.random.default_rng(seed)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if parameter.dim() > 1:
                scale = 1 / np.sqrt(parameter[0].numel())
                drawn = source.standard_normal(tuple(parameter.shape)) * scale
                parameter.copy_(torch.tensor(drawn.astype("float32")))
            else:
                parameter.fill_(0.0 if "bias" in name else 1.0)
    return module


def floats(torch: Any, *shape: int, seed: int = 1) -> Any:
    """A tensor of normal numbers."""
    return torch.tensor(np.random.default_rng(seed).standard_normal(shape).astype("float32"))


def weight(torch: Any, *shape: int, seed: int = 2) -> Any:
    """A leaf that wants a gradient."""
    return (floats(torch, *shape, seed=seed) / shape[0] ** 0.5).requires_grad_()


def integers(torch: Any, below: int, *shape: int, seed: int = 3) -> Any:
    """A tensor of whole numbers."""
    return torch.tensor(np.random.default_rng(seed).integers(0, below, shape))


def text(length: int = 4000, vocabulary: int = 27, seed: int = 4) -> list[int]:
    """Characters that follow one another more or less, as whole numbers."""
    source = np.random.default_rng(seed)
    steps = source.integers(1, 4, length)
    found: list[int] = (np.cumsum(steps) % vocabulary).tolist()
    return found


def numbers(seed: int = 5) -> np.random.Generator:
    """What a loop draws its batches from."""
    return np.random.default_rng(seed)
