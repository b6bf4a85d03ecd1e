"""Names of what generated code refers to: functions and classes by their public path, and variables that are free."""

from __future__ import annotations

import builtins
import functools
import inspect
import keyword
import math
import re
import types
from collections.abc import Callable
from importlib import import_module as import_module
from typing import Any

from pywebgpu.utils import _pytree

# Modules whose public names a path may be, in the order in which they are asked.
SPACES = ("", "nn.functional", "nn", "linalg", "fft", "special", "signal.windows")
# Functions of torch.nn.functional that PyTorch has elsewhere, and only repeats there.
REPEATED = {
    "": """
        adaptive_avg_pool1d avg_pool1d bilinear celu_ channel_shuffle conv1d conv2d conv3d conv_tbc conv_transpose1d
        conv_transpose2d conv_transpose3d cosine_similarity hardshrink max_pool1d max_pool2d max_pool3d
        native_channel_shuffle pairwise_distance pdist pixel_shuffle pixel_unshuffle prelu relu_ rrelu_ selu_ threshold_
    """,
    "_C._nn": """
        avg_pool2d avg_pool3d elu_ gelu hardtanh_ leaky_relu_ linear logsigmoid one_hot scaled_dot_product_attention
        softplus softshrink
    """,
}
HOMES = {name: home for home, listed in REPEATED.items() for name in listed.split()}
# Functions of torch that PyTorch has in torch.functional: like most of torch.nn.functional, they are Python there.
FUNCTIONAL = frozenset((
    "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_tensors", "cartesian_prod", "block_diag", "cdist",
    "chain_matmul", "einsum", "istft", "lu", "meshgrid", "norm", "split", "stft", "tensordot", "unique",
    "unique_consecutive",
))  # fmt: skip


def torch() -> Any:
    """The torch namespace, which generated code knows by that name."""
    return import_module("pywebgpu")


def space(name: str) -> Any:
    """A module of the torch namespace."""
    module = torch()
    for part in filter(None, name.split(".")):
        module = getattr(module, part)
    return module


def is_ours(value: object) -> bool:
    """Whether a function or class is of this library, so that code says its whole path instead of importing it."""
    home = getattr(value, "__module__", None)
    if not isinstance(home, str):
        return False
    return re.match(r"(pywebgpu|torch)(\.(?!_dynamo|_inductor|testing)|$)", home) is not None


def public_path(value: Any) -> str:
    """The path of a function or class of this library, such as torch.nn.functional.relu."""
    name, home = value.__name__, value.__module__
    spaces: tuple[str, ...] = SPACES
    if home.startswith("pywebgpu.nn.functional"):
        spaces = (HOMES.get(name, "nn.functional"), *SPACES)
    elif name in FUNCTIONAL:
        spaces = ("functional", *SPACES)
    for path in spaces:
        if getattr(space(path), name, None) is value:
            return ".".join(filter(None, ("torch", path, name)))
    return f"{re.sub(r'^pywebgpu(.torch_api)?', 'torch', home)}.{getattr(value, '__qualname__', name)}"


