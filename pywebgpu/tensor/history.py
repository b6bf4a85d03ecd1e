"""The history of a tensor where it is not its storage's own: that of a leaf, or one that detach() cut off.

A tensor and the views of it have one in common. They hold it, and not the tensor that they are views of: `x.data = y`
gives x another one, and leaves its views as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from pywebgpu.autodiff import backward, grad_mode
from pywebgpu.ir import walk
from pywebgpu.ir.graph import NO_ATTRS, Custom, Node, thread_state, used
from pywebgpu.ops import movement, pointwise
from pywebgpu.runtime.storage import Storage
from pywebgpu.tensor.grad_accumulator import GradAccumulator
from pywebgpu.tensor.view import Path, through

if TYPE_CHECKING:
    from pywebgpu.tensor.base import TensorBase


class History:
    """What a gradient finds at a tensor that has not the history of its storage's value.

    path: from the storage to the tensor that it is the history of; views of it go on from there.
    accumulator: a leaf's that wants a gradient.  outer: the history to go back to when it wants none any more.
    unrecorded: of a view that was taken outside of gradient mode, in which ("no_grad", "inference"), and the version
    of the storage then.
    """

    __slots__ = ("_written", "accumulator", "cached", "outer", "path", "unrecorded", "version")

    def __init__(
        self,
        path: Path,
        *,
        accumulator: GradAccumulator | None = None,
        outer: History | None = None,
        unrecorded: str = "",
        version: int = 0,
    ) -> None:
        self.path, self.accumulator, self.outer = path, accumulator, outer
        self.unrecorded, self.version = unrecorded, version
        self.cached: tuple[int, Node] | None = None  # node at a version of the storage
        self._written: tuple[int, Storage] | None = None  # what was written with a history, and the version it made

    @property
    def has_writes(self) -> bool:
        """Whether something with a history was written through it: what other aliases do not know of."""
        return self._written is not None

    def node(self, storage: Storage) -> Node:
        """The tensor's value, with this history."""
        cached = self.cached
        if cached is not None and cached[0] == storage.version and holds(cached[1]):
            return cached[1]
        if used.observed and thread_state.observer is not None:
            thread_state.observer.settle(storage)
        node = cut(through(storage.node, self.path) if self.path else storage.node)
        if self.accumulator is not None:
            node = Node(movement.alias, (node,), NO_ATTRS, node.spec, True)
            node.accumulator = self.accumulator
        elif self._written is not None:
            version, kept = self._written
            if version == storage.version:
                node = kept.node
            else:
                with grad_mode.keeping_history():
                    node = pointwise.graft(node, kept.node)
        self.cached = (storage.version, node)
        return node

    def keep(self, node: Node, storage: Storage) -> None:
        """From the storage's present version on, the value has the history of `node`.

        A storage of its own keeps it: whatever a gradient will read of it is then computed with the rest.
        """
        if self._written is not None:
            self._written[1].node.stale = True
        self._written = storage.version, Storage(node, storage.device)
        self.cached = None


class InferenceHistory(History):
    """That of all tensors made in inference mode, which have none."""

    __slots__ = ()

    def node(self, storage: Storage) -> Node:
        return storage.node


of_inference = InferenceHistory(())
OTHER = "its base or another view of its base has been"


def refusal(kind: str, writing: str = "is being") -> RuntimeError:
    """An error of refused_writes.py."""
    error: RuntimeError = import_module("pywebgpu.tensor.refused_writes").error(kind, writing)
    return error


read_outside: list[Node] = []  # values of inference tensors that were read since the last op, outside of that mode


def refuse_saved(node: Node) -> None:
    """Raises RuntimeError where a gradient formula of `node`, which is new, needs a value of an inference tensor."""
    inference, stack = {id(walk.base(value)) for value in read_outside}, [node] if node.requires else []
    read_outside.clear()
    while stack:
        current = stack.pop()
        if any(id(walk.base(value)) in inference for value in backward.saved_by(current)):
            raise refusal("saved")
        stack += [source for source in current.inputs if source.requires and not hasattr(source, "storage")]


tangent_of: Callable[[TensorBase], TensorBase | None] | None = None  # of a tensor in forward mode, once that was used
kept: list[Storage] | None = None  # what writes overwrite, while backward may go on to read it


def keep(storage: Storage) -> None:
    """Keeps the value of a storage that is about to be written, and its node as one that formulas may read."""
    assert kept is not None
    kept.append(Storage(storage.node, storage.device))
    storage.replace(pointwise.copy(storage.node))


def holds(node: Node) -> bool:
    """A captured step reads what a view shows in each run, and no copy of it that was forced before."""
    return not used.observed or thread_state.observer is None or node.buffer is None


def cut(node: Node) -> Node:
    """The value without its history."""
    return Node(movement.alias, (node,), NO_ATTRS, node.spec) if node.requires else node


def after_write(before: Node, after: Node) -> Node:
    """The value after a write: in gradient mode what was overwritten gets a gradient of 0, else all keeps its own."""
    if not before.requires or after.requires:
        return after
    keeps = pointwise.overwrite if thread_state.grad else pointwise.graft
    with grad_mode.keeping_history():
        return keeps(after, before)


misfit: Custom = Custom("SetDataBackward0")


class Misfit:
    """Ends a walk: a tensor with history was given data of another shape, dtype or device."""

    def backward(self, grads: list[Node | None]) -> Sequence[Node | None]:
        raise RuntimeError(
            "backward: a tensor that is no leaf was given `.data` of another shape, dtype or device, which its history "
            "does not fit. Make a new tensor by an op in place of the assignment."
        )

    def release(self) -> None: ...


def leaf_or_cut(tensor: TensorBase) -> History:
    """The history of a tensor that has come to other memory, or to another view of it: a leaf stays one."""
    outer = History(tensor._path)
    return History(tensor._path, accumulator=tensor._find_accumulator(), outer=outer) if tensor._flag else outer
