"""`pywebgpu node SCRIPT`: runs a script in Pyodide on Node, with WebGPU by Dawn.

The script is unchanged, and so is what it sees: working folder, files, arguments, streams, exit status, Ctrl-C.
Node and its packages are those of the installation (see installation.py), whatever the working folder holds.
"""

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from pywebgpu.hosts import script
from pywebgpu.support import installation
from pywebgpu.support.installation import InstallationError

# Of glibc: few arenas, and what is free at their ends goes back to the system. Compilers of shaders take and free much.
ALLOCATOR = {"MALLOC_ARENA_MAX": "2", "MALLOC_TRIM_THRESHOLD_": "131072"}


def main(arguments: Sequence[str]) -> int:
    """The command: exits as the script does."""
    parser = argparse.ArgumentParser(
        prog="pywebgpu node", description=__doc__, usage="%(prog)s [--with NAME]... (SCRIPT | -m MODULE | -c CODE) ..."
    )
    parser.add_argument(
        "--with", dest="packages", action="append", default=[], metavar="NAME", help="load a package of Pyodide"
    )
    own, command = _split(arguments)
    options = parser.parse_args(own)
    run_it = partial(run, command, packages=options.packages)
    return script.status_of("node", parser, command, run_it, InstallationError)


def _split(arguments: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """What is for this command, and from the script on what is not."""
    index = 0
    while index < len(arguments) and arguments[index].startswith("-") and arguments[index] not in ("-m", "-c"):
        index += 2 if arguments[index] == "--with" else 1
    return arguments[:index], arguments[index:]


def run(command: Sequence[str], *, packages: Sequence[str] = (), **options: Any) -> int:
    """Runs a command in Node and waits for it; `options` go to subprocess.Popen. Raises InstallationError."""
    with started(command, packages=packages, **options) as child:
        status: int = child.wait()
    if status == script.INTERRUPTED:  # As Python itself ends after a Ctrl-C, so that a shell stops its loop.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    return status if status >= 0 else 128 - status


@contextlib.contextmanager
def started(command: Sequence[str], *, packages: Sequence[str] = (), **options: Any) -> Iterator[subprocess.Popen[Any]]:
    """The process while it runs. Ctrl-C goes to the script and not to this Python."""
    if sys.platform == "win32":
        raise InstallationError("not on Windows yet; use the Windows Subsystem for Linux")
    modules, node = installation.find_modules().path, installation.find_node().path
    package, program = str(installation.PACKAGE), str(installation.find_bridge() / "node.mjs")
    reader, writer = os.pipe()
    job = {"modules": str(modules), "package": package, "packages": list(packages), "interrupts": reader}
    words = [str(node), "--no-warnings", program, json.dumps(job), *command]
    options["env"] = ALLOCATOR | dict(options.get("env") or os.environ)
    with _interrupts_to(writer):
        child = subprocess.Popen(words, pass_fds=(reader,), **options)
        os.close(reader)
        stop = signal.signal(signal.SIGTERM, lambda *_: child.terminate())
        try:
            yield child
        finally:
            signal.signal(signal.SIGTERM, stop)
            if child.poll() is None:
                child.terminate()
            os.close(writer)


@contextlib.contextmanager
def _interrupts_to(pipe: int) -> Iterator[None]:
    before = signal.signal(signal.SIGINT, lambda *_: os.write(pipe, b"c"))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
