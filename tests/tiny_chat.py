"""A file of a language model that knows little more than bytes: small enough for the tests of every host."""

from pathlib import Path

import numpy as np

from pywebgpu.io import gguf
from pywebgpu.models.byte_pairs import CHARACTERS
from pywebgpu.tensor import create

WIDTH, INNER, LAYERS, HEADS, KEY_HEADS = 32, 64, 2, 4, 2
MARKS = ["<|im_start|>", "<|im_end|>"]
TOKENS = [*CHARACTERS.values(), "ab", *MARKS]
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
FACTS = {
    "general.architecture": "llama",
    "general.name": "Tiny",
    "llama.block_count": LAYERS,
    "llama.embedding_length": WIDTH,
    "llama.feed_forward_length": INNER,
    "llama.attention.head_count": HEADS,
    "llama.attention.head_count_kv": KEY_HEADS,
    "llama.attention.layer_norm_rms_epsilon": 1e-5,
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.pre": "smollm",
    "tokenizer.ggml.tokens": TOKENS,
    "tokenizer.ggml.merges": ["a b"],
    "tokenizer.ggml.token_type": [3 if token in MARKS else 1 for token in TOKENS],
    "tokenizer.ggml.eos_token_id": len(TOKENS) - 1,
    "tokenizer.chat_template": TEMPLATE,
}


def write(path: Path, *, room: int = 512) -> Path:
    """Writes the file: random weights, those of products in Q8_0, and room for so many tokens. Returns its path."""
    draw = np.random.default_rng(5)
    keys = WIDTH // HEADS * KEY_HEADS
    shapes = {"token_embd": (len(TOKENS), WIDTH), "output": (len(TOKENS), WIDTH)}
    for layer in range(LAYERS):
        rows = {
            "attn_q": WIDTH,
            "attn_k": keys,
            "attn_v": keys,
            "attn_output": WIDTH,
            "ffn_gate": INNER,
            "ffn_up": INNER,
        }
        shapes |= {f"blk.{layer}.{name}": (count, WIDTH) for name, count in rows.items()}
        shapes[f"blk.{layer}.ffn_down"] = (WIDTH, INNER)
    norms = ["output_norm", *(f"blk.{layer}.{name}" for layer in range(LAYERS) for name in ("attn_norm", "ffn_norm"))]
    weights = {
        f"{name}.weight": create.tensor(draw.normal(size=shape).astype("float32") * 4 / shape[1] ** 0.5, device="cpu")
        for name, shape in shapes.items()
    }
    formats = dict.fromkeys(weights, "q8_0")
    weights |= {f"{name}.weight": create.ones(WIDTH, device="cpu") for name in norms}
    gguf.save_file(weights, path, {**FACTS, "llama.context_length": room}, formats=formats)
    return path
