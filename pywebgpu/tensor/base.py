"""What a tensor is: a storage, the chain of views that leads into it, and the gradient that waits for it.

A view shares the storage; its node is rebuilt from the storage's current value when somebody wrote. A write through a
view makes a new value for the whole storage. The history is that of the storage's value, unless the tensor holds
another (history.py). Everything that computes is in the methods of the sibling files.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pywebgpu import devices
from pywebgpu.autodiff import grad_mode
from pywebgpu.composites import arithmetic, wide
from pywebgpu.devices.base import Device, check_possible
from pywebgpu.dtypes import DType, Kind
from pywebgpu.errors import ShapeError
from pywebgpu.ir.graph import Composite, Movement, Node, Pointwise, Reduction, RowsNode, Structural, thread_state, used
from pywebgpu.ir.observer import changed
from pywebgpu.ops import pointwise
from pywebgpu.runtime import executor
from pywebgpu.runtime.storage import Storage
from pywebgpu.tensor import grad_accumulator, history, layout, view
from pywebgpu.tensor.grad_accumulator import GradAccumulator, Hook, RemovableHandle
from pywebgpu.tensor.history import History
from pywebgpu.tensor.size import Size
from pywebgpu.tensor.view import Path, shorter

if TYPE_CHECKING:
    from pywebgpu.tensor.grad_fn import GradFn
    from pywebgpu.tensor.tensor import Tensor

Traits = tuple[bool, tuple[object, ...], Path, bool]
Selected = Callable[["TensorBase"], object]

_OWN = frozenset({Composite, Pointwise, Reduction, Structural})  # ops whose nodes nobody else has: see view.is_shared
_made, _size = object.__new__, tuple.__new__
_accumulating = threading.RLock()  # Threads may share leaves, and each adds to their gradients.


class TensorBase:
    """Storage, views, history and reading; see Tensor for the arithmetic."""

    __slots__ = (
        "__dict__", "__weakref__", "_accumulator", "_base", "_cached", "_flag", "_grad", "_history", "_number", "_path",
        "_storage",
    )  # fmt: skip

    _accumulator: GradAccumulator | None
    _base: TensorBase | None  # the tensor that a view was taken of
    _cached: tuple[int, Node] | None  # node at a version of the storage
    _history: History | None  # None: that of the storage's value
    _number: int  # of its contents, once somebody asked
    _path: Path  # from the storage's value to this tensor
    _storage: Storage
    _flag: bool  # a leaf that wants a gradient
    _grad: Any  # a tensor, or None
    _inference = False  # made in inference mode
    _of_several: int | None = None  # of a view that an op of several views made, or a view of one: writes until then
    _uncounted = False  # x.data, or a view of it: x does not count what is written through it
    _selected: Selected | None = None  # where a copy came from which is a view in torch: writes go there, too
    _takes_free_numbers = True
    _kind: ClassVar[type[Tensor]]  # the class of results: Tensor, also for subclasses

    @classmethod
    def _new(cls, node: Node, device: Device) -> Tensor:
        """A tensor with a storage of its own."""
        if node.op.__class__ not in _OWN and view.is_shared(node):
            node = pointwise.copy(node)
        if used.wide and thread_state.wide:
            wide.refuse(node, device)
        if used.large and device.has_values:
            check_possible(node.spec, device)
        if used.packing is not None:
            node = used.packing(node, device)
        tensor = _made(cls._kind)
        tensor._storage = storage = Storage(node, device)
        tensor._path, tensor._base, tensor._accumulator, tensor._cached = (), None, None, None
        tensor._flag, tensor._grad, tensor._history = False, None, None
        if used.inference:
            if thread_state.inference:
                tensor._inference, tensor._history = True, history.of_inference
            elif history.read_outside:
                history.refuse_saved(node)
        executor.record(storage)
        return tensor

    @classmethod
    def _of(cls, storage: Storage, path: Path) -> Tensor:
        """A tensor without history that shows a storage."""
        tensor = _made(cls._kind)
        tensor._storage, tensor._path, tensor._base = storage, path, None
        tensor._cached, tensor._accumulator, tensor._flag, tensor._grad = None, None, False, None
        tensor._history = History(path)
        return tensor

    def _view(self, op: Movement, **attrs: Any) -> Tensor:
        """A tensor that shares this one's storage."""
        return self._views(((op, attrs),))

    def _views(self, steps: view.Path) -> Tensor:
        """The same after several views."""
        own = self._node
        node = view.taken(own, steps)
        tensor = _made(self._kind)
        tensor._storage = self._storage
        tensor._path, tensor._base = (*self._path, *steps), self if self._base is None else self._base
        tensor._cached, tensor._history = (self._storage.version, node), self._history
        tensor._accumulator, tensor._flag, tensor._grad = None, False, None
        if used.inference and self._inference:
            tensor._inference, tensor._history, tensor._cached = True, history.of_inference, None
            if tensor._base._selected is None:
                tensor._base = None
            return tensor
        if self._of_several is not None:
            tensor._of_several = self._storage.counted
        if self._uncounted:
            tensor._uncounted = True
        if (own.requires or self._flag) and not thread_state.grad:
            mode = "inference" if thread_state.inference else "no_grad"
            tensor._history = History(tensor._path, unrecorded=mode, version=self._storage.counted)
            tensor._cached = None
        return tensor

    # The node

    @property
    def _node(self) -> Node:
        """The value now. For a leaf that wants a gradient, under gradient mode, a node that the gradient finds."""
        storage = self._storage
        if used.observed and thread_state.observer is not None:
            thread_state.observer.see(self)
            if self._base is not None and self._base._storage is storage:
                thread_state.observer.see(self._base)
        own = self._history
        if own is None:
            if not self._path:
                return storage.node
        elif self._flag:
            if used.inference and self._inference and thread_state.grad:
                history.read_outside.append(own.node(storage))
            return own.node(storage) if thread_state.grad else self._raw()
        elif own is history.of_inference and thread_state.grad:
            return self._read_outside()
        cached = self._cached
        if cached is not None and cached[0] == storage.version and history.holds(cached[1]):
            return cached[1]
        if own is None:
            node, path = storage.node, self._path
            if used.observed and thread_state.observer is not None:
                thread_state.observer.settle(storage)
        else:
            node, path = own.node(storage), self._path[len(own.path) :]
        refused = self._of_several not in (None, storage.counted) and node.requires
        if thread_state.grad or not node.requires:
            if refused:
                raise history.refusal("several", history.OTHER)
            node = view.through(node, path)
        else:
            with grad_mode.keeping_history():  # It is kept for later, when a gradient may be asked for.
                node = view.through(node, path)
        if not refused:
            self._cached = (storage.version, node)
        if self._accumulator is not None and self._accumulator.retain:
            self._find_accumulator()  # It is the new value's gradient that is kept.
        return node

    def _read_outside(self) -> Node:
        """The value of an inference tensor, of which the op that reads it hears: no gradient may need it."""
        with grad_mode.no_grad():
            node = self._node
        history.read_outside.append(node)
        return node

    def _settle(self) -> None:
        """Where it begins decides what happens: a step that is captured needs it to begin there."""
        if used.observed and thread_state.observer is not None:
            thread_state.observer.settle(self._storage)

    def _raw(self) -> Node:
        """The value without a history of its own."""
        self._settle()
        return view.through(self._storage.node, self._path)

    def _find_accumulator(self) -> GradAccumulator:
        if self._accumulator is None or not self._flag:
            with _accumulating:
                node = None if self._flag else self._node  # Before the accumulator, which it may replace.
                self._accumulator = GradAccumulator.at(node, self, self._accumulator, self._wrap())
        return self._accumulator

    def _wrap(self) -> Callable[[Node], Tensor]:
        """What makes tensors of gradients."""
        return grad_accumulator.wrap(self._storage.device, self._kind._new)

    # Facts

    @property
    def shape(self) -> Size:
        return _size(Size, self._spec_node().spec.shape)

    def _spec_node(self) -> Node:
        """Any node with this tensor's spec: the cached one, or the current one."""
        return self._cached[1] if self._cached is not None else self._node

    @property
    def dtype(self) -> DType:
        if not self._path:
            return self._storage.node.spec.dtype
        return self._spec_node().spec.dtype

    @property
    def device(self) -> devices.device:
        return devices.named(self._storage.device.name)

    @property
    def ndim(self) -> int:
        return len(self._spec_node().spec.shape)

    @property
    def _version(self) -> int:
        if used.observed and thread_state.observer is not None:
            thread_state.observer.refuse("it reads how often a tensor was written, which no replay counts")
        if self._inference:
            raise RuntimeError("Inference tensors do not track version counter.")
        return self._storage.counted

    @property
    def requires_grad(self) -> bool:
        own, base = self._history, self._base
        if self._of_several not in (None, self._storage.counted):  # Its value is refused, this fact is not.
            return self._storage.node.requires
        if self._flag or self._node.requires or base is None:
            return self._flag or self._node.requires
        return (
            base._flag if own is None else bool(own.unrecorded) and base.requires_grad
        )  # A view is asked as its base is.

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self._require_grad(value)

    @requires_grad.deleter
    def requires_grad(self) -> None:
        raise RuntimeError("requires_grad must be a bool")

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Marks a leaf. Raises RuntimeError for an integer tensor, for turning off a tensor with history, and inside of
        a transform of torch.func."""
        kind: type = type(requires_grad)
        if kind is not bool:
            raise TypeError(f"argument 'requires_grad' must be bool, not {kind.__name__}")
        if requires_grad and thread_state.transforms:
            import_module("pywebgpu.tensor.samples").refuse_leaf()
        return self._require_grad(requires_grad)

    def _require_grad(self, requires_grad: bool = True) -> Self:
        if not self._flag and self._node.requires:
            if requires_grad:
                return self
            raise RuntimeError(
                "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in "
                "a subgraph that doesn't require differentiation use var_no_grad = var.detach()."
            )
        if requires_grad and self._history is history.of_inference and not thread_state.inference:
            raise RuntimeError("Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.")
        if requires_grad and self.dtype.kind is not Kind.FLOAT:
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
        self._see()
        if self._flag is not bool(requires_grad):
            self._flag, self._cached = bool(requires_grad), None
            if requires_grad:
                self._history = History(self._path, accumulator=self._find_accumulator(), outer=self._history)
            elif self._history is not None:
                self._history = self._history.outer
            changed()
        return self

    @property
    def grad(self) -> Tensor | None:
        """The gradient that backward accumulated, or None."""
        if used.observed and thread_state.observer is not None:
            thread_state.observer.note_gradient(self, read=True)
        grad: Tensor | None = self._grad
        if grad is None and not self._flag and self._node.requires and not self.retains_grad:
            warnings.warn(grad_accumulator.NO_LEAF, stacklevel=2)
        return grad

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None:
            grad_accumulator.check(value, self)
        if used.observed and thread_state.observer is not None:
            thread_state.observer.note_gradient(self, read=False)
        changed()
        self._grad = value

    @grad.deleter
    def grad(self) -> None:
        self.grad = None

    @property
    def is_leaf(self) -> bool:
        return self._flag or not self._node.requires

    @property
    def grad_fn(self) -> GradFn | None:
        """The function that made this tensor, or None for a leaf. For looking at, as in torch.

        Raises RuntimeError for a view that was taken without gradients, of what was written since.
        """
        own = self._history
        if own is not None and own.unrecorded and own.version != self._storage.counted and self.requires_grad:
            raise history.refusal(own.unrecorded, history.OTHER)
        return None if self.is_leaf else import_module("pywebgpu.tensor.grad_fn").of(self._node, self._wrap())

    def _traits(self) -> Traits:
        """What a step depends on besides the value: whether it is a leaf that wants a gradient, who waits for it, which
        view of its storage it is, and whether the value has a history."""
        hooks = () if self._accumulator is None else self._accumulator.waiting()
        return self._flag, hooks, self._path, self._storage.node.requires

    def _see(self) -> None:
        """Tells a capture that what this tensor is counts for the step."""
        if used.observed and thread_state.observer is not None:
            thread_state.observer.see(self)

    # Identity and history

    def detach(self) -> Tensor:
        """The same storage without history."""
        self._see()
        tensor = self._of(self._storage, self._path)
        if self._history is history.of_inference:
            tensor._history = history.of_inference
        if self._uncounted:
            tensor._uncounted = True
        base = self if self._base is None else self._base
        if base._selected is not None:
            tensor._base = base
        return tensor

    @property
    def data(self) -> Tensor:
        tensor = self.detach()
        tensor._uncounted = True
        return tensor

    @data.setter
    def data(self, other: TensorBase) -> None:
        """Shows the memory of `other` from now on, and keeps its history. Views taken before keep the old memory."""
        if not isinstance(other, TensorBase):
            raise TypeError(f"Variable data has to be a tensor, but got {type(other).__name__}")
        if hasattr(type(other), "_nnz") and not hasattr(type(self), "_nnz"):
            raise RuntimeError("Attempted to set `.data`, but the two tensors have incompatible tensor type.")
        if self._flag and other.dtype.kind is not Kind.FLOAT:
            raise RuntimeError("data set to a tensor that requires gradients must be floating point or complex dtype")
        self._see()
        if other._storage is self._storage and other._path == self._path:
            return
        before, device = self._node, self._storage.device
        self._storage, self._path, self._cached = other._storage, other._path, None
        self._history = history.leaf_or_cut(self)
        if before.requires and not self._flag:
            now = self._history.node(self._storage)
            with grad_mode.keeping_history():
                if now.spec == before.spec and self._storage.device is device:
                    now = pointwise.graft(now, before)
                else:
                    now = history.misfit(now, before, call=history.Misfit(), index=0, outputs=1)
            self._history.keep(now, self._storage)
        changed()

    @data.deleter
    def data(self) -> None:
        raise RuntimeError("Deleting tensor data is not allowed. Delete tensor instead!")

    def _show(self, view: TensorBase) -> Self:
        """Is what `view`, of the same storage, is from now on: for changes of shape in place."""
        if used.observed and thread_state.observer is not None:
            thread_state.observer.see(self)
        if used.inference and self._inference and not thread_state.inference:
            raise history.refusal("written")
        self._storage.counted += 1
        own = self._history
        self._path, self._cached = shorter(view._path, 0 if own is None or self._flag else len(own.path)), None
        if self._flag or (own is not None and self._path[: len(own.path)] != own.path):
            self._history = history.leaf_or_cut(self)
        changed()
        return self

    def retain_grad(self) -> None:
        """Keeps the gradient of a tensor that is not a leaf in `.grad`."""
        if not self.requires_grad:
            raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
        if not self._flag:
            self._find_accumulator().retain = True
            changed()

    @property
    def retains_grad(self) -> bool:
        return self._accumulator is not None and self._accumulator.retain

    def register_hook(self, hook: Hook) -> RemovableHandle:
        """Calls `hook(grad)` when the gradient is computed; what it returns, if not None, replaces the gradient."""
        self._see()
        if not self.requires_grad:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        return RemovableHandle(self._find_accumulator().hooks, hook)

    def register_post_accumulate_grad_hook(self, hook: Hook) -> RemovableHandle:
        """Calls `hook(tensor)` after `.grad` was updated. Only for leaves."""
        self._see()
        if not self.requires_grad:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        if not self._flag:
            raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
        return RemovableHandle(self._find_accumulator().after, hook)

    def _accumulate(self, grad: Node, create_graph: bool) -> None:
        with _accumulating:
            if used.observed and thread_state.observer is not None:
                thread_state.observer.note_gradient(self, read=True)
            if type(grad) is RowsNode or (self._grad is not None and self._grad.is_sparse):
                grad_accumulator.rows().add(self, grad, create_graph=create_graph)
            elif self._grad is None:
                changed()
                self._grad = self._gradient(grad if create_graph or not grad.requires else history.cut(grad))
                if self._path and view.turns(self._path):
                    import_module("pywebgpu.tensor.memory_format").beside(self._grad, self)
            elif create_graph:
                self.grad = self._new(pointwise.add(self._grad._node, grad), self._storage.device)
            else:
                with grad_mode.no_grad():
                    self._grad._assign(pointwise.add(self._grad._node, grad))

    def _gradient(self, node: Node) -> Tensor:
        """A new tensor of a gradient. There are many, and few formulas read them: a view is taken without a copy."""
        if node.op.__class__ is not Movement:
            return self._new(node, self._storage.device)
        tensor = self._of(Storage(node, self._storage.device), ())
        tensor._history = None
        executor.record(tensor._storage)
        return tensor

    # Writing

    def _check_writable(self) -> None:
        """Raises RuntimeError where autograd forbids a write in place, or one that only moves."""
        if not thread_state.grad:
            return
        own, base = self._history, self._base  # A base may have asked for gradients after the view was taken.
        if (base is not None and base._flag) if own is None else own.accumulator is not None:
            what = "a leaf Variable" if self._flag else "a view of a leaf Variable"
            raise RuntimeError(f"{what} that requires grad is being used in an in-place operation.")
        if own is not None and own.unrecorded:
            raise history.refusal(own.unrecorded)

    def _assign(self, node: Node) -> Self:
        """Gives this tensor, and so its storage, a new value. `node` has its shape and dtype."""
        own, storage = self._history, self._storage
        replaced = storage.node if self._uncounted else None
        if used.inference and self._inference and not thread_state.inference:
            raise history.refusal("written")
        if self._of_several is not None and thread_state.grad and (node.requires or self._node.requires):
            raise history.refusal("several")
        if own is not None or self._base is not None:
            self._check_writable()
        if used.wide and thread_state.wide:
            wide.refuse(node, storage.device)
        if node.requires and not thread_state.grad:
            node = pointwise.copy(node)
        if used.observed and thread_state.observer is not None:
            thread_state.observer.see(self)
            thread_state.observer.settle(storage)
        if history.kept is not None:
            history.keep(storage)
        if own is not None and (thread_state.grad or storage.node.requires):
            self._assign_apart(own, node)
        else:
            before = storage.node
            after = view.written(before, self._path, node)
            storage.write(history.after_write(before, after) if before.requires else after)
        if not self._uncounted:
            storage.counted += 1
        elif replaced is not None:
            replaced.shared = storage, storage.counted
        executor.record(storage)
        for shown in (self, self._base):
            if shown is None:
                continue
            if shown._accumulator is not None and shown._accumulator.retain:
                shown._find_accumulator()  # It is the new value's gradient that is kept.
            if shown._selected is not None:
                shown._selected(shown)
        return self

    def _assign_apart(self, own: History, node: Node) -> None:
        """As _assign, where the history is not the storage's: other aliases see the value, and keep their history."""
        storage, path, value = self._storage, self._path, None
        if thread_state.grad and (node.requires or own.has_writes):
            before = own.node(storage)
            value = history.after_write(before, view.written(before, path[len(own.path) :], node))
            node, path = history.cut(value), own.path
        with grad_mode.no_grad():
            after = view.written(storage.node, path, node)
            storage.write(history.after_write(storage.node, after))
        if value is not None:
            own.keep(value, storage)

    def _written(self, result: Tensor) -> Self:
        """In-place form of an op: checks that `result` fits, casts it and assigns it."""
        node: Node = result._node
        shape, own = self._spec_node().spec
        if node.spec == (shape, own):
            return self._assign(node)
        if node.spec.shape != shape:
            if len(node.spec.shape) > self.ndim or layout.broadcast_fails(node.spec.shape, self.shape):
                raise ShapeError(
                    f"output with shape {list(self.shape)} doesn't match the broadcast shape {list(node.spec.shape)}"
                )
            node = arithmetic.broadcast_to(node, self.shape)
        if node.spec.dtype.kind > own.kind or (node.spec.dtype.part is not None and own.part is None):
            raise RuntimeError(
                f"result type {node.spec.dtype.title} can't be cast to the desired output type {self.dtype.title}"
            )
        return self._assign(arithmetic.cast(node, self.dtype))

    # Reading

    def _bytes(self) -> bytes:
        return executor.read(self._readable())

    async def _bytes_async(self) -> bytes:
        return await executor.read_async(self._readable())

    def _readable(self) -> Storage:
        """A storage whose value has the elements of this tensor, in their order."""
        if not self._path or layout.is_whole(self._path):
            return self._storage
        with grad_mode.no_grad():
            dense: Storage = self._new(pointwise.copy(self._node), self._storage.device)._storage
        return dense
