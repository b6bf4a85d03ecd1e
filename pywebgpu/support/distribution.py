"""What importlib.metadata says of a package that is part of this library, as `torch` in a program that imports it."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path


class Distribution(importlib.metadata.Distribution):
    """A distribution of this version; it has one package, and needs nothing."""

    FILES = "METADATA", "top_level.txt", "INSTALLER"

    def __init__(self, name: str, version: str, summary: str) -> None:
        self._texts = {
            "METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nSummary: {summary}\n",
            "top_level.txt": f"{name}\n",
            "INSTALLER": "pywebgpu\n",
        }

    def read_text(self, filename: str) -> str | None:
        """The text of a file of the distribution; None of one that is not there."""
        return self._texts.get(filename)

    def locate_file(self, path: object) -> Path:
        return Path(__file__).parents[1] / str(path)


def of_torch(version: str) -> Distribution:
    """The distribution `torch`, of a version of PyTorch's."""
    return Distribution("torch", version, "PyTorch's names on WebGPU")
