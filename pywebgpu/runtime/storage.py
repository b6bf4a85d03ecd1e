"""What a tensor and its views share: the value now, and where it is.

Apart from the executor because whatever writes needs it, and only what reads or queues needs Programs.
"""

from __future__ import annotations

import sys
import threading
import weakref
from typing import Any

from pywebgpu import dtypes
from pywebgpu.devices.base import Buffer, Device
from pywebgpu.ir import graph, walk
from pywebgpu.ir.graph import Node, thread_state, used
from pywebgpu.ir.observer import changed
from pywebgpu.ops import packing, pointwise
from pywebgpu.runtime import state
from pywebgpu.runtime.state import Queue

# Parts that a compiled step wrote to alone, once, and those of which it did so again: they are to be no parts.
left: weakref.WeakSet[Storage] = weakref.WeakSet()
apart: weakref.WeakSet[Storage] = weakref.WeakSet()
shared: weakref.WeakSet[Storage] = weakref.WeakSet()  # whose memory others may write to, and the graph reads
_element_lock = threading.RLock()
_UNASKED = Node(graph.DATA, (), graph.NO_ATTRS, graph.Spec((), dtypes.float32))  # of a part whose node nobody asked for


class Storage:
    """A value, how often it was written, and its location, which is one of three.

    - Pending: `node` is still to be computed. `home` may be an earlier value's buffer: a write in place goes there.
    - A buffer of its own: `node.buffer`, which is `home`.
    - A part of a flat storage: `whole`, at `location` (see `move_into`). `node`, `version` follow those of `whole`; a
      write of its own ends that.
    """

    __slots__ = (
        "__weakref__", "_node", "_version", "counted", "device", "elements", "home", "location", "memory", "queue",
        "whole",
    )  # fmt: skip

    whole: Storage | None
    location: graph.Attrs
    memory: Any  # an array that stays where it is, once somebody else has it (see fixed_memory.py)
    counted: int  # writes that PyTorch counts: those through `x.data` are none to x
    queue: Queue | None  # where it waits for its value
    elements: Any  # numbers that were written one by one, and `_node` has not yet; mostly None (see element_writes.py)
    _node: Node  # of a part: its node when it was last asked for
    _version: int  # of a part: how far it is ahead of that of the flat storage

    is_shared = False

    def __init__(self, node: Node, device: Device) -> None:
        self._node, self.device = node, device
        self._version = self.counted = 0
        self.home: Buffer | None = None
        self.whole = self.elements = None
        if used.observed and thread_state.observer is not None:
            thread_state.observer.created(self)
        if graph.used.origins and graph.thread_state.origins is not None:
            graph.thread_state.origins.made(self)
        if node.buffer is None:
            self.queue = queue = state.default.local.queues[device]
            queue.add(self)
        else:
            self.queue = None
            self.settle(node)

    @classmethod
    def empty(cls, spec: graph.Spec, device: Device) -> Storage:
        """One whose first value a run will give."""
        storage = cls.__new__(cls)
        storage._node, storage.device = Node(graph.DATA, (), graph.NO_ATTRS, spec), device
        storage._version = storage.counted = -1  # That value is no write.
        storage.home = storage.whole = storage.queue = storage.elements = None
        return storage

    @classmethod
    def part_of(cls, base: Storage, location: graph.Attrs) -> Storage:
        """A new part of a flat storage."""
        view = cls.__new__(cls)
        view.device, view.home, view.queue, view.elements = base.device, None, None, None
        view._version = view.counted = 0
        view.whole, view.location, view._node = base, location, _UNASKED
        return view

    @property
    def node(self) -> Node:
        """The value now."""
        node, base = self._node, self.whole
        if base is None:
            return node if self.elements is None else self.write_elements()
        now = base.node
        if not node.inputs or node.inputs[0] is not now:
            place = self.location
            spec = graph.Spec(place["shape"], now.spec.dtype)
            flows = now.requires and graph.thread_state.grad
            self._node = node = Node(packing.piece, (now,), place, spec, flows)
        return node

    def count_write(self) -> None:
        """Notes a write of an element, which `elements` has."""
        self._version += 1
        self.counted += 1

    def write_elements(self) -> Node:
        """The value now, with the elements that wait to be written."""
        with _element_lock:
            elements = self.elements
            if elements is not None:
                self._node = elements.written(self._node, self.device)
                self.elements = None
            return self._node

    def forget_piece(self) -> None:
        """A part makes its node anew when it is asked for it again."""
        if self.whole is not None:
            self._node = _UNASKED

    @property
    def version(self) -> int:
        """How often it was written."""
        base = self.whole
        return self._version if base is None else self._version + base.version

    def replace(self, node: Node) -> None:
        """Makes `node` the value of a storage of its own, and tells nobody."""
        self._node, self.elements = node, None
        self._version += 1

    def write(self, node: Node) -> None:
        """Makes `node` the value. Saved copies of the old value are stale from now on."""
        if used.observed and thread_state.observer is not None and thread_state.observer.shows_copies_of(self):
            self.write(node)  # Its class is another one now.
            return
        if self.whole is not None:
            if used.observed and thread_state.observer is not None:
                thread_state.observer.moves(self)
                (apart if self in left else left).add(self)
            self.leave(self.node)
        if used.observed and thread_state.observer is not None:
            thread_state.observer.overwrites(self, self._node)
            if node.buffer is not None:  # Another value's memory: each run of the step copies what is there then.
                node = pointwise.copy(node)
        if node.requires is not self._node.requires:
            changed()
        walk.overwrite(self._node)
        self.replace(node)
        if graph.used.origins and graph.thread_state.origins is not None:
            graph.thread_state.origins.wrote(self)
        if node.buffer is None:
            self.wait()
        else:
            self.settle(node)

    def claim(self) -> None:
        """Has a node of its own from now on, where it shared that of an equal value: a step reads it from here."""
        if self.whole is not None:
            self.whole.claim()
            self._node = self.node  # Also forgets how an earlier value of the whole was computed.
            return
        node = self.node
        if node.buffer is not None and not node.inputs and getattr(node, "storage", lambda: self)() is not self:
            self.replace(graph.data(node.spec, node.buffer))
            self._node.storage = weakref.ref(self)

    def wait(self) -> None:
        """Has the value computed with what this thread submits next."""
        queue = state.default.local.queues[self.device]
        if self.queue is not queue:
            if self.queue is not None:
                self.leave_queue()
            self.queue = queue
            queue.add(self)

    def leave_queue(self) -> None:
        """Waits no longer, for now."""
        queue = self.queue
        if queue is not None:
            self.queue = None
            queue.storages.pop(id(self), None)

    def settle(self, node: Node) -> None:
        """Takes the buffer of `node` as home, if that is the value still."""
        with state.default.lock:
            if self._node is node:
                self.take(node)

    def take(self, node: Node) -> None:
        """The same for a node that is the value. The lock is held."""
        node.storage = weakref.ref(self)
        home, buffer = self.home, node.buffer
        if buffer is not home:
            if home is not None:
                home.left_by(self)
            buffer.held_by(self)
            self.home = buffer

    def move_into(self, base: Storage, location: graph.Attrs) -> None:
        """From now on the value, which stays what it is, is kept as a piece of the value of `base`."""
        if used.observed and thread_state.observer is not None:
            thread_state.observer.moves(self)
        changed()
        self.leave_queue()
        with state.default.lock:
            self._version = self.version + 1 - base.version  # What tensors know of the old node is of no use now.
            held = [self._node]
            self.location, self.whole = location, base
            self._node = _UNASKED
            if self.home is not None:
                self.home.left_by(self)
                self.home = None
        walk.let_go(held)

    def leave(self, node: Node) -> None:
        """A part becomes a storage of its own with the value `node`."""
        changed()
        with state.default.lock:
            self._version = self.version
            self._node, self.whole = node, None

    def place(self, buffer: Buffer) -> Buffer:
        """What holds a new value: a storage whose memory stays has it there."""
        return buffer

    def renew(self, buffer: Buffer) -> None:
        """Has the value in `buffer` from now on, which a run made. The lock is held."""
        before = self.node
        walk.overwrite(before)
        if self.whole is not None:
            self.leave(before)
        self._node = node = graph.data(before.spec, buffer)
        self._version += 1
        self.counted += 1
        self.take(node)

    if sys.platform == "emscripten":  # Elsewhere Python copes, and it loses interrupts that come in finalisers.

        def __del__(self) -> None:
            node: Node | None = getattr(self, "_node", None)  # None where making it failed.
            if node is not None and node.inputs and walk is not None:  # Modules are taken apart at exit.
                held = [node]
                del node
                del self._node
                walk.let_go(held)


def whole_of(storage: Storage) -> Storage:
    """The storage that has the memory of this one."""
    return storage if storage.whole is None else storage.whole
