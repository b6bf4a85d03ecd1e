"""What a tensor is: a storage, the chain of views that leads into it, and the gradient that waits for it.

A view shares the storage; its node is rebuilt from the storage's current value when somebody wrote. A write through a
view makes a new value for the whole storage. Everything that computes is in the methods of the sibling files.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Self

from pywebgpu import devices
from pywebgpu.compose import arithmetic
from pywebgpu.devices.base import Device
from pywebgpu.dtypes import DType, Kind, bool_
from pywebgpu.errors import ShapeError
from pywebgpu.gradient import modes
from pywebgpu.graph import walk
from pywebgpu.graph.ir import HOST, NO_ATTRS, Attrs, Movement, Node, Spec, recording, used
from pywebgpu.live import recorder
from pywebgpu.ops import indexing, movement, pointwise, reduction
from pywebgpu.runtime import executor
from pywebgpu.runtime.storage import Storage
from pywebgpu.shapes import Shape
from pywebgpu.tensor import layout
from pywebgpu.tensor.anchor import Anchor, Hook, RemovableHandle
from pywebgpu.tensor.size import Size

Path = tuple[tuple[Movement, Attrs], ...]
_accumulating = threading.RLock()  # Threads may share leaves, and each adds to their gradients.


class TensorBase:
    """Storage, views, history and reading; see Tensor for the arithmetic."""

    __slots__ = (
        "__dict__", "__weakref__", "_anchor", "_base", "_cached", "_detached", "_flag", "_grad", "_path", "_storage",
    )  # fmt: skip

    _anchor: Anchor | None
    _base: TensorBase | None  # the tensor that a view was taken of; its node carries the history
    _cached: tuple[int, Node] | None  # node at a version of the storage
    _path: Path  # from the storage's value to this tensor
    _storage: Storage
    _flag: bool  # a leaf that wants a gradient
    _grad: Any
    _inference = False  # made in inference mode

    @classmethod
    def _new(cls, node: Node, device: Device) -> Any:
        """A tensor with a storage of its own."""
        if node.op is HOST or (node.op is pointwise.const and not node.spec.shape):
            node = pointwise.copy(node)  # Others have this node, too; a storage's is its own.
        made = cls._class().__new__(cls._class())
        made._storage = storage = Storage(node, device)
        made._path, made._base, made._anchor, made._cached = (), None, None, None
        made._flag = made._detached = False
        made._grad = None
        if used.inference and recording.inference:
            made._inference = True
        executor.record(storage)
        return made

    @classmethod
    def _class(cls) -> Any:
        """The class of results: Tensor, also for subclasses."""
        return cls

    @classmethod
    def _of(cls, storage: Storage, path: Path) -> Any:
        """A tensor without history that shows a storage."""
        made = cls._class().__new__(cls._class())
        made._storage, made._path, made._base = storage, path, None
        made._cached, made._anchor, made._flag, made._detached, made._grad = None, None, False, True, None
        return made

    def _view(self, op: Movement, **attrs: Any) -> Any:
        """A tensor that shares this one's storage."""
        own = self._node
        if op is movement.slice_ and walk.base(own).buffer is not None and not own.requires:
            node = indexing.slice_of_data(own, **attrs)
        else:
            node = op(own, **attrs)
        made = self._class().__new__(self._class())
        made._storage = self._storage
        made._path = (*self._path, (op, attrs))
        made._base = self if self._base is None else self._base
        made._cached = (self._storage.version, node)
        made._anchor, made._flag, made._detached, made._grad = None, False, False, None
        return made

    # The node

    @property
    def _node(self) -> Node:
        """The value now. For a leaf that wants a gradient, under gradient mode, a node that the gradient finds."""
        storage = self._storage
        if recorder.tape is not None:
            recorder.tape.see(self)
        if self._flag:
            return self._leaf_node() if recording.grad else self._raw()
        if not self._path and not self._detached:
            return storage.node
        cached = self._cached
        if cached is not None and cached[0] == storage.version and _holds(cached[1]):
            return cached[1]
        if self._detached:
            node = self._raw()
            if node.requires:
                node = Node(movement.alias, (node,), NO_ATTRS, node.spec)
        elif self._base is None:
            node = self._raw()
        else:
            base = self._base
            node = base._leaf_node() if base._flag else base._node
            for op, attrs in self._path[len(base._path) :]:
                node = op(node, **attrs)
        self._cached = (storage.version, node)
        return node

    def _raw(self) -> Node:
        """The value without a history of its own."""
        if recorder.tape is not None:
            recorder.tape.settle(self._storage)
        node = self._storage.node
        for op, attrs in self._path:
            node = op(node, **attrs)
        return node

    def _leaf_node(self) -> Node:
        cached = self._cached
        if cached is None or cached[0] != self._storage.version or not _holds(cached[1]):
            raw = self._raw()
            node = Node(movement.alias, (raw,), NO_ATTRS, raw.spec, True)
            node.anchor = self._find_anchor()
            self._cached = cached = (self._storage.version, node)
        return cached[1]

    def _find_anchor(self) -> Anchor:
        if self._anchor is None:
            device, make = self._storage.device, self._class()._new
            with _accumulating:
                self._anchor = self._anchor or Anchor(self, lambda grad: make(grad, device), leaf=self._flag)
        if not self._flag:
            self._node.anchor = self._anchor
        return self._anchor

    # Facts

    @property
    def shape(self) -> Size:
        return Size(self._spec_node().spec.shape)

    def _spec_node(self) -> Node:
        """Any node with this tensor's spec: the cached one, or the current one."""
        return self._cached[1] if self._cached is not None else self._node

    @property
    def dtype(self) -> DType:
        return self._storage.node.spec.dtype

    @property
    def device(self) -> devices.device:
        return devices.device(self._storage.device.name)

    @property
    def ndim(self) -> int:
        return len(self._spec_node().spec.shape)

    @property
    def _version(self) -> int:
        return self._storage.version

    @property
    def requires_grad(self) -> bool:
        return self._flag or self._node.requires

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Marks a leaf. Raises RuntimeError for an integer tensor, or for turning off a tensor with history."""
        if not self._flag and self._node.requires:
            if requires_grad:
                return self
            raise RuntimeError(
                "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in "
                "a subgraph that doesn't require differentiation use var_no_grad = var.detach()."
            )
        if requires_grad and self.dtype.kind is not Kind.FLOAT:
            raise RuntimeError("only Tensors of floating point dtype can require gradients")
        if recorder.tape is not None:
            recorder.tape.see(self)
        self._flag, self._cached = requires_grad, None
        recorder.changes += 1
        return self

    @property
    def grad(self) -> Any:
        """The gradient that backward accumulated, or None."""
        if recorder.tape is not None:
            recorder.tape.note_gradient(self, read=True)
        return self._grad

    @grad.setter
    def grad(self, value: Any) -> None:
        if value is not None:
            if not isinstance(value, TensorBase):
                raise TypeError(
                    f"assigned grad expected to be a Tensor or None but got grad of type {type(value).__name__}"
                )
            if value.shape != self.shape:
                raise ShapeError(
                    f"attempting to assign a gradient of size '{list(value.shape)}' to a tensor of size "
                    f"'{list(self.shape)}'. Please ensure that the gradient and the tensor are the same size"
                )
            if value.dtype is not self.dtype or value._storage.device is not self._storage.device:
                raise RuntimeError(
                    f"attempting to assign a gradient of {value.dtype} on {value.device} to a tensor of {self.dtype} "
                    f"on {self.device}"
                )
        if recorder.tape is not None:
            recorder.tape.note_gradient(self, read=False)
        recorder.changes += 1
        self._grad = value

    @grad.deleter
    def grad(self) -> None:
        self.grad = None

    @property
    def is_leaf(self) -> bool:
        return self._flag or not self._node.requires

    @property
    def grad_fn(self) -> Any:
        """The op that made this tensor, or None for a leaf. For looking at, as in torch."""
        return None if self.is_leaf else self._node

    def _traits(self) -> Any:
        """What a step depends on besides the value: whether it is a leaf that wants a gradient, who waits for it."""
        anchor = self._anchor
        hooks = () if anchor is None else (*anchor.hooks.values(), *anchor.after.values(), anchor.retain)
        return self._flag, hooks if any(hooks) else ()

    # Identity and history

    def detach(self) -> Any:
        """The same storage without history."""
        return self._of(self._storage, self._path)

    @property
    def data(self) -> Any:
        return self.detach()

    @data.setter
    def data(self, other: TensorBase) -> None:
        if recorder.tape is not None:
            recorder.tape.see(self)
        self._storage, self._path, self._base = other._storage, other._path, None
        self._detached, self._cached = True, None
        recorder.changes += 1

    def retain_grad(self) -> None:
        """Keeps the gradient of a tensor that is not a leaf in `.grad`."""
        if not self.requires_grad:
            raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
        if not self._flag:
            self._find_anchor().retain = True

    @property
    def retains_grad(self) -> bool:
        return self._anchor is not None and self._anchor.retain

    def register_hook(self, hook: Hook) -> RemovableHandle:
        """Calls `hook(grad)` when the gradient is computed; what it returns, if not None, replaces the gradient."""
        if not self.requires_grad:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        return RemovableHandle(self._find_anchor().hooks, hook)

    def register_post_accumulate_grad_hook(self, hook: Hook) -> RemovableHandle:
        """Calls `hook(tensor)` after `.grad` was updated. Only for leaves."""
        if not self._flag:
            raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
        return RemovableHandle(self._find_anchor().after, hook)

    def _accumulate(self, grad: Node, create_graph: bool) -> None:
        with _accumulating:
            if self.grad is None:
                recorder.changes += 1
                fresh = self._new(grad, self._storage.device)
                self._grad = fresh if create_graph or not grad.requires else fresh.detach()
            elif create_graph:
                self.grad = self._new(pointwise.add(self.grad._node, grad), self._storage.device)
            else:
                with modes.no_grad():
                    self.grad._assign(pointwise.add(self.grad._node, grad))

    # Writing

    def _assign(self, node: Node) -> Self:
        """Gives this tensor, and so its storage, a new value. `node` has its shape and dtype."""
        if recording.grad and self._flag:
            raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
        if recording.grad and self._base is not None and self._base._flag:
            raise RuntimeError("a view of a leaf Variable that requires grad is being used in an in-place operation.")
        if node.op is HOST or (node.op is pointwise.const and not node.spec.shape):
            node = pointwise.copy(node)  # Others have this node, too; a storage's is its own.
        storage = self._storage
        if recorder.tape is not None:
            recorder.tape.see(self)
            recorder.tape.settle(storage)
        chain = [storage.node]
        for op, attrs in self._path:
            chain.append(op(chain[-1], **attrs))
        for (op, attrs), before in zip(reversed(self._path), reversed(chain[:-1]), strict=True):
            node = _unview(op, attrs, before, node)
        if node is storage.node:
            node = pointwise.copy(node)
        elif storage.node.requires and not node.requires:
            history = pointwise.overwrite if recording.grad else pointwise.graft
            with modes.enable_grad():
                node = history(node, storage.node)
        storage.write(node)
        executor.record(storage)
        return self

    def _written(self, result: Any) -> Self:
        """In-place form of an op: checks that `result` fits, casts it and assigns it."""
        node: Node = result._node
        if node.spec.shape != tuple(self.shape):
            if len(node.spec.shape) > self.ndim or _broadcast_fails(node.spec.shape, self.shape):
                raise ShapeError(
                    f"output with shape {list(self.shape)} doesn't match the broadcast shape {list(node.spec.shape)}"
                )
            node = arithmetic.broadcast_to(node, self.shape)
        if node.spec.dtype.kind > self.dtype.kind:
            raise RuntimeError(
                f"result type {node.spec.dtype.name} can't be cast to the desired output type {self.dtype.name}"
            )
        return self._assign(arithmetic.cast(node, self.dtype))

    # Reading

    def _bytes(self) -> bytes:
        return executor.read(self._readable())

    async def _bytes_async(self) -> bytes:
        return await executor.read_async(self._readable())

    def _readable(self) -> Storage:
        """A storage whose value has the elements of this tensor, in their order."""
        if not self._path:
            return self._storage
        with modes.no_grad():
            dense: Storage = self._new(pointwise.copy(self._node), self._storage.device)._storage
        return dense


def _holds(node: Node) -> bool:
    """A captured step reads what a view shows in each run, and no copy of it that was forced before."""
    return recorder.tape is None or node.buffer is None


def _broadcast_fails(small: Shape, large: Shape) -> bool:
    padded = (1,) * (len(large) - len(small)) + small
    return any(m not in (1, n) for m, n in zip(padded, large, strict=True))


def _unview(op: Movement, attrs: Attrs, before: Node, value: Node) -> Node:
    """The value of `before` after its view op(before) became `value`."""
    if op is movement.reshape:
        return movement.reshape(value, shape=before.spec.shape)
    if op is movement.permute:
        order = attrs["order"]
        return movement.permute(value, order=tuple(order.index(axis) for axis in range(len(order))))
    if op is movement.slice_:
        return indexing.write_slice(before, value, starts=attrs["starts"], steps=attrs["steps"])
    if op is reduction.expand and before.spec.shape == value.spec.shape:
        return value
    if op is movement.window and attrs["step"] >= attrs["size"] and attrs["dilation"] == 1:
        back = {"axis": attrs["axis"], "length": before.spec.shape[attrs["axis"]], "step": attrs["step"], "dilation": 1}
        last = (len(before.spec.shape),)
        written = reduction.sum_(movement.unwindow(value, **back), last)
        covered = reduction.max_(movement.unwindow(pointwise.full(True, Spec(value.spec.shape, bool_)), **back), last)
        written, covered = (movement.reshape(x, shape=before.spec.shape) for x in (written, covered))
        return pointwise.where(covered, written, before)
    raise RuntimeError(
        "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
        "Please clone() the tensor before performing the operation."
    )


def strides_of(tensor: TensorBase) -> tuple[Shape, int]:
    """Strides and offset that torch would report: of the storage's row-major layout, through the views."""
    return layout.through(tensor._storage.node.spec.shape, tensor._path)


