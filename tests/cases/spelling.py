"""A language model that has learnt nothing, with a tokenizer of letters, as a GGUF file."""

from pathlib import Path

from pywebgpu.io import gguf
from pywebgpu.models.llama import IN_LAYER, OUTSIDE, Llama, LlamaConfig, as_in_gguf
from pywebgpu.tensor import create
from pywebgpu.tensor.tensor import Tensor
from tests.cases import adapters, language_models

LETTERS = [*map(chr, range(97, 123)), "Ġ", "Ċ", "<|im_start|>", "<|im_end|>"]
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }} {{ message.content }}<|im_end|>{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant {% endif %}"
)


def model(device: str = "cpu") -> Llama:
    """The model of tests/cases/adapters.py, without adapters."""
    config = LlamaConfig(**{key: value for key, value in adapters.FACTS.items() if key != "rope_parameters"})
    shapes = {key: tuple(value.shape) for key, value in Llama(config).state_dict().items()}
    return Llama.with_weights(config, tensors(shapes, device))


def tensors(shapes: dict[str, tuple[int, ...]], device: str) -> dict[str, Tensor]:
    return {key: create.tensor(array, device=device) for key, array in language_models.weights(shapes).items()}


def write(source: Llama, path: Path) -> gguf.File:
    """The model with a tokenizer: letters, space, line, two special tokens, and names of numbers for all others."""
    names = {ours: theirs for theirs, ours in {**IN_LAYER, **OUTSIDE}.items()}
    tensors = {}
    for key, value in source.state_dict().items():
        stem, kind = key.rsplit(".", 1)
        layer, _, inner = stem.removeprefix("model.layers.").partition(".")
        name = f"blk.{layer}.{names[inner]}.{kind}" if stem.startswith("model.layers.") else f"{names[stem]}.{kind}"
        tensors[name] = as_in_gguf(key, value, "llama", source.config.head_dim)
    config = source.config
    n_others = config.vocab_size - len(LETTERS)
    metadata = {
        "general.architecture": "llama",
        "llama.block_count": config.num_hidden_layers,
        "llama.context_length": config.max_position_embeddings,
        "llama.embedding_length": config.hidden_size,
        "llama.feed_forward_length": config.intermediate_size,
        "llama.attention.head_count": config.num_attention_heads,
        "llama.attention.head_count_kv": config.num_key_value_heads,
        "llama.attention.layer_norm_rms_epsilon": config.rms_norm_eps,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.tokens": [*LETTERS, *(chr(65 + i) for i in range(n_others))],
        "tokenizer.ggml.token_type": [1] * (len(LETTERS) - 2) + [3, 3] + [1] * n_others,
        "tokenizer.ggml.merges": [],
        "tokenizer.chat_template": TEMPLATE,
    }
    formats = {"blk.0.attn_q.weight": "q4_1", "blk.0.ffn_up.weight": "q4_0"}
    gguf.save_file(tensors, path, metadata, formats=formats)
    return gguf.File(path)
