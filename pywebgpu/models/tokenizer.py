"""Text as tokens, made of what a GGUF file says, or of a folder's tokenizer.json.

The package `tokenizers` does it, and without it byte_pairs.py; sentence_pieces.py does what SentencePiece has made.
"""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pywebgpu.io import gguf
from pywebgpu.models.byte_pairs import BytePairs
from pywebgpu.models.sentence_pieces import SentencePieces

# What cuts text into words before pairs are joined, by GGUF's names: regular expressions, one after another.
_WORDS_OF_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_WORDS_OF_LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
PATTERNS = {
    "default": (_WORDS_OF_GPT2,),
    "gpt-2": (_WORDS_OF_GPT2,),
    "smollm": (r"\p{N}", _WORDS_OF_GPT2),
    "llama-bpe": (_WORDS_OF_LLAMA3,),
    "qwen2": (_WORDS_OF_LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}"),),
}
ENDS = ("<|im_end|>", "<|eot_id|>", "<|endoftext|>", "<end_of_turn>")  # of a turn of a chat
REPLACEMENT = "\ufffd"
SPECIAL = (3, 4)  # token types of GGUF: control, user-defined


class Tokenizer:
    """Text to token ids and back; chats to text by the model's template.

    bos, eos: ids that begin and end a text, or None.  stop: ids after which nothing follows.
    """

    def __init__(
        self,
        backend: Any,
        *,
        bos: int | None = None,
        eos: int | None = None,
        add_bos: bool = False,
        chat_template: str | None = None,
        stop: Iterable[int] = (),
    ) -> None:
        self.backend, self.bos, self.eos, self.add_bos = backend, bos, eos, add_bos
        self.chat_template = chat_template
        ends = (eos, *stop, *map(backend.token_to_id, ENDS))
        self.stop = frozenset(end for end in ends if end is not None)

    @classmethod
    def from_file(cls, source: str | os.PathLike[str] | gguf.File) -> Tokenizer:
        """The tokenizer of a GGUF file, or of a folder of `transformers`, which needs the package `tokenizers`.

        Raises: GGUFError for a damaged file, ValueError for an unknown kind.
        """
        if not isinstance(source, gguf.File) and os.path.isdir(source):
            return _of_folder(Path(source))
        file = source if isinstance(source, gguf.File) else gguf.File(source)
        metadata = file.metadata
        is_scored = metadata.get("tokenizer.ggml.model") == "llama"
        return cls(
            _sentence_pieces(metadata, file.name) if is_scored else _byte_pairs(metadata, file.name),
            bos=metadata.get("tokenizer.ggml.bos_token_id", 1 if is_scored else None),
            eos=metadata.get("tokenizer.ggml.eos_token_id", 2 if is_scored else None),
            add_bos=metadata.get("tokenizer.ggml.add_bos_token", is_scored),
            chat_template=metadata.get("tokenizer.chat_template"),
        )

    def encode(self, text: str) -> list[int]:
        """The ids of a text; names of special tokens in it are those tokens."""
        ids: list[int] = self.backend.encode(text, add_special_tokens=False).ids
        return [self.bos, *ids] if self.add_bos and self.bos is not None and ids[:1] != [self.bos] else ids

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool = True) -> str:
        """The text of ids. Bytes that are no whole character yet are U+FFFD."""
        text: str = self.backend.decode(list(ids), skip_special_tokens=skip_special_tokens)
        return text

    def pieces(self, ids: Iterable[int]) -> Iterator[str]:
        """The text of ids that come one by one, in pieces of whole characters."""
        pieces = Pieces(self)
        yield from filter(None, map(pieces.add, ids))
        yield from filter(None, [pieces.rest()])

    def chat(self, messages: Sequence[Mapping[str, str]], *, add_generation_prompt: bool = True) -> list[int]:
        """The ids of a chat: messages of "role" and "content". Raises: ValueError when the model has no template."""
        if self.chat_template is None:
            raise ValueError("chat: the model has no chat template; encode a text instead")
        return self.encode(self.chat_text(messages, add_generation_prompt=add_generation_prompt))

    def chat_text(self, messages: Sequence[Mapping[str, str]], *, add_generation_prompt: bool = True) -> str:
        """The text of a chat by the model's template, which is not trusted: it runs in a sandbox."""
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
        environment.globals["raise_exception"] = _raise
        names = {"bos_token": self._name(self.bos), "eos_token": self._name(self.eos)}
        template = environment.from_string(self.chat_template or "")
        return template.render(messages=list(messages), add_generation_prompt=add_generation_prompt, **names)

    def _name(self, token: int | None) -> str:
        return "" if token is None else self.backend.id_to_token(token)


