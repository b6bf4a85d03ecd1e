"""What is measured: programs against PyTorch's API, where `torch` is pywebgpu or PyTorch.

Weights and batches come from Python's own generator, so that both libraries start from equal numbers and may be held
against each other. Each workload trains on one batch, which lies on the device before the first step.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

from pywebgpu.bench import gpt

Step = Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Workload:
    """`build(torch, device)` gives a function that does one step and returns its loss, or its result."""

    name: str
    text: str
    build: Callable[[Any, str], Step]


def _mlp(torch: Any, device: str) -> Step:
    nn = torch.nn
    model = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10)).to(device)
    _fill(torch, model)
    images, labels = _floats(torch, device, 64, 784), _integers(torch, device, 10, 64)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return _training(optimizer, lambda: nn.functional.cross_entropy(model(images), labels))


def _cnn(torch: Any, device: str) -> Step:
    nn = torch.nn
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * 7 * 7, 10),
    ).to(device)
    _fill(torch, model)
    images, labels = _floats(torch, device, 32, 1, 28, 28), _integers(torch, device, 10, 32)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    return _training(optimizer, lambda: nn.functional.cross_entropy(model(images), labels))


def _gpt(shape: gpt.Shape) -> Callable[[Any, str], Step]:
    def build(torch: Any, device: str) -> Step:
        model = gpt.model(torch, shape).to(device)
        _fill(torch, model)
        text = _integers(torch, device, shape.vocabulary, shape.batch, shape.block + 1)
        inputs, targets = text[:, :-1].contiguous(), text[:, 1:].flatten().contiguous()
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        return _training(optimizer, lambda: torch.nn.functional.cross_entropy(model(inputs).flatten(0, 1), targets))

    return build


def _matmul(torch: Any, device: str) -> Step:
    a, b = (_floats(torch, device, 1024, 1024, seed=seed) for seed in (0, 1))
    return lambda: a @ b


def _pointwise(torch: Any, device: str) -> Step:
    x = torch.linspace(-2.0, 2.0, 4 << 20, device=device)

    def step() -> Any:
        y = (x * 1.5 + 0.25).sin()
        y = (y * x - 0.5).tanh()
        return ((-y).exp() + 1.0).sqrt() / 3.0

    return step


def _training(optimizer: Any, compute_loss: Step) -> Step:
    """The ordinary loop's body."""

    def step() -> Any:
        optimizer.zero_grad()
        loss = compute_loss()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def _fill(torch: Any, model: Any) -> None:
    """Weights that depend on their names only: small where they are matrices, else ones for scales and zeros."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            shape = tuple(parameter.shape)
            if len(shape) > 1:
                bound = prod(shape[1:]) ** -0.5
                draw = random.Random(name).random
                values = [bound * (2.0 * draw() - 1.0) for _ in range(prod(shape))]
            else:
                values = [float(name.endswith("weight"))] * prod(shape)
            parameter.copy_(torch.tensor(values, dtype=torch.float32).to(parameter.device).reshape(shape))


def _floats(torch: Any, device: str, *shape: int, seed: int = 0) -> Any:
    draw = random.Random(seed).random
    values = [2.0 * draw() - 1.0 for _ in range(prod(shape))]
    return torch.tensor(values, dtype=torch.float32, device=device).reshape(shape).contiguous()


def _integers(torch: Any, device: str, bound: int, *shape: int) -> Any:
    draw = random.Random(0).randrange
    return torch.tensor([draw(bound) for _ in range(prod(shape))], device=device).reshape(shape).contiguous()


_ALL = (
    Workload("mlp", "784-128-10, ReLU, batch 64, cross-entropy, SGD", _mlp),
    Workload("gpt", "4 layers, 4 heads, width 128, block 64, batch 8, vocabulary 65, AdamW", _gpt(gpt.Shape())),
    Workload("matmul", "1024 x 1024 by 1024 x 1024", _matmul),
    Workload("pointwise", "a chain of ten over 4 M elements", _pointwise),
    Workload("gpt1", "gpt with one layer of width 8", _gpt(gpt.Shape(layers=1, width=8))),
    Workload("cnn", "conv 1-16, pool, conv 16-32, pool, dense; batch 32 on 28 x 28, SGD", _cnn),
)
WORKLOADS = {workload.name: workload for workload in _ALL}
