"""BERT and vectors of texts: hidden states and vectors of `transformers`, ids of `tokenizers`, search."""

import json
import random
import unicodedata
from pathlib import Path

import pytest
import torch

import pywebgpu
from pywebgpu.cli import search as command
from pywebgpu.io import safetensors
from pywebgpu.models.bert import Bert, BertConfig
from pywebgpu.models.embedding import TextEncoder, similarity
from pywebgpu.models.search import Search, read_passages, split, text_files
from pywebgpu.models.wordpiece import WordPiece
from pywebgpu.tensor import create
from tests.cases import language_models
from tests.cases import text_encoders as cases


def _folder(name: str, folder: Path) -> Path:
    """A model of the table as transformers saves it: with a prefix, positions, and a pooler that is not read."""
    facts = {**cases.SIZES, **cases.MODELS[name], "model_type": "bert"}
    (folder / "config.json").write_text(json.dumps(facts), "utf-8")
    model = Bert(BertConfig(**{key: value for key, value in facts.items() if key != "model_type"}))
    shapes = {key: tuple(value.shape) for key, value in model.state_dict().items()}
    arrays = language_models.weights(shapes)
    weights = {f"bert.{key}": create.tensor(array, device="cpu") for key, array in arrays.items()}
    weights["bert.pooler.dense.bias"] = create.zeros(48, device="cpu")
    weights["bert.embeddings.position_ids"] = create.arange(32, device="cpu")
    safetensors.save_file(weights, folder / "model.safetensors")
    return folder


@pytest.mark.parametrize("name", cases.MODELS)
def test_hidden_states_are_those_of_transformers(name: str, tmp_path: Path, device: str) -> None:
    model = Bert.from_file(_folder(name, tmp_path), device)
    ids, mask, types = (create.tensor(rows, device=device) for rows in (cases.IDS, cases.MASK, cases.TYPES))
    hidden = model(ids, mask, types)[:, 0, :8].cpu()
    assert (hidden - create.tensor(cases.HIDDEN[name], device="cpu")).abs().max().item() < 1e-4


@pytest.mark.parametrize(
    ("facts", "text"),
    [
        ({"model_type": "roberta"}, "model_type is 'roberta'"),
        ({"position_embedding_type": "relative_key"}, "position_embedding_type is 'relative_key'"),
        ({"hidden_act": "swish"}, "hidden_act is 'swish'; known: 'gelu'"),
    ],
)
def test_what_is_no_bert_is_refused(facts: dict[str, str], text: str, tmp_path: Path) -> None:
    _folder("gelu", tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | facts), "utf-8")
    with pytest.raises(ValueError, match=text):
        Bert.from_file(tmp_path)


# MiniLM


@pytest.fixture(scope="module")
def minilm() -> TextEncoder:
    return TextEncoder.from_file(cases.minilm(), "cpu")


def test_vectors_are_those_of_transformers(minilm: TextEncoder) -> None:
    vectors = minilm.encode(cases.TEXTS)
    assert (vectors[:, :8] - create.tensor(cases.VECTORS, device="cpu")).abs().max().item() < 1e-5
    assert minilm.encode(cases.TEXTS[0]).shape == (384,)
    assert minilm.encode([]).shape == (0, 384)


def _in_pytorch(folder: Path) -> tuple[torch.nn.Module, torch.nn.Module, dict[str, torch.Tensor]]:
    """MiniLM's layers as PyTorch's own, the norm of its embeddings, and its weights."""
    from safetensors.torch import load_file

    weights = load_file(folder / "model.safetensors")
    layer = torch.nn.TransformerEncoderLayer(384, 12, 1536, 0.0, "gelu", 1e-12, batch_first=True)
    layers = torch.nn.TransformerEncoder(layer, 6, enable_nested_tensor=False).eval()
    parts = {
        "self_attn.out_proj": "attention.output.dense",
        "norm1": "attention.output.LayerNorm",
        "linear1": "intermediate.dense",
        "linear2": "output.dense",
        "norm2": "output.LayerNorm",
    }
    state = {}
    for i in range(6):
        for kind in ("weight", "bias"):
            own = f"encoder.layer.{i}."
            names = [f"{own}attention.self.{name}.{kind}" for name in ("query", "key", "value")]
            state[f"layers.{i}.self_attn.in_proj_{kind}"] = torch.cat([weights[name] for name in names])
            state |= {f"layers.{i}.{part}.{kind}": weights[f"{own}{name}.{kind}"] for part, name in parts.items()}
    layers.load_state_dict(state)
    norm = torch.nn.LayerNorm(384, 1e-12)
    norm.load_state_dict({kind: weights[f"embeddings.LayerNorm.{kind}"] for kind in ("weight", "bias")})
    return layers, norm, weights


def test_two_hundred_sentences_have_the_vectors_of_pytorch(minilm: TextEncoder) -> None:
    layers, norm, weights = _in_pytorch(cases.minilm())
    tokens = [minilm.tokenizer.encode(sentence) for sentence in cases.SENTENCES]
    expected = torch.empty(len(tokens), 384)
    for length in {len(ids) for ids in tokens}:
        rows = torch.tensor([i for i, ids in enumerate(tokens) if len(ids) == length])
        x = weights["embeddings.word_embeddings.weight"][torch.tensor([tokens[i] for i in rows])]
        x = x + weights["embeddings.position_embeddings.weight"][:length]
        with torch.no_grad():
            hidden = layers(norm(x + weights["embeddings.token_type_embeddings.weight"][0]))
        expected[rows] = torch.nn.functional.normalize(hidden.mean(1), dim=1)
    assert len(expected) == 200
    vectors = torch.from_numpy(minilm.encode(cases.SENTENCES).numpy())
    cosines = (vectors * expected).sum(1)
    assert cosines.min().item() >= 0.99999


