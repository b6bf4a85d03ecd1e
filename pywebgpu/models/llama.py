"""The Llama family of language models, with the names of `transformers`' state dicts: Llama 2 and 3, SmolLM2, Mistral,
Qwen 2 and 3.

A model is a tree of plain modules. `from_file` reads GGUF files and folders of `config.json` and safetensors.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pywebgpu import devices, dtypes
from pywebgpu.composites.quantized import FORMATS
from pywebgpu.io import gguf, safetensors
from pywebgpu.models.cache import Cache
from pywebgpu.models.quantized import Planes, quantized_layer
from pywebgpu.nn import functional as F
from pywebgpu.nn.container import ModuleList
from pywebgpu.nn.embedding import Embedding
from pywebgpu.nn.linear import Linear
from pywebgpu.nn.module import Module
from pywebgpu.nn.norm import RMSNorm
from pywebgpu.tensor import create, functions
from pywebgpu.tensor.tensor import Tensor

if TYPE_CHECKING:
    from pywebgpu.tensor.factory_options import DeviceLike


@dataclass(frozen=True, slots=True)
class LlamaConfig:
    """The sizes of a model, under the names of `transformers`' config.json.

    attention_bias: whether the projections to queries, keys and values add a bias (Qwen 2).
    qk_norm: whether the queries and keys of each head are normalised (Qwen 3).
    sliding_window: how many tokens each may read, itself included; None for all before it.
    rope_scaling: None, or the parameters of "linear", "llama3" or "factors" scaling of the rotations.
    """

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    max_position_embeddings: int = 2048
    rms_norm_eps: float = 1e-6
    rope_theta: float = 10000.0
    rope_scaling: Mapping[str, Any] | None = None
    tie_word_embeddings: bool = True
    attention_bias: bool = False
    qk_norm: bool = False
    sliding_window: int | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """Where the tokens of one call stand, which all layers share.

    positions: (length) in the sequence.  rotation: see `rotation_at`.
    mask: which of the tokens stored, or of this call, each may read; None for all up to itself.
    """

    positions: Tensor
    rotation: tuple[Tensor, Tensor]
    cache: Cache | None = None
    mask: Tensor | None = None


class Attention(Module):
    """Causal attention whose queries share keys and values in groups, with rotary positions."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.head_dim = config.head_dim
        queries, keys = config.num_attention_heads * config.head_dim, config.num_key_value_heads * config.head_dim
        self.q_proj = Linear(config.hidden_size, queries, bias=config.attention_bias)
        self.k_proj = Linear(config.hidden_size, keys, bias=config.attention_bias)
        self.v_proj = Linear(config.hidden_size, keys, bias=config.attention_bias)
        self.o_proj = Linear(queries, config.hidden_size, bias=False)
        if config.qk_norm:
            self.q_norm = RMSNorm(config.head_dim, eps=config.rms_norm_eps)
            self.k_norm = RMSNorm(config.head_dim, eps=config.rms_norm_eps)

    def forward(self, x: Tensor, place: Place, layer: int) -> Tensor:
        query, key, value = (
            self._heads(projection(x)) for projection in (self.q_proj, self.k_proj, self.v_proj)
        )  # (batch, heads, length, head_dim)
        if hasattr(self, "q_norm"):
            query, key = self.q_norm(query), self.k_norm(key)
        query, key = rotate(query, place.rotation), rotate(key, place.rotation)
        if place.cache is not None:
            key, value = place.cache.write(layer, place.positions, key, value)
        mixed = F.scaled_dot_product_attention(
            query, key, value, attn_mask=place.mask, is_causal=place.mask is None, enable_gqa=True
        )
        result: Tensor = self.o_proj(mixed.transpose(1, 2).flatten(2))
        return result

    def _heads(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (-1, self.head_dim)).transpose(1, 2)


