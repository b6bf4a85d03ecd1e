"""The command `pywebgpu`. Each command reads its own arguments and is imported only when it is called."""

import argparse
import importlib
import sys
from collections.abc import Sequence

from pywebgpu import version

# name: (the module whose main(arguments) runs it, what it does)
_COMMANDS = {
    "doctor": ("pywebgpu.cli.doctor", "names adapters, limits, versions, the default device, and what is missing"),
    "run": ("pywebgpu.cli.run", "runs a program written for PyTorch: `import torch` is pywebgpu in it"),
    "node": ("pywebgpu.hosts.node", "runs a script in Pyodide on Node, with WebGPU by Dawn"),
    "chromium": ("pywebgpu.hosts.chromium", "runs a script in Pyodide in a page of Chromium, without a window"),
    "serve": ("pywebgpu.cli.serve", "serves the pages in which a model trains, or, with --model, a language model"),
    "chat": ("pywebgpu.cli.chat", "talks with a language model of a GGUF file"),
    "finetune": ("pywebgpu.cli.finetune", "teaches a language model a text, by adapters beside its layers"),
    "search": ("pywebgpu.cli.search", "finds the passages of text files that are nearest in meaning to a question"),
    "export": ("pywebgpu.exporter.command", "writes programs that train and infer without Python"),
    "tune": ("pywebgpu.bench.tune", "measures how kernels are launched best on this adapter, and keeps that"),
    "bench": ("pywebgpu.bench", "measures the workloads, next to PyTorch where that is installed"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit status; `arguments` is None for the process's own."""
    listing = "\n".join(f"  {name:10}{text}" for name, (_, text) in _COMMANDS.items())
    parser = argparse.ArgumentParser(
        prog="pywebgpu",
        description="Tensors and gradients in pure Python on WebGPU.",
        epilog=f"commands:\n{listing}\n\npywebgpu COMMAND --help shows a command's own arguments",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"pywebgpu {version.own}")
    parser.add_argument("command", choices=_COMMANDS, metavar="COMMAND", help="one of those below")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    usable = sys.argv[1:] if arguments is None else arguments
    if not usable:
        parser.print_help()
        return 0
    options = parser.parse_args(usable)
    module, _ = _COMMANDS[options.command]
    status: int = importlib.import_module(module).main(options.arguments)
    return status
