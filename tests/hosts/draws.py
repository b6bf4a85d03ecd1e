"""Draws random tensors of every kind and writes them down: `draws.py DEVICE RESULTS`. The same on every host."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import pywebgpu as torch

SHAPE = (3, 41)  # no multiple of the four words that a block has
# Made of bits by whole numbers and one rounding: equal to the last bit. The others go through functions of the host.
EXACT = {
    "rand": lambda: torch.rand(SHAPE),
    "rand_half": lambda: torch.rand(SHAPE, dtype=torch.float16),
    "randint": lambda: torch.randint(-7, 2**20, SHAPE),
    "randint_wide": lambda: torch.randint(-(2**31), 2**31 - 1, SHAPE),
    "randperm": lambda: torch.randperm(123),
    "bernoulli": lambda: torch.bernoulli(torch.full(SHAPE, 0.3)),
    "dropout": lambda: torch.nn.functional.dropout(torch.ones(SHAPE), 0.25) > 0,
}
NEAR = {
    "randn": lambda: torch.randn(SHAPE),
    "exponential": lambda: torch.empty(SHAPE).exponential_(),
    "normal": lambda: torch.empty(SHAPE).normal_(3.0, 0.5),
}


def main(device: str, results: str) -> None:
    torch.set_default_device(device)
    found = {}
    for seed in (0, 1 << 40):
        torch.manual_seed(seed)
        for name, draw in (EXACT | NEAR).items():
            for time in range(2):
                found[f"{name} {time} of seed {seed}"] = draw()
    torch.save(found, results)


if __name__ == "__main__":
    main(*sys.argv[1:])