def apply(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Calls a function of nodes with tensors: `apply(activation.gelu, x)`; returned nodes become tensors.

    Tensors inside lists and tuples count. Raises RuntimeError when tensors are on different devices.
    """
    found: list[TensorBase] = []
    nodes = [_unwrapped(arg, found) for arg in args]
    options = {name: _unwrapped(value, found) for name, value in kwargs.items()} if kwargs else kwargs
    if not found:
        return function(*nodes, **options)
    device, make = found[0]._storage.device, found[0]._new
    for tensor in found:
        other = tensor._storage.device
        if other is not device:
            raise RuntimeError(
                f"Expected all tensors to be on the same device, but found at least two devices, {device.name} and "
                f"{other.name}!"
            )
    result = function(*nodes, **options)
    if isinstance(result, Node):
        if any(result is node for node in nodes):
            result = movement.alias(result)  # Another tensor needs a node of its own: hooks hang on nodes.
        return make(result, device)
    if isinstance(result, tuple | list):
        return tuple(make(item, device) if isinstance(item, Node) else item for item in result)
    return result


def _unwrapped(value: Any, found: list[TensorBase]) -> Any:
    """The node of a tensor, which is noted in `found`; also in lists and tuples."""
    if isinstance(value, TensorBase):
        found.append(value)
        return value._node
    if isinstance(value, list | tuple) and any(isinstance(item, TensorBase) for item in value):
        return [_unwrapped(item, found) for item in value]
    return value


def as_tuple(args: Sequence[Any], named: dict[str, Any] | None = None) -> tuple[int, ...]:
    """f(2, 3), f((2, 3)) and f(size=(2, 3)) -> (2, 3)."""
    if named:
        args = tuple(named.values())
    if len(args) == 1 and not hasattr(args[0], "__index__"):
        args = tuple(args[0])
    return tuple(int(n) for n in args)
