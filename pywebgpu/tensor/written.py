"""The form in place of a method: its result is written into the tensor, so into its storage and all its views."""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib import import_module
from math import prod
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from pywebgpu.ir.graph import thread_state
from pywebgpu.ops import pointwise
from pywebgpu.tensor import overlap
from pywebgpu.tensor.base import TensorBase

if TYPE_CHECKING:
    from pywebgpu.tensor.tensor import Tensor

P = ParamSpec("P")
S = TypeVar("S", bound=TensorBase)
_CHANGES = frozenset(("add", "sub", "mul", "div"))
_NUMBERS = (float, int, str, type(None))  # A free number of a captured step is told as what it stands for.


def form(method: Callable[Concatenate[S, P], Tensor]) -> Callable[Concatenate[S, P], Tensor]:
    """The form in place of a method."""

    name = method.__name__
    is_change = name in _CHANGES

    @functools.wraps(method)
    def written(self: S, /, *args: P.args, **options: P.kwargs) -> Tensor:
        if is_change and self._path and not options and _changed(self, name, args):
            return self  # type: ignore[return-value]
        records = thread_state.grad
        learns = records and self._node.requires
        for arg in (*args, *options.values()) if options else args:
            if isinstance(arg, TensorBase):
                learns = learns or (records and arg._node.requires)
                if arg._storage is self._storage:
                    overlap.check(self, arg)
            elif not isinstance(arg, _NUMBERS):  # It may hold tensors.
                learns = records
        # The op saves a copy, so that its own write does not make what it saved stale.
        before: Any = self
        if learns:
            if self._path and self._cached is not None and self._cached[1].accumulator is not None:
                self._cached = None  # Hooks wait for the gradient of the view, not of what is written there.
            before = self._new(pointwise.copy(self._node), self._storage.device)
        return self._written(method(before, *args, **options))  # type: ignore[return-value]

    written.__name__ = written.__qualname__ = f"{method.__name__}_"
    written.__doc__ = f"{method.__name__}, written into this tensor."
    return written


def _changed(tensor: TensorBase, name: str, args: tuple[object, ...]) -> bool:
    """Whether one element of device cpu was changed by a number, without a node."""
    if not tensor._storage.device.is_host or len(args) != 1 or type(args[0]) not in (int, float):
        return False
    if prod(tensor._spec_node().spec.shape) != 1:
        return False
    changed: bool = import_module("pywebgpu.tensor.element_writes").change(tensor, name, args[0])
    return changed
