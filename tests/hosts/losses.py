"""Trains a small GPT, prints its losses, and writes a checkpoint: `losses.py DEVICE STEPS CHECKPOINT [START]`.

The same on every host. With START, the checkpoint of another run, it goes on from there.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "demos" / "chargpt")]

import model  # noqa: E402

import pywebgpu as torch  # noqa: E402

TEXT = "the quick brown fox jumps over the lazy dog; "


class Run:
    """A model, its optimizer, its losses; batches come from the global generator."""

    def __init__(self, device: str) -> None:
        torch.set_default_device(device)
        torch.manual_seed(0)
        letters = sorted(set(TEXT))
        self.numbers = [letters.index(letter) for letter in TEXT * 8]
        self.config = model.Config(vocabulary=len(letters), context=16, layers=1, heads=2, width=16)
        self.network = model.GPT(self.config)
        self.optimizer = torch.optim.AdamW(self.network.parameters(), lr=1e-2)
        self.losses: list[float] = []

    def advance(self) -> float:
        """One step, as any loop does it. Returns its loss."""
        starts = torch.randint(len(TEXT), (4,)).tolist()
        batch = torch.tensor([self.numbers[start : start + self.config.context + 1] for start in starts])
        loss = self.network.loss(batch[:, :-1], batch[:, 1:])
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.losses.append(loss.item())
        return self.losses[-1]

    def save(self, path: str) -> None:
        state = {"model": self.network.state_dict(), "optimizer": self.optimizer.state_dict()}
        torch.save(state | {"losses": self.losses, "random": torch.get_rng_state()}, path)

    def restore(self, path: str) -> None:
        state = torch.load(path)
        self.network.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.losses = state["losses"]
        torch.set_rng_state(state["random"])


def trained(device: str, steps: int, start: str = "") -> Run:
    """A run after so many steps, from a checkpoint on where there is one."""
    run = Run(device)
    if start:
        run.restore(start)
    while len(run.losses) < steps:
        print(run.advance(), flush=True)
    return run


def main(device: str, steps: str, checkpoint: str, start: str = "") -> None:
    trained(device, int(steps), start).save(checkpoint)


if __name__ == "__main__":
    main(*sys.argv[1:])
