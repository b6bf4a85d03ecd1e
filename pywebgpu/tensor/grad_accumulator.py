"""What waits at a tensor's node for its gradient: hooks, a leaf's `.grad`, a gradient to be retained."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pywebgpu.errors import ShapeError
from pywebgpu.ir.graph import Node, RowsNode
from pywebgpu.ir.observer import changed
from pywebgpu.ops import pointwise

if TYPE_CHECKING:
    from pywebgpu.devices.base import Device
    from pywebgpu.tensor.base import TensorBase
    from pywebgpu.tensor.tensor import Tensor

Hook = Callable[..., Any]
NO_LEAF = (
    "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be "
    "populated during autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf Tensor, "
    "use .retain_grad() on the non-leaf Tensor."
)


def check(grad: TensorBase, tensor: TensorBase) -> None:
    """Raises TypeError for a gradient that is no tensor, RuntimeError for one of another shape, dtype or device."""
    if not hasattr(grad, "_storage"):
        raise TypeError(f"assigned grad expected to be a Tensor or None but got grad of type {type(grad).__name__}")
    if grad is tensor:
        raise RuntimeError("can't assign Variable as its own grad")
    if grad.shape != tensor.shape:
        raise ShapeError(
            f"attempting to assign a gradient of size '{list(grad.shape)}' to a tensor of size '{list(tensor.shape)}'. "
            f"Please ensure that the gradient and the tensor are the same size"
        )
    if grad.dtype is not tensor.dtype or grad.device != tensor.device:
        raise RuntimeError(
            f"attempting to assign a gradient of {grad.dtype} on {grad.device} to a tensor of {tensor.dtype} on "
            f"{tensor.device}"
        )


class GradAccumulator:
    """Sees the gradient that arrives: runs hooks, then accumulates or retains it.

    The tensor may be gone by then: its hooks still run, on a gradient that `wrap` makes a tensor of.
    function: hooks of the function that made the value, which `grad_fn` was given.
    """

    __slots__ = ("after", "function", "hooks", "retain", "tensor", "wrap")

    def __init__(self, tensor: TensorBase | None, wrap: Callable[[Node], Any]) -> None:
        self.tensor: Callable[[], TensorBase | None] = _gone if tensor is None else weakref.ref(tensor)
        self.wrap = wrap
        self.function: FunctionHooks | None = None
        self.retain = False
        self.hooks: dict[int, Hook] = {}
        self.after: dict[int, Hook] = {}

    def waiting(self) -> tuple[object, ...]:
        """Who waits for the gradient, besides a leaf that accumulates it: nobody, or by kind."""
        groups = [self.hooks, self.after]
        if self.function is not None:
            groups += [self.function.before, self.function.after]
        return (*[tuple(group.values()) for group in groups], self.retain) if any(groups) or self.retain else ()

    @classmethod
    def at(
        cls, node: Node | None, tensor: TensorBase, known: GradAccumulator | None, wrap: Callable[[Node], Any]
    ) -> GradAccumulator:
        """A tensor's own: one for a leaf, which has no node, else one for each value that writes in place gave it."""
        if known is not None and (node is None or node.accumulator is known):
            return known
        accumulator = cls(tensor, wrap)
        if node is not None:
            if known is not None:
                accumulator.retain, known.retain = known.retain, False
            if node.accumulator is not None:
                accumulator.function = node.accumulator.function
            node.accumulator = accumulator
        return accumulator

    def arrive(self, grad: Node, *, accumulate: bool, create_graph: bool) -> Node:
        for hook in list(self.hooks.values()) if self.hooks else ():
            changed = hook(self.wrap(grad))
            grad = grad if changed is None else _fitting(hook, changed, grad)
        tensor = self.tensor()
        if tensor is None:
            return grad
        if tensor._flag and accumulate and self.function is None and not self.after:
            tensor._accumulate(grad, create_graph)
        elif tensor._flag and accumulate:
            self.reach(tensor, grad, create_graph)
        elif self.retain:
            old = tensor.grad
            tensor.grad = self.wrap(grad if old is None else pointwise.add(old._node, grad))
        return grad

    def reach(self, leaf: TensorBase, grad: Node, create_graph: bool) -> None:
        """Adds to the gradient of a leaf, with the hooks of what adds there."""
        function = self.function
        grads: Sequence[Node | None] = (grad,) if function is None else function.arrive((grad,))
        if grads[0] is not None:
            leaf._accumulate(grads[0], create_graph)
        for hook in list(self.after.values()) if self.after else ():
            replacement = hook(leaf)
            if replacement is not None:
                raise TypeError(f"expected Variable, but hook returned '{type(replacement).__name__}'")
        if function is not None:
            function.leave((), grads)


