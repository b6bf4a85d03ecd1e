"""`pywebgpu chat`: talks with a language model, whose answers appear word by word."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from pywebgpu import errors

if TYPE_CHECKING:
    from pywebgpu.models import chat

HELP = """/reset   forget what was said
/system TEXT   say who the model is, and forget what was said
/help    this list
/exit    leave (so does the end of the input)"""


def main(arguments: Sequence[str]) -> int:
    """The command. Returns its exit status."""
    options = _parser().parse_args(arguments)
    generation, chat = import_module("pywebgpu.models.generation"), import_module("pywebgpu.models.chat")
    try:
        sampling = generation.Sampling(options.temperature, options.top_k, options.top_p, options.min_p)
        talk = chat.Chat.from_file(
            options.model, options.device, system=options.system, length=options.length, sampling=sampling
        )
        if options.adapter is not None:
            import_module("pywebgpu.models.lora").load(talk.model, options.adapter, options.device)
    except (errors.PywebgpuError, OSError, ValueError, ImportError) as error:
        print(f"pywebgpu chat: {error}", file=sys.stderr)
        return 2
    if options.seed is not None:
        import_module("pywebgpu.tensor.random").manual_seed(options.seed)
    if options.prompt is not None:
        _answer(talk, options.prompt, options.max_tokens)
        return 0
    if sys.stdin.isatty():
        print("Type a message, or /help.")
    return _converse(talk, options.max_tokens)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="pywebgpu chat", description=__doc__)
    parser.add_argument("--model", required=True, metavar="FILE", help="a GGUF file, or a folder of transformers")
    parser.add_argument("--device", help="webgpu or cpu; the default device if none is named")
    parser.add_argument("--adapter", metavar="FOLDER", help="adapters of `pywebgpu finetune`, or of peft")
    parser.add_argument("--prompt", metavar="TEXT", help="answer this, and leave")
    parser.add_argument("--system", metavar="TEXT", help="what the model is told of itself")
    parser.add_argument("--temperature", type=float, default=0.0, help="0 takes the likeliest token (default)")
    parser.add_argument("--top-k", type=int, default=0, metavar="K", help="draw from the K likeliest; 0: from all")
    parser.add_argument(
        "--top-p", type=float, default=1.0, metavar="P", help="draw from the likeliest that have P together"
    )
    parser.add_argument("--min-p", type=float, default=0.0, metavar="P", help="leave those below P of the likeliest")
    parser.add_argument("--seed", type=int, help="draw the same at each run")
    parser.add_argument("--length", type=int, default=2048, help="tokens that a conversation has room for (2048)")
    parser.add_argument("--max-tokens", type=int, default=512, help="tokens of an answer at most (512)")
    return parser


def _converse(talk: chat.Chat, most: int) -> int:
    while True:
        try:
            text = input("> " if sys.stdin.isatty() else "").strip()
        except (EOFError, KeyboardInterrupt):
            print()
            return 0
        command, _, rest = text.partition(" ")
        if command == "/exit":
            return 0
        if command == "/reset":
            talk.reset()
        elif command == "/system":
            talk.system = rest
            talk.reset()
        elif command.startswith("/"):
            print(HELP)
        elif text:
            _answer(talk, text, most)


def _answer(talk: chat.Chat, text: str, most: int) -> None:
    """Prints an answer as it comes; Ctrl-C ends it."""
    try:
        for piece in talk.reply(text, max_new_tokens=most):
            print(piece, end="", flush=True)
        print()
    except KeyboardInterrupt:
        print(" …")
    except ValueError as error:
        print(error, file=sys.stderr)
        return
    if sys.stderr.isatty() and talk.seconds:
        print(f"{talk.tokens} tokens, {talk.tokens / talk.seconds:.1f} a second", file=sys.stderr)
