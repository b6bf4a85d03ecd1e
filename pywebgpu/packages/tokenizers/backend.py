"""What computes: npm's @huggingface/tokenizers, in the JavaScript around Pyodide. Texts cross as JSON."""

from __future__ import annotations

import importlib
import json
from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

from pywebgpu import errors
from pywebgpu.packages.tokenizers import components

PACKAGE = "@huggingface/tokenizers", "0.2.0", "dist/tokenizers.min.mjs"
MAKE = """({ Tokenizer }) => (tokenizer, config) => {
  const built = new Tokenizer(JSON.parse(tokenizer), JSON.parse(config));
  const { added_tokens_map: added, model } = built;
  const id = (token) => added.get(token)?.id ?? model.tokens_to_ids.get(token) ?? model.unk_token_id;
  // A model of whole words gives those that it does not know as they are.
  const known = (token) => added.has(token) || model.tokens_to_ids.has(token);
  const name = (token) => (model.config?.type === "WordLevel" && !known(token) ? model.unk_token ?? token : token);
  const row = (tokens) => [tokens.map(id), tokens.map(name)];
  const encode = (text) => row(built.encode_text(text));
  const word = (text) => row(model([text]));
  const words = (text) => {
    const normal = built.normalizer ? built.normalizer(text) : text;
    return built.pre_tokenizer ? built.pre_tokenizer(normal) : [normal];
  };
  return {
    encode: (texts) => JSON.stringify(JSON.parse(texts).map(encode)),
    word: (text) => JSON.stringify(word(text)),
    normalize: (text) => built.normalizer(text),
    words: (texts) => JSON.stringify(JSON.parse(texts).flatMap(words)),
    split: (text) => JSON.stringify(built.pre_tokenizer(text)),
    join: (tokens) => built.decoder(JSON.parse(tokens)),
  };
}"""
EMPTY = {"type": "WordLevel", "vocab": {}, "unk_token": ""}


class Backend:
    """A tokenizer in JavaScript, made of the nodes of its file."""

    def __init__(self, file: components.Json) -> None:
        config = {"unk_token": file["model"].get("unk_token")}
        self._tokenizer = _maker()(json.dumps(file), json.dumps(config))

    def encode(self, texts: Sequence[str]) -> list[tuple[list[int], list[str]]]:
        """The numbers and tokens of each text, without special tokens around it."""
        encoded = json.loads(self._tokenizer.encode(json.dumps(texts)))
        return [_known(ids, tokens) for ids, tokens in encoded]

    def word(self, text: str) -> tuple[list[int], list[str]]:
        """Those of one word."""
        return _known(*json.loads(self._tokenizer.word(text)))

    def normalize(self, text: str) -> str:
        return str(self._tokenizer.normalize(text))

    def split(self, text: str) -> list[str]:
        words: list[str] = json.loads(self._tokenizer.split(text))
        return words

    def words(self, texts: Sequence[str]) -> list[str]:
        """The words of all texts, normalised."""
        words: list[str] = json.loads(self._tokenizer.words(json.dumps(list(texts))))
        return words

    def join(self, tokens: Sequence[str]) -> str:
        return str(self._tokenizer.join(json.dumps(list(tokens))))


def of(tokenizer: Any) -> Backend:
    """What computes for a tokenizer."""
    kept: Backend = tokenizer.backend()
    return kept


_parts: WeakKeyDictionary[Any, tuple[int, Backend]] = WeakKeyDictionary()
_makers: list[Any] = []


def part(kind: str, component: components.Component) -> Backend:
    """A tokenizer that has this one component; kept until a component changes."""
    kept = _parts.get(component)
    if kept is None or kept[0] != components.changes[0]:
        nodes = dict.fromkeys(("normalizer", "pre_tokenizer", "post_processor", "decoder")) | {"model": EMPTY}
        kept = components.changes[0], Backend({**nodes, kind: component.to_json(), "added_tokens": []})
        _parts[component] = kept
    return kept[1]


def placed(text: str, words: Sequence[str]) -> list[tuple[str, tuple[int, int]]]:
    """Words with where they stand in a text, one after the other; a word that is not in it stands where it would."""
    position, spans = 0, []
    for word in words:
        start = text.find(word, position)
        start = position if start < 0 else start
        position = min(len(text), start + len(word))
        spans.append((word, (start, position)))
    return spans


def _known(ids: Sequence[int | None], tokens: Sequence[str]) -> tuple[list[int], list[str]]:
    """Without what has no number, where no token stands for it."""
    pairs = [(number, token) for number, token in zip(ids, tokens, strict=True) if number is not None]
    return [number for number, _ in pairs], [token for _, token in pairs]


def _maker() -> Any:
    """The function that makes a tokenizer in JavaScript."""
    if not _makers:
        try:
            modules: Any = importlib.import_module("pywebgpu.devices.js_modules")
        except ModuleNotFoundError:
            raise NotImplementedError(
                "tokenizers encodes by JavaScript around Pyodide, and this is no Pyodide: pip install tokenizers"
            ) from None
        _makers.append(modules.evaluate(MAKE)(_loaded(modules.package(*PACKAGE))))
    return _makers[0]


def _loaded(promise: Any) -> Any:
    """The package. Raises CannotWaitError where Python cannot wait, ImportError where there is no package."""
    ffi: Any = importlib.import_module("pyodide.ffi")
    if not ffi.can_run_sync():
        raise errors.CannotWaitError("tokenizers: cannot wait for JavaScript here: run this in a coroutine, with JSPI")
    try:
        return ffi.run_sync(promise)
    except ffi.JsException as error:
        name, version, _ = PACKAGE
        raise ImportError(f"tokenizers: this host has no {name}: npm install {name}@{version} ({error})") from None
