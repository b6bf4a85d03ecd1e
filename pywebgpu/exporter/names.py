"""Which tensors an export calls by name, and where each lies in what a Program reads and writes."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from pywebgpu.nn.module import Module
from pywebgpu.ops import movement, packing, reduction
from pywebgpu.optim.optimizer import Optimizer
from pywebgpu.runtime.storage import Storage
from pywebgpu.support.shapes import Shape, strides
from pywebgpu.tensor import layout
from pywebgpu.tensor.base import TensorBase
from pywebgpu.tensor.tensor import Tensor
from pywebgpu.tensor.view import Path

Names = Module | Mapping[str, Any] | None  # a module; or names of modules and tensors
_VIEWS = (movement.permute, movement.reshape, movement.slice_, reduction.expand)


@dataclass(frozen=True, slots=True)
class Named:
    """A tensor with its name. kind: parameter, buffer, optimizer or gradient."""

    name: str
    kind: str
    tensor: Tensor


@dataclass(frozen=True, slots=True)
class View:
    """Elements of a value, by their strides."""

    shape: Shape
    strides: Shape
    offset: int
    gap: int = 0  # elements after it that belong to nobody

    @property
    def is_dense(self) -> bool:
        return self.strides == strides(self.shape)


def of(names: Names, optimizer: Optimizer | None) -> Iterator[Named]:
    """All tensors that have a name: of modules and mappings, their gradients, and the optimizer's states."""
    known: dict[int, str] = {}
    for name, tensor, kind in _tensors(names):
        known.setdefault(id(tensor), name)
        yield Named(name, kind, tensor)
        if tensor._grad is not None:
            yield Named(name, "gradient", tensor._grad)
    for group in () if optimizer is None else optimizer.param_groups:
        for parameter in group["params"]:
            title = known.setdefault(id(parameter), f"parameter.{len(known)}")
            for key, value in optimizer.state.get(parameter, {}).items():  # type: ignore[union-attr]
                if isinstance(value, Tensor):
                    yield Named(f"{title}.{key}", "optimizer", value)


def _tensors(names: Names) -> Iterator[tuple[str, Tensor, str]]:
    if isinstance(names, Module):
        for name, parameter in names.named_parameters(remove_duplicate=False):
            yield name, parameter, "parameter"
        for name, buffer in names.named_buffers(remove_duplicate=False):
            yield name, buffer, "buffer"
        return
    for name, value in (names or {}).items():
        if isinstance(value, Tensor):
            yield name, value, "parameter" if value.requires_grad else "buffer"
        else:
            yield from ((f"{name}.{inner}", tensor, kind) for inner, tensor, kind in _tensors(value))


def home(tensor: TensorBase) -> tuple[Storage, View | None]:
    """The storage that holds the elements of a tensor, and which they are; None where no strides say it."""
    storage, view = tensor._storage, shown(tensor._storage.node.spec.shape, tensor._path)
    while storage.whole is not None:
        if view is not None:
            size = prod(view.shape)
            gap = view.gap if tensor._path else -size % packing.alignment(storage.whole.node.spec.dtype)
            view = replace(view, offset=view.offset + storage.location["start"], gap=gap)
        storage = storage.whole
    return storage, view


def shown(shape: Shape, path: Path) -> View | None:
    """What a chain of views shows of a value of this shape; None where no strides say it."""
    base = 0
    if path and path[0][0] is packing.piece:  # Of a flat value, so it is one as a row-major value.
        shape, base, path = path[0][1]["shape"], path[0][1]["start"], path[1:]
    if layout.is_whole(path[:1]):
        path = path[1:]  # Buffers hold values row by row.
    steps, offset = layout.through(shape, path)
    now = shape
    for depth, (op, attrs) in enumerate(path):
        before, _ = layout.through(shape, path[:depth])
        if op not in _VIEWS or (op is movement.reshape and layout.reshaped(now, before, attrs["shape"]) is None):
            return None
        now = op.infer(now, **attrs)
    return View(now, steps, base + offset)
