"""The Llama family of language models, with the names of `transformers`' state dicts: Llama 2 and 3, SmolLM2, Mistral,
Qwen 2 and 3, Gemma 1 to 3.

A model is a tree of plain modules. `from_file` reads GGUF files and folders of `config.json` and safetensors.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
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
    layer_types: of each layer, "sliding_attention" or "full_attention", which has no window; None: the window is all
    layers'.  local_rope_theta: of layers with a window, whose rotations are not scaled; None: as all (Gemma 3).
    rope_scaling: None, or the parameters of "linear", "llama3" or "factors" scaling of the rotations.
    hidden_act: "silu", or "gelu_pytorch_tanh".  is_gemma: norms multiply by 1 + weight, and embeddings by the root of
    their size.  post_norms: whether what attention and MLP give is normalised, too (Gemma 2 and 3).
    query_pre_attn_scalar: scores are divided by its root; None: by that of head_dim.
    attn_logit_softcapping, final_logit_softcapping: what scores and logits are bound by, smoothly (Gemma 2).
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
    layer_types: Sequence[str] | None = None
    local_rope_theta: float | None = None
    hidden_act: str = "silu"
    is_gemma: bool = False
    post_norms: bool = False
    query_pre_attn_scalar: float | None = None
    attn_logit_softcapping: float | None = None
    final_logit_softcapping: float | None = None

    def slides(self, layer: int) -> bool:
        """Whether a layer's tokens read a window of others."""
        if self.layer_types is not None and self.layer_types[layer] == "full_attention":
            return False
        return self.sliding_window is not None


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


class GemmaNorm(RMSNorm):
    """A norm that multiplies by 1 + weight, in float32."""

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x.float(), self.normalized_shape, self.weight.float() + 1, self.eps).type_as(x)


def _norm(size: int, config: LlamaConfig) -> RMSNorm:
    return (GemmaNorm if config.is_gemma else RMSNorm)(size, eps=config.rms_norm_eps)


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
            self.q_norm, self.k_norm = _norm(config.head_dim, config), _norm(config.head_dim, config)
        self.scale = (config.query_pre_attn_scalar or config.head_dim) ** -0.5
        self.cap = config.attn_logit_softcapping

    def forward(self, x: Tensor, place: Place, layer: int) -> Tensor:
        query, key, value = (
            self._heads(projection(x)) for projection in (self.q_proj, self.k_proj, self.v_proj)
        )  # (batch, heads, length, head_dim)
        if hasattr(self, "q_norm"):
            query, key = self.q_norm(query), self.k_norm(key)
        query, key = rotate(query, place.rotation), rotate(key, place.rotation)
        if place.cache is not None:
            key, value = place.cache.write(layer, place.positions, key, value)
        if self.cap is not None:
            mixed = self._capped(query, key, value, place)
        else:
            mask, scale = place.mask, self.scale
            mixed = F.scaled_dot_product_attention(
                query, key, value, attn_mask=mask, is_causal=mask is None, scale=scale, enable_gqa=True
            )
        result: Tensor = self.o_proj(mixed.transpose(1, 2).flatten(2))
        return result

    def _heads(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (-1, self.head_dim)).transpose(1, 2)

    def _capped(self, query: Tensor, key: Tensor, value: Tensor, place: Place) -> Tensor:
        """Attention whose scores stay below a bound."""
        assert self.cap is not None
        grouped = query.unflatten(1, (key.shape[1], -1))  # (batch, key heads, group, length, head_dim)
        scores = (grouped @ key.unsqueeze(2).transpose(-2, -1)).float() * self.scale
        scores = (scores / self.cap).tanh() * self.cap
        mask = place.mask
        if mask is None:
            mask = create.arange(key.shape[2], device=query.device) <= place.positions.unsqueeze(1)
        weights: Tensor = scores.masked_fill(~mask, float("-inf")).softmax(-1).to(value.dtype)
        mixed: Tensor = weights @ value.unsqueeze(2)
        return mixed.flatten(1, 2)


