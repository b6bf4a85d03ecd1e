"""What `import torch` means in a program that was written for PyTorch; pywebgpu.as_torch says what it is promised."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pywebgpu import devices, version
from pywebgpu.settings import settings
from pywebgpu.support import lazy
from pywebgpu.torch_api import stand_ins, torch_version

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from types import ModuleType

VERSION = "2.13.0"  # of PyTorch, which programs compare with
NAMES = ("cuda", "mps")
surface: Any = importlib.import_module("pywebgpu")

# Asking what the program does would come too late: what it made before its first request would lie on the device, and
# could not meet what it makes later, on the host. So its text is read, which may say more than will run, never less.
ASKS = re.compile(r"""cuda\.is_available|\.cuda\(|["'](?:cuda|mps)\b|\baccelerator\.""")
DOUBLES = re.compile(r"torch\.(?:float64|double|complex128|cdouble)\b|\.double\(|\bDoubleTensor\b")
IMPORTS = re.compile(r"^\s*(?:from|import)\s+([\w.]+)", re.MULTILINE)


def install(device: str | None = None, program: str | None = None, names: Sequence[str] = NAMES) -> None:
    """Makes `torch` mean pywebgpu in this process, for the program in a file. Raises RuntimeError where PyTorch was
    imported before. names: devices of PyTorch's that then mean the device."""
    known = sys.modules.get("torch")
    if known is not None and known is not surface:
        raise RuntimeError("torch was imported before: import pywebgpu.as_torch first, or use `pywebgpu run`")
    chosen = devices.device(device or devices.default_device()).type
    if not settings.cuda:
        chosen, names = "cpu", ()
        devices.set_default_device(chosen)
    for name in names:
        devices.adopt(name, chosen)
    if chosen != "cpu":
        text = _text(program or getattr(sys.modules.get("__main__"), "__file__", None))
        devices.set_default_of_import("cpu" if ASKS.search(text) or DOUBLES.search(text) else NAMES[0])
        if not text:  # What libraries ask for says nothing of a program that does not ask.
            devices.on_request(lambda: devices.set_default_device("cpu"))
    surface.__version__ = version.__version__ = torch_version.TorchVersion(f"{VERSION}+pywebgpu.{version.own}")
    sys.modules["torch"] = surface
    surface.__name__, surface.__class__ = "torch", lazy.Package
    lazy.list_whole()
    surface.torch = surface  # As PyTorch imports itself.
    surface.Tensor.__module__, surface.nn.Parameter.__module__ = "torch", "torch.nn.parameter"  # As they are printed.
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
    if sys.platform == "emscripten":
        importlib.import_module("pywebgpu.packages").install()


def _text(program: str | None) -> str:
    """What a program says, with the files that it imports from its own folder, but for comments."""
    waiting, texts = [] if program is None else [Path(program)], {}
    while waiting:
        path = waiting.pop()
        if path in texts or not path.is_file():
            continue
        texts[path] = re.sub(r"#.*", "", path.read_text("utf-8", "replace"))
        for name in IMPORTS.findall(texts[path]):
            own = Path(program or "").parent.joinpath(*name.split("."))
            waiting += [Path(f"{own}.py"), *own.glob("*.py")]
    return "\n".join(texts.values())


class _Finder(importlib.abc.MetaPathFinder):
    """Finds torch.x.y as pywebgpu.x.y, or as a stand-in of that name; and the distribution that libraries ask for."""

    @staticmethod
    def find_distributions(context: Any) -> Iterable[Any]:
        """For importlib.metadata, which asks with a name, or with None for all that there are."""
        if context.name is None or re.sub(r"[-_.]+", "-", context.name).lower() == "torch":
            yield importlib.import_module("pywebgpu.support.distribution").of_torch(version.__version__)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if not fullname.startswith(("torch.", "functorch.")) and fullname != "functorch":  # PyTorch brings both.
            return None
        module = stand_ins.module(fullname.removeprefix("torch."))
        return None if module is None else importlib.machinery.ModuleSpec(fullname, lazy.AliasLoader(module))
