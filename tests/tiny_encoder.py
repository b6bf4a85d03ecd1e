"""A folder of a text encoder that knows a few words: small enough for the tests of every host."""

import json
from pathlib import Path

import numpy as np

from pywebgpu.io import safetensors
from pywebgpu.models.bert import Bert, BertConfig
from pywebgpu.models.wordpiece import SPECIAL
from pywebgpu.tensor import create

SIZES = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
WORDS = "a cat dog sat ran on the mat street bread needs flour water and salt where what does ."


def write(folder: Path) -> Path:
    """Writes the files, with random weights. Returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = [*SPECIAL, *WORDS.split()]
    facts = {**SIZES, "vocab_size": len(vocabulary), "max_position_embeddings": 64}
    model, draw = Bert(BertConfig(**facts)), np.random.default_rng(7)
    arrays = {name: draw.normal(size=value.shape).astype("float32") / 6 for name, value in model.state_dict().items()}
    arrays |= {name: array + 1 for name, array in arrays.items() if name.endswith("LayerNorm.weight")}
    weights = {name: create.tensor(array, device="cpu") for name, array in arrays.items()}
    safetensors.save_file(weights, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps({**facts, "model_type": "bert"}), "utf-8")
    (folder / "vocab.txt").write_text("\n".join(vocabulary), "utf-8")
    return folder
