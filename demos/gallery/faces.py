"""Faces: an autoencoder finds the two numbers behind a thousand faces, and draws any face between them."""

import os

import pywebgpu as torch
from pywebgpu import display, nn

STEPS = int(os.environ.get("STEPS", "500"))
SIZE, BATCH, GRID = 20, 64, 7

torch.manual_seed(0)
middle = (torch.arange(SIZE) + 0.5) / SIZE * 2 - 1
Y, X = torch.meshgrid(-middle, middle, indexing="ij")


def faces(n):
    """Drawn faces: a smile or a sulk, and eyes wide open or nearly shut."""
    smile, eyes = (torch.rand(2, n, 1, 1) * 2 - 1).unbind()
    head = 1 - (12 * ((X.square() + Y.square()).sqrt() - 0.85).abs()).clamp(0, 1)
    mouth = -0.4 - 0.25 * smile + 0.9 * smile * X.square()
    lips = (1 - 7 * (Y - mouth).abs()).clamp(0, 1) * (X.abs() < 0.52)
    height = 0.13 + 0.1 * eyes
    eye = (1.6 - ((X.abs() - 0.35) / 0.16).square() - ((Y - 0.25) / height).square()).clamp(0, 1)
    return torch.maximum(torch.maximum(head, lips), eye).reshape(n, SIZE * SIZE)


class Autoencoder(nn.Module):
    """Every face becomes a small cloud in a plane, and every point of the plane a face."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(SIZE * SIZE, 128), nn.ReLU(), nn.Linear(128, 4))
        self.decoder = nn.Sequential(nn.Linear(2, 128), nn.ReLU(), nn.Linear(128, SIZE * SIZE))

    def forward(self, x):
        mean, spread = self.encoder(x).chunk(2, dim=1)
        point = mean + torch.randn_like(mean) * (0.5 * spread).exp()
        return self.decoder(point), mean, spread


model = Autoencoder()
optimizer = torch.optim.AdamW(model.parameters(), lr=0.003)


@torch.compile
def step():
    x = faces(BATCH)
    drawn, mean, spread = model(x)
    picture = nn.functional.binary_cross_entropy_with_logits(drawn, x, reduction="sum") / BATCH
    cloud = -0.5 * (1 + spread - mean.square() - spread.exp()).sum() / BATCH
    loss = picture + cloud
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return picture, cloud


@torch.no_grad()
def face(x, y):
    return model.decoder(torch.tensor([[x, y]])).sigmoid().reshape(SIZE, SIZE)


@torch.no_grad()
def plane():
    """The faces of a grid of points, where each lies."""
    across = torch.linspace(-1.8, 1.8, GRID)
    y, x = torch.meshgrid(-across, across, indexing="ij")
    drawn = model.decoder(torch.stack([x, y], dim=-1)).sigmoid().reshape(GRID, GRID, SIZE, SIZE)
    return display.image(drawn.permute(0, 2, 1, 3).reshape(GRID * SIZE, GRID * SIZE), scale=2.5, low=0, high=1)


with display.Live("A plane of faces", every=1) as live:
    for at in range(STEPS):
        picture, cloud = step()
        live.log(picture=picture, cloud=cloud)
        if at % 50 == 0:
            live.show(plane())
    live.show(plane())

across, up = display.Slider("across", -2, 2, 1), display.Slider("up", -2, 2, 1)
with display.Live(every=0) as live:
    for _ in display.changes(across, up):
        live.show(display.image(face(across.value, up.value), scale=10, low=0, high=1))
