"""Runs a script inside a Python that somebody else started, as `python SCRIPT` would run it.

js_bridge/node.mjs runs this file before pywebgpu can be imported, so it imports the standard library only.
"""

from __future__ import annotations

import atexit
import importlib.machinery
import importlib.util
import os
import runpy
import sys
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

INTERRUPTED = 130


class _Finder:
    """Finds pywebgpu in its folder, and nothing that lies beside it: those packages are another Python's."""

    def __init__(self, package: str) -> None:
        self.package = Path(package)

    def find_spec(self, name: str, path: object = None, target: object = None) -> importlib.machinery.ModuleSpec | None:
        if name != "pywebgpu":
            return None
        file = self.package / "__init__.py"
        return importlib.util.spec_from_file_location(name, file, submodule_search_locations=[str(self.package)])


def trouble(command: Sequence[str]) -> str:
    """Why there is no script to run; "" where there is one."""
    first = command[0] if command else "-c"
    if first in ("-c", "-m") and len(command) == 1:
        return f"argument {first}: expected one argument"
    if first.startswith("-") or Path(first).is_file():
        return ""
    what = "that is a folder; name a script in it" if Path(first).is_dir() else "No such file or directory"
    return f"can't open file {str(Path(first).absolute())!r}: {what}: {first!r}"


def status_of(
    name: str, parser: argparse.ArgumentParser, command: Sequence[str], run: Callable[[], int], *errors: type[Exception]
) -> int:
    """What a command exits with that runs a script elsewhere: 2 where there is none, or none of these hosts."""
    if not command:
        parser.error("which script?")
    wrong = trouble(command)
    if not wrong:
        try:
            return run()
        except errors as error:
            wrong = str(error)
    print(f"pywebgpu {name}: {wrong}", file=sys.stderr)
    return 2


def run(package: str, command: Sequence[str]) -> int:
    """Runs SCRIPT, -m MODULE or -c CODE with its arguments; returns what the process should exit with."""
    sys.meta_path.append(_Finder(package))
    sys.dont_write_bytecode = bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))  # Pyodide writes none by itself.
    status = guarded(command)
    try:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    except (BrokenPipeError, KeyboardInterrupt):
        status = status or 1
    return status


def guarded(command: Sequence[str]) -> int:
    """As run, in a process that goes on."""
    try:
        _execute(*command)
    except SystemExit as error:
        return _status(error)
    except BaseException as error:
        _forget_runner(error)
        sys.excepthook(type(error), error, error.__traceback__)
        return INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1
    return 0


def _execute(first: str, *rest: str) -> None:
    if first == "-m":
        sys.argv = [*rest]
        sys.path.insert(0, str(Path.cwd()))
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
        return
    main = types.ModuleType("__main__")
    if first == "-c":
        sys.argv = ["-c", *rest[1:]]
        sys.path.insert(0, "")
        code = compile(rest[0], "<string>", "exec")
    else:
        script = Path(first)
        sys.argv = [first, *rest]
        sys.path.insert(0, str(script.resolve().parent))
        main.__file__ = str(script.resolve())
        code = compile(script.read_bytes(), main.__file__, "exec")
    main.__dict__["__builtins__"] = __builtins__
    sys.modules["__main__"] = main
    exec(code, main.__dict__)


def _status(error: SystemExit) -> int:
    """What Python makes of sys.exit's argument."""
    if error.code is None:
        return 0
    if isinstance(error.code, int):
        return error.code & 0xFF
    print(error.code, file=sys.stderr)
    return 1


def _forget_runner(error: BaseException) -> None:
    """Takes the frames that led to the program out of the traceback; none is left where it could not be started."""
    inner = error.__traceback__
    while inner is not None and inner.tb_frame.f_globals.get("__name__") in (__name__, "runpy"):
        inner = inner.tb_next
    error.__traceback__ = inner
