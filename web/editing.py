"""Python in the editor's worker: runs what the page sends, one program after another."""

import ast
import importlib
import json
import linecache
import sys
import traceback
import types
from typing import Any

from pyodide.code import eval_code_async

from pywebgpu import devices
from pywebgpu.errors import PywebgpuError

NAME = "editor.py"


async def main(port: Any) -> None:
    """Opens the device where there is one, then runs programs until the worker ends."""
    try:
        await devices.open_device_async("webgpu")
        devices.set_default_device("webgpu")
    except PywebgpuError as error:
        print(f"{error}\n", file=sys.stderr)
    port.tell(json.dumps({"is": "ready"}))
    while True:
        try:
            message = port.take()
            if not message:
                await port.arrived()
                continue
            command = json.loads(message)
            if command["do"] == "run":
                await run(command["source"])
                port.tell(json.dumps({"is": "finished"}))
        except KeyboardInterrupt:
            port.tell(json.dumps({"is": "finished"}))


async def run(source: str) -> None:
    """Runs a program as __main__, and shows the value of its last line as an interactive Python would."""
    linecache.cache[NAME] = (len(source), None, source.splitlines(keepends=True), NAME)
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    try:
        if _imports_torch(ast.parse(source, NAME)):
            importlib.import_module("pywebgpu.as_torch")
        value = await eval_code_async(source, module.__dict__, filename=NAME)
        if value is not None:
            print(repr(value))
    except SystemExit as error:
        if error.code not in (None, 0):
            print(f"exit status {error.code}", file=sys.stderr)
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr)
    except BaseException as error:
        _show(error)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


def _imports_torch(program: ast.Module) -> bool:
    """Whether a program was written for PyTorch, which is this library then."""
    imported = [one.name for node in ast.walk(program) if isinstance(node, ast.Import) for one in node.names]
    imported += [str(node.module) for node in ast.walk(program) if isinstance(node, ast.ImportFrom)]
    return any(name.partition(".")[0] == "torch" for name in imported)


def _show(error: BaseException) -> None:
    """The traceback, from the program's own first line on."""
    inner = error.__traceback__
    while inner is not None and inner.tb_frame.f_code.co_filename != NAME:
        inner = inner.tb_next
    traceback.print_exception(type(error), error, inner)
