"""A small GPT: characters in, a score for each possible next one out. An ordinary PyTorch program."""

from dataclasses import dataclass

import pywebgpu as torch
from pywebgpu import nn
from pywebgpu.nn import functional as F


@dataclass(frozen=True)
class Config:
    """The shape of a model. `context` is how many characters it looks back on."""

    vocabulary: int
    context: int = 80
    layers: int = 4
    heads: int = 4
    width: int = 128


class Attention(nn.Module):
    """Each place takes in what it finds worth knowing at the places before it."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.heads = config.heads
        self.into = nn.Linear(config.width, 3 * config.width)
        self.out = nn.Linear(config.width, config.width)

    def forward(self, x):
        batch, length, width = x.shape
        query, key, value = (
            part.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for part in self.into(x).split(width, dim=-1)
        )
        found = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.out(found.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    """Attention, then a small network for each place; each is added to what was there."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(config.width)
        self.attention = Attention(config)
        self.network_norm = nn.LayerNorm(config.width)
        self.network = nn.Sequential(
            nn.Linear(config.width, 4 * config.width),
            nn.GELU(approximate="tanh"),
            nn.Linear(4 * config.width, config.width),
        )

    def forward(self, x):
        x = x + self.attention(self.attention_norm(x))
        return x + self.network(self.network_norm(x))


class GPT(nn.Module):
    """forward: character numbers (batch, length) -> scores (batch, length, vocabulary)."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self.character = nn.Embedding(config.vocabulary, config.width)
        self.position = nn.Embedding(config.context, config.width)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.width)
        self.head = nn.Linear(config.width, config.vocabulary, bias=False)
        self.apply(self._initialize)

    def _initialize(self, module) -> None:
        """Normal weights that keep the size of what they are given, and smaller ones where a block adds to it."""
        if isinstance(module, nn.Linear | nn.Embedding):
            into_stream = isinstance(module, nn.Linear) and module.out_features == self.config.width
            scale = (2 * self.config.layers) ** -0.5 if into_stream else 1.0
            nn.init.normal_(module.weight, std=scale * self.config.width**-0.5)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)

    def forward(self, characters):
        places = torch.arange(characters.shape[1], device=characters.device)
        x = self.character(characters) + self.position(places)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))

    def loss(self, characters, targets):
        """The mean cross-entropy of the next characters, in nats."""
        return F.cross_entropy(self(characters).flatten(0, 1), targets.flatten())
