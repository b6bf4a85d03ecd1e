"""`pywebgpu run SCRIPT`: runs a program that was written for PyTorch; `import torch` is pywebgpu in it."""

from __future__ import annotations

import argparse
import importlib
import os
import runpy
import sys
from collections.abc import Sequence

from pywebgpu.hosts import script


def main(arguments: Sequence[str]) -> int:
    """The command. What the program raises is raised here, and its exit status is this one's."""
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
    as_torch = importlib.import_module("pywebgpu.as_torch")  # After the device is known.
    as_torch.install(options.device, _file(options.module) if options.module else rest[0])
    if options.module is not None:
        sys.argv = [options.module, *rest]
        sys.path.insert(0, os.getcwd())
        runpy.run_module(options.module, run_name="__main__", alter_sys=True)
    else:
        sys.argv = list(rest)
        sys.path.insert(0, os.path.dirname(os.path.abspath(rest[0])))
        runpy.run_path(rest[0], run_name="__main__")
    return 0


def _file(module: str) -> str:
    """Where `-m` finds a module, as far as the working folder goes."""
    path = os.path.join(os.getcwd(), *module.split("."))
    return os.path.join(path, "__main__.py") if os.path.isdir(path) else f"{path}.py"


def _split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """What is for this command, and from the script, or behind the module, on what is the program's."""
    at = 0
    while at < len(arguments) and arguments[at].startswith("-"):
        takes_value = arguments[at] in ("--device", "-m")
        at += 2 if takes_value else 1
        if arguments[at - 2 : at - 1] == ["-m"]:
            break
    return list(arguments[:at]), list(arguments[at:])
