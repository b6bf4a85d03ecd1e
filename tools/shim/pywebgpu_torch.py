"""Makes `import torch` pywebgpu in each program of this environment: Python reads pywebgpu_torch.pth when it starts."""

from __future__ import annotations

import importlib.util
import sys
from importlib.machinery import ModuleSpec, PathFinder


class TorchFinder:
    """Asked before the finder of files, until torch is imported."""

    @classmethod
    def find_spec(cls, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name not in ("torch", "functorch"):
            return None
        if PathFinder.find_spec("torch") is not None:
            raise ImportError(
                "PyTorch and pywebgpu-torch are both installed, and each is `torch` here: `pip uninstall "
                "pywebgpu-torch` keeps PyTorch"
            )
        sys.meta_path.remove(cls)
        torch_import = importlib.import_module("pywebgpu.torch_api.torch_import")
        torch_import.install()
        if name != "torch":
            return importlib.util.find_spec(name)
        lazy = importlib.import_module("pywebgpu.support.lazy")
        # Were it still there, importlib would take its own spec for this one, and load the library again.
        return ModuleSpec(name, lazy.AliasLoader(sys.modules.pop(name)))


sys.meta_path.insert(0, TorchFinder)