class MLP(Module):
    """The gated layer: down(silu(gate(x)) * up(x))."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.gate_proj = Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.up_proj = Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.down_proj = Linear(config.intermediate_size, config.hidden_size, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))
        return result


class Block(Module):
    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.input_layernorm = RMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        self.self_attn = Attention(config)
        self.post_attention_layernorm = RMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        self.mlp = MLP(config)

    def forward(self, x: Tensor, place: Place, layer: int) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x), place, layer)
        result: Tensor = x + self.mlp(self.post_attention_layernorm(x))
        return result


class Trunk(Module):
    """The model without its head: token ids to the last hidden states."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.config = config
        self.embed_tokens = Embedding(config.vocab_size, config.hidden_size)
        self.layers = ModuleList([Block(config) for _ in range(config.num_hidden_layers)])
        self.norm = RMSNorm(config.hidden_size, eps=config.rms_norm_eps)

    def forward(self, input_ids: Tensor, cache: Cache | None = None) -> Tensor:
        place = self._place(input_ids, cache)
        x = self.embed_tokens(input_ids)
        for layer, block in enumerate(self.layers):
            x = block(x, place, layer)
        result: Tensor = self.norm(x)
        return result

    def _place(self, input_ids: Tensor, cache: Cache | None) -> Place:
        offsets = create.arange(input_ids.shape[1], device=input_ids.device)
        positions = offsets if cache is None else cache.advance(offsets)
        stored = offsets if cache is None else create.arange(cache.length, device=input_ids.device)
        window, mask = self.config.sliding_window, None
        if cache is not None or window is not None:  # Else attention is told that it is causal, which is faster.
            mask = stored <= positions.unsqueeze(1)
        if mask is not None and window is not None:
            mask = mask & (stored > positions.unsqueeze(1) - window)
        return Place(positions, rotation_at(positions, self.config), cache, mask)


class Llama(Module):
    """A language model: token ids to logits of the next token.

    Shapes: input_ids (batch, length) -> (batch, length, vocab_size).  Dtypes: int64 -> the weights' dtype.
    With a cache the ids follow those that it holds, and the cache holds them too afterwards.  only: the place of
    the one token whose logits are wanted.
    """

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.config = config
        self.model = Trunk(config)
        self.lm_head = Linear(config.hidden_size, config.vocab_size, bias=False)
        if config.tie_word_embeddings:
            self.lm_head.weight = self.model.embed_tokens.weight

    def forward(self, input_ids: Tensor, cache: Cache | None = None, *, only: Tensor | None = None) -> Tensor:
        hidden = self.model(input_ids, cache)
        result: Tensor = self.lm_head(hidden if only is None else hidden.index_select(1, only.reshape(1)))
        return result

    @property
    def vocab_size(self) -> int:
        return self.config.vocab_size

    def new_cache(self, length: int, batch: int = 1) -> Cache:
        """An empty cache with room for `length` tokens of each of `batch` sequences."""
        config, weight = self.config, self.model.norm.weight
        assert isinstance(weight, Tensor)
        shape = (batch, config.num_key_value_heads, length, config.head_dim)
        return Cache(config.num_hidden_layers, shape, dtype=weight.dtype, device=weight.device)

    @classmethod
    def from_file(
        cls, source: str | os.PathLike[str] | gguf.File, device: DeviceLike = None, *, quantized: bool | None = None
    ) -> Llama:
        """A model with its weights, from a GGUF file, or from a folder of `config.json` and safetensors.

        quantized: whether quantised weights of a GGUF file stay so (see `models/quantized.py`), else they become
        float32. None: on a GPU, where reading them is what takes time, and not on device cpu, which decodes slowly.

        Raises: GGUFError or SafetensorError for a damaged file; ValueError for another architecture, or weights that
        are missing or of other shapes.
        """
        if not isinstance(source, gguf.File) and os.path.isdir(source):
            if quantized:
                raise ValueError(f"{os.fspath(source)}: its weights are not quantised; quantize(model, ...) does it")
            return cls.with_weights(*read_folder(Path(source), device))
        file = source if isinstance(source, gguf.File) else gguf.File(source)
        stays = not devices.open_device(device).is_host if quantized is None else quantized
        return cls.with_weights(*read_gguf(file, device, quantized=stays))

    @classmethod
    def with_weights(cls, config: LlamaConfig, weights: Mapping[str, Tensor | Planes]) -> Llama:
        """A model of these weights, which are taken as they are."""
        with devices.device("meta"):  # The weights are there already.
            model = cls(config)
        weights = dict(weights)
        if config.tie_word_embeddings:
            weights.setdefault("lm_head.weight", weights["model.embed_tokens.weight"])
        state: dict[str, Tensor] = {}
        for name, weight in weights.items():
            if isinstance(weight, Planes):
                path = name.removesuffix(".weight")
                model.set_submodule(path, quantized_layer(model.get_submodule(path), weight))
                state |= {f"{path}.{plane}": tensor for plane, tensor in weight.tensors.items()}
            else:
                state[name] = weight
        model.load_state_dict(state, assign=True)
        if config.tie_word_embeddings and isinstance(model.lm_head, Linear):
            model.lm_head.weight = model.model.embed_tokens.weight
        return model.eval()


def open_source(path: str | os.PathLike[str]) -> Path | gguf.File:
    """What `from_file` of a model and of its tokenizer read: a folder, or a GGUF file, opened once for both."""
    return Path(path) if os.path.isdir(path) else gguf.File(path)


