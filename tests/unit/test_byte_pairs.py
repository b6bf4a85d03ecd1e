"""Byte pairs in Python give what the package `tokenizers` gives: 10,000 random strings of all that cuts words."""

import random
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from pywebgpu.models import tokenizer
from pywebgpu.models.byte_pairs import CHARACTERS, BytePairs

tokenizers = pytest.importorskip("tokenizers")
ROOT = Path(__file__).parents[2]
STRINGS = 10_000 // len(tokenizer.PATTERNS)
SPECIAL = ["<|im_start|>", "<|im_end|>", "<|im", "<s>"]
# What the patterns tell apart: contractions, spaces and what only Python takes for one, digits, joined characters.
TRAPS = (
    "a's't're've'm'll'd'S'LL'T  \n\r\t\x1c\x1f\x0b\x85\u2028\u3000\xa0\u017fK1\uff12²Ⅷ一e\u0301é́ñΩжहि👩\u200d👧\ufffd"
)
POOLS = [
    [chr(code) for code in range(32, 127)],
    list(TRAPS),
    [chr(code) for code in range(0x80, 0x3000)],
    [chr(code) for code in range(0x10000, 0x20000)],
    SPECIAL,
]


@pytest.fixture(scope="module")
def vocabulary() -> tuple[list[str], list[tuple[str, str]]]:
    """Tokens and merges learned from a text of this project."""
    trained = tokenizers.Tokenizer(tokenizers.models.BPE())
    trained.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=1500, special_tokens=SPECIAL, initial_alphabet=list(CHARACTERS.values()), show_progress=False
    )
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    trained.train_from_iterator([text, TRAPS * 3], trainer)
    merges: list[tuple[str, str]] = []
    tokens = [trained.id_to_token(i) for i in range(trained.get_vocab_size())]
    known = set(CHARACTERS.values())
    for token in tokens[len(SPECIAL) :]:  # in the order in which they were learned
        split = next((i for i in range(1, len(token)) if token[:i] in known and token[i:] in known), None)
        if split is not None:
            merges.append((token[:split], token[split:]))
        known.add(token)
    return tokens, merges


def _string(draw: random.Random) -> str:
    length = draw.choice([0, 1, 2, 3, 5, 8, 20, 60])
    characters = (draw.choice(draw.choice(POOLS)) for _ in range(length))
    # What this Python's Unicode does not know yet, a newer one may call a letter.
    return "".join(text for text in characters if len(text) > 1 or unicodedata.category(text) != "Cn")


@pytest.mark.parametrize("words", tokenizer.PATTERNS)
def test_ids_and_texts_are_those_of_tokenizers(words: str, vocabulary: Any) -> None:
    arguments = (*vocabulary, tokenizer.PATTERNS[words], SPECIAL)
    expected, ours = tokenizer._by_tokenizers(*arguments), BytePairs(*arguments)
    draw = random.Random(words)
    for _ in range(STRINGS):
        text = _string(draw)
        ids = ours.encode(text).ids
        assert ids == expected.encode(text, add_special_tokens=False).ids, text
        assert ours.decode(ids, skip_special_tokens=False) == text
        some = [draw.randrange(len(vocabulary[0])) for _ in range(draw.choice([0, 1, 2, 5]))]
        for skip in (True, False):
            assert ours.decode(some, skip_special_tokens=skip) == expected.decode(some, skip_special_tokens=skip), some


def test_names_and_ids(vocabulary: Any) -> None:
    tokens, merges = vocabulary
    ours = BytePairs(tokens, merges, tokenizer.PATTERNS["gpt-2"], SPECIAL)
    assert ours.token_to_id("<s>") == SPECIAL.index("<s>")
    assert ours.token_to_id("no such token") is None
    assert [ours.id_to_token(id) for id in (-1, 1, len(tokens))] == [None, "<|im_end|>", None]


def test_a_model_is_read_without_the_package(vocabulary: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    tokens, merges = vocabulary
    metadata = {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.merges": [" ".join(pair) for pair in merges],
        "tokenizer.ggml.token_type": [3 if token in SPECIAL else 1 for token in tokens],
    }
    backend = tokenizer._byte_pairs(metadata, "")
    assert isinstance(backend, BytePairs)
    assert backend.decode(backend.encode("<s>a 2024 text<|im_end|>").ids) == "a 2024 text"
