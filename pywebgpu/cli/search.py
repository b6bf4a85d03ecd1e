"""`pywebgpu search`: finds the passages of text files that are nearest in meaning to a question."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from pywebgpu import errors

if TYPE_CHECKING:
    from pywebgpu.models.search import Search

SHOWN = 300  # characters of a passage


def main(arguments: Sequence[str]) -> int:
    """The command. Returns its exit status."""
    options = _parser().parse_args(arguments)
    embedding, search = import_module("pywebgpu.models.embedding"), import_module("pywebgpu.models.search")
    try:
        encoder = embedding.TextEncoder.from_file(options.model, options.device)
        passages = [part for path in search.text_files(options.paths) for part in search.read_passages(path)]
        index = search.Search(encoder, passages)
    except (errors.PywebgpuError, OSError, ValueError) as error:
        print(f"pywebgpu search: {error}", file=sys.stderr)
        return 2
    if options.query is not None:
        _answer(index, options.query, options.top)
        return 0
    if sys.stdin.isatty():
        print(f"{len(passages)} passages. Type a question; the end of the input leaves.")
    while True:
        try:
            question = input("> " if sys.stdin.isatty() else "").strip()
        except (EOFError, KeyboardInterrupt):
            print()
            return 0
        if question:
            _answer(index, question, options.top)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="pywebgpu search", description=__doc__)
    parser.add_argument("paths", nargs="+", metavar="PATH", help="text files, and folders of them")
    parser.add_argument(
        "--model", required=True, metavar="FOLDER", help="a BERT as sentence-transformers saves it, such as MiniLM"
    )
    parser.add_argument("--query", metavar="TEXT", help="answer this, and leave")
    parser.add_argument("--top", type=int, default=5, metavar="N", help="passages of an answer (5)")
    parser.add_argument("--device", help="webgpu or cpu; the default device if none is named")
    return parser


def _answer(index: Search, question: str, count: int) -> None:
    for score, passage in index.nearest(question, count):
        text = " ".join(passage.text.split())
        print(f"{score:.3f}  {passage.path}:{passage.line}\n    {text[:SHOWN]}{' …' * (len(text) > SHOWN)}")