class MLP(Module):
    """The gated layer: down(activation(gate(x)) * up(x))."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.gate_proj = Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.up_proj = Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.down_proj = Linear(config.intermediate_size, config.hidden_size, bias=False)
        self.is_gelu = config.hidden_act != "silu"

    def forward(self, x: Tensor) -> Tensor:
        gate = self.gate_proj(x)
        gate = F.gelu(gate, approximate="tanh") if self.is_gelu else F.silu(gate)
        result: Tensor = self.down_proj(gate * self.up_proj(x))
        return result


class Block(Module):
    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.input_layernorm = _norm(config.hidden_size, config)
        self.self_attn = Attention(config)
        self.post_attention_layernorm = _norm(config.hidden_size, config)
        self.mlp = MLP(config)
        if config.post_norms:
            self.pre_feedforward_layernorm = _norm(config.hidden_size, config)
            self.post_feedforward_layernorm = _norm(config.hidden_size, config)

    def forward(self, x: Tensor, place: Place, layer: int) -> Tensor:
        change: Tensor = self.self_attn(self.input_layernorm(x), place, layer)
        if hasattr(self, "post_feedforward_layernorm"):
            x = x + self.post_attention_layernorm(change)
            change = self.mlp(self.pre_feedforward_layernorm(x))
            result: Tensor = x + self.post_feedforward_layernorm(change)
        else:
            x = x + change
            result = x + self.mlp(self.post_attention_layernorm(x))
        return result


class Trunk(Module):
    """The model without its head: token ids to the last hidden states."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.config = config
        self.embed_tokens = Embedding(config.vocab_size, config.hidden_size)
        self.layers = ModuleList([Block(config) for _ in range(config.num_hidden_layers)])
        self.norm = _norm(config.hidden_size, config)

    def forward(self, input_ids: Tensor, cache: Cache | None = None) -> Tensor:
        slides = [self.config.slides(layer) for layer in range(self.config.num_hidden_layers)]
        places = self._places(input_ids, cache, set(slides))
        x = self.embed_tokens(input_ids)
        if self.config.is_gemma:
            x = x * self.config.hidden_size**0.5
        for layer, block in enumerate(self.layers):
            x = block(x, places[slides[layer]], layer)
        result: Tensor = self.norm(x)
        return result

    def _places(self, input_ids: Tensor, cache: Cache | None, kinds: Collection[bool]) -> dict[bool, Place]:
        """Where the tokens stand for layers with a window (True) and without one, as far as there are such layers."""
        offsets = create.arange(input_ids.shape[1], device=input_ids.device)
        positions = offsets if cache is None else cache.advance(offsets)
        stored = offsets if cache is None else create.arange(cache.length, device=input_ids.device)
        config, places = self.config, {}
        for slides in kinds:
            mask = None
            if cache is not None or slides:  # Else attention is told that it is causal, which is faster.
                mask = stored <= positions.unsqueeze(1)
            if mask is not None and slides and config.sliding_window is not None:
                mask = mask & (stored > positions.unsqueeze(1) - config.sliding_window)
            if slides and config.local_rope_theta is not None:
                local = replace(config, rope_theta=config.local_rope_theta, rope_scaling=None)
                rotation = rotation_at(positions, local)
            else:
                rotation = rotation_at(positions, config)
            places[slides] = Place(positions, rotation, cache, mask)
        return places


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
        logits: Tensor = self.lm_head(hidden if only is None else hidden.index_select(1, only.reshape(1)))
        cap = self.config.final_logit_softcapping
        return logits if cap is None else (logits / cap).tanh() * cap

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