def test_batches_of_one_size_are_compiled_once(minilm: TextEncoder) -> None:
    for text in ("A short one.", "Another short one, which is a little longer."):
        minilm.encode([text])
    captures = minilm._vectors.counters["captures"]
    minilm.encode(["The third."])
    assert minilm._vectors.counters["captures"] == captures


def test_similar_texts_are_near(minilm: TextEncoder) -> None:
    texts = ["How do I train a model?", "Fitting the weights of a network", "Bread needs flour, water and salt."]
    vectors = minilm.encode(texts)
    cosines = similarity(vectors, vectors * 3)
    assert (cosines.diagonal() - 1).abs().max().item() < 1e-5
    assert cosines[0, 1].item() > cosines[0, 2].item() + 0.1


# Word pieces


def _draw(rng: random.Random, vocabulary: list[str]) -> str:
    kind = rng.random()
    if kind < 0.3:
        return chr(rng.randrange(32, 127))
    if kind < 0.4:
        return rng.choice(" \t\n\r\0\x0b\x0c\x1c\x85\xa0\u200b\u200d\ufeff\ufffd\u2028\u3000")
    if kind < 0.6:
        return chr(rng.randrange(0xA0, 0x250))
    if kind < 0.7:
        return rng.choice("ΣσςİıßÅéñ中文かなカナ한국어ไทยעבריתالعربيةहिन्दी🙂🙃👩‍👧")
    if kind < 0.9:
        return rng.choice(vocabulary) + " " * rng.randrange(2)
    while True:  # What Unicode added later is not known to all tables alike.
        letter = chr(rng.randrange(0x110000))
        if unicodedata.ucd_3_2_0.category(letter) not in ("Cn", "Cs"):
            return letter


def test_ids_are_those_of_tokenizers() -> None:
    import tokenizers

    backend = tokenizers.Tokenizer.from_file(str(cases.minilm() / "tokenizer.json"))
    backend.no_padding()
    backend.no_truncation()
    own = WordPiece.from_file(cases.minilm() / "vocab.txt")
    rng, vocabulary = random.Random(0), list(own.ids)
    texts = ["".join(_draw(rng, vocabulary) for _ in range(rng.randrange(40))) for _ in range(10_000)]
    texts += ["a" * 100, "a" * 101, "[CLS][MASK]x[sep]", "unbelievable" * 9]
    expected = [encoding.ids for encoding in backend.encode_batch(texts)]
    assert [text for text, ids in zip(texts, expected, strict=True) if own.encode(text) != ids] == []


def test_pieces_are_cut_off_and_a_vocabulary_is_whole() -> None:
    own = WordPiece({"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4, "Ab": 5, "##c": 6}, lowercase=False)
    assert own.encode("Abc ab Abcc", 5) == [2, 5, 6, 1, 3]
    with pytest.raises(ValueError, match=r"no \[CLS\]"):
        WordPiece({"[PAD]": 0, "[UNK]": 1})


# Search


TEXT = (
    "# Bread\n\nFlour, water, salt.\nKnead for ten minutes.\n\n\n# Networks\nGradients flow from the loss to weights.\n"
)


def test_paragraphs_are_passages() -> None:
    path = Path("a.md")
    passages = [(passage.line, passage.text) for passage in split(path, TEXT)]
    assert passages == [
        (1, "# Bread"),
        (3, "Flour, water, salt.\nKnead for ten minutes."),
        (7, "# Networks\nGradients flow from the loss to weights."),
    ]
    long = [passage.line for passage in split(path, "word " * 50 + "\n" + "word " * 60 + "\n" + "word " * 50)]
    assert long == [1, 3]


def test_the_command_searches(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".hidden").mkdir()
    for name, text in {"a.md": TEXT, "b.txt": "", ".hidden/c.txt": TEXT}.items():
        (tmp_path / name).write_text(text, "utf-8")
    (tmp_path / "d.bin").write_bytes(b"\xff\xfe\0")
    assert [path.name for path in text_files([tmp_path])] == ["a.md", "b.txt", "d.bin"]
    assert list(read_passages(tmp_path / "d.bin")) == []
    options = ["--model", str(cases.minilm()), "--device", "cpu", "--top", "1"]
    assert command.main([*options, str(tmp_path), "--query", "How are the weights trained?"]) == 0
    first = capsys.readouterr().out.splitlines()
    assert first[0].endswith("a.md:7")
    assert first[1].strip() == "# Networks Gradients flow from the loss to weights."
    lines = iter(["", "recipe for a dough"])

    def answer(prompt: str) -> str:
        try:
            return next(lines)
        except StopIteration:
            raise EOFError from None

    monkeypatch.setattr("builtins.input", answer)
    assert command.main([*options, str(tmp_path / "a.md")]) == 0
    assert "a.md:3" in capsys.readouterr().out
    assert command.main([*options, str(tmp_path / "b.txt")]) == 2
    assert "no text to search" in capsys.readouterr().err
    assert command.main([*options, str(tmp_path / "none")]) == 2
    assert "there is no " in capsys.readouterr().err


def test_nearest_are_at_most_all(minilm: TextEncoder) -> None:
    index = Search(minilm, list(split(Path("a"), TEXT)))
    scores = [score for score, _ in index.nearest("bread", 10)]
    assert scores == sorted(scores, reverse=True)
    assert len(scores) == 3
    assert pywebgpu.is_tensor(index.vectors)
