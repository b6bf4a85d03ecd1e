"""Files of the browser's as Python reads them: ranges of them, their checksums, and folders of them."""

import hashlib
from collections.abc import Mapping
from typing import Any

import js
import pyodide_js
from pyodide.ffi import to_js

WINDOW = 1 << 22  # bytes that are read at once where less is asked for


class Ranges:
    """The bytes of a file, of which ranges are read as they are asked for."""

    def __init__(self, blob: Any) -> None:
        self._blob, self._reader = blob, js.FileReaderSync.new()
        self._begin, self._window = 0, b""

    def __len__(self) -> int:
        return int(self._blob.size)

    def __getitem__(self, key: slice) -> bytes:
        begin, end, _ = key.indices(len(self))
        if end - begin >= WINDOW:
            return self._read(begin, end)
        if begin < self._begin or end > self._begin + len(self._window):
            self._begin, self._window = begin, self._read(begin, min(begin + WINDOW, len(self)))
        return self._window[begin - self._begin : end - self._begin]

    def _read(self, begin: int, end: int) -> bytes:
        content: bytes = self._reader.readAsArrayBuffer(self._blob.slice(begin, end)).to_bytes()
        return content


def sha256(blob: Any) -> str:
    """The checksum of a file, in hexadecimal."""
    content, digest = Ranges(blob), hashlib.sha256()
    for begin in range(0, len(content), WINDOW):
        digest.update(content[begin : begin + WINDOW])
    return digest.hexdigest()


def mount(files: Mapping[str, Any], folder: str) -> None:
    """Shows files in a folder, where they are read without a copy of them in memory. What the folder showed is gone."""
    system = pyodide_js.FS
    if system.analyzePath(folder).exists:
        system.unmount(folder)
    system.mkdirTree(folder)
    blobs = to_js([{"name": name, "data": blob} for name, blob in files.items()], dict_converter=js.Object.fromEntries)
    system.mount(system.filesystems.WORKERFS, to_js({"blobs": blobs}, dict_converter=js.Object.fromEntries), folder)