ARCHITECTURES = ("llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3")
# Gemma: every so manieth layer has no window, the others one (0: none has); how many blocks the model has whose scores
# are divided by the root of its size over its heads.
GEMMAS = {"gemma": (0, 0), "gemma2": (2, 46), "gemma3": (6, 62)}
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
# Where attention and MLP are followed by norms, one name is another's.
WITH_POST_NORMS = {
    **IN_LAYER,
    "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
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
        own = name_of_gguf(name, architecture)
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
            if config.is_gemma and own.endswith("norm.weight"):
                weight = weight - 1  # Files have the factor itself.
            weights[own] = _halves_of_pairs(weight, config.head_dim) if in_pairs else weight
    return config, weights


def config_of_gguf(file: gguf.File, architecture: str) -> LlamaConfig:
    """The sizes that a file's metadata give."""

    def value(key: str, default: Any = None) -> Any:
        result = file.metadata.get(f"{architecture}.{key}", default)
        if result is None:
            raise ValueError(f"{file.name}the metadata have no {architecture}.{key}")
        return result

    heads, width, n_layers = value("attention.head_count"), value("embedding_length"), value("block_count")
    embedding = file.entries.get("token_embd.weight")
    if embedding is None:
        raise ValueError(f"{file.name}there is no token_embd.weight")
    return LlamaConfig(
        vocab_size=embedding.shape[0],
        hidden_size=width,
        intermediate_size=value("feed_forward_length"),
        num_hidden_layers=n_layers,
        num_attention_heads=heads,
        num_key_value_heads=value("attention.head_count_kv", heads),
        head_dim=value("attention.key_length", width // heads),
        max_position_embeddings=value("context_length", 2048),
        rms_norm_eps=value("attention.layer_norm_rms_epsilon", 1e-6),
        rope_theta=value("rope.freq_base", 10000.0),
        rope_scaling=_scaling_of_gguf(file, architecture),
        tie_word_embeddings="output.weight" not in file.entries,
        attention_bias="blk.0.attn_q.bias" in file.entries,
        qk_norm="blk.0.attn_q_norm.weight" in file.entries,
        sliding_window=file.metadata.get(f"{architecture}.attention.sliding_window"),
        **_gemma_of_gguf(file, architecture, n_layers, width // heads),
    )


def _gemma_of_gguf(file: gguf.File, architecture: str, n_layers: int, width_of_head: int) -> dict[str, Any]:
    """What a file says of Gemma, and what is known of it without being said."""
    if architecture not in GEMMAS:
        return {}
    pattern, n_largest = GEMMAS[architecture]
    facts = _gemma(architecture, n_layers, pattern)
    facts["query_pre_attn_scalar"] = width_of_head if n_layers == n_largest else None
    if architecture == "gemma2":
        for name, default in (("attn_logit_softcapping", 50.0), ("final_logit_softcapping", 30.0)):
            facts[name] = file.metadata.get(f"{architecture}.{name}", default)
    if architecture == "gemma3":
        facts["local_rope_theta"] = file.metadata.get(f"{architecture}.rope.freq_base_swa", 10000.0)
    return facts


def _gemma(architecture: str, n_layers: int, pattern: int) -> dict[str, Any]:
    """What all files of a kind of Gemma have in common."""
    types = ["sliding_attention" if pattern and (i + 1) % pattern else "full_attention" for i in range(n_layers)]
    return {
        "is_gemma": True,
        "post_norms": architecture != "gemma",
        "hidden_act": "gelu_pytorch_tanh",
        "layer_types": tuple(types),
    }


def _scaling_of_gguf(file: gguf.File, architecture: str) -> dict[str, Any] | None:
    """Llama 3's scaling is a tensor of factors in GGUF. Raises: ValueError for a scaling that is not known here."""
    if "rope_freqs.weight" in file.entries:
        return {"rope_type": "factors", "factors": file.tensor("rope_freqs.weight", "cpu")}
    kind = file.metadata.get(f"{architecture}.rope.scaling.type", "none")
    if kind not in ("none", "linear"):
        raise ValueError(
            f"{file.name}its rotations are scaled as {kind!r}; known are 'linear', and a tensor of factors"
        )
    factor = file.metadata.get(f"{architecture}.rope.scaling.factor", 1.0)
    return {"rope_type": "linear", "factor": factor} if kind == "linear" else None


def name_of_gguf(name: str, architecture: str) -> str | None:
    """The name in a state dict of a tensor of a GGUF file; None for one that this family has not."""
    match = LAYER.fullmatch(name)
    names = WITH_POST_NORMS if architecture in ("gemma2", "gemma3") else IN_LAYER
    if match and match[2] in names:
        return f"model.layers.{match[1]}.{names[match[2]]}.{match[3]}"
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
    architecture = facts.get("model_type", "").removesuffix("_text")
    if architecture not in ARCHITECTURES:
        raise ValueError(f"{folder}: its model_type is {architecture!r}; known are {', '.join(ARCHITECTURES)}")
    heads = facts["num_attention_heads"]
    rotations = facts.get("rope_parameters") or {}
    gemma = _gemma_of_folder(facts, architecture, rotations)
    rotations = rotations.get("full_attention", rotations)
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
        rope_theta=facts.get("rope_theta") or rotations.get("rope_theta", 10000.0),
        rope_scaling=facts.get("rope_scaling") or rotations or None,
        tie_word_embeddings=facts.get("tie_word_embeddings", architecture in GEMMAS),
        attention_bias=architecture == "qwen2" or facts.get("attention_bias", False),
        qk_norm=architecture in ("qwen3", "gemma3"),
        sliding_window=facts.get("sliding_window") if facts.get("use_sliding_window", True) else None,
        **{"layer_types": facts.get("layer_types"), **gemma},
    )
    return config, safetensors.load_folder(folder, device)


def _gemma_of_folder(facts: Mapping[str, Any], architecture: str, rotations: Mapping[str, Any]) -> dict[str, Any]:
    """What a config.json says of Gemma."""
    if architecture not in GEMMAS:
        return {}
    pattern = facts.get("sliding_window_pattern", GEMMAS[architecture][0])
    gemma = _gemma(architecture, facts["num_hidden_layers"], pattern)
    for name in ("layer_types", "query_pre_attn_scalar", "attn_logit_softcapping", "final_logit_softcapping"):
        gemma[name] = facts.get(name, gemma.get(name))
    if architecture == "gemma3":
        local = rotations.get("sliding_attention") or {}
        gemma["local_rope_theta"] = facts.get("rope_local_base_freq") or local.get("rope_theta", 10000.0)
    return gemma
