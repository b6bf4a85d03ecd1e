"""The files of the worker's Python: archives of the server, unpacked here; the second one when it is needed.

A snapshot is the memory of a Python that has imported them already. It carries the files along, since its file system
is not a part of it.
"""

import gc
import importlib
import json
import lzma
import random
import sys
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
LIBRARY = "pywebgpu."
_carried: dict[str, bytes] = {}


def unpack(packed: bytes) -> None:
    """Writes the files of an archive."""
    _write(_files(packed))


def carry(path: str, modules: list[str]) -> None:
    """Before a snapshot is made: unpacks an archive, and imports what will be needed of it."""
    global _carried
    _carried = _files(Path(path).read_bytes())
    _write(_carried)
    for name in modules:
        importlib.import_module(name)
    gc.collect()


def restore() -> None:
    """After a snapshot was loaded: writes its files, and draws anew what should differ from visit to visit."""
    global _carried
    _write(_carried)
    _carried = {}
    random.seed()


def _files(packed: bytes) -> dict[str, bytes]:
    """Files by their names: see Site._archive of pywebgpu/hosts/site.py."""
    head, _, text = lzma.decompress(packed).partition(b"\n")
    names, words = json.loads(head)
    for byte, word in words:
        text = text.replace(bytes([byte]), word.encode())
    return dict(zip(names, text.split(b"\0"), strict=True))


def _write(files: dict[str, bytes]) -> None:
    for name, content in files.items():
        file = FOLDER / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)


class Rest:
    """Finds parts of the library that are not there yet: it fetches all of them at once, and is done."""

    def __init__(self, address: str) -> None:
        self.address = address

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if not name.startswith(LIBRARY):
            return None
        unpack(_fetch(self.address))
        sys.meta_path.remove(self)
        importlib.invalidate_caches()
        return PathFinder.find_spec(name, path, target)


def _fetch(address: str) -> bytes:
    """The bytes of an address, waited for: an import cannot be awaited. Raises ImportError."""
    from js import XMLHttpRequest  # type: ignore[import-not-found] - Pyodide's

    request = XMLHttpRequest.new()
    request.open("GET", address, False)
    request.responseType = "arraybuffer"
    try:
        request.send()
    except Exception as error:  # JavaScript's NetworkError
        raise ImportError(f"{address} cannot be loaded: is the server still there?") from error
    if request.status != 200:
        raise ImportError(f"{address} cannot be loaded: the server says {request.status}")
    content: bytes = request.response.to_py().tobytes()
    return content
