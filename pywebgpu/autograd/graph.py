"""torch.autograd.graph: what is saved for backward given to functions of the user's, hooks of several tensors, edges.

Nothing is saved here while a graph is recorded: formulas read the values of the graph itself. Inside of
saved_tensors_hooks, a result whose formulas read something becomes a Custom node instead, which knows what the hook
made of each value, and computes the gradient from what the other hook makes of that.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from pywebgpu.autodiff import backward, composite_gradient, grad_mode
from pywebgpu.ir import graph, walk
from pywebgpu.ir.graph import thread_state
from pywebgpu.ops import movement, pointwise, reduction
from pywebgpu.support import lazy
from pywebgpu.tensor import grad_fn, grad_fn_names, history
from pywebgpu.tensor.base import TensorBase
from pywebgpu.tensor.tensor import Tensor

if TYPE_CHECKING:
    from pywebgpu.devices.base import Device
    from pywebgpu.tensor.grad_accumulator import RemovableHandle

Pack = Callable[[Tensor], object]
Unpack = Callable[[Any], Tensor]


class _NodeMeta(type):
    """A class among whose instances all functions of graphs count, though they do not derive from it."""

    def __subclasscheck__(cls, kind: type) -> bool:
        return kind is cls or issubclass(kind, _functions())

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, _functions())


class Node(metaclass=_NodeMeta):
    """A function of a graph: what `grad_fn` shows, what Functions call their context."""


@functools.lru_cache(1)
def _functions() -> tuple[type, ...]:
    undefined = import_module("pywebgpu.autograd.undefined")
    context = import_module("pywebgpu.autograd.function").FunctionCtx
    return (grad_fn.GradFn, context, undefined.DelayedError, undefined.UndefinedGrad)


class _Local(threading.local):
    """The hooks of this thread, the last ones last; why there may be none."""

    def __init__(self) -> None:
        self.hooks: list[tuple[Pack, Unpack]] = []
        self.refused: list[str] = []
        self.packs = False


_local = _Local()
NO_HOOKS = "torch.func.{grad, vjp, jacrev, hessian} don't yet support saved tensor hooks."


class saved_tensors_hooks:
    """Inside of it, `pack_hook(tensor)` is what is kept of each tensor that backward needs.

    Backward reads `unpack_hook` of that. Ops with several results, and checkpoints, keep theirs themselves.
    """

    def __init__(self, pack_hook: Pack, unpack_hook: Unpack) -> None:
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook

    def __enter__(self) -> None:
        if _local.refused:
            raise RuntimeError(_local.refused[-1])
        if "reverse" in thread_state.transforms:
            raise RuntimeError(NO_HOOKS)
        if thread_state.observer is not None:
            thread_state.observer.refuse("it has hooks for saved tensors, which Python calls each time")
        graph.used.packing = _packed
        _local.hooks.append((self.pack_hook, self.unpack_hook))
        graph.thread_state.n_ordinary += 1

    def __exit__(self, *_: object) -> None:
        graph.thread_state.n_ordinary -= 1
        _local.hooks.pop()


def refuse_transform() -> None:
    """Raises RuntimeError where there are hooks: transforms that walk back have none."""
    if _local.hooks:
        raise RuntimeError(NO_HOOKS)


class save_on_cpu(saved_tensors_hooks):
    """Inside of it, what backward needs is kept on device cpu, and comes back when it is read."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        super().__init__(lambda x: (x.device, x.cpu()), lambda kept: kept[1].to(kept[0]))


@contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Inside of it, hooks for saved tensors raise RuntimeError of this text."""
    _local.refused.append(error_message)
    try:
        yield
    finally:
        _local.refused.pop()


def _packed(node: graph.Node, device: Device) -> graph.Node:
    """A new value, or a node that stands for it and keeps what hooks made of the values that its formulas read."""
    if not _local.hooks or _local.packs or not node.requires:
        return node
    call = _Packed(node, device, *_local.hooks[-1])
    if not call.kept:
        return node
    with grad_mode.no_grad():
        value = movement.alias(node)
    op = graph.Custom(grad_fn_names.name(node))
    return op(value, *call.sources, call=call, index=0, outputs=1)


class _Kept(NamedTuple):
    """A value that formulas read, and what a hook made of it."""

    value: graph.Node
    packed: object


class _Packed:
    """One function's way back: the nodes that it is made of, and what was kept of the values that they read."""

    def __init__(self, node: graph.Node, device: Device, pack: Pack, unpack: Unpack) -> None:
        self.root, self.device, self.unpack = node, device, unpack
        self.sources: list[graph.Node] = []
        self.kept: dict[int, _Kept] = {}
        self.released = False
        self.order = self._ops(node)
        for op in self.order:
            if type(op.op) in (graph.Custom, graph.Fused, graph.Output):
                self.kept = {}
                return
            for value in backward.saved_by(op):
                base = _narrow(value)
                if id(base) not in self.kept and base.op is not graph.HOST and base.op is not pointwise.const:
                    self.kept[id(base)] = self._pack(pack, base)

    def _ops(self, root: graph.Node) -> list[graph.Node]:
        """The nodes between tensors and the value, users first; the tensors become the sources."""
        ends: dict[graph.Node, None] = {}
        stack, seen = [root], {root}
        while stack:
            for source in stack.pop().inputs:
                if not source.requires or source in seen:
                    continue
                seen.add(source)
                if hasattr(source, "storage") or source.accumulator is not None or not source.inputs:
                    ends[source] = None
                else:
                    stack.append(source)
        self.sources = list(ends)
        order = walk.history([root], ends.keys())
        return [node for node in reversed(order) if node not in ends]

    def _pack(self, pack: Pack, value: graph.Node) -> _Kept:
        _local.packs = True
        try:
            with grad_mode.no_grad():
                return _Kept(value, pack(Tensor._new(movement.alias(value), self.device)))
        finally:
            _local.packs = False

    def backward(self, grads: list[graph.Node | None]) -> Sequence[graph.Node | None]:
        if self.released:
            raise RuntimeError(backward.TWICE)
        (grad,) = grads
        assert grad is not None
        grad_of = {self.root: grad}
        values = {key: self._unpacked(kept) for key, kept in self.kept.items()}
        for node in self.order:
            grad = grad_of.pop(node, None)
            if grad is not None:
                backward.through_values(node, grad, grad_of, functools.partial(_value, values))
        return [grad_of.get(source) for source in self.sources]

    def unpacked(self, value: graph.Node) -> graph.Node:
        """A value that formulas read, as hooks give it."""
        values = {key: self._unpacked(kept) for key, kept in self.kept.items() if key == id(_narrow(value))}
        return _value(values, value)

    def _unpacked(self, kept: _Kept) -> graph.Node:
        value, tensor = kept.value, _called(self.unpack, kept.packed)
        if not isinstance(tensor, TensorBase):
            raise TypeError(
                f"Output of saved tensor unpack_hook expected to be a Tensor but got result of type {type(tensor)}"
            )
        node = tensor._node
        return pointwise.graft(history.cut(node), value) if value.requires and node.spec == value.spec else node

    def release(self) -> None:
        self.kept, self.released = {}, True


