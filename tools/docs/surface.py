"""The public names: PyTorch's, as docs/names.json lists them, and those that are only here."""

import inspect
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pywebgpu
from pywebgpu.torch_api import stand_ins

NAMES = Path(__file__).parents[2] / "docs" / "names.json"
# What is here and not in PyTorch, by the path below torch; "" is torch itself.
OWN = {
    "": ("capture", "explain", "visualize", "export", "save_program", "load_program", "save_async"),
    "webgpu": (
        "current_device", "device_count", "get_device_name", "handler", "init", "is_available", "recover",
        "recover_async", "synchronize", "synchronize_async",
    ),
    "memory": ("allocated", "live_tensors", "memory_summary", "reset_peak", "stats", "track"),
    "display": ("Live",),
    "errors": None,
    "utils": ("Checkpointer",),
    "Tensor": ("item_async", "tolist_async", "cpu_async", "numpy_async", "tobytes", "tobytes_async"),
}  # fmt: skip
# Their names are PyTorch's alone, or stand elsewhere too.
LEFT = ("cuda", "mps", "xpu", "cpu", "jit", "onnx", "export", "compiler", "distributed", "hub", "monitor", "types")
LEFT += ("nested", "return_types", "serialization", "multiprocessing", "overrides", "nn.parameter", "random")
# What has no text of its own: answers to questions about PyTorch itself, and what every tensor has.
ANSWERS = {
    "data": "The same values and memory, without a history.",
    "device": "Where it is.",
    "dtype": "The type of its elements.",
    "is_leaf": "Whether a program made it, and not an operation that is remembered.",
    "ndim": "The number of axes.",
    "requires_grad": "Whether its gradient is computed by backward.",
    "retains_grad": "Whether it keeps a gradient though it is no leaf.",
    "shape": "The size of each axis.",
    "compiled_with_cxx11_abi": "True.",
    "get_deterministic_debug_mode": "0: there is nothing to find out.",
    "is_deterministic_algorithms_warn_only_enabled": "False.",
    "is_distributed": "False: there is one process.",
    "has_torch_function": "False: no function looks for it.",
    "has_torch_function_unary": "False, as has_torch_function.",
    "has_torch_function_variadic": "False, as has_torch_function.",
    "kineto_available": "False: it is PyTorch's own.",
    "set_multithreading_enabled": "A context that changes nothing: backward runs in the thread that calls it.",
    "is_vulkan_available": "False: it asks for PyTorch's own.",
    "is_warn_always_enabled": "False.",
    "set_deterministic_debug_mode": "Does nothing: all algorithms are deterministic.",
    "set_flush_denormal": "False: it cannot be chosen.",
    "set_warn_always": "Does nothing.",
}
PARAMETERS = inspect.Parameter


@dataclass(frozen=True, slots=True)
class Name:
    """One public name: where it stands below torch, and what it is."""

    path: str
    name: str
    value: Any
    is_own: bool

    @property
    def full(self) -> str:
        return f"{self.path}.{self.name}".removeprefix(".")


@cache
def theirs() -> dict[str, list[str]]:
    """PyTorch's public names by module."""
    found: dict[str, list[str]] = json.loads(NAMES.read_text(encoding="utf-8"))
    return found


def holder(path: str) -> Any:
    if path == "Tensor":
        return pywebgpu.Tensor
    return stand_ins.module(path) if path else pywebgpu


def is_refusal(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, stand_ins.Absent)


def names(path: str) -> Iterator[Name]:
    """Those of a module that work and can be called."""
    place = holder(path)
    listed = theirs().get(path, [])
    for name in sorted({*listed, *_own(path, place)}, key=str.lower):
        try:
            value = getattr(place, name)
        except (AttributeError, NotImplementedError):
            continue
        if (callable(value) or isinstance(value, property)) and not is_refusal(value):
            yield Name(path, name, value, name not in listed)


def _own(path: str, place: Any) -> Iterator[str]:
    wanted = OWN.get(path, ())
    if wanted is not None:
        yield from wanted
        return
    for name, value in vars(place).items():
        if isinstance(value, type) and value.__module__ == place.__name__ and not name.startswith("_"):
            yield name


@cache
def modules() -> tuple[str, ...]:
    """The paths that have names to show, torch and Tensor first."""
    paths = [path for path in [*theirs(), *OWN] if path not in LEFT]
    return tuple(
        path for path in dict.fromkeys(["", "Tensor", *sorted(set(paths) - {"", "Tensor"})]) if any(names(path))
    )


def text(name: Name) -> str:
    """What its docstring says, without that of a base."""
    value = name.value
    found = value.__dict__.get("__doc__") if isinstance(value, type) else getattr(value, "__doc__", "")
    return inspect.cleandoc(found or ANSWERS.get(name.name, ""))


def signature(name: Name) -> str:
    """Names and defaults of the arguments, without annotations; "" of a property, or where there is none."""
    try:
        found = inspect.signature(name.value)
    except (TypeError, ValueError):
        return "" if isinstance(name.value, property) else "()"
    parameters = [one.replace(annotation=PARAMETERS.empty) for one in found.parameters.values()]
    if parameters and parameters[0].name == "self":
        parameters = parameters[1:] if name.path == "Tensor" else [parameters[0].replace(name="input"), *parameters[1:]]
    try:
        return str(found.replace(parameters=parameters, return_annotation=inspect.Signature.empty))
    except ValueError:
        return "(...)"
