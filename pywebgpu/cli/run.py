"""`pywebgpu run SCRIPT`: runs a program that was written for PyTorch; `import torch` is pywebgpu in it."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence

from pywebgpu.hosts import script


def main(arguments: Sequence[str]) -> int:
    """The command. Prints what the program raises, as Python does, and returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="pywebgpu run", description=__doc__, usage="%(prog)s [--device webgpu|cpu] (SCRIPT | -m MODULE) ..."
    )
    parser.add_argument("--device", help='what "cuda" means: webgpu or cpu; the default device if none is named')
    parser.add_argument("-m", dest="module", help="a module instead of a script")
    own, rest = _split(arguments)
    options = parser.parse_args(own)
    if options.module is None and not rest:
        parser.error("which script?")
    if options.module is None and (wrong := script.trouble(rest)):
        print(f"pywebgpu run: {wrong}", file=sys.stderr)
        return 2
    if options.device:
        os.environ["PYWEBGPU_DEVICE"] = options.device
    torch_import = importlib.import_module("pywebgpu.torch_api.torch_import")  # After the device is known.
    torch_import.install(options.device, _file(options.module) if options.module else rest[0])
    return script.guarded(["-m", options.module, *rest] if options.module else rest)


def _file(module: str) -> str:
    """Where `-m` finds a module, as far as the working folder goes."""
    path = os.path.join(os.getcwd(), *module.split("."))
    return os.path.join(path, "__main__.py") if os.path.isdir(path) else f"{path}.py"


def _split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """What is for this command, and from the script, or behind the module, on what is the program's."""
    work = 0
    while work < len(arguments) and arguments[work].startswith("-"):
        takes_value = arguments[work] in ("--device", "-m")
        work += 2 if takes_value else 1
        if arguments[work - 2 : work - 1] == ["-m"]:
            break
    return list(arguments[:work]), list(arguments[work:])
