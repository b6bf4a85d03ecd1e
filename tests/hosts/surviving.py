"""Trains the small GPT while its device is lost again and again: `surviving.py STEPS KILLS SEED RESULTS`.

The device goes at KILLS random steps of an undisturbed run's STEPS, each at another moment inside the step; the loop
then opens it again and goes on from the copy that it kept. Writes the losses of a run that nothing disturbs, then of an
eager and of a compiled one that are.
"""

import itertools
import json
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import pywebgpu as torch
from pywebgpu import devices
from pywebgpu.errors import DeviceLostError
from tests.hosts.losses import TEXT, Run

EVERY = 3  # steps between copies
MOMENTS = ("before", "batch", "backward", "step", "after")


def lose() -> None:
    """Takes the device away, as a driver that is reset does."""
    opened: Any = devices.open_device("webgpu")
    gpu = opened._bridge.bridge.gpu if hasattr(opened, "_bridge") else opened._gpu
    gpu.destroy()


def trained(run: Run, at: Callable[[str], object] = len) -> Callable[[Any], Any]:
    """One step of training; `at` is called inside."""

    def train(batch: Any) -> Any:
        loss = run.network.loss(batch[:, :-1], batch[:, 1:])
        run.optimizer.zero_grad()
        loss.backward()
        at("backward")
        run.optimizer.step()
        return loss

    return train


class Loop:
    """A run whose steps can be disturbed, and what keeps its state."""

    def __init__(self, mode: str) -> None:
        self.run = Run("webgpu")
        self.scheduler = torch.optim.lr_scheduler.LinearLR(self.run.optimizer, 0.5, 1.0, 8)
        self.train = torch.compile(trained(self.run)) if mode == "compiled" else trained(self.run, self.at)
        parts = {"model": self.run.network, "optimizer": self.run.optimizer, "scheduler": self.scheduler}
        self.kept = torch.utils.Checkpointer(parts, every=EVERY)
        self.moment = ""
        self.times_lost = 0

    def at(self, moment: str) -> None:
        if self.moment == moment:
            self.moment = ""
            self.times_lost += 1
            lose()

    def step(self) -> float:
        self.at("before")
        starts = torch.randint(len(TEXT), (4,)).tolist()
        context = self.run.config.context
        batch = torch.tensor([self.run.numbers[start : start + context + 1] for start in starts])
        self.at("batch")
        loss = self.train(batch)
        self.at("step")
        self.scheduler.step()
        found = float(loss.item())
        self.at("after")
        return found

    def losses(self, steps: int, kills: dict[int, str]) -> list[float]:
        found: list[float] = []
        while len(found) < steps:
            try:
                self.kept.step(len(found))
                self.moment = self.moment or kills.pop(len(found), "")
                found.append(self.step())
            except DeviceLostError:
                assert torch.webgpu.recover()
                del found[self.kept.restore() :]
        return found


def outcome(mode: str, steps: int, kills: dict[int, str]) -> dict[str, object]:
    loop = Loop(mode)
    losses = loop.losses(steps, kills)
    captures = getattr(loop.train, "counters", {}).get("captures", 0)
    return {"losses": losses, "lost": loop.times_lost, "captures": captures}


def main(steps: str, kills: str, seed: str, results: str) -> None:
    draw = random.Random(int(seed))
    moments = itertools.cycle(draw.sample(MOMENTS, len(MOMENTS)))
    chosen = dict(zip(draw.sample(range(int(steps) - 1), int(kills)), moments, strict=False))
    # A step that is replayed has no moment inside.
    outside = {step: "step" if moment == "backward" else moment for step, moment in chosen.items()}
    found = {
        "undisturbed": outcome("eager", int(steps), {}),
        "eager": outcome("eager", int(steps), chosen),
        "compiled": outcome("compiled", int(steps), outside),
    }
    Path(results).write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
