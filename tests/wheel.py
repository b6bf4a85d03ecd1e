"""The wheel, built as `make wheel` builds it, without its environment of its own: the backend is installed."""

import subprocess
import sys
from pathlib import Path

TRAINING = """
import pywebgpu as torch

torch.manual_seed(0)
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.ones(4, 2)
losses = []
for _ in range(3):
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
assert losses[2] < losses[0]"""  # What a host runs that has the wheel: three steps, and the loss falls.

ROOT = Path(__file__).parents[1]


def build(folder: Path) -> Path:
    """The wheel in `folder`; there is exactly one, and it is for every machine."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.iterdir()
    assert wheel.name.endswith("-py3-none-any.whl"), wheel.name
    return wheel