# Rotary positions


def rotation_at(positions: Tensor, config: LlamaConfig) -> tuple[Tensor, Tensor]:
    """The cosines and sines by which heads at these positions are rotated, each (length, head_dim).

    The sines of the first half are negative, so that a rotation only has to exchange the halves.
    Source: Su et al. 2021 (arXiv 2104.09864); the first half of a head with the second, as transformers has them.
    """
    half = create.arange(0, config.head_dim, 2, device=positions.device, dtype=dtypes.float32)
    frequencies = scaled_frequencies(1.0 / config.rope_theta ** (half / config.head_dim), config.rope_scaling)
    angles = positions.float().unsqueeze(1) * frequencies
    cosines, sines = angles.cos(), angles.sin()
    return functions.cat([cosines, cosines], dim=1), functions.cat([-sines, sines], dim=1)


def scaled_frequencies(frequencies: Tensor, scaling: Mapping[str, Any] | None) -> Tensor:
    """Frequencies for positions beyond those of the training: slower by a factor, or only the slow ones (Llama 3)."""
    kind = (scaling or {}).get("rope_type", "default")
    if scaling is None or kind == "default":
        return frequencies
    slower: Tensor
    if kind == "factors":  # GGUF's: one for each frequency
        slower = frequencies / scaling["factors"].to(frequencies.device)
    elif kind == "linear":
        slower = frequencies / scaling["factor"]
    elif kind == "llama3":
        low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
        turns = scaling["original_max_position_embeddings"] * frequencies / (2 * math.pi)
        unscaled = ((turns - low) / (high - low)).clamp(0, 1)
        slower = frequencies * (unscaled + (1 - unscaled) / scaling["factor"])
    else:
        raise ValueError(f"rope_scaling: {kind!r} is not known here; known are default, factors, linear and llama3")
    return slower


def rotate(x: Tensor, rotation: tuple[Tensor, Tensor]) -> Tensor:
    """Heads (batch, heads, length, head_dim) rotated by their positions."""
    exchanged = x.unflatten(-1, (2, -1)).flip(-2).flatten(-2)
    cosines, sines = (part.to(x.dtype) for part in rotation)
    return x * cosines + exchanged * sines


# Files

ARCHITECTURES = ("llama", "mistral", "qwen2", "qwen3")
# GGUF's names of what stands in a layer, and ours.
IN_LAYER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
OUTSIDE = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
LAYER = re.compile(r"blk\.(\d+)\.(\w+)\.(weight|bias)")


def read_gguf(
    file: gguf.File, device: DeviceLike = None, *, quantized: bool = False
) -> tuple[LlamaConfig, dict[str, Tensor | Planes]]:
    """The sizes and the weights of a GGUF file by the names of a state dict: dequantised, or as they are where a layer
    can have them so. Raises as `from_file`."""
    architecture = file.metadata.get("general.architecture")
    if architecture not in ARCHITECTURES:
        raise ValueError(f"{file.name}its architecture is {architecture!r}; known are {', '.join(ARCHITECTURES)}")
    config = config_of_gguf(file, architecture)
    weights: dict[str, Tensor | Planes] = {}
    for name, entry in file.entries.items():
        own = name_of_gguf(name)
        if own is None:
            if name == "rope_freqs.weight":  # What rope_scaling says too.
                continue
            raise ValueError(f"{file.name}the tensor {name!r} is none of this architecture")
        in_pairs = _rotates_pairs(architecture, own)
        if quantized and entry.format.name in FORMATS and len(entry.shape) == 2:
            data = file.bytes_of(name)
            if in_pairs:
                data = _rows_of_halves(data, entry.shape[0], config.head_dim)
            weights[own] = Planes.of_bytes(data, entry.shape[0], entry.format.name, device)
        else:
            weight = file.tensor(name, device)
            weights[own] = _halves_of_pairs(weight, config.head_dim) if in_pairs else weight
    return config, weights


