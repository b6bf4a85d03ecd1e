"""Pages of `torch.visualize` that the documentation shows: made by the library itself, on device null."""

import random
from pathlib import Path
from typing import Any

import pywebgpu as torch
from pywebgpu import nn


def write(made: Path) -> None:
    """Writes made/pages/*.html."""
    folder = made / "pages"
    folder.mkdir(exist_ok=True)
    torch.set_default_device("null")
    state = random.getstate()
    random.seed(0)
    try:
        for name, model, x, labels in (perceptron(), gpt()):
            draw(model, x, labels, folder / f"{name}.html")
    finally:
        random.setstate(state)
        torch.set_default_device(None)


def perceptron() -> tuple[str, nn.Module, Any, Any]:
    model = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 10))
    return "perceptron", model, torch.zeros(32, 64), torch.zeros(32, dtype=torch.int64)


def gpt() -> tuple[str, nn.Module, Any, Any]:
    layer = nn.TransformerEncoderLayer(64, 4, 256, dropout=0.0, batch_first=True, norm_first=True, activation="gelu")
    model = nn.Sequential(nn.Embedding(96, 64), nn.TransformerEncoder(layer, 2), nn.Linear(64, 96), nn.Flatten(0, 1))
    return "gpt", model, torch.zeros(8, 32, dtype=torch.int64), torch.zeros(256, dtype=torch.int64)


def draw(model: nn.Module, x: Any, labels: Any, path: Path) -> None:
    optimizer = torch.optim.AdamW(model.parameters())

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), labels).backward()
        optimizer.step()

    step()
    torch.visualize(step, str(path))