class Pieces:
    """The text of tokens that come one by one.

    Only the tokens of the last piece are decoded again with those that follow: some decoders treat the first of all
    tokens otherwise, none looks further back.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._decode = tokenizer.decode
        self._before: list[int] = []
        self._waiting: list[int] = []

    def add(self, token: int) -> str:
        """The text that this token completes: "" while bytes of a character are missing."""
        self._waiting.append(token)
        text = self._decode(self._before + self._waiting)
        return "" if text.endswith(REPLACEMENT) else self.rest()

    def rest(self) -> str:
        """The text of what waits, whole or not."""
        start = len(self._decode(self._before))
        text = self._decode(self._before + self._waiting)[start:]
        if self._waiting:
            self._before, self._waiting = self._waiting, []
        return text


def _raise(message: str) -> None:
    raise ValueError(f"chat: the template refuses the messages: {message}")


def _of_folder(folder: Path) -> Tokenizer:
    """The tokenizer of a folder's tokenizer.json, with what tokenizer_config.json says of it."""
    import tokenizers

    backend = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    facts, generation = _facts(folder / "tokenizer_config.json"), _facts(folder / "generation_config.json")
    bos, eos = (_id(backend, facts.get(name)) for name in ("bos_token", "eos_token"))
    template, alone = facts.get("chat_template"), folder / "chat_template.jinja"
    if isinstance(template, list):  # Several, by name.
        template = {entry["name"]: entry["template"] for entry in template}.get("default")
    stop = generation.get("eos_token_id") or []
    return Tokenizer(
        backend,
        bos=bos,
        eos=eos,
        add_bos=bos is not None and backend.encode("", add_special_tokens=True).ids[:1] == [bos],
        chat_template=alone.read_text("utf-8") if alone.exists() else template,
        stop=[stop] if isinstance(stop, int) else stop,
    )


def _facts(path: Path) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.exists() else {}
    return facts


def _id(backend: Any, token: str | Mapping[str, Any] | None) -> int | None:
    name = token["content"] if isinstance(token, Mapping) else token
    return None if name is None else backend.token_to_id(name)


def _sentence_pieces(metadata: Mapping[str, Any], where: str) -> SentencePieces:
    """A tokenizer of GGUF's lists of tokens, scores and types."""
    lists = [metadata.get(f"tokenizer.ggml.{name}", ()) for name in ("tokens", "scores", "token_type")]
    try:
        return SentencePieces(*lists, add_space=metadata.get("tokenizer.ggml.add_space_prefix", True))
    except ValueError as error:
        raise ValueError(f"{where}its tokenizer is damaged: {error}") from None


def _byte_pairs(metadata: Mapping[str, Any], where: str) -> Any:
    """A byte-pair tokenizer of GGUF's lists of tokens and merges."""
    kind, words = metadata.get("tokenizer.ggml.model"), metadata.get("tokenizer.ggml.pre", "default")
    tokens, merges = metadata.get("tokenizer.ggml.tokens"), metadata.get("tokenizer.ggml.merges")
    if kind != "gpt2" or not tokens or merges is None:
        raise ValueError(f"{where}its tokenizer is {kind!r}; known are 'gpt2', with tokens and merges, and 'llama'")
    if words not in PATTERNS:
        raise ValueError(f"{where}its words are cut as {words!r}; known are {', '.join(PATTERNS)}")
    known = set(tokens)
    wrong = next((merge for merge in merges if not known.issuperset({*merge.split(" "), merge.replace(" ", "")})), None)
    if wrong is not None:
        raise ValueError(f"{where}the merge {wrong!r} joins or makes what is no token")
    pairs = [tuple(merge.split(" ", 1)) for merge in merges]
    types = metadata.get("tokenizer.ggml.token_type", ())
    special = [token for token, token_type in zip(tokens, types, strict=False) if token_type in SPECIAL]
    make = _by_tokenizers if importlib.util.find_spec("tokenizers") else BytePairs
    return make(tokens, pairs, PATTERNS[words], special)


def _by_tokenizers(
    tokens: Sequence[str], merges: Sequence[tuple[str, str]], words: Sequence[str], special: Sequence[str]
) -> Any:
    """What `BytePairs` is, by the package `tokenizers`, which is faster."""
    import tokenizers
    from tokenizers import decoders, models, pre_tokenizers

    backend = tokenizers.Tokenizer(models.BPE(vocab={token: i for i, token in enumerate(tokens)}, merges=merges))
    splits = [pre_tokenizers.Split(tokenizers.Regex(pattern), behavior="isolated") for pattern in words]
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    backend.pre_tokenizer = pre_tokenizers.Sequence([*splits, byte_level])
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens([tokenizers.AddedToken(token, normalized=False, special=True) for token in special])
    return backend
