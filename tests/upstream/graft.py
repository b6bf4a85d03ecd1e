"""`torch.testing._internal` of PyTorch's source package, beside a torch that does not bring it, or brings another."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

HELPERS = "torch.testing._internal"
JUDGE = ("torch.testing._comparison", "torch.testing._utils")  # what the helpers' assertions are made of


class Finder(importlib.abc.MetaPathFinder):
    """Finds modules, and what lies below them, in a folder that holds `torch/testing/`."""

    def __init__(self, folder: Path, names: Sequence[str]) -> None:
        self.folder, self.names = folder, tuple(names)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if not any(f"{fullname}.".startswith(f"{name}.") for name in self.names):
            return None
        base = self.folder.joinpath(*fullname.split("."))
        first = base / "__init__.py"
        if first.exists():
            return importlib.util.spec_from_file_location(fullname, first, submodule_search_locations=[str(base)])
        if base.is_dir():
            spec = importlib.machinery.ModuleSpec(fullname, None, is_package=True)
            spec.submodule_search_locations = [str(base)]
            return spec
        file = base.with_suffix(".py")
        return importlib.util.spec_from_file_location(fullname, file) if file.exists() else None


class Dropped(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """The last finder, for PyTorch itself: modules that it has had, whose names files import and few tests use."""

    NAMES = ("torch.ao.",)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        is_dropped = fullname.startswith(self.NAMES)
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True) if is_dropped else None

    def exec_module(self, module: ModuleType) -> None:
        vars(module)["__getattr__"] = lambda name: object


def install(folder: Path, library: str) -> None:
    """Makes `torch` the library of a name, "pywebgpu" or "torch", with the helpers grafted on."""
    names = [HELPERS]
    if library == "torch":
        importlib.import_module("torch")  # It reads helpers of its own while it is imported.
        export = importlib.import_module("torch.export")
        vars(export).setdefault("export_for_training", export.export)  # Its name since, which files only import.
        engines = importlib.import_module("torch.backends.quantized").supported_engines
        importlib.import_module("torch.backends.quantized").__class__.supported_engines = [*engines, "none"]
        sys.meta_path.append(Dropped())
    else:
        names += JUDGE
        importlib.import_module("pywebgpu.torch_api.torch_import").install("cpu", names=())
        # Compiled classes of PyTorch's tests, which whole files load and few tests use: those fail where they do.
        importlib.import_module("pywebgpu.torch_api._ops").LIBRARIES["libtorchbind_test"] = __name__
    for name in [name for name in sys.modules if name.startswith(HELPERS)]:
        del sys.modules[name]
    sys.meta_path.insert(0, Finder(folder, names))
    if library != "torch":
        vars(sys.modules["torch"])["__file__"] = str(folder / "torch" / "__init__.py")  # Beside which tests open files.
    for name in names[1:]:
        importlib.import_module(name)  # PyTorch's torch.testing has them from the start.
    if library != "torch":
        _mend_filter(importlib.import_module(f"{HELPERS}.common_device_type"))


def _mend_filter(device_types: ModuleType) -> None:
    """Where a device of another kind is there, the helpers take `only_for="cpu"` for a list of letters."""
    plain = device_types.filter_desired_device_types

    def listed(bases: Any, except_for: Any = None, only_for: Any = None) -> Any:
        both = ([names] if isinstance(names, str) else names for names in (except_for, only_for))
        return plain(bases, *both)

    device_types.filter_desired_device_types = listed
