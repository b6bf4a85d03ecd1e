"""What libraries expect and Pyodide lacks: compiled packages, as modules of the same names; threads, run as calls."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import re
import sys
from collections.abc import Iterable, Sequence
from types import ModuleType
from typing import Any

from pywebgpu.packages import threads
from pywebgpu.support import distribution, lazy

VERSIONS = {"psutil": "7.2.2", "safetensors": "0.8.0", "tokenizers": "0.23.3"}  # whose functions these are


def install() -> None:
    """Lets programs import the packages that are not installed, and start threads where there are none."""
    threads.install()
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())  # First, since the folders here would be searched for submodules.


class _Finder(importlib.abc.MetaPathFinder):
    @staticmethod
    def find_distributions(context: Any) -> Iterable[Any]:
        """For importlib.metadata, which asks with a name, or with None for all that there are."""
        names = VERSIONS if context.name is None else [re.sub(r"[-_.]+", "-", context.name).lower()]
        for name in names:
            if name in VERSIONS and _is_here(name):
                yield distribution.Distribution(name, VERSIONS[name], "a package's names in Python")

    @staticmethod
    def find_spec(
        fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        package, _, inside = fullname.partition(".")
        if package not in VERSIONS or not _is_here(package):
            return None
        if inside and importlib.util.find_spec(f"{__name__}.{fullname}") is None:
            return None
        module = importlib.import_module(f"{__name__}.{fullname}")
        is_package = hasattr(module, "__path__")
        return importlib.machinery.ModuleSpec(fullname, lazy.AliasLoader(module), is_package=is_package)


def _is_here(package: str) -> bool:
    """Whether a package is not installed, and none of its modules was imported before."""
    module = sys.modules.get(package)
    if module is not None:
        return module.__name__.startswith(__name__)
    return importlib.machinery.PathFinder.find_spec(package) is None
