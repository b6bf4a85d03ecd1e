"""Programs that run with and without compiled steps, and must say the same."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pywebgpu as torch
from pywebgpu.step_capture import audit, function

Wrap = Callable[[Any], Any]
Program = Callable[[Wrap, Callable[..., Any]], list[Any]]


def plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value.detach().tolist() if hasattr(value, "detach") else value


@contextmanager
def audited(setting: str) -> Iterator[None]:
    """Steps are audited: "" on the schedule, "1" at each call, "0" never, "first" at the second call alone."""
    before, is_due = function.settings, audit.is_due
    function.settings = replace(before, audit=setting)
    if setting == "first":
        audit.is_due = lambda n_calls, setting: n_calls == 2
    try:
        yield
    finally:
        function.settings, audit.is_due = before, is_due


# Programs that write to what outlives the call: no guard sees that at the first call, and audits do at the second.
WRITING = frozenset({"counters_of_modules", "counts_in_names"})


def same(program: Program, device: str) -> Any:
    """Runs a program without compiled steps, with steps that are replayed at once, on the schedule, and audited at each
    call. Returns the last step that was compiled of those that are replayed."""
    steps = []

    def wrap(function: Any) -> Any:
        steps.append(torch.compile(function))
        return steps[-1]

    make = lambda data, **options: torch.tensor(data, device=device, **options)  # noqa: E731
    torch.manual_seed(0)
    wanted = repr(plain(program(lambda function: function, make)))
    settings = ("1", "") if program.__name__ in WRITING else ("1", "", "0")
    for setting in settings:
        torch.manual_seed(0)
        with audited(setting):
            assert repr(plain(program(wrap, make))) == wanted, f"PYWEBGPU_AUDIT={setting}"
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
