"""`pywebgpu export`: runs a function of a file and exports what it returns; of a language model it makes a chat."""

import argparse
import importlib.util
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from pywebgpu.errors import PywebgpuError
from pywebgpu.exporter.export import export


def main(arguments: Sequence[str]) -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        prog="pywebgpu export",
        description="Writes programs that train and infer without Python: a folder that any web server can serve.",
        epilog="FUNCTION is called with the list of what follows OUT, and returns the arguments of pywebgpu.export but "
        'the folder, as a dict: {"programs": {"training": step}, "names": model, ...}. A GGUF file becomes a chat.',
    )
    parser.add_argument(
        "file", metavar="FILE[:FUNCTION]", help="a Python file, its function `exported` unless named; or a GGUF file"
    )
    parser.add_argument("out", metavar="OUT", help="the folder, which is made")
    parser.add_argument("rest", nargs=argparse.REMAINDER, metavar="...", help="goes to the function")
    options = parser.parse_args(arguments)
    file, _, function = options.file.partition(":")
    try:
        if options.file.endswith(".gguf"):
            print(import_module("pywebgpu.exporter.chat").export_chat(options.file, options.out))
            return 0
        parts = _called(Path(file), function or "exported", options.rest)
        print(export(options.out, **parts))
    except (PywebgpuError, OSError, ValueError) as error:
        print(f"pywebgpu export: {error}", file=sys.stderr)
        return 2
    return 0


def _called(file: Path, name: str, arguments: list[str]) -> dict[str, Any]:
    """What the file's function returns; files beside it can be imported. Raises OSError and PywebgpuError."""
    if not file.is_file():
        raise FileNotFoundError(f"there is no file {file}")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(file.resolve().parent))
    sys.modules[file.stem] = module
    sys.argv = [str(file), *arguments]  # As if it was run itself.
    spec.loader.exec_module(module)
    function = getattr(module, name, None)
    if not callable(function):
        raise PywebgpuError(f"{file} has no function {name}")
    data: dict[str, Any] = function(arguments)
    return data
