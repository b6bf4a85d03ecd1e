"""Storages of device cpu whose memory somebody else has: NumPy, another library, or whoever was told its address.

A small value is there twice: the graph has a copy, which is held against the memory wherever a program asks for the
value, so that work stays lazy. A large value is in the memory alone; what reads it is computed before the call returns,
since others may write to it then.
"""

from __future__ import annotations

import weakref
from sys import getrefcount
from typing import TYPE_CHECKING, Any

from pywebgpu.autodiff import grad_mode
from pywebgpu.devices.base import Buffer
from pywebgpu.ir import graph, walk
from pywebgpu.ir.graph import Node
from pywebgpu.ops import pointwise, reduction
from pywebgpu.runtime import executor, state
from pywebgpu.runtime.state import Queue
from pywebgpu.runtime.storage import Storage, shared

if TYPE_CHECKING:
    from numpy.typing import NDArray

SMALL = 1 << 17  # bytes that are compared sooner than a Program runs
AT_ONCE = 1 << 60  # values recorded, which is more than may wait
_snapshots: weakref.WeakKeyDictionary[Storage, Any] = weakref.WeakKeyDictionary()
_written_by_address: weakref.WeakKeyDictionary[Storage, Any] = weakref.WeakKeyDictionary()  # their memory


class FixedStorage(Storage):
    """Its memory stays where it is. Each value is put there when it is computed."""

    __slots__ = ()

    @property
    def is_twice(self) -> bool:
        """Whether the graph reads a copy."""
        return bool(self.memory.nbytes <= SMALL)

    def write(self, node: Node) -> None:
        with grad_mode.keeping_history():
            own = pointwise.copy(node)  # No other storage has this node, nor its buffer.
        Storage.write(self, own)

    def place(self, buffer: Buffer) -> Buffer:
        """Puts a new value into the memory. What holds it for the graph, from which the old one goes away."""
        memory, home = self.memory, self.home
        if buffer.handle is memory:
            return buffer
        if not memory.flags.writeable:  # It was warned of.
            self.__class__ = Storage  # type: ignore[assignment]
            return buffer
        if self.is_twice:
            memory[...] = buffer.handle
            return buffer
        if home is not None and home.handle is memory:
            home.handle = memory.copy()  # Formulas may read it yet.
        memory[...] = buffer.handle
        return _device(self).hold(memory)  # type: ignore[no-any-return]

    def move_into(self, base: Storage, location: graph.Attrs) -> None:
        self.__class__ = Storage  # type: ignore[assignment]  # It is one, with a memory that nobody has.
        self.move_into(base, location)


class SharedStorage(FixedStorage):
    """Others may write to its memory, and read from it."""

    __slots__ = ()
    is_shared = True

    @property
    def node(self) -> Node:
        self._meet()
        return self._node

    @property
    def version(self) -> int:
        self._meet()
        return self._version

    def write(self, node: Node) -> None:
        observer = graph.thread_state.observer
        if observer is not None and observer.have_created((self,)):
            observer.leave("it writes to memory that others have")
        FixedStorage.write(self, node)
        self._hurry()

    def _meet(self) -> None:
        """Somebody asks for the value: takes over what others wrote."""
        is_alone = self.memory.base is None and _references(self) <= _ALONE + (not self.is_twice)
        if is_alone:
            self.__class__ = FixedStorage  # type: ignore[assignment]  # Nobody else has it any more.
            shared.discard(self)
        if not self.is_twice:
            if not is_alone:
                self._hurry()
        elif self._node.buffer is not None and self._node.buffer.handle.tobytes() != self.memory.tobytes():
            before = self._node
            node = graph.data(before.spec, _device(self).hold(self.memory.copy()))
            self.replace(pointwise.graft(node, before) if before.requires else node)
            self.wait() if self._node.buffer is None else self.settle(node)

    def _hurry(self) -> None:
        """What the call that goes on makes of this value is computed before it returns."""
        queue = state.default.local.queues[self.device]
        queue.hurries, queue.recorded = _Hurry(queue), AT_ONCE


class CopiedStorage(Storage):
    """Of a dtype that NumPy lacks: others may write to the copy whose address they have. memory: its bytes."""

    __slots__ = ()

    @property
    def node(self) -> Node:
        data = _snapshots[self].tobytes()
        if data != self.memory:
            self.memory = data
            node = graph.data(self._node.spec, self.device.upload(memoryview(data), self._node.spec))
            self.replace(node)
            self.settle(node)
        return self._node


class _Hurry:
    """Asks the next values of a queue whether they read memory to which others may write as soon as a call returns."""

    __slots__ = ("left", "queue")

    def __init__(self, queue: Queue) -> None:
        self.queue, self.left = queue, 4  # values of one op, at most, of which the first had the device begin

    def __call__(self, storage: Storage) -> bool:
        self.left -= 1
        if not self.left:
            self.queue.hurries, self.queue.recorded = None, len(self.queue.storages)
        return storage.is_shared or _reads_shared(storage.node)


