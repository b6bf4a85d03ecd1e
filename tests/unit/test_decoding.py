"""Writing text token by token: keys and values that are kept, and draws from filtered chances."""

from typing import Any

import numpy as np
import pytest

import pywebgpu as torch
from pywebgpu import devices, nn
from pywebgpu.nn import functional as F
from tests.cases.composed import filtered

WIDTH, HEADS, LONGEST, VOCABULARY = 16, 2, 512, 11


class Layer(nn.Module):
    """Attention over what was written so far, whose keys and values stay where they are."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.places = nn.Embedding(LONGEST, WIDTH)
        self.projection = nn.Linear(WIDTH, 3 * WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY)
        self.register_buffer("kept", torch.zeros(2, HEADS, LONGEST, WIDTH // HEADS))
        self.register_buffer("position", torch.zeros(1, dtype=torch.int64))

    def forward(self, tokens: Any) -> Any:
        """The scores after each of `tokens` (t,): all are computed."""
        q, k, v = self.heads(self.embedding(tokens) + self.places.weight[: len(tokens)])
        return self.scores(F.scaled_dot_product_attention(q, k, v, is_causal=True))

    def follow(self, token: Any) -> Any:
        """The scores after one more token (1,): keys and values of the earlier ones are read."""
        q, k, v = self.heads(self.embedding(token) + self.places(self.position))
        self.kept.index_copy_(2, self.position, torch.stack([k, v]))
        seen = torch.arange(LONGEST, device=token.device) <= self.position
        out = F.scaled_dot_product_attention(q, *self.kept.unbind(0), attn_mask=seen)
        self.position += 1
        return self.scores(out)

    def heads(self, x: Any) -> Any:
        return self.projection(x).unflatten(-1, (3, HEADS, WIDTH // HEADS)).permute(1, 2, 0, 3).unbind(0)

    def scores(self, out: Any) -> Any:
        return self.head(out.transpose(0, 1).flatten(1))


def test_a_token_costs_the_same_however_many_there_were(device: str) -> None:
    torch.manual_seed(3)
    model = Layer().to(device)
    tokens = torch.randint(0, VOCABULARY, (500,), device=device)
    follow = torch.compile(model.follow)
    found, counts, counters = [], [], devices.open_device(device).counters
    torch.webgpu.synchronize(device)
    crossed = [counters.get(name, 0) for name in ("uploaded_bytes", "downloaded_bytes")]
    with torch.no_grad():
        for at in range(len(tokens)):
            before = counters["dispatches"]
            found.append(follow(tokens[at : at + 1]).cpu())
            counts.append(counters["dispatches"] - before)
        if device == "webgpu":
            up, down = counters["uploaded_bytes"] - crossed[0], counters["downloaded_bytes"] - crossed[1]
            assert down == 4 * VOCABULARY * len(tokens), "scores come back"
            assert up <= 8, "and nothing goes there"
        wanted = model(tokens).numpy()
    np.testing.assert_allclose(torch.cat(found).numpy(), wanted, rtol=1e-4, atol=1e-5)
    assert len({counts[at] for at in (20, 100, 250, 499)}) == 1, counts


# Draws

SCORES = np.array([2.0, 1.0, 0.5, 0.0, -1.0, -3.0], "float32")


def drawn(device: str, count: int, **options: Any) -> np.ndarray:
    chances = filtered(torch, torch.tensor(SCORES, device=device), **options)
    return torch.multinomial(chances, count, replacement=True).numpy()


def chances(temperature: float = 1.0) -> np.ndarray:
    parts = np.exp(SCORES / temperature)
    return parts / parts.sum()


@pytest.mark.parametrize("temperature", [1.0, 2.0])
def test_draws_are_as_often_as_their_chances_say(device: str, temperature: float) -> None:
    torch.manual_seed(5)
    found = np.bincount(drawn(device, 10_000, temperature=temperature), minlength=6)
    wanted = 10_000 * chances(temperature)
    assert ((found - wanted) ** 2 / wanted).sum() < 20.5  # 5 degrees of freedom: once in a thousand seeds.


def test_a_seed_repeats_its_draws(device: str) -> None:
    once, again = ([torch.manual_seed(seed), drawn(device, 50)][1].tolist() for seed in (8, 8))
    assert once == again
    torch.manual_seed(9)
    assert drawn(device, 50).tolist() != once


def test_nothing_outside_of_the_best_is_drawn(device: str) -> None:
    torch.manual_seed(6)
    assert set(drawn(device, 2000, top_k=2)) == {0, 1}
    assert set(drawn(device, 2000, top_p=0.8)) == {0, 1, 2}  # 0.58, 0.79, and what reaches 0.8
    assert set(drawn(device, 2000, top_k=3, top_p=0.5)) == {0}
    assert set(drawn(device, 2000)) == {0, 1, 2, 3, 4, 5}


def test_cold_draws_are_the_best_and_hot_ones_are_even(device: str) -> None:
    torch.manual_seed(7)
    assert set(drawn(device, 1000, temperature=0.05)) == {int(SCORES.argmax())}
    assert np.bincount(drawn(device, 6000, temperature=1e4), minlength=6).min() > 850
