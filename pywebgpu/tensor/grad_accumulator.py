"""What waits at a tensor's node for its gradient: hooks, a leaf's `.grad`, a gradient to be retained."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pywebgpu.ir.graph import Node
from pywebgpu.step_capture.capture import capture_state

if TYPE_CHECKING:
    from pywebgpu.tensor.base import TensorBase

if TYPE_CHECKING:
    pass

Hook = Callable[[Any], Any]


class GradAccumulator:
    """Sees the gradient that arrives: runs hooks, then accumulates or retains it.

    The tensor may be gone by then: its hooks still run, on a gradient that `wrap` makes a tensor of.
    """

    __slots__ = ("after", "hooks", "retain", "tensor", "wrap")

    def __init__(self, tensor: TensorBase, wrap: Callable[[Node], Any]) -> None:
        self.tensor = weakref.ref(tensor)
        self.wrap = wrap
        self.retain = False
        self.hooks: dict[int, Hook] = {}
        self.after: dict[int, Hook] = {}

    def arrive(self, grad: Node, *, accumulate: bool, create_graph: bool) -> Node:
        for hook in list(self.hooks.values()) if self.hooks else ():
            changed = hook(self.wrap(grad))
            grad = grad if changed is None else changed._node
        tensor = self.tensor()
        if tensor is not None and tensor._flag and accumulate:
            tensor._accumulate(grad, create_graph)
            for hook in list(self.after.values()) if self.after else ():
                hook(tensor)
        elif tensor is not None and self.retain:
            tensor.grad = self.wrap(grad)
        return grad


class RemovableHandle:
    """Takes a hook back by `remove()`."""

    __slots__ = ("_hooks", "_number")

    def __init__(self, hooks: dict[int, Hook], hook: Hook) -> None:
        self._hooks, self._number = hooks, max(hooks, default=-1) + 1
        hooks[self._number] = hook
        capture_state.changes += 1

    def remove(self) -> None:
        self._hooks.pop(self._number, None)
        capture_state.changes += 1
