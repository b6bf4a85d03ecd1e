"""Points of two spirals, and a network that tells them apart."""

import math

import pywebgpu as torch
from pywebgpu import nn


def spirals(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Points (2 * count, 2), and which spiral each is of."""
    points, classes = [], []
    for which in (0, 1):
        for at in range(count):
            radius, angle = at / count, 3 * at / count + math.pi * which
            points.append([radius * math.sin(angle), radius * math.cos(angle)])
            classes.append(which)
    return torch.tensor(points), torch.tensor(classes)


class Classifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 2))

    def forward(self, points: torch.Tensor) -> torch.Tensor:
        return self.layers(points)


def train(model: Classifier, steps: int) -> list[float]:
    """The loss of each step."""
    points, classes = spirals(64)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.03)

    @torch.compile
    def step() -> torch.Tensor:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(points), classes)
        loss.backward()
        optimizer.step()
        return loss

    losses = [step() for _ in range(steps)]
    return torch.stack(losses).tolist()
