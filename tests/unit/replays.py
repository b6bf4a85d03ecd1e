"""Programs that run with and without compiled steps, and must say the same."""

from collections.abc import Callable
from typing import Any

import pywebgpu as torch

Wrap = Callable[[Any], Any]
Program = Callable[[Wrap, Callable[..., Any]], list[Any]]


def plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value.detach().tolist() if hasattr(value, "detach") else value


def same(program: Program, device: str) -> Any:
    """Runs a program with and without compiled steps. Returns the last step that was compiled."""
    steps = []

    def wrap(function: Any) -> Any:
        steps.append(torch.compile(function))
        return steps[-1]

    make = lambda data, **options: torch.tensor(data, device=device, **options)  # noqa: E731
    found = []
    for each in (lambda function: function, wrap):
        torch.manual_seed(0)
        found.append(repr(plain(program(each, make))))
    assert found[1] == found[0]
    return steps[-1]


def trained(wrap: Wrap, make: Any, optimizer: Callable[..., Any], *, layers: int = 2) -> tuple[Any, Any, Any, Any]:
    """A step, its model and optimizer, and an input."""
    x = make([[1.0, 2.0]])
    model = torch.nn.Sequential(*[torch.nn.Linear(2, 2) for _ in range(layers)]).to(x.device)
    update = optimizer(model.parameters())

    def step(x: Any) -> Any:
        update.zero_grad()
        loss = model(x).square().sum()
        loss.backward()
        update.step()
        return loss

    return wrap(step), model, update, x


def adam(params: Any) -> Any:
    return torch.optim.Adam(params, lr=0.1)
