"""Python in the editor's worker: runs what the page sends, one program after another."""

import ast
import builtins
import importlib
import importlib.util
import json
import keyword
import linecache
import os
import re
import sys
import traceback
import types
from pathlib import Path
from typing import Any

from pyodide.code import eval_code_async, find_imports
from pyodide.ffi import can_run_sync, run_sync

from pywebgpu import devices
from pywebgpu.errors import PywebgpuError

MOST = 300  # names that are offered at a time


async def main(port: Any) -> None:
    """Opens the device where there is one, then runs programs until the worker ends."""
    os.environ["MPLBACKEND"] = "module://figures"
    sys.path.insert(0, os.getcwd())
    try:
        await devices.open_device_async("webgpu")
        devices.set_default_device("webgpu")
    except PywebgpuError as error:
        await port.packages("import numpy")  # which device cpu computes with
        how = "tensors are computed on the CPU, by NumPy"
        if _is_missing("numpy"):
            how += ", which this server's Pyodide lacks: pywebgpu serve --cdn takes it from the network"
        print(f"{error}: {how}.\n", file=sys.stderr)
    editor = Editor(port)
    builtins.input = editor.ask
    port.tell(json.dumps({"is": "ready"}))
    port.loaded()
    while True:
        try:
            message = port.take()
            if not message:
                await port.arrived()
                continue
            command = json.loads(message)
            if command["do"] == "run":
                await editor.run(command["name"], command["files"])
                port.tell(json.dumps({"is": "finished"}))
            elif command["do"] == "complete":
                port.tell(json.dumps({"is": "completions", **editor.complete(command["before"], command["source"])}))
        except KeyboardInterrupt:
            port.tell(json.dumps({"is": "finished"}))


class Editor:
    """The files of the page, and what the last program left."""

    def __init__(self, port: Any) -> None:
        self.port = port
        self.names: dict[str, Any] = {}
        self._written: set[str] = set()

    async def run(self, name: str, files: dict[str, str]) -> None:
        """Runs a file as __main__, and shows the value of its last line as an interactive Python would."""
        source = files[name]
        self._write(files)
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
        module = types.ModuleType("__main__")
        sys.modules["__main__"] = module
        self.names = module.__dict__
        self.port.begin()
        try:
            if _imports_torch(ast.parse(source, name)):
                await self._become_torch()
            await self._load(files)
            self._show(await eval_code_async(source, module.__dict__, filename=name))
            if "matplotlib.pyplot" in sys.modules:
                importlib.import_module("figures").show()
        except SystemExit as error:
            if error.code not in (None, 0):
                print(f"exit status {error.code}", file=sys.stderr)
        except KeyboardInterrupt:
            print("\nstopped", file=sys.stderr)
        except BaseException as error:
            _explain(error, {name, *(os.path.join(os.getcwd(), other) for other in files)})
        finally:
            sys.stdout.flush()
            sys.stderr.flush()

    async def _become_torch(self) -> None:
        """From now on `import torch` is this library. Device cpu, where a program may be in part, needs NumPy."""
        if "torch" not in sys.modules:
            importlib.import_module("pywebgpu.as_torch")
            await self.port.packages("import numpy")
            importlib.invalidate_caches()
            if _is_missing("numpy"):  # Then what a program places nowhere stays on the GPU.
                devices.on_request(lambda: None)

    def _write(self, files: dict[str, str]) -> None:
        """Makes the files importable, and forgets what was imported of them."""
        for gone in self._written - set(files):
            Path(gone).unlink(missing_ok=True)
        for name, text in files.items():
            Path(name).write_text(text, encoding="utf-8")
            sys.modules.pop(name.removesuffix(".py"), None)
        self._written = set(files)
        importlib.invalidate_caches()

    async def _load(self, files: dict[str, str]) -> None:
        """Loads the packages that the current program, or a file that may be imported, names."""
        sources = [text for name, text in files.items() if name.endswith(".py")]
        missing = sorted({one for text in sources for one in _imports(text) if _is_missing(one)})
        if not missing:
            return
        self.port.tell(json.dumps({"is": "loading", "what": ", ".join(missing)}))
        wrong = await self.port.packages("\n".join(f"import {name}" for name in missing))
        importlib.invalidate_caches()
        absent = [name for name in missing if _is_missing(name)]
        if absent and wrong:
            print(
                f"{', '.join(absent)}: not loaded. Neither this server nor cdn.jsdelivr.net gives it; a folder of a "
                "full Pyodide does: python -m pywebgpu serve --pyodide FOLDER",
                file=sys.stderr,
            )

    def _show(self, value: Any) -> None:
        if value is None:
            return
        shown = getattr(value, "_repr_html_", None)
        if shown is None or isinstance(value, type):
            print(repr(value))
        else:
            self.port.show(self.port.place(), shown())

    def ask(self, prompt: object = "", /) -> str:
        """What `input` is in the editor."""
        if not can_run_sync():
            raise RuntimeError("input() cannot wait in this browser, which lacks JavaScript Promise Integration")
        print(prompt, end="", flush=True)
        answer = run_sync(self.port.ask())
        if answer is None:
            raise KeyboardInterrupt
        print(answer)
        return str(answer)

    def complete(self, before: str, source: str) -> dict[str, Any]:
        """Names that go on with the last word of `before`, of what the last program left and this one imports."""
        path, word = re.fullmatch(r"(?:.*?([\w.]+)\.)?(\w*)", before, re.DOTALL).groups()  # type: ignore[union-attr]
        known = vars(builtins) | _imported(source) | self.names
        try:
            if path is None:
                found = {*known, *keyword.kwlist}
            else:
                first, *rest = path.split(".")
                value = known[first]
                for name in rest:
                    value = getattr(value, name)
                found = set(dir(value))
        except Exception:  # Whatever an attribute may raise: there is nothing to offer then.
            found = set()
        names = sorted(
            one for one in found if one.startswith(word) and (word.startswith("_") or not one.startswith("_"))
        )
        return {"start": len(before) - len(word), "names": names[:MOST]}


