"""`pywebgpu serve --model FILE`: serves a language model to programs that speak OpenAI's API, on this machine alone."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from pywebgpu import errors
from pywebgpu.hosts import serve


def main(arguments: Sequence[str]) -> int:
    """The command: a model's server, or, where no model is named, the pages'."""
    if not any(argument.partition("=")[0] == "--model" for argument in arguments):
        return serve.main(arguments)
    options = _parser().parse_args(arguments)
    endpoint = import_module("pywebgpu.cli.endpoint")
    try:
        server = endpoint.start(options.port, _models(options))
    except (errors.PywebgpuError, OSError, ValueError, OverflowError, ImportError) as error:
        print(f"pywebgpu serve: {serve.failure(error, options.port)}", file=sys.stderr)
        return 2
    return serve.run(server, "v1")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="pywebgpu serve", description=__doc__)
    parser.add_argument("--model", required=True, metavar="FILE", help="a GGUF file, or a folder of transformers")
    parser.add_argument("--adapter", metavar="FOLDER", help="adapters of `pywebgpu finetune`, or of peft")
    parser.add_argument("--embeddings", metavar="FOLDER", help="a BERT as sentence-transformers saves it")
    parser.add_argument("--port", type=int, default=serve.PORT, help=f"the port ({serve.PORT}); 0 takes a free one")
    parser.add_argument("--length", type=int, default=2048, help="tokens of a prompt and its answer (2048)")
    parser.add_argument("--device", help="webgpu or cpu; the default device if none is named")
    return parser


def _models(options: argparse.Namespace) -> object:
    llama, tokenizer, service = (import_module(f"pywebgpu.models.{name}") for name in ("llama", "tokenizer", "service"))
    source = llama.open_source(options.model)
    model = llama.Llama.from_file(source, options.device)
    if options.adapter is not None:
        import_module("pywebgpu.models.lora").load(model, options.adapter, options.device)
    answering = service.Service(model, tokenizer.Tokenizer.from_file(source), length=options.length)
    name, encoder = "", None
    if options.embeddings is not None:
        name = Path(options.embeddings).resolve().name
        encoder = import_module("pywebgpu.models.embedding").TextEncoder.from_file(options.embeddings, options.device)
    own = source.resolve().name if isinstance(source, Path) else Path(options.model).stem
    models: object = import_module("pywebgpu.cli.endpoint").Models(own, answering, name, encoder)
    return models
