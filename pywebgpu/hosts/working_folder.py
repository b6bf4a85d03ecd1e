"""The files of a folder, for a host that cannot see this machine's, and what that host made of them."""

from __future__ import annotations

import os
from pathlib import Path

SKIPPED = ("__pycache__", "node_modules", "dist", "build", "_build", "site-packages", "test-results")
LARGEST = 16 << 20  # of a file
MOST = 128 << 20  # of all


class FolderError(RuntimeError):
    """A folder is too large to be carried."""


def files(folder: Path) -> dict[str, bytes]:
    """The files of a folder by their whole paths: no hidden ones, and nothing that is installed there.

    Raises FolderError where they are too many bytes.
    """
    contents: dict[str, bytes] = {}
    total = 0
    for place, folders, names in os.walk(folder):
        inner = Path(place)
        folders[:] = [
            name for name in sorted(folders)
            if not name.startswith(".") and name not in SKIPPED and not (inner / name / "pyvenv.cfg").exists()
        ]  # fmt: skip
        for path in (inner / name for name in sorted(names)):
            if not path.is_file() or path.name.startswith(".") or path.stat().st_size > LARGEST:
                continue
            contents[path.as_posix()] = data = path.read_bytes()
            total += len(data)
            if total > MOST:
                raise FolderError(f"{folder} holds more than {MOST >> 20} MB, which no page is given")
    return contents