def keep(tensor: Tensor) -> Callable[[], Tensor] | None:
    """What gives a tensor that a Function saves back: None where no hooks are."""
    if not _local.hooks or _local.packs:
        return None
    pack, unpack = _local.hooks[-1]
    with grad_mode.no_grad():
        return functools.partial(_called, unpack, pack(tensor))


def _called(unpack: Unpack, packed: object) -> Tensor:
    """What a hook makes of what another one kept. Hooks that it enters and does not leave are gone after it."""
    before = list(_local.hooks)
    try:
        return unpack(packed)
    finally:
        graph.thread_state.n_ordinary -= len(_local.hooks) - len(before)
        _local.hooks[:] = before


def _narrow(value: graph.Node) -> graph.Node:
    """The value before it was broadcast."""
    while value.op is reduction.expand or (value.op is movement.reshape and value.inputs[0].op is reduction.expand):
        (value,) = value.inputs
    return value


def _value(values: dict[int, graph.Node], node: graph.Node) -> graph.Node:
    """What a formula reads in place of a node."""
    base = _narrow(node)
    value = values.get(id(base))
    if value is None:
        return node
    views = []
    while node is not base:
        views.append(node)
        (node,) = node.inputs
    for view in reversed(views):
        op: Any = view.op
        value = op(value, **view.attrs)
    return value


@contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[None]:
    """Inside of it, tensors that backward needs may be written in place: it reads what they were."""
    before, history.kept = history.kept, []
    try:
        yield
    finally:
        history.kept = before


class GradientEdge(NamedTuple):
    """Where a gradient arrives: a function, and the number of its result."""

    node: grad_fn.GradFn
    output_nr: int


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The edge at which the gradient of a tensor arrives."""
    if not tensor.requires_grad:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    with grad_mode.enable_grad():
        function = grad_fn.of(tensor._node, tensor._wrap())
    assert function is not None
    return GradientEdge(function, 0)


def increment_version(tensor: Tensor | Sequence[Tensor]) -> None:
    """Counts a write, so that formulas that need the value before refuse."""
    for written in (tensor,) if isinstance(tensor, TensorBase) else tensor:
        if written._inference:  # Nothing counts its writes.
            continue
        with grad_mode.no_grad():
            written._assign(pointwise.copy(written._node))


class _Handles:
    """Takes several hooks back."""

    def __init__(self, handles: Sequence[RemovableHandle]) -> None:
        self._handles = tuple(handles)

    def remove(self) -> None:
        for handle in self._handles:
            handle.remove()

    def __enter__(self) -> _Handles:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


def register_multi_grad_hook(tensors: Sequence[Tensor], fn: Callable[[Any], None], *, mode: str = "all") -> _Handles:
    """Calls `fn(gradients)` when those of all tensors that a backward reaches are there, or `fn(gradient)` of the first
    ("any")."""
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    nodes: Sequence[graph.Node] = ()  # of the walk that is on its way
    grads: list[Tensor | None] = []
    count = 0

    def arrive(index: int, grad: Tensor) -> None:
        nonlocal nodes, grads, count
        is_first = nodes is not composite_gradient.walks[0]
        if is_first:
            nodes, grads = composite_gradient.walks[0], [None] * len(tensors)
            with grad_mode.enable_grad():
                reached = set(nodes)
                count = sum(hooked._node in reached for hooked in tensors)
        grads[index] = grad
        if mode == "any" and is_first:
            fn(grad)
        elif mode == "all" and sum(gradient is not None for gradient in grads) == count:
            fn(grads)

    chosen = [(index, hooked) for index, hooked in enumerate(tensors) if hooked.requires_grad or mode == "all"]
    return _Handles([hooked.register_hook(functools.partial(arrive, index)) for index, hooked in chosen])


__getattr__ = lazy.absent(__name__)
