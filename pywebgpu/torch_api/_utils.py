"""torch._utils, as far as libraries name it: devices by number, flat tensors, errors of other threads."""

from __future__ import annotations

import functools
import importlib
import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from types import ModuleType
from typing import Any, NoReturn

from pywebgpu import devices
from pywebgpu.nn.parameter import Parameter
from pywebgpu.nn.utils.convert_parameters import parameters_to_vector
from pywebgpu.support.lazy import absent
from pywebgpu.tensor.tensor import Tensor

__getattr__ = absent(__name__)


def _flatten_dense_tensors(tensors: Iterable[Tensor]) -> Tensor:
    """All elements as one vector."""
    return parameters_to_vector([*tensors])


def _unflatten_dense_tensors(flat: Tensor, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Parts of a vector in the shapes of tensors."""
    parts = flat.split([tensor.numel() for tensor in tensors])
    return tuple(part.view(tensor.shape) for part, tensor in zip(parts, tensors, strict=True))


def _get_available_device_type() -> str | None:
    """The type of the accelerator; None where there is none."""
    accelerator = importlib.import_module("pywebgpu.accelerator")
    return str(accelerator.current_accelerator().type) if accelerator.is_available() else None


def _get_device_module(device_type: str) -> ModuleType:
    """The module of a type of device. Raises RuntimeError for one that has none."""
    module = getattr(importlib.import_module("pywebgpu"), device_type, None)
    if not isinstance(module, ModuleType):
        raise RuntimeError(
            f"Device '{device_type}' does not have a corresponding module registered as 'torch.{device_type}'."
        )
    return module


def _get_all_device_indices() -> list[int]:
    return [*range(importlib.import_module("pywebgpu.accelerator").device_count())]


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int:
    """The number of a device; -1 of cpu. Raises ValueError where there is no number and none is optional."""
    if isinstance(device, int):
        return device
    if device is None:
        if optional:
            return 0
        raise ValueError(f"Expected a torch.device with a specified index or an integer, but got:{device}")
    named = devices.device(device)
    if named.type == "cpu":
        if allow_cpu:
            return -1
        raise ValueError(f"Expected a non cpu device, but got: {device}")
    if named.index is None and not optional:
        raise ValueError(f"Expected a torch.device with a specified index or an integer, but got:{device}")
    return named.index or 0


def _element_size(dtype: Any) -> int:
    """The bytes of an element."""
    return int(dtype.itemsize)


def _rebuild_tensor(storage: Any, storage_offset: int, size: Sequence[int], stride: Sequence[int]) -> NoReturn:
    """A tensor of a typed storage, by which old pickles name their parts."""
    raise NotImplementedError("torch._utils._rebuild_tensor: a typed storage is not here: use torch.load")


def _rebuild_sparse_tensor(layout: object, data: tuple[Any, ...]) -> Tensor:
    """A sparse tensor of a layout and its parts. Raises RuntimeError where they do not fit."""
    sparse: Tensor = importlib.import_module("pywebgpu.io.torchfile").sparse(str(layout), data)
    return sparse


def _rebuild_parameter(data: Tensor, requires_grad: bool, backward_hooks: object) -> Parameter:
    """A parameter of data, as files have it."""
    return Parameter(data, requires_grad)


def _import_dotted_name(name: str) -> Any:
    """What `module.name` stands for."""
    first, *rest = name.split(".")
    return functools.reduce(getattr, rest, importlib.import_module(first))


def is_compiling() -> bool:
    return False


class KeyErrorMessage(str):
    """Text that a KeyError shows as it is."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class ExceptionWrapper:
    """An error of another thread, with its text, to be raised here."""

    def __init__(self, exc_info: Any = None, where: str = "in background") -> None:
        kind, error, lines = exc_info or sys.exc_info()
        self.exc_type: Any = kind
        self.where = where
        self.exc_msg = "".join(traceback.format_exception(kind, error, lines))

    def reraise(self) -> None:
        """Raises an error of the same class, or a RuntimeError where that class takes other arguments."""
        text = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        if self.exc_type is KeyError:
            text = KeyErrorMessage(text)
        try:
            error = self.exc_type(text)
        except Exception:
            raise RuntimeError(text) from None
        raise error


class classproperty:
    """A property of a class."""

    def __init__(self, func: Callable[[Any], Any]) -> None:
        self.fget = func.__func__ if isinstance(func, classmethod | staticmethod) else func

    def __get__(self, instance: object, owner: Any = None) -> Any:
        return self.fget(type(instance) if owner is None else owner)
