"""Diffusion: a network learns to take noise away from points, until noise becomes a heart."""

import os
from math import pi

import pywebgpu as torch
from pywebgpu import display, nn

STEPS = int(os.environ.get("STEPS", "1200"))
LEVELS, BATCH, WIDTH = 40, 256, 64  # of noise; points in a step; of the network

torch.manual_seed(0)
keep = torch.cos(torch.linspace(0.02, 1, LEVELS + 1) * pi / 2).square()  # How much is left of a point, by level.
keep = (keep / keep[0]).clamp(1e-3, 1)


def heart(n):
    """Points along a heart."""
    t = 2 * pi * torch.rand(n)
    x = 16 * t.sin() ** 3
    y = 13 * t.cos() - 5 * (2 * t).cos() - 2 * (3 * t).cos() - (4 * t).cos()
    return torch.stack([x, y + 2], dim=1) / 11 + 0.03 * torch.randn(n, 2)


class Denoiser(nn.Module):
    """Guesses the noise in a point, which it sees through waves of several lengths, at a level of noise."""

    def __init__(self):
        super().__init__()
        self.level = nn.Embedding(LEVELS + 1, WIDTH)
        self.point = nn.Linear(2, WIDTH)
        self.rest = nn.Sequential(
            nn.SiLU(), nn.Linear(WIDTH, WIDTH), nn.SiLU(), nn.Linear(WIDTH, WIDTH), nn.SiLU(), nn.Linear(WIDTH, 2)
        )

    def forward(self, points, level):
        return self.rest(self.point(points) + self.level(level))


model = Denoiser()
optimizer = torch.optim.AdamW(model.parameters(), lr=0.003)


@torch.compile
def step():
    level = torch.randint(1, LEVELS + 1, (BATCH,))
    left, noise = keep[level][:, None], torch.randn(BATCH, 2)
    noisy = left.sqrt() * heart(BATCH) + (1 - left).sqrt() * noise
    loss = (model(noisy, level) - noise).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


@torch.no_grad()
def sample(n, shown=()):
    """Points from nothing but noise, and how they looked at some levels."""
    points, pictures = torch.randn(n, 2), []
    for level in range(LEVELS, 0, -1):
        noise = model(points, torch.full((n,), level))
        now, before = keep[level], keep[level - 1]
        clean = ((points - (1 - now).sqrt() * noise) / now.sqrt()).clamp(-2, 2)
        points = before.sqrt() * clean + (1 - before).sqrt() * noise
        if level in shown:
            pictures.append(plot(points, f"noise {level - 1}"))
    return plot(points, "what it makes"), pictures


def plot(points, title):
    return display.scatter(points, span=(-2.2, 2.2), size=200, title=title)


with display.Live("From noise to a heart", every=1) as live:
    for at in range(STEPS):
        live.log(loss=step())
        if at % 200 == 0:
            live.show(display.beside(plot(heart(200), "what it learns from"), sample(200)[0]))

made, pictures = sample(300, shown=(36, 14, 8, 4))
with display.Live("Noise is taken away, level by level") as live:
    live.show(display.beside(*pictures, made))
