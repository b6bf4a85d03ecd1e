"""torch.jit: programs run as Python here, so what is scripted or traced is returned as it is. Files are not here."""

from __future__ import annotations

import builtins
import contextlib
import types
import typing
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple, NoReturn  # noqa: F401 - Final is a name of this module

from pywebgpu.nn.module import Module
from pywebgpu.support.lazy import absent
from pywebgpu.torch_api._jit_internal import _overload as _overload
from pywebgpu.torch_api._jit_internal import _overload_method as _overload_method
from pywebgpu.torch_api._jit_internal import export as export
from pywebgpu.torch_api._jit_internal import ignore as ignore
from pywebgpu.torch_api._jit_internal import is_scripting as is_scripting
from pywebgpu.torch_api._jit_internal import unused as unused

__getattr__ = absent(__name__)


class Error(RuntimeError):
    """What a scripted function raises in PyTorch."""


class TracerWarning(Warning):
    """A warning of PyTorch's tracer; nothing here gives it."""

    @staticmethod
    def ignore_lib_warnings() -> None:
        """Nothing: there are none."""


class Attribute(NamedTuple):
    """A value of a module, and its type."""

    value: Any
    type: Any


class ScriptModule(Module):
    """A base for modules whose methods are marked with script_method."""


class RecursiveScriptModule(ScriptModule):
    """The class of PyTorch's scripted modules; those here keep their own."""


class ScriptFunction:
    """The class of PyTorch's scripted functions; those here keep their own."""


TopLevelTracedModule = ScriptModule


def script(obj: Any, optimize: object = None, _frames_up: int = 0, _rcb: object = None, **options: Any) -> Any:
    """The function, class or module itself. Raises RuntimeError of a module with parameters that have no shape yet."""
    tensors = (*obj.named_parameters(), *obj.named_buffers()) if builtins.isinstance(obj, Module) else ()
    for name, tensor in tensors:
        if hasattr(tensor, "materialize"):
            raise RuntimeError(
                f"'{type(obj).__name__}' has uninitialized parameters {name}. Did you forget to run a forward pass?"
            )
    return obj


def trace(func: Any, example_inputs: Any = None, *args: Any, example_kwarg_inputs: Any = None, **options: Any) -> Any:
    """The function or module itself, which is called once with the example: what cannot run raises here."""
    if example_inputs is not None or example_kwarg_inputs is not None:
        example = () if example_inputs is None else example_inputs
        func(*(example if builtins.isinstance(example, tuple | list) else (example,)), **(example_kwarg_inputs or {}))
    return func


def trace_module(mod: Any, inputs: Any, *args: Any, **options: Any) -> Any:
    """The module itself."""
    return mod


def freeze(mod: Any, *args: Any, **options: Any) -> Any:
    """The module itself."""
    return mod


def optimize_for_inference(mod: Any, *args: Any, **options: Any) -> Any:
    """The module itself."""
    return mod


def script_method(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The method itself."""
    return fn


def script_if_tracing(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself."""
    return fn


_script_if_tracing = script_if_tracing


def interface(obj: Any) -> Any:
    """The class itself."""
    return obj


def is_tracing() -> bool:
    """False."""
    return False


def annotate(the_type: Any, the_value: Any) -> Any:
    """The value itself."""
    return the_value


def isinstance(obj: Any, target_type: Any) -> bool:
    """Whether a value is of a type, which may say what is in containers: list[int], Optional[Tensor]."""
    origin, parts = typing.get_origin(target_type), typing.get_args(target_type)
    if origin is typing.Union or origin is types.UnionType:
        return any(isinstance(obj, part) for part in parts)
    if origin is None:
        return builtins.isinstance(obj, target_type)
    if not builtins.isinstance(obj, origin):
        return False
    if origin is dict:
        return all(isinstance(key, parts[0]) and isinstance(value, parts[1]) for key, value in obj.items())
    if origin is tuple and parts[-1:] != (...,):
        return len(obj) == len(parts) and all(map(isinstance, obj, parts))
    return all(isinstance(item, parts[0]) for item in obj)


def export_opnames(m: object) -> list[str]:
    """No operators: there is no file that would need them."""
    return []


def set_fusion_strategy(strategy: Any) -> Any:
    """Nothing to set; returns what it is given."""
    return strategy


def enable_onednn_fusion(enabled: bool) -> None:
    """Nothing to enable."""


def onednn_fusion_enabled() -> bool:
    """False."""
    return False


@contextlib.contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """A block like any other."""
    yield


@contextlib.contextmanager
def fuser(name: str) -> Iterator[None]:
    """A block like any other."""
    yield


strict_fusion = contextlib.nullcontext


def save(m: object, f: object, _extra_files: object = None) -> NoReturn:
    """Raises NotImplementedError."""
    raise NotImplementedError("torch.jit.save is not here: use torch.save of the state_dict, or torch.save_program")


def load(
    f: object, map_location: object = None, _extra_files: object = None, _restore_shapes: bool = False
) -> NoReturn:
    """Raises NotImplementedError."""
    raise NotImplementedError("torch.jit.load is not here: files of TorchScript run in PyTorch only")
