"""The package psutil, as far as a process is WebAssembly: its memory, and one processor."""

from __future__ import annotations

import importlib
import os
from typing import Any, NamedTuple

__version__ = "7.2.2"  # whose functions these are
LARGEST = 1 << 32  # bytes that WebAssembly can address


class Error(Exception):
    """The base of this package's exceptions."""


class NoSuchProcess(Error): ...


class AccessDenied(Error): ...


class Memory(NamedTuple):
    """Bytes, and the part of them that is used."""

    total: int
    available: int
    percent: float
    used: int
    free: int


class ProcessMemory(NamedTuple):
    """Bytes of a process."""

    rss: int
    vms: int


class Process:
    """This process: there is no other."""

    def __init__(self, pid: int | None = None) -> None:
        if pid not in (None, os.getpid()):
            raise NoSuchProcess(f"process PID not found (pid={pid})")
        self.pid = os.getpid()

    def memory_info(self) -> ProcessMemory:
        return ProcessMemory(_used(), _used())

    memory_full_info = memory_info

    def cpu_affinity(self, cpus: Any = None) -> list[int]:
        return [0]

    def children(self, recursive: bool = False) -> list[Process]:
        return []

    def is_running(self) -> bool:
        return True


def virtual_memory() -> Memory:
    """What Python's memory may grow to, and has grown to."""
    used = _used()
    return Memory(LARGEST, LARGEST - used, round(100 * used / LARGEST, 1), used, LARGEST - used)


def cpu_count(logical: bool = True) -> int:
    return 1


def _used() -> int:
    """The bytes of WebAssembly's memory; 0 where Python is none."""
    try:
        js: Any = importlib.import_module("pyodide_js")
    except ModuleNotFoundError:
        return 0
    return int(js._module.HEAPU8.length)
