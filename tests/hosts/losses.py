"""Prints the first losses of a small GPT, one a line: `losses.py DEVICE STEPS`. The same on every host."""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "demos" / "chargpt")]

import model  # noqa: E402

import pywebgpu as torch  # noqa: E402

TEXT = "the quick brown fox jumps over the lazy dog; "


def main(device: str, steps: int) -> None:
    torch.set_default_device(device)
    torch.manual_seed(0)
    letters = sorted(set(TEXT))
    numbers = [letters.index(letter) for letter in TEXT * 8]
    config = model.Config(vocabulary=len(letters), context=16, layers=1, heads=2, width=16)
    network = model.GPT(config)
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-2)
    for _ in range(steps):
        starts = torch.randint(len(TEXT), (4,)).tolist()
        rows = [numbers[start : start + config.context + 1] for start in starts]
        batch = torch.tensor(rows)
        loss = network.loss(batch[:, :-1], batch[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item(), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