def _imports(source: str) -> list[str]:
    try:
        return [name.partition(".")[0] for name in find_imports(source)]
    except SyntaxError:
        return []


def _is_missing(name: str) -> bool:
    """Whether Python has no such module."""
    try:
        return name not in sys.modules and importlib.util.find_spec(name) is None
    except (ImportError, ValueError):
        return True


def _imported(source: str) -> dict[str, Any]:
    """What the lines of a program that can be read so far import, as far as it is loaded anyway."""
    found: dict[str, Any] = {}
    for line in source.splitlines():
        try:
            node = ast.parse(line).body[0] if line.startswith(("import ", "from ")) else None
        except SyntaxError:
            continue
        if isinstance(node, ast.Import):
            for one in node.names:
                module = sys.modules.get(one.name if one.asname else one.name.partition(".")[0])
                found |= {one.asname or one.name.partition(".")[0]: module} if module else {}
        elif isinstance(node, ast.ImportFrom) and node.module in sys.modules:
            module = sys.modules[node.module]
            found |= {one.asname or one.name: getattr(module, one.name, None) for one in node.names}
    return found


def _imports_torch(program: ast.Module) -> bool:
    """Whether a program was written for PyTorch, which is this library then."""
    imported = [one.name for node in ast.walk(program) if isinstance(node, ast.Import) for one in node.names]
    imported += [str(node.module) for node in ast.walk(program) if isinstance(node, ast.ImportFrom)]
    return any(name.partition(".")[0] == "torch" for name in imported)


def _explain(error: BaseException, files: set[str]) -> None:
    """The traceback, of the program's own lines: where there are none, from its first line on."""
    shown = traceback.TracebackException.from_exception(error)
    at: traceback.TracebackException | None = shown
    while at is not None:
        own = [frame for frame in at.stack if frame.filename in files]
        first = next((n for n, frame in enumerate(at.stack) if frame.filename in files), 0)
        keeps = [frame for frame in list(at.stack)[first:] if frame in own or "/pywebgpu/" not in frame.filename]
        at.stack = traceback.StackSummary.from_list(keeps)
        at = at.__cause__ or (None if at.__suppress_context__ else at.__context__)
    print("".join(shown.format()), end="", file=sys.stderr)