def passed_on(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments that PyTorch's functions written in Python pass on to `__torch_function__`.

    What has no default has no name, all else has one.
    """
    name = getattr(function, "__name__", "")
    functional = getattr(function, "__module__", "").startswith("pywebgpu.nn.functional")
    pools = name.startswith("max_pool")
    if not (functional and (name not in HOMES or pools)) and not (name in FUNCTIONAL and is_ours(function)):
        return args, kwargs
    if name == "einsum" and isinstance(args[-1], list | tuple):
        return (args[0], *args[-1]), kwargs
    signature = inspect.signature(inspect.unwrap(function))
    required = [key for key, item in signature.parameters.items() if item.default is item.empty]
    if any(item.kind in (item.VAR_POSITIONAL, item.VAR_KEYWORD) for item in signature.parameters.values()):
        return args, kwargs
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    values = bound.arguments
    if pools and not values["return_indices"]:
        del values["return_indices"]
    return tuple(values.pop(key) for key in required), dict(values)


def qualified_name(function: Any) -> str:
    """The path by which code calls a function. Raises RuntimeError for a lambda without a name."""
    name = getattr(function, "__name__", None) or type(function).__name__
    if getattr(builtins, name, None) is function:
        return str(name)
    if (path := getattr(function, "_operator_path", None)) is not None:  # an operator
        return f"torch.ops.{path}"
    if getattr(torch().Tensor, name, None) is function:
        return f"torch.Tensor.{name}"
    if is_ours(function):
        return public_path(function)
    if name == "<lambda>":
        try:
            name = inspect.getsource(function).split("=")[0].strip()
        except Exception as error:
            raise RuntimeError("Unable to represent lambda") from error
    home = getattr(function, "__module__", None)
    if home is None:
        raise RuntimeError(f"cannot find module for {function}")
    return f"{home}.{name}"


def type_text(kind: Any) -> str:
    """A type as annotations have it."""
    if type(kind) is not types.GenericAlias and isinstance(kind, type):
        if kind.__module__ == "builtins":
            return kind.__qualname__
        return public_path(kind) if is_ours(kind) else f"{kind.__module__}.{kind.__qualname__}"
    if kind is ...:
        return "..."
    if isinstance(kind, types.FunctionType):
        return kind.__name__
    return re.sub(r"(pywebgpu[\w.]*)\.(\w+)", _public, repr(kind))


def _public(match: re.Match[str]) -> str:
    return public_path(getattr(import_module(match[1]), match[2]))


def snake_case(name: str) -> str:
    """A name in lower case, with "_" where small letters were followed by a capital."""
    return re.sub(r"(?<=[a-z])([A-Z])", r"_\1", name).lower()


@functools.cache
def standard_globals() -> dict[str, tuple[str, Any]]:
    """What every graph's code may name: how it is imported, and what it is."""
    return {
        "inf": ("from math import inf", math.inf),
        "nan": ("from math import nan", math.nan),
        "NoneType": ("NoneType = type(None)", type(None)),
        "torch": ("import torch", torch()),
        "device": ("from torch import device", torch().device),
        "fx_pytree": ("import torch.fx._pytree as fx_pytree", import_module("pywebgpu.fx._pytree")),
        "pytree": ("import torch.utils._pytree as pytree", _pytree),
    }


class Namespace:
    """Gives each object a name of its own that shadows no builtin."""

    def __init__(self) -> None:
        self._obj_to_name: dict[Any, str] = {}
        self._used_names: set[str] = set()
        self._last_number: dict[str, int] = {}

    def create_name(self, candidate: str, obj: object | None) -> str:
        """The object's name; a new one like the candidate where it has none. obj: None of a name for no object."""
        if obj is not None and obj in self._obj_to_name:
            return self._obj_to_name[obj]
        candidate = _identifier(candidate)
        base, number = _numbered(candidate)
        if number is None or candidate in self._used_names:
            number = self._last_number.get(base, 0)
            if _is_taken(candidate, obj):
                number += 1
                candidate = f"{base}_{number}"
        while candidate in self._used_names:
            number += 1
            candidate = f"{base}_{number}"
        self._used_names.add(candidate)
        self._last_number[base] = number
        if obj is not None:
            self._obj_to_name[obj] = candidate
        return candidate

    def associate_name_with_obj(self, name: str, obj: object) -> None:
        """Says whose name a created one is."""
        assert self._obj_to_name.setdefault(obj, name) is name, "obj is already associated"

    def _rename_object(self, obj: object, name: str) -> None:
        assert obj in self._obj_to_name
        self._obj_to_name[obj] = name
        self._used_names.add(name)


def _identifier(candidate: str) -> str:
    text = re.sub("[^0-9a-zA-Z_]+", "_", candidate) or "_unnamed"
    return f"_{text}" if text[0].isdigit() else text


def _numbered(name: str) -> tuple[str, int | None]:
    """A name without the number that it ends with, and that number."""
    match = re.fullmatch(r"(.+?)_(\d+)", name)
    return (match[1], int(match[2])) if match else (name, None)


def _is_taken(name: str, obj: object) -> bool:
    """Whether a name means something else in Python, or in every graph's code."""
    if name in standard_globals():
        return standard_globals()[name][1] is not obj
    if keyword.iskeyword(name):
        return True
    return hasattr(builtins, name) and getattr(builtins, name) is not obj


def check_callable(target: Any, describe: Callable[[], str]) -> None:
    """Raises ValueError for the target of a call_function that cannot be called."""
    if not callable(target):
        raise ValueError(f"{describe()} has type {type_text(type(target))} but a Callable is expected")
