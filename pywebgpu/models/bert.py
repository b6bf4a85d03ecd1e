"""BERT without heads, with the names of `transformers`' state dict: token ids to hidden states that know both sides.

Source: Devlin et al. 2018 (arXiv 1810.04805).
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pywebgpu import devices
from pywebgpu.io import safetensors
from pywebgpu.nn import functional as F
from pywebgpu.nn.container import ModuleList
from pywebgpu.nn.embedding import Embedding
from pywebgpu.nn.linear import Linear
from pywebgpu.nn.module import Module
from pywebgpu.nn.norm import LayerNorm
from pywebgpu.tensor import create
from pywebgpu.tensor.tensor import Tensor

if TYPE_CHECKING:
    from pywebgpu.tensor.factory_options import DeviceLike

ACTIVATIONS = {"gelu": "none", "gelu_new": "tanh", "gelu_pytorch_tanh": "tanh"}  # and how F.gelu approximates it


@dataclass(frozen=True, slots=True)
class BertConfig:
    """The sizes of a model, under the names of `transformers`' config.json."""

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    layer_norm_eps: float = 1e-12
    hidden_act: str = "gelu"


class Embeddings(Module):
    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.word_embeddings = Embedding(config.vocab_size, config.hidden_size)
        self.position_embeddings = Embedding(config.max_position_embeddings, config.hidden_size)
        self.token_type_embeddings = Embedding(config.type_vocab_size, config.hidden_size)
        self.LayerNorm = LayerNorm(config.hidden_size, eps=config.layer_norm_eps)

    def forward(self, input_ids: Tensor, token_type_ids: Tensor | None) -> Tensor:
        positions = create.arange(input_ids.shape[1], device=input_ids.device)
        types = self.token_type_embeddings.weight[0] if token_type_ids is None else None
        types = self.token_type_embeddings(token_type_ids) if types is None else types
        result: Tensor = self.LayerNorm(self.word_embeddings(input_ids) + types + self.position_embeddings(positions))
        return result


class SelfAttention(Module):
    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.n_heads = config.num_attention_heads
        self.query, self.key, self.value = (Linear(config.hidden_size, config.hidden_size) for _ in range(3))

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        query, key, value = (
            projection(x).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
            for projection in (self.query, self.key, self.value)
        )  # (batch, heads, length, head_dim)
        return F.scaled_dot_product_attention(query, key, value, attn_mask=mask).transpose(1, 2).flatten(2)


class Residual(Module):
    """Projects, adds what stood before, and normalises."""

    def __init__(self, n_inputs: int, config: BertConfig) -> None:
        super().__init__()
        self.dense = Linear(n_inputs, config.hidden_size)
        self.LayerNorm = LayerNorm(config.hidden_size, eps=config.layer_norm_eps)

    def forward(self, x: Tensor, before: Tensor) -> Tensor:
        result: Tensor = self.LayerNorm(self.dense(x) + before)
        return result


class Attention(Module):
    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.self = SelfAttention(config)
        self.output = Residual(config.hidden_size, config)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        result: Tensor = self.output(self.self(x, mask), x)
        return result


class Intermediate(Module):
    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.dense = Linear(config.hidden_size, config.intermediate_size)
        self.approximate = ACTIVATIONS[config.hidden_act]

    def forward(self, x: Tensor) -> Tensor:
        return F.gelu(self.dense(x), approximate=self.approximate)


class Layer(Module):
    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.attention = Attention(config)
        self.intermediate = Intermediate(config)
        self.output = Residual(config.intermediate_size, config)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        x = self.attention(x, mask)
        result: Tensor = self.output(self.intermediate(x), x)
        return result


class Encoder(Module):
    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.layer = ModuleList([Layer(config) for _ in range(config.num_hidden_layers)])

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        for layer in self.layer:
            x = layer(x, mask)
        return x


class Bert(Module):
    """Token ids to the hidden states of the last layer.

    Shapes: input_ids, attention_mask, token_type_ids (batch, length) -> (batch, length, hidden_size).
    attention_mask: 1 where there is a token, 0 where a sequence is filled up; None for tokens everywhere.
    token_type_ids: which of two texts a token is of; None for all of the first.
    """

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.config = config
        self.embeddings = Embeddings(config)
        self.encoder = Encoder(config)

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, token_type_ids: Tensor | None = None
    ) -> Tensor:
        mask = None if attention_mask is None else attention_mask.bool()[:, None, None, :]
        result: Tensor = self.encoder(self.embeddings(input_ids, token_type_ids), mask)
        return result

    @classmethod
    def from_file(cls, folder: str | os.PathLike[str], device: DeviceLike = None) -> Bert:
        """A model with its weights, from a folder of `config.json` and safetensors. Heads and poolers are not read.

        Raises: SafetensorError for a damaged file; ValueError for another architecture, or weights that are missing or
        of other shapes.
        """
        config = read_config(Path(folder))
        with devices.device("meta"):  # The weights are there already.
            model = cls(config)
        weights = safetensors.load_folder(folder, device)
        own = {name.removeprefix("bert."): value for name, value in weights.items()}
        names = model.state_dict()
        model.load_state_dict({name: value for name, value in own.items() if name in names}, assign=True)
        return model.eval()


def read_config(folder: Path) -> BertConfig:
    """The sizes that a folder's config.json gives. Raises: ValueError for what this module does not compute."""
    facts: dict[str, Any] = json.loads((folder / "config.json").read_text("utf-8"))
    known = {
        "model_type": ("bert",),
        "position_embedding_type": ("absolute", None),
        "hidden_act": (*ACTIVATIONS, None),
    }
    for name, values in known.items():
        if facts.get(name) not in values:
            texts = ", ".join(map(repr, filter(None, values)))
            raise ValueError(f"{folder}: its {name} is {facts.get(name)!r}; known: {texts}")
    return BertConfig(**{field.name: facts[field.name] for field in fields(BertConfig) if field.name in facts})
