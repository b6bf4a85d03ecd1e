"""Sorting: a transformer learns to sort digits, and shows where it looks for each."""

import os

import pywebgpu as torch
from pywebgpu import display, nn

STEPS = int(os.environ.get("STEPS", "400"))
LENGTH, DIGITS, WIDTH, HEADS, BATCH = 8, 10, 48, 4, 32

torch.manual_seed(0)


class Attention(nn.Module):
    """Every place asks all places, and takes what those that answer have."""

    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = (part.reshape(b, t, HEADS, -1).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
        weights = (q @ k.transpose(-1, -2) / (WIDTH // HEADS) ** 0.5).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).reshape(b, t, WIDTH)), weights


class Sorter(nn.Module):
    """Two blocks over the digits: place i of what comes out says what the i-th smallest is."""

    def __init__(self):
        super().__init__()
        self.digit, self.place = nn.Embedding(DIGITS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.attentions = nn.ModuleList(Attention() for _ in range(2))
        self.mlps = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH))
            for _ in range(2)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2))
        self.head = nn.Linear(WIDTH, DIGITS)

    def forward(self, digits):
        x, maps = self.digit(digits) + self.place.weight, []
        for norm, attention, mlp in zip(self.norms, self.attentions, self.mlps, strict=True):
            seen, weights = attention(norm(x))
            x = x + seen
            x = x + mlp(x)
            maps.append(weights)
        return self.head(x), maps


model = Sorter()
optimizer = torch.optim.AdamW(model.parameters(), lr=0.003)


@torch.compile
def step():
    digits = torch.randint(0, DIGITS, (BATCH, LENGTH))
    scores, _ = model(digits)
    target = digits.sort(dim=1).values
    loss = nn.functional.cross_entropy(scores.flatten(0, 1), target.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss, (scores.argmax(-1) == target).float().mean()


@torch.no_grad()
def show(digits):
    """What it makes of these digits, and where the second block looked: a row for each place of the result."""
    scores, maps = model(torch.tensor([digits]))
    said = "".join(map(str, scores[0].argmax(-1).tolist()))
    given = "".join(map(str, digits))
    return display.image(maps[1][0].mean(0), low=0, scale=24, rows=said, columns=given, title=f"{given} sorted: {said}")


example = [7, 2, 9, 4, 0, 5, 2, 8]
with display.Live("Learning to sort", every=1) as live:
    for at in range(STEPS):
        loss, right = step()
        live.log(loss=loss, right=right)
        if at % 50 == 0:
            live.show(show(example))
    live.show(show(example))

with torch.no_grad():
    digits = torch.randint(0, DIGITS, (500, LENGTH))
    whole = (model(digits)[0].argmax(-1) == digits.sort(dim=1).values).all(dim=1)
print(f"{whole.sum().item()} of 500 new rows are wholly sorted")
