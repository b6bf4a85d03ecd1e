"""The GPT of the workloads, written against PyTorch's API: `torch` is pywebgpu or PyTorch.

Pre-norm blocks, causal attention, GELU by tanh, no dropout.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

    from pywebgpu.tensor.tensor import Tensor


@dataclass(frozen=True, slots=True)
class Shape:
    """What sets one GPT apart from another.

    block: the length of the sequences.  positions: that there could be; 0: no more.  is_tied: the head has the weights
    of the embedding.
    """

    layers: int = 4
    heads: int = 4
    width: int = 128
    block: int = 64
    batch: int = 8
    vocabulary: int = 65
    positions: int = 0
    is_tied: bool = False


def _attention(nn: ModuleType, shape: Shape) -> type:
    class Attention(nn.Module):  # type: ignore[name-defined,misc] # Which class that is, is known at run time.
        def __init__(self) -> None:
            super().__init__()
            self.into = nn.Linear(shape.width, 3 * shape.width)
            self.out = nn.Linear(shape.width, shape.width)

        def forward(self, x: Tensor) -> object:
            batch, length, width = x.shape
            parts = self.into(x).split(width, dim=-1)
            query, key, value = (part.view(batch, length, shape.heads, -1).transpose(1, 2) for part in parts)
            attended = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
            return self.out(attended.transpose(1, 2).reshape(batch, length, width))

    return Attention


def _block(nn: ModuleType, shape: Shape) -> type:
    attention = _attention(nn, shape)

    class Block(nn.Module):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.attention_norm, self.attention = nn.LayerNorm(shape.width), attention()
            self.network_norm = nn.LayerNorm(shape.width)
            self.wide, self.narrow = nn.Linear(shape.width, 4 * shape.width), nn.Linear(4 * shape.width, shape.width)

        def forward(self, x: Tensor) -> object:
            x = x + self.attention(self.attention_norm(x))
            return x + self.narrow(nn.functional.gelu(self.wide(self.network_norm(x)), approximate="tanh"))

    return Block


def model(torch: ModuleType, shape: Shape) -> object:
    """A module: character numbers (batch, block) -> scores (batch, block, vocabulary)."""
    nn = torch.nn
    block_class = _block(nn, shape)

    class Gpt(nn.Module):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.character = nn.Embedding(shape.vocabulary, shape.width)
            self.position = nn.Embedding(shape.positions or shape.block, shape.width)
            self.blocks = nn.ModuleList([block_class() for _ in range(shape.layers)])
            self.norm = nn.LayerNorm(shape.width)
            self.head = nn.Linear(shape.width, shape.vocabulary, bias=False)
            if shape.is_tied:
                self.head.weight = self.character.weight

        def forward(self, characters: Tensor) -> object:
            positions = torch.arange(characters.shape[1], device=characters.device)
            x = self.character(characters) + self.position(positions)
            for block in self.blocks:
                x = block(x)
            return self.head(self.norm(x))

    return Gpt()
