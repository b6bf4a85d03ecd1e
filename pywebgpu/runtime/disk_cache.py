"""Compiled Programs on disk: a process that meets a graph which another one compiled before reads it there.

A file is named by the graph's structure, the target, and the compiler's own sources, so that nothing stale is ever
read; it is written whole or not at all, and what cannot be read is compiled again.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from pywebgpu.compiler import serialization
from pywebgpu.compiler.program import Program
from pywebgpu.errors import CompileError
from pywebgpu.ir.key import Structure
from pywebgpu.kernels.target import Target
from pywebgpu.runtime import state
from pywebgpu.settings import settings

if TYPE_CHECKING:
    from pywebgpu.compiler.program import Written

MOST = 512  # files; the oldest go first
PACKAGE = Path(__file__).parents[1]
KINDS = (".py", ".wgsl", ".json")  # of files
FOLDERS = ("support", "ir", "ops", "composites", "compiler", "kernels")
FILES = ("dtypes.py", "errors.py", "settings.py", "version.py")


def find(structure: Structure, target: Target, written: Written) -> Path | None:
    """Where the Program is, or would be. None where nothing is stored."""
    if not settings.cache or not target.wgsl or not state.default.is_stored:
        return None
    words = f"{structure.text()}{target.digest}{written}{settings.fuse}{_compiler(PACKAGE)}"
    return Path(settings.cache) / f"{hashlib.sha256(words.encode()).hexdigest()}.json"


def load(file: Path) -> Program | None:
    """The stored Program, or None where there is none that can be read."""
    try:
        program = serialization.load_sealed(file)
    except (OSError, CompileError):
        state.default.counters["stored_misses"] += 1
        return None
    state.default.counters["stored_hits"] += 1
    return program


def save(program: Program, file: Path) -> None:
    """Stores a Program, if the folder can be written to."""
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        serialization.save_sealed(program, file)
        files = sorted(file.parent.glob("*.json"), key=lambda entry: entry.stat().st_mtime)
        for old in files[:-MOST]:
            old.unlink(missing_ok=True)


def sources(package: Path) -> list[Path]:
    """The files that decide what a Program is, and the package's version."""
    files = [file for folder in FOLDERS for file in (package / folder).rglob("*") if file.suffix in KINDS]
    return sorted([*files, *(package / name for name in FILES)])


def fingerprint(package: Path) -> str:
    """Stands for this version of the compiler: a digest of its files, since archives give all files one time.

    It takes 2 ms, in Pyodide 10, where a cache is used; a page uses none.
    """
    digest = hashlib.sha256()
    for file in sources(package):
        content = file.read_bytes() if file.exists() else b""  # Some archives of the package have no sources.
        digest.update(f"\n{file.relative_to(package).as_posix()} {len(content)}\n".encode() + content)
    return digest.hexdigest()


_compiler = lru_cache(1)(fingerprint)
