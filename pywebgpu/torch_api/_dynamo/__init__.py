"""torch._dynamo, as far as libraries name it: here `compile` captures what Python runs, and nothing reads its bytecode.

Functions that mark what may vary do nothing: a captured step finds that out by itself.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeVar

from pywebgpu.nn.module import Module
from pywebgpu.support.lazy import absent
from pywebgpu.torch_api._dynamo import config as config

__getattr__ = absent(__name__)
Function = TypeVar("Function")


class OptimizedModule(Module):
    """The class of modules that `compile` wraps in PyTorch; nothing is one here."""


class TransformGetItemToIndex(contextlib.nullcontext[None]):
    """A block in which a subscript of a batched number picks a row under vmap, as it does here anywhere."""


class TorchDynamoException(RuntimeError):
    """What programs catch; nothing raises it here."""


class TorchRuntimeError(TorchDynamoException):
    """As TorchDynamoException."""


class Unsupported(TorchDynamoException):
    """As TorchDynamoException."""


class BackendCompilerFailed(TorchDynamoException):
    """As TorchDynamoException."""


def disable(fn: Callable[..., Any] | None = None, recursive: bool = True, **options: object) -> Any:
    """The function, or a decorator that gives it back."""
    return fn if fn is not None else lambda function: function


def allow_in_graph(fn: Function) -> Function:
    return fn


disallow_in_graph = forbid_in_graph = assume_constant_result = nonstrict_trace = allow_in_graph


def is_compiling() -> bool:
    return False


def is_dynamo_supported() -> bool:
    """Whether bytecode is rewritten."""
    return False


is_inductor_supported = is_dynamo_supported


def mark_dynamic(
    t: object, index: object, *, hint_override: object = None, min: object = None, max: object = None
) -> None:
    """Says that sizes vary."""


def maybe_mark_dynamic(t: object, index: object) -> None:
    """As mark_dynamic."""


def mark_unbacked(t: object, index: object, **options: object) -> None:
    """As mark_dynamic."""


def mark_static(t: object, index: object = None) -> None:
    """Says that sizes stay."""


def mark_static_address(t: object, guard: bool = True) -> None:
    """Says that memory stays."""


def graph_break(msg: str = "") -> None:
    """Ends a graph where there is one."""


def reset() -> None:
    """Forgets what was compiled."""


reset_code_caches = graph_break


def list_backends(exclude_tags: object = ()) -> list[str]:
    """The names of compilers: there is one, without a name."""
    return []


def optimize(*args: object, **options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator that compiles."""
    compiled = import_module("pywebgpu").compile
    return lambda function: compiled(function)
