"""`python -m tests names`: the public names of the installed PyTorch: here, or refused with a reason.

With --write they go to docs/names.json, from which the site of the documentation makes its map of names.
"""

import importlib
import inspect
import json
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import pywebgpu
from pywebgpu.torch_api import stand_ins

MODULES = (
    "", "nn", "nn.functional", "nn.init", "nn.utils", "nn.utils.rnn", "nn.utils.parametrizations",
    "nn.utils.parametrize", "nn.utils.prune", "nn.parameter", "nn.attention", "nn.attention.bias",
    "nn.attention.flex_attention", "nn.parallel", "optim",
    "optim.lr_scheduler", "optim.swa_utils", "utils", "utils.data", "utils.checkpoint", "linalg", "special",
    "fft", "distributions", "func", "amp", "autograd", "autograd.functional", "autograd.forward_ad",
    "autograd.graph", "cuda", "backends", "backends.cudnn", "random", "signal.windows", "sparse", "testing",
    "profiler", "serialization", "return_types", "types", "masked", "nested", "jit", "fx", "onnx", "export",
    "compiler", "library", "overrides", "accelerator", "cpu", "mps", "xpu", "multiprocessing", "distributed",
    "quasirandom", "hub", "futures", "monitor", "package", "storage",
)  # fmt: skip

WRITTEN = Path(__file__).parents[1] / "docs" / "names.json"


@dataclass(frozen=True, slots=True)
class Count:
    """Of one module: the names that work, those that are refused with a reason, and those that nothing says of."""

    here: tuple[str, ...]
    refused: tuple[str, ...]
    missing: tuple[str, ...]


def public(module: Any) -> list[str]:
    """The names of a module that are its own: no modules, and nothing of other packages."""
    listed = getattr(module, "__all__", None)
    names = listed if listed is not None and module is not torch else dir(module)
    return sorted({name for name in names if not name.startswith("_") and _is_own(getattr(module, name, None))})


def _is_own(value: object) -> bool:
    home = getattr(value, "__module__", "") or ""
    foreign = callable(value) and bool(home) and not home.startswith(("torch", "builtins"))
    return (
        not inspect.ismodule(value)
        and value is not torch.Tensor
        and not foreign
        and value is not True
        and value is not False
    )


def is_refusal(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, stand_ins.Absent)


def counted(names: list[str], holder: Any) -> Count:
    here, refused, missing = [], [], []
    for name in names:
        try:
            found = getattr(holder, name)
        except AttributeError:
            missing.append(name)
            continue
        except (RuntimeError, NotImplementedError):
            found = None  # It is there, and refuses this very tensor.
        (refused if is_refusal(found) else here).append(name)
    return Count(tuple(here), tuple(refused), tuple(missing))


def module(path: str) -> Any:
    return stand_ins.module(path) if path else pywebgpu


def theirs() -> dict[str, list[str]]:
    """Path below torch, or "Tensor" -> PyTorch's public names."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = {path: public(importlib.import_module(f"torch.{path}".rstrip("."))) for path in MODULES}
    return found | {"Tensor": [name for name in dir(torch.Tensor) if not name.startswith("_")]}


def table() -> dict[str, Count]:
    """The same paths -> what became of their names."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one = pywebgpu.ones(1, 1, device="cpu")
        return {path: counted(names, one if path == "Tensor" else module(path)) for path, names in theirs().items()}


def text() -> str:
    """docs/names.json: a line a module."""
    rows = [f"{json.dumps(path)}: {json.dumps(names)}" for path, names in theirs().items() if names]
    return "{\n" + ",\n".join(rows) + "\n}\n"


def main(arguments: list[str]) -> int:
    if "--write" in arguments:
        WRITTEN.write_text(text(), encoding="utf-8")
    found = table()
    for path, count in found.items():
        print(f"{path or 'torch':25} {len(count.here):5} here {len(count.refused):5} refused", *count.missing[:1])
    missing = {path: count.missing for path, count in found.items() if count.missing}
    total = sum(len(count.here) for count in found.values()), sum(len(count.refused) for count in found.values())
    unknown = sum(map(len, missing.values()))
    print(f"{total[0]} names are here, {total[1]} are refused with a reason, {unknown} are not known")
    for path, names in missing.items():
        print(f"{path or 'torch'}:", *names)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
