"""SentencePiece's tokenizers against the package `tokenizers`, and tokenizers of folders."""

import functools
import json
import random
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from tokenizers import decoders, models, normalizers, trainers

from pywebgpu.io import gguf
from pywebgpu.models.sentence_pieces import BYTE, CONTROL, NORMAL, SPACE, UNKNOWN, USER_DEFINED, SentencePieces
from pywebgpu.models.tokenizer import Tokenizer
from tests.cases import spelling

GLOSSARY = Path(__file__).parents[2] / "GLOSSARY.md"
LINES = GLOSSARY.read_text("utf-8").splitlines()
SPECIAL = ["<unk>", "<s>", "</s>"]
Vocabulary = tuple[list[str], list[float], list[int]]


@functools.cache
def _vocabulary() -> Vocabulary:
    """Tokens, scores and types as SentencePiece would learn them from the glossary."""
    learner = tokenizers.Tokenizer(models.BPE())
    text = [SPACE + line.replace(" ", SPACE) for line in LINES if line.isascii()]
    learner.train_from_iterator(text, trainers.BpeTrainer(vocab_size=900, show_progress=False, max_token_length=12))
    learnt = sorted(learner.get_vocab().items(), key=lambda pair: pair[1])
    tokens = [*SPECIAL, *(f"<0x{byte:02X}>" for byte in range(256)), *(token for token, _ in learnt)]
    types = [UNKNOWN, CONTROL, CONTROL, *[BYTE] * 256, *[NORMAL] * len(learnt)]
    return tokens, [-float(i) for i in range(len(tokens))], types


def _by_tokenizers() -> Any:
    tokens, _, types = _vocabulary()
    ids = {token: i for i, token in enumerate(tokens)}
    joined = [token for token, kind in zip(tokens, types, strict=True) if kind == NORMAL]
    splits = [(token[:i], token[i:]) for token in joined for i in range(1, len(token))]
    merges = [pair for pair in splits if pair[0] in ids and pair[1] in ids]
    backend = tokenizers.Tokenizer(models.BPE(ids, merges, unk_token="<unk>", byte_fallback=True, fuse_unk=False))
    backend.normalizer = normalizers.Sequence([normalizers.Prepend(SPACE), normalizers.Replace(" ", SPACE)])
    steps = [decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    backend.decoder = decoders.Sequence(steps)
    return backend


def _draw(rng: random.Random) -> str:
    line = rng.choice(LINES)
    parts = (
        line[: rng.randrange(len(line) + 1)],
        rng.choice(" \t\n\r\0éß東京🙂🙃\u3000\u2581ab12"),
        rng.choice(_vocabulary()[0][259:]).replace(SPACE, " "),
        "  ",
    )
    return rng.choice(parts)


def test_ids_and_texts_are_those_of_tokenizers() -> None:
    own, backend, rng = SentencePieces(*_vocabulary()), _by_tokenizers(), random.Random(0)
    texts = ["".join(_draw(rng) for _ in range(rng.randrange(1, 12))) for _ in range(10_000)]
    expected = [encoding.ids for encoding in backend.encode_batch(texts)]
    assert [text for text, ids in zip(texts, expected, strict=True) if own.encode(text).ids != ids] == []
    assert [ids for ids in expected if own.decode(ids) != backend.decode(ids)] == []


def test_names_of_tokens_are_tokens() -> None:
    tokens, scores, types = _vocabulary()
    own = SentencePieces([*tokens, SPACE * 3, "[INST]"], [*scores, 0.0, 0.0], [*types, USER_DEFINED, CONTROL])
    triple, inst = len(tokens), len(tokens) + 1
    assert own.encode("</s>[INST]").ids == [2, inst]
    assert own.encode("  x").ids[0] == triple
    assert own.encode("").ids == []
    assert own.decode([2, inst, *own.encode("a b").ids]) == "a b"
    assert own.decode([triple, inst], skip_special_tokens=False) == "  [INST]"
    without = SentencePieces(tokens, scores, types, add_space=False)
    assert without.decode(without.encode(" a b").ids) == " a b"
    assert without.encode("a").ids == [tokens.index("a")]
    assert own.decode([10_000, -1]) == ""


def test_a_gguf_file_says_its_pieces(tmp_path: Path) -> None:
    tokens, scores, types = _vocabulary()
    lists = {"tokens": tokens, "scores": scores, "token_type": types}
    metadata = {f"tokenizer.ggml.{name}": value for name, value in lists.items()} | {"tokenizer.ggml.model": "llama"}
    gguf.save_file({}, tmp_path / "a", metadata)
    tokenizer = Tokenizer.from_file(tmp_path / "a")
    ids = tokenizer.encode("a node of the graph, 東京")
    assert ids[0] == tokenizer.bos == 1
    assert tokenizer.stop == {2}
    assert tokenizer.decode(ids) == "a node of the graph, 東京"
    assert "".join(tokenizer.pieces(ids)) == "a node of the graph, 東京"
    gguf.save_file({}, tmp_path / "b", {**metadata, "tokenizer.ggml.scores": scores[:-1]})
    with pytest.raises(ValueError, match=rf"its tokenizer is damaged: {len(tokens)} tokens have {len(tokens) - 1} sco"):
        Tokenizer.from_file(tmp_path / "b")


@pytest.mark.parametrize("template", ["text", "list", "file"])
def test_a_folder_has_the_same_tokenizer(template: str, tmp_path: Path) -> None:
    expected = Tokenizer.from_file(spelling.write(spelling.model(), tmp_path / "a.gguf"))
    expected.backend.save(str(tmp_path / "tokenizer.json"))
    facts: dict[str, Any] = {"eos_token": {"content": "<|im_end|>"}, "bos_token": None}
    if template == "file":
        (tmp_path / "chat_template.jinja").write_text(spelling.TEMPLATE, "utf-8")
    else:
        texts = [{"name": "default", "template": spelling.TEMPLATE}, {"name": "tools", "template": ""}]
        facts["chat_template"] = spelling.TEMPLATE if template == "text" else texts
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(facts), "utf-8")
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": [29, 7]}), "utf-8")
    tokenizer = Tokenizer.from_file(tmp_path)
    messages = [{"role": "user", "content": "hello there"}]
    assert tokenizer.chat(messages) == expected.chat(messages)
    assert (tokenizer.bos, tokenizer.eos, tokenizer.stop) == (None, 29, {7, 29})
    assert not tokenizer.add_bos
