"""What importlib.metadata says of `torch` in a program where `import torch` is this library."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path


class Distribution(importlib.metadata.Distribution):
    """The distribution `torch`, of PyTorch's version; it has one package, and needs nothing."""

    FILES = "METADATA", "top_level.txt", "INSTALLER"

    def __init__(self, version: str) -> None:
        self._texts = {
            "METADATA": f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\nSummary: PyTorch's names on WebGPU\n",
            "top_level.txt": "torch\n",
            "INSTALLER": "pywebgpu\n",
        }

    def read_text(self, filename: str) -> str | None:
        """The text of a file of the distribution; None of one that is not there."""
        return self._texts.get(filename)

    def locate_file(self, path: object) -> Path:
        return Path(__file__).parents[1] / str(path)
