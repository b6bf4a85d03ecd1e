"""The form in place of a method: its result is written into the tensor, so into its storage and all its views."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from pywebgpu.ir.graph import thread_state
from pywebgpu.ops import pointwise
from pywebgpu.tensor import overlap
from pywebgpu.tensor.base import TensorBase

if TYPE_CHECKING:
    from pywebgpu.tensor.tensor import Tensor

P = ParamSpec("P")
S = TypeVar("S", bound=TensorBase)
_NUMBERS = (float, int, str, type(None))  # A free number of a captured step is told as what it stands for.


def form(method: Callable[Concatenate[S, P], Tensor]) -> Callable[Concatenate[S, P], Tensor]:
    """The form in place of a method."""

    @functools.wraps(method)
    def written(self: S, /, *args: P.args, **options: P.kwargs) -> Tensor:
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
            before = self._new(pointwise.copy(self._node), self._storage.device)
        return self._written(method(before, *args, **options))  # type: ignore[return-value]

    written.__name__ = written.__qualname__ = f"{method.__name__}_"
    written.__doc__ = f"{method.__name__}, written into this tensor."
    return written