def config_of_gguf(file: gguf.File, architecture: str) -> LlamaConfig:
    """The sizes that a file's metadata give."""

    def value(key: str, default: Any = None) -> Any:
        result = file.metadata.get(f"{architecture}.{key}", default)
        if result is None:
            raise ValueError(f"{file.name}the metadata have no {architecture}.{key}")
        return result

    heads, width = value("attention.head_count"), value("embedding_length")
    embedding = file.entries.get("token_embd.weight")
    if embedding is None:
        raise ValueError(f"{file.name}there is no token_embd.weight")
    return LlamaConfig(
        vocab_size=embedding.shape[0],
        hidden_size=width,
        intermediate_size=value("feed_forward_length"),
        num_hidden_layers=value("block_count"),
        num_attention_heads=heads,
        num_key_value_heads=value("attention.head_count_kv", heads),
        head_dim=value("attention.key_length", width // heads),
        max_position_embeddings=value("context_length", 2048),
        rms_norm_eps=value("attention.layer_norm_rms_epsilon", 1e-6),
        rope_theta=value("rope.freq_base", 10000.0),
        rope_scaling=_scaling_of_gguf(file),
        tie_word_embeddings="output.weight" not in file.entries,
        attention_bias="blk.0.attn_q.bias" in file.entries,
        qk_norm="blk.0.attn_q_norm.weight" in file.entries,
        sliding_window=file.metadata.get(f"{architecture}.attention.sliding_window"),
    )


def _scaling_of_gguf(file: gguf.File) -> dict[str, Any] | None:
    """Llama 3's scaling is a tensor of factors in GGUF."""
    if "rope_freqs.weight" in file.entries:
        return {"rope_type": "factors", "factors": file.tensor("rope_freqs.weight", "cpu")}
    return None


def name_of_gguf(name: str) -> str | None:
    """The name in a state dict of a tensor of a GGUF file; None for one that this family has not."""
    match = LAYER.fullmatch(name)
    if match and match[2] in IN_LAYER:
        return f"model.layers.{match[1]}.{IN_LAYER[match[2]]}.{match[3]}"
    stem, _, kind = name.rpartition(".")
    return f"{OUTSIDE[stem]}.{kind}" if stem in OUTSIDE else None


def _rotates_pairs(architecture: str, name: str) -> bool:
    """Whether GGUF orders a weight's rows so that pairs of neighbours rotate: `name` is ours."""
    return architecture == "llama" and name.endswith(("q_proj.weight", "k_proj.weight"))


def as_in_gguf(name: str, weight: Tensor, architecture: str, head_dim: int) -> Tensor:
    """A weight with its rows in the order in which GGUF files of an architecture have them."""
    if not _rotates_pairs(architecture, name):
        return weight
    return weight.unflatten(0, (-1, 2, head_dim // 2)).transpose(1, 2).flatten(0, 2)


def _halves_of_pairs(weight: Tensor, head_dim: int) -> Tensor:
    """Rows of each head, which GGUF orders so that pairs of neighbours rotate, in the order in which halves do."""
    return weight.unflatten(0, (-1, head_dim // 2, 2)).transpose(1, 2).flatten(0, 2)


def _rows_of_halves(data: bytes | memoryview, rows: int, head_dim: int) -> bytes:
    """The same of the bytes of rows."""
    size, half = len(data) // rows, head_dim // 2
    order = [head + 2 * (row % half) + row // half for head in range(0, rows, head_dim) for row in range(head_dim)]
    return b"".join([data[row * size : (row + 1) * size] for row in order])


def read_folder(folder: Path, device: DeviceLike = None) -> tuple[LlamaConfig, dict[str, Tensor]]:
    """The sizes and the weights of a folder of `transformers`. Raises as `from_file`."""
    facts = json.loads((folder / "config.json").read_text("utf-8"))
    architecture = facts.get("model_type")
    if architecture not in ARCHITECTURES:
        raise ValueError(f"{folder}: its model_type is {architecture!r}; known are {', '.join(ARCHITECTURES)}")
    heads = facts["num_attention_heads"]
    config = LlamaConfig(
        vocab_size=facts["vocab_size"],
        hidden_size=facts["hidden_size"],
        intermediate_size=facts["intermediate_size"],
        num_hidden_layers=facts["num_hidden_layers"],
        num_attention_heads=heads,
        num_key_value_heads=facts.get("num_key_value_heads") or heads,
        head_dim=facts.get("head_dim") or facts["hidden_size"] // heads,
        max_position_embeddings=facts.get("max_position_embeddings", 2048),
        rms_norm_eps=facts.get("rms_norm_eps", 1e-6),
        rope_theta=facts.get("rope_theta") or (facts.get("rope_parameters") or {}).get("rope_theta", 10000.0),
        rope_scaling=facts.get("rope_scaling") or facts.get("rope_parameters"),
        tie_word_embeddings=facts.get("tie_word_embeddings", False),
        attention_bias=architecture == "qwen2" or facts.get("attention_bias", False),
        qk_norm=architecture == "qwen3",
        sliding_window=facts.get("sliding_window") if facts.get("use_sliding_window", True) else None,
    )
    return config, safetensors.load_folder(folder, device)
