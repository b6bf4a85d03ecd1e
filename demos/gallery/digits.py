"""Digits: a convolutional network reads digits that the program draws, then the one that you draw."""

import os

import pywebgpu as torch
from pywebgpu import display, nn

STEPS = int(os.environ.get("STEPS", "300"))
SIZE, DRAWN, BATCH = 20, 2000, 32

# Each digit as strokes through a square of 4 by 6, its corner below on the left.
STROKES = [
    [(2, 6), (0.5, 5), (0.2, 3), (0.5, 1), (2, 0), (3.5, 1), (3.8, 3), (3.5, 5), (2, 6)],
    [(1, 5), (2.2, 6), (2.2, 4), (2.2, 2), (2.2, 0)],
    [(0.5, 5), (2, 6), (3.5, 5), (3.3, 3.6), (1.8, 1.8), (0.4, 0), (3.8, 0)],
    [(0.5, 5.5), (2.5, 6), (3.6, 4.8), (1.8, 3.2), (3.8, 1.7), (2.5, 0), (0.4, 0.6)],
    [(2.8, 0), (2.8, 3), (2.8, 6), (1.4, 4), (0.2, 2), (2, 2), (3.9, 2)],
    [(3.6, 6), (0.8, 6), (0.6, 3.4), (2.4, 3.7), (3.7, 2), (2.4, 0.1), (0.4, 0.5)],
    [(3.2, 5.8), (1.2, 4.4), (0.4, 2), (1.6, 0), (3.4, 0.8), (3.3, 2.6), (1.8, 3.2), (0.5, 1.8)],
    [(0.3, 6), (2, 6), (3.8, 6), (2.9, 4), (2.1, 2), (1.4, 0)],
    [(2, 3.2), (0.6, 4.6), (2, 6), (3.4, 4.6), (2, 3.2), (0.4, 1.6), (2, 0), (3.6, 1.6), (2, 3.2)],
    [(3.4, 4.2), (2.2, 2.8), (0.7, 3.8), (1, 5.6), (2.8, 6), (3.5, 4.4), (3.2, 2), (2.2, 0)],
]
LONGEST = max(map(len, STROKES))
strokes = torch.tensor([one + one[-1:] * (LONGEST - len(one)) for one in STROKES]) - torch.tensor([2.0, 3.0])
middle = (torch.arange(SIZE) + 0.5) / SIZE * 2 - 1
pixels = torch.stack([middle.repeat(SIZE), -middle.repeat_interleave(SIZE)], dim=1)

torch.manual_seed(0)


@torch.no_grad()
def draw(digits):
    """An image for each digit: strokes that are turned, stretched and moved a little, by the distance of each pixel."""
    n = len(digits)
    wobble = strokes[digits] + 0.18 * torch.randn(n, LONGEST, 2)
    scale = torch.tensor([0.26, 0.23]) * (1 + 0.18 * torch.randn(n, 1, 2))
    shear = torch.stack([torch.ones(n), 0.25 * torch.randn(n), 0.15 * torch.randn(n), torch.ones(n)], dim=1)
    placed = (wobble * scale) @ shear.reshape(n, 2, 2) + 0.12 * torch.randn(n, 1, 2)
    start, way = placed[:, :-1, None], (placed[:, 1:] - placed[:, :-1])[:, :, None]
    along = ((pixels - start) * way).sum(-1) / (way.square().sum(-1) + 1e-6)
    nearest = start + along.clamp(0, 1)[..., None] * way
    distance = (pixels - nearest).square().sum(-1).amin(dim=1).sqrt()
    return (2.2 - distance * 14).clamp(0, 1).reshape(n, 1, SIZE, SIZE)


model = nn.Sequential(
    nn.Conv2d(1, 12, 3, stride=2, padding=1), nn.ReLU(),
    nn.Conv2d(12, 24, 3, stride=2, padding=1), nn.ReLU(),
    nn.Flatten(), nn.Linear(24 * 25, 64), nn.ReLU(), nn.Linear(64, 10),
)  # fmt: skip
optimizer = torch.optim.AdamW(model.parameters(), lr=0.003)
drawn = torch.arange(DRAWN) % 10
images = torch.cat([draw(part) for part in drawn.split(250)])


@torch.compile
def step():
    chosen = torch.randint(0, DRAWN, (BATCH,))
    digits = drawn[chosen]
    scores = model(images[chosen])
    loss = nn.functional.cross_entropy(scores, digits)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss, (scores.argmax(1) == digits).float().mean()


def sheet(images):
    """Images as one, five in a row."""
    rows = images.reshape(-1, 5, SIZE, SIZE).permute(0, 2, 1, 3).reshape(-1, 5 * SIZE)
    return display.image(rows, scale=3, low=0, high=1)


with display.Live("Reading digits") as live:
    live.show(sheet(images[:20]))
    for _ in range(STEPS):
        loss, right = step()
        live.log(loss=loss, right=right)

sample = draw(torch.tensor([7]))[0, 0].tolist()
canvas = display.Canvas("Draw a digit", size=SIZE, value=sample)
with display.Live(every=0) as live, torch.no_grad():
    for _ in display.changes(canvas):
        chances = model(torch.tensor(canvas.value).reshape(1, 1, SIZE, SIZE)).softmax(1)[0].tolist()
        live.show(display.bars(dict(enumerate(chances))), f"This is a {chances.index(max(chances))}.")