class FunctionHooks:
    """Hooks of a function of the graph.

    before: they see the gradients of its values.  after: they see those of its inputs, `reads`, as well.
    """

    __slots__ = ("after", "before", "reads", "wrap")

    def __init__(self, reads: Sequence[Node], wrap: Callable[[Node], Any]) -> None:
        self.reads, self.wrap = reads, wrap
        self.before: dict[int, Hook] = {}
        self.after: dict[int, Hook] = {}

    def arrive(self, grads: Sequence[Node | None]) -> Sequence[Node | None]:
        """The gradients of the values, or what hooks made of them."""
        for hook in list(self.before.values()):
            grads = self._changed(hook, grads, self._shown(grads))
        return grads

    def leave(self, parts: Sequence[Node | None], grads: Sequence[Node | None]) -> Sequence[Node | None]:
        """The gradients of the inputs, or what hooks made of them."""
        grads_of_outputs = self._shown(grads) if self.after else ()
        for hook in list(self.after.values()):
            parts = self._changed(hook, parts, self._shown(parts), grads_of_outputs)
        return parts

    def _shown(self, grads: Sequence[Node | None]) -> tuple[Any, ...]:
        return tuple([None if grad is None else self.wrap(grad) for grad in grads])

    def _changed(self, hook: Hook, grads: Sequence[Node | None], *shown: tuple[Any, ...]) -> Sequence[Node | None]:
        result = hook(*shown)
        if result is None:
            return grads
        replaced = result if isinstance(result, tuple) else (result,)
        if len(replaced) != len(grads):
            raise RuntimeError(
                f"hook '{_name(hook)}' has returned an incorrect number of values (got {len(replaced)}, but expected "
                f"{len(grads)})"
            )
        pairs = zip(replaced, grads, strict=True)
        return [None if new is None else new._node if old is None else _fitting(hook, new, old) for new, old in pairs]


def _gone() -> None:
    """For what no tensor waits for."""


def _name(hook: Hook) -> str:
    return getattr(hook, "__name__", type(hook).__name__)


def _fitting(hook: Hook, changed: object, grad: Node) -> Node:
    """The gradient that a hook gave. Raises TypeError for what is no tensor, RuntimeError for another size or dtype."""
    node = getattr(changed, "_node", None)
    if not isinstance(node, Node):
        raise TypeError(f"expected Variable, but hook returned '{type(changed).__name__}'")
    if node.spec.shape != grad.spec.shape:
        raise RuntimeError(f"hook '{_name(hook)}' has changed the size of value")
    if node.spec.dtype is not grad.spec.dtype:
        raise RuntimeError(
            f"hook '{_name(hook)}' has changed the type of value (was {grad.spec.dtype} got {node.spec.dtype})"
        )
    return node


class RemovableHandle:
    """Takes a hook back by `remove()`, or at the end of a block."""

    __slots__ = ("_hooks", "id")

    def __init__(self, hooks: dict[int, Hook], hook: Hook) -> None:
        self._hooks, self.id = hooks, max(hooks, default=-1) + 1
        hooks[self.id] = hook
        changed()

    def hooks_dict_ref(self) -> dict[int, Hook]:
        """The hooks among which it is."""
        return self._hooks

    def remove(self) -> None:
        self._hooks.pop(self.id, None)
        changed()

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()


def wrap(device: Device, make: Callable[[Node, Device], Tensor]) -> Callable[[Node], Tensor]:
    """What makes tensors of gradients."""
    return lambda grad: rows().of(grad, device) if type(grad) is RowsNode else make(grad, device)


def rows() -> Any:
    """What knows gradients by their rows, which few programs have."""
    return import_module("pywebgpu.sparse.rows")