def _reads_shared(node: Node) -> bool:
    data, _ = walk.leaves(walk.toposort([node]))
    owners = (ref() for leaf in data if (ref := getattr(leaf, "storage", None)) is not None)
    return any(owner is not None and owner.is_shared for owner in owners)


def submit_readers() -> None:
    """Queues all there is for devices that have memory to which others may write, and which the graph reads."""
    for device in {storage.device for storage in shared}:
        executor.submit(device)


def _device(storage: Storage) -> Any:
    """Device cpu, which has more than the contract says."""
    return storage.device


def _references(storage: SharedStorage) -> int:
    return getrefcount(storage.memory)


def _alone() -> int:
    """What getrefcount says of the memory that a storage alone has; interpreters count differently."""
    storage: Any = SharedStorage.__new__(SharedStorage)
    storage.memory = object()
    return _references(storage)


_ALONE = _alone()


def fixed(storage: Storage) -> FixedStorage:
    """The storage, whose value is in its memory now, and stays there."""
    if not isinstance(storage, FixedStorage):
        _fix(storage)
    elif storage._node.buffer is None:
        executor.force(storage)
    return storage  # type: ignore[return-value]  # Of that class now.


def share(storage: Storage) -> NDArray[Any]:
    """The memory of a storage, to which others may write from now on."""
    storage_memory = fixed(storage)
    if not storage_memory.is_shared:
        _share(storage_memory)
    memory: NDArray[Any] = storage_memory.memory
    return memory


def of_array(array: NDArray[Any], spec: graph.Spec, device: Any) -> Storage:
    """A storage whose memory is an array's, row-major and writable."""
    is_twice = array.nbytes <= SMALL
    storage = Storage(graph.data(spec, device.hold(array.copy() if is_twice else array)), device)
    if graph.thread_state.observer is not None:
        graph.thread_state.observer.note_upload(storage.node.buffer, array.tobytes())
    storage.memory = array
    _share(storage)
    return storage


def show(storage: Storage, array: NDArray[Any]) -> None:
    """Makes an array, row-major and writable, the memory of a storage that has a copy of it."""
    is_twice = array.nbytes <= SMALL
    storage.replace(graph.data(storage.node.spec, _device(storage).hold(array.copy() if is_twice else array)))
    storage.settle(storage.node)
    storage.memory = array
    _share(storage)


def _share(storage: Storage) -> None:
    storage.__class__ = SharedStorage
    if not storage.is_twice:  # type: ignore[attr-defined]
        shared.add(storage)


def address(storage: Storage) -> int:
    """Where the bytes of a storage's value are. Of dtypes that NumPy lacks they are a copy, made anew at each call."""
    device, is_filled = _device(storage), _is_filled(storage.node)
    if not device.is_native(storage.node.spec.dtype):
        data = executor.read(storage)
        copy = _snapshots.get(storage)
        if copy is None or copy.nbytes != len(data):
            copy = _snapshots[storage] = device.array(len(data))
        copy.data[:] = data
        if isinstance(storage, CopiedStorage):
            storage.memory = bytes(data)
        elif is_filled:
            storage.memory, storage.__class__ = bytes(data), CopiedStorage
        return int(copy.__array_interface__["data"][0])
    if is_filled:  # Whoever asks where new memory is writes there: safetensors, kernels of programs.
        _written_by_address[storage] = share(storage)
    return int(fixed(storage).memory.__array_interface__["data"][0])


def _is_filled(node: Node) -> bool:
    """Whether it is what empty() and its like give, and nobody has computed it yet."""
    while node.buffer is None and node.op in (pointwise.copy, reduction.expand):
        (node,) = node.inputs
    return not node.inputs and (node.buffer is None or node.op is graph.HOST)


def _fix(storage: Storage) -> None:
    device = _device(storage)
    executor.submit(device)  # What was recorded reads the value as it is now.
    if storage.whole is not None:
        own = executor.alone(storage)
        executor.force(own)
        storage.leave(graph.data(own.node.spec, own.node.buffer))
        storage.settle(storage.node)
    node = executor.force(storage)
    if not (node.buffer.may_be_written and device.is_owned(node.buffer)):  # Others have it, or a part of it.
        if getattr(node, "storage", lambda: None)() is storage:  # Histories of tensors hang on the node: it stays.
            node.buffer = device.hold(node.buffer.handle.copy())
        else:
            storage.replace(pointwise.copy(node))
            storage.wait()
            node = executor.force(storage)
        storage.settle(node)
    if not node.requires:  # What is known of its numbers others may change.
        node.op, node.inputs, node.attrs = graph.DATA, (), graph.NO_ATTRS
    array = node.buffer.handle
    storage.memory = array.copy() if array.nbytes <= SMALL else array
    storage.__class__ = FixedStorage
