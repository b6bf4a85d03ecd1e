"""A chat page without Python: a language model's steps as programs; its tokenizer and its template as data.

js_bridge/chat/ has the page, the tokenizer and the loop of sampling.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pywebgpu.errors import CaptureError
from pywebgpu.exporter.export import Exported, export
from pywebgpu.io import gguf
from pywebgpu.models.byte_pairs import CHARACTERS
from pywebgpu.models.generation import CHUNK, Sampling, Steps
from pywebgpu.models.llama import Llama
from pywebgpu.models.tokenizer import PATTERNS, SPECIAL, Tokenizer
from pywebgpu.step_capture import function
from pywebgpu.support.installation import find_bridge
from pywebgpu.tensor import create
from pywebgpu.tensor.tensor import Tensor

TOKENIZER = "tokenizer.json"
WARM_UPS = 3  # runs after which a step has its final form
SAMPLINGS = {"greedy": Sampling(), "drawn": Sampling(temperature=1.0, top_p=0.5)}


def export_chat(model: str | Path, folder: str | Path, *, length: int = 2048, device: str = "webgpu") -> Exported:
    """Writes a folder that any web server can serve: a page that talks with the model of a GGUF file.

    length: tokens that a conversation has room for.
    Raises: GGUFError for a damaged file; CaptureError for a tokenizer or a template that the page does not know.
    """
    file = gguf.File(model)
    tokenizer = Tokenizer.from_file(file)
    facts = _tokenizer_facts(file) | {"chat": _chat_facts(tokenizer), "stop": sorted(tokenizer.stop)}
    llama = Llama.from_file(file, device)
    steps = Steps(llama, min(length, llama.config.max_position_embeddings), None)
    programs = _programs(steps, llama.vocab_size)
    names = {"used": steps.cache.used, "numbers": steps.numbers}
    title = str(file.metadata.get("general.name") or Path(model).stem)
    facts |= {"title": title, "length": steps.cache.length, "chunk": CHUNK}
    content = json.dumps(facts, ensure_ascii=False, separators=(",", ":"))
    return export(folder, programs, names, page=find_bridge() / "chat", files={TOKENIZER: content})


def _programs(steps: Steps, vocab_size: int) -> dict[str, Any]:
    """For each way of sampling, programs that read a chunk of a prompt and a token; both return the next token."""
    device = steps.next_ids.device
    ids, last = create.zeros(1, CHUNK, dtype=steps.next_ids.dtype, device=device), create.tensor(0, device=device)
    programs = {}
    for name, sampling in SAMPLINGS.items():
        steps.numbers.copy_(create.tensor(sampling.numbers(vocab_size), device=device))
        read, decode = steps.of_kind(sampling.kind)
        programs[f"{name} read"] = function.compile(_returning(steps, read))
        programs[name] = function.compile(_returning(steps, decode))
        for _ in range(WARM_UPS):
            steps.cache.rewind()
            programs[f"{name} read"](ids=ids, last=last)
            programs[name]()
    for buffer in (*steps.cache.keys, *steps.cache.values):
        buffer.zero_()  # Zeros take no room in the file.
    steps.cache.rewind()
    return programs


def _returning(steps: Steps, step: Any) -> Callable[..., Tensor]:
    """What a compiled step does, and the token that it chose."""

    def returning(**arguments: Tensor) -> Tensor:
        step.function(**arguments)
        return steps.next_ids

    return returning


# The tokenizer


def _tokenizer_facts(file: gguf.File) -> dict[str, Any]:
    """Tokens, merges and patterns as JavaScript writes them."""
    metadata = file.metadata
    kind, words = metadata.get("tokenizer.ggml.model"), metadata.get("tokenizer.ggml.pre", "default")
    if kind != "gpt2":
        raise CaptureError(f"the tokenizer is {kind!r}; a page without Python knows 'gpt2'")
    tokens, types = metadata["tokenizer.ggml.tokens"], metadata.get("tokenizer.ggml.token_type", ())
    is_first = metadata.get("tokenizer.ggml.add_bos_token", False)
    return {
        "tokens": list(tokens),
        "merges": list(metadata["tokenizer.ggml.merges"]),
        "words": [_in_javascript(pattern) for pattern in PATTERNS[words]],
        "special": [i for i, token_type in enumerate(types) if token_type in SPECIAL],
        "bos": metadata.get("tokenizer.ggml.bos_token_id") if is_first else None,
        "bytes": [CHARACTERS[byte] for byte in range(256)],
    }


def _in_javascript(pattern: str) -> str:
    """A pattern for the flag u: its spaces are Unicode's, and letters of any case are spelled out."""

    def any_case(match: re.Match[str]) -> str:
        return f"(?:{re.sub('[a-z]', lambda letter: _cases(letter[0]), match[1])})"

    pattern = re.sub(r"\(\?i:([^)]*)\)", any_case, pattern)
    return pattern.replace(r"\s", r"\p{White_Space}").replace(r"\S", r"\P{White_Space}")


def _cases(letter: str) -> str:
    long_s = "\u017f" if letter == "s" else ""
    return f"[{letter}{letter.upper()}{long_s}]"


# The template


def _chat_facts(tokenizer: Tokenizer) -> dict[str, Any]:
    """What stands before, between and after messages. Raises: CaptureError where the template does something else."""
    if tokenizer.chat_template is None:
        raise CaptureError("the model has no chat template")
    marks = [f"\ue000{i}\ue001" for i in range(5)]  # no text has them
    plain = _between(tokenizer, ["user", "assistant", "user"], marks)
    chat: dict[str, Any] = {"begin": plain[0], "answer": plain[1], "next": plain[2], "end": plain[3]}
    try:
        system = _between(tokenizer, ["system", "user"], marks)
    except (ValueError, CaptureError):
        system = None
    chat["system"] = None if system is None else system[:2]
    for content in ("Hello.", " and\nspaces \n"):
        for roles in (["user"], ["user", "assistant"] * 2 + ["user"], ["system", "user", "assistant", "user"]):
            messages = [{"role": role, "content": content} for role in roles]
            if (chat["system"] or roles[0] != "system") and _joined(chat, messages) != tokenizer.chat_text(messages):
                chat |= {"trims": True}
                if _joined(chat, messages) != tokenizer.chat_text(messages):
                    raise CaptureError(
                        "the chat template does more than stand around messages, which is all a page knows"
                    )
    return chat


def _between(tokenizer: Tokenizer, roles: Sequence[str], marks: Sequence[str]) -> list[str]:
    """The texts before, between and after messages of these roles."""
    contents = marks[: len(roles)]
    text = tokenizer.chat_text([{"role": r, "content": c} for r, c in zip(roles, contents, strict=True)])
    parts = re.split("|".join(map(re.escape, contents)), text)
    if len(parts) != len(roles) + 1:
        raise CaptureError("the chat template writes messages several times or not at all")
    return parts


def _joined(chat: dict[str, Any], messages: Sequence[dict[str, str]]) -> str:
    """A conversation as text, as the page joins it."""
    text, before = "", chat["begin"]
    for message in messages:
        content = message["content"].strip() if chat.get("trims") else message["content"]
        if message["role"] == "system":
            text, before = chat["system"][0] + content, chat["system"][1]
        else:
            text += before + content
            before = chat["answer"] if message["role"] == "user" else chat["next"]
    return text + str(chat["end"])
