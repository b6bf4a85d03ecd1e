"""Compiled Programs on disk: a process that meets a graph which another one compiled before reads it there.

A file is named by the graph's structure, the target, and the compiler's own source, so that nothing stale is ever read;
it is written whole or not at all, and what cannot be read is compiled again.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from pywebgpu.errors import CompileError
from pywebgpu.graph.key import Structure
from pywebgpu.program import wire
from pywebgpu.program.program import Program, Target
from pywebgpu.runtime import state
from pywebgpu.settings import settings

FILES = 512  # the oldest go first


def find(structure: Structure, target: Target, written: Any) -> Path | None:
    """Where the Program is, or would be. None where nothing is stored."""
    if not settings.cache or not target.wgsl:
        return None
    words = f"{structure.text()}{target}{written}{settings.fuse}{settings.check_integers}{_compiler()}"
    return Path(settings.cache) / f"{hashlib.sha256(words.encode()).hexdigest()}.json"


def load(file: Path) -> Program | None:
    """The stored Program, or None where there is none that can be read."""
    try:
        program = wire.load_sealed(file)
    except (OSError, CompileError):
        state.default.counters["stored_misses"] += 1
        return None
    state.default.counters["stored_hits"] += 1
    return program


def save(program: Program, file: Path) -> None:
    """Stores a Program, if the folder can be written to."""
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        wire.save_sealed(program, file)
        stored = sorted(file.parent.glob("*.json"), key=lambda one: one.stat().st_mtime)
        for old in stored[:-FILES]:
            old.unlink(missing_ok=True)


@lru_cache(1)
def _compiler() -> str:
    """Stands for the source of this package: sizes and times of its files."""
    package = Path(__file__).parents[1]
    folders = ("ops", "compose", "rewrite", "kernels", "program", "graph")
    found = [file.stat() for folder in folders for file in sorted((package / folder).glob("*.py"))]
    return repr([(one.st_size, one.st_mtime_ns) for one in found])
