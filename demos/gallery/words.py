"""Words: each word becomes a point, and words that are used alike come to lie together."""

import os
import random

import pywebgpu as torch
from pywebgpu import display, nn

STEPS = int(os.environ.get("STEPS", "300"))
WIDTH, BATCH = 16, 256
KINDS = {
    "people": "anna otto mira paul sofia karim",
    "animals": "cat dog horse bird fish mouse",
    "food": "bread cheese soup cake apple rice",
    "places": "garden kitchen forest school harbour street",
    "days": "monday tuesday friday sunday",
    "likes": "likes eats wants cooks",
    "moves": "runs walks sleeps waits",
    "colours": "red blue green white",
}
PATTERNS = [
    "people likes the food",
    "people likes colours food on days",
    "the colours animals moves in the places",
    "people moves in the places on days",
    "the animals likes food in the places",
    "on days people and people moves",
]

random.seed(0)
torch.manual_seed(0)
kinds = {kind: words.split() for kind, words in KINDS.items()}
sentences = [[random.choice(kinds.get(w, [w])) for w in random.choice(PATTERNS).split()] for _ in range(3000)]
shown = [word for words in kinds.values() for word in words]
groups = [at for at, words in enumerate(kinds.values()) for _ in words]
vocabulary = [*shown, "the", "on", "in", "and"]
number = {word: at for at, word in enumerate(vocabulary)}

# Each word with each of its neighbours, two to the left and two to the right.
pairs = torch.tensor([
    (number[word], number[other])
    for sentence in sentences
    for at, word in enumerate(sentence)
    for other in sentence[max(0, at - 2) : at] + sentence[at + 1 : at + 3]
])  # fmt: skip

model = nn.Sequential(nn.Embedding(len(vocabulary), WIDTH), nn.Linear(WIDTH, len(vocabulary)))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)


@torch.compile
def step():
    word, neighbour = pairs[torch.randint(0, len(pairs), (BATCH,))].unbind(1)
    loss = nn.functional.cross_entropy(model(word), neighbour)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


@torch.no_grad()
def plot():
    """The vectors from the side on which they spread the most: their two main directions, by repeated products."""
    vectors = model[0].weight[: len(shown)]
    vectors = vectors - vectors.mean(0)
    spread = vectors.T @ vectors
    first = second = torch.linspace(1, 2, WIDTH)
    for _ in range(30):
        first = spread @ first / (spread @ first).norm()
        second = spread @ (second - (second @ first) * first)
        second = second / second.norm()
    places = vectors @ torch.stack([first, second], dim=1)
    return display.scatter(places / places.abs().amax(0), groups, names=shown, span=(-1.1, 1.1), size=480)


@torch.no_grad()
def nearest(word, count=3):
    vectors = nn.functional.normalize(model[0].weight[: len(shown)], dim=1)
    alike = (vectors @ vectors[number[word]]).topk(count + 1).indices.tolist()
    return ", ".join(shown[at] for at in alike if shown[at] != word)


with display.Live("Words by their company", every=1) as live:
    for at in range(STEPS):
        live.log(loss=step())
        if at % 50 == 0:
            live.show(plot())
    live.show(plot())

for word in ("cat", "soup", "friday", "karim", "walks"):
    print(f"{word} is used like {nearest(word)}")
