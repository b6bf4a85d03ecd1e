"""`pywebgpu bench --plans`: the memory that steps of whole models are planned to take, next to the least they could.

On device null: nothing is allocated and nothing runs, so the models may be larger than this machine.
"""

import importlib
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from pywebgpu import devices
from pywebgpu.bench import gpt
from pywebgpu.inspector.explanation import explain
from pywebgpu.runtime import executor


@dataclass(frozen=True, slots=True)
class Planned:
    """The largest Program of a training step: its dispatches, its bytes, and those that its fullest step has in use."""

    name: str
    dispatches: int
    planned_bytes: int
    bound_bytes: int

    @property
    def ratio(self) -> float:
        return self.planned_bytes / self.bound_bytes


MODELS = {
    "chargpt": (gpt.Shape(block=80, batch=16), False),
    "distilgpt2": (gpt.Shape(layers=6, heads=12, width=768, block=512, batch=1, vocabulary=50257), True),
}  # the shape, and whether the head is the embedding


def plan(name: str) -> Planned:
    """A steady AdamW step of a model."""
    step = _step(*MODELS[name])
    step()
    return planned(name, step)


def planned(name: str, step: Callable[[], Any]) -> Planned:
    """What one more step takes."""
    largest = max(explain(step).programs, key=lambda plan: plan.peak_bytes)
    return Planned(name, len(largest.steps), largest.peak_bytes, largest.lower_bound)


def table(plans: list[Planned]) -> str:
    lines = [f"{'model':12}{'dispatches':>11}{'planned MB':>12}{'bound MB':>12}{'ratio':>8}"]
    for program in plans:
        sizes = f"{program.planned_bytes / 1e6:12.1f}{program.bound_bytes / 1e6:12.1f}{program.ratio:8.3f}"
        lines.append(f"{program.name:12}{program.dispatches:11}{sizes}")
    return "\n".join([*lines, "", "bound: the bytes of all values in use at the fullest step; no plan can take less."])


def as_data(plans: list[Planned]) -> list[dict[str, Any]]:
    return [asdict(program) | {"ratio": round(program.ratio, 4)} for program in plans]


def _step(shape: gpt.Shape, is_tied: bool) -> Callable[[], Any]:
    torch = importlib.import_module("pywebgpu")
    with torch.device("null"):
        model: Any = gpt.model(torch, shape)
        characters = torch.zeros(shape.batch, shape.block, dtype=torch.int64)
        targets = torch.zeros(shape.batch * shape.block, dtype=torch.int64)
    if is_tied:
        model.head.weight = model.character.weight
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    executor.submit(devices.open_device("null"))

    def step() -> object:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(characters).flatten(0, 1), targets)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step
