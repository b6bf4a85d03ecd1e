"""The files of the worker's Python: archives of the server, unpacked here; the second one when it is needed."""

import importlib
import json
import lzma
import sys
from importlib.machinery import ModuleSpec, PathFinder
from io import BytesIO
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
LIBRARY = "pywebgpu."


def unpack(packed: bytes) -> None:
    """Writes the files of an archive: see Site._archive of pywebgpu/hosts/site.py."""
    with lzma.open(BytesIO(packed)) as archive:
        for name, length in json.loads(archive.readline()):
            file = FOLDER / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(archive.read(length))


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
