"""Boundary: a small network learns which of two spirals a point lies on, and its boundary bends as it does."""

import os
from math import pi

import pywebgpu as torch
from pywebgpu import display, nn

STEPS = int(os.environ.get("STEPS", "600"))
POINTS = 120  # of each spiral
CELLS = 48  # of the plane, along each axis, that are asked which spiral they belong to

torch.manual_seed(1)


def spirals():
    """Points of two spirals, one the other turned by half a turn, and which spiral each is on."""
    distance = torch.linspace(0.15, 1, POINTS)
    angle = 2.6 * pi * distance
    one = torch.stack([distance * angle.cos(), distance * angle.sin()], dim=1)
    points = torch.cat([one, -one]) + 0.015 * torch.randn(2 * POINTS, 2)
    return points, torch.cat([torch.zeros(POINTS), torch.ones(POINTS)])


def plane():
    """The middle of every cell of the plane, row by row from the top."""
    across = torch.linspace(-1.1, 1.1, CELLS)
    y, x = torch.meshgrid(-across, across, indexing="ij")
    return torch.stack([x, y], dim=-1).reshape(-1, 2)


points, labels = spirals()
cells = plane()
model = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)


@torch.compile
def step():
    loss = nn.functional.binary_cross_entropy_with_logits(model(points).squeeze(1), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


@torch.no_grad()
def picture():
    certainty = model(cells).sigmoid().reshape(CELLS, CELLS)
    return display.scatter(points, labels, behind=certainty, span=(-1.1, 1.1), size=340)


with display.Live("Which spiral?") as live:
    for at in range(STEPS):
        live.log(loss=step())
        if at % 20 == 0:
            live.show(picture())
    live.show(picture())

with torch.no_grad():
    right = (model(points).squeeze(1) > 0) == (labels > 0)
print(f"{right.sum().item()} of {len(points)} points are on their side of the boundary")
