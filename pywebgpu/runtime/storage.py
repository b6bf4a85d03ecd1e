"""What a tensor and its views share: the value now, and where it is.

Apart from the executor because whatever writes needs it, and only what reads or queues needs Programs.
"""

from __future__ import annotations

import weakref
from typing import Any

from pywebgpu.devices.base import Buffer, Device
from pywebgpu.graph import ir, walk
from pywebgpu.graph.ir import Node
from pywebgpu.ops import packing, pointwise
from pywebgpu.runtime import state
from pywebgpu.step_capture.capture import recorder


class Storage:
    """A value, how often it was written, and its location, which is one of three.

    - Pending: `node` is still to be computed. `home` may be an earlier value's buffer: a write in place goes there.
    - A buffer of its own: `node.buffer`, which is `home`.
    - A part of a flat storage: `whole`, at `place` (see `move_into`). `node` and `version` follow those of `whole`, and
      their slots are empty, so that only a part pays for being one. A write of its own ends that.
    """

    __slots__ = ("__weakref__", "_ahead", "_piece", "device", "home", "node", "place", "version", "whole")

    node: Node
    version: int
    whole: Storage | None
    place: ir.Attrs
    _ahead: int  # of a part: its version less that of the flat storage
    _piece: Node  # of a part: its node when it was last asked for

    def __init__(self, node: Node, device: Device) -> None:
        self.node, self.device = node, device
        self.version = 0
        self.home: Buffer | None = None
        self.whole = None
        if recorder.capture is not None:
            recorder.capture.storages.append(weakref.ref(self))
        if ir.recording.trace is not None:
            ir.recording.trace.made(self)
        if node.buffer is None:
            wait(self)
        else:
            self.settle()

    @classmethod
    def empty(cls, spec: ir.Spec, device: Device) -> Storage:
        """One whose first value a run will give."""
        made = cls.__new__(cls)
        made.node, made.device, made.version = Node(ir.DATA, (), ir.NO_ATTRS, spec), device, 0
        made.home = made.whole = None
        return made

    @classmethod
    def part_of(cls, whole: Storage, place: ir.Attrs) -> Storage:
        """A new part of a flat storage."""
        made = cls.__new__(cls)
        made.device, made.home, made.whole, made.place = whole.device, None, whole, place
        made._ahead, made._piece = 0, packing.piece(whole.node, **place)
        return made

    def __getattr__(self, name: str) -> Any:
        """The node and the version of a part."""
        whole = self.whole if name in ("node", "version") else None
        if whole is None:
            raise AttributeError(f"Storage has no {name!r}")
        if name == "version":
            return whole.version + self._ahead
        piece, now = self._piece, whole.node
        if not piece.inputs or piece.inputs[0] is not now:
            self._piece = piece = packing.piece(now, **self.place)
        return piece

    def write(self, node: Node) -> None:
        """Makes `node` the value. Saved copies of the old value are stale from now on."""
        if self.whole is not None:
            if recorder.capture is not None:
                recorder.capture.moved.append(weakref.ref(self))
            self.leave(self.node)
        if recorder.capture is not None:
            recorder.capture.begun.setdefault(id(self), (self, self.node))
            if node.buffer is not None:  # Another value's memory: each run of the step copies what is there then.
                node = pointwise.copy(node)
        self.node.stale = True
        self.node = node
        self.version += 1
        if ir.recording.trace is not None:
            ir.recording.trace.wrote(self)
        if node.buffer is None:
            wait(self)
        else:
            self.settle()

    def claim(self) -> None:
        """Has a node of its own from now on, where it shared that of an equal value: a step reads it from here."""
        if self.whole is not None:
            self.whole.claim()
            self._piece = self.node  # Also forgets how an earlier value of the whole was computed.
            return
        node = self.node
        if node.buffer is not None and not node.inputs and getattr(node, "storage", lambda: self)() is not self:
            self.node = ir.data(node.spec, node.buffer)
            self.node.storage = weakref.ref(self)
            self.version += 1

    def settle(self) -> None:
        """Takes the node's buffer as home."""
        self.node.storage = weakref.ref(self)
        buffer = self.node.buffer
        home = self.home
        if buffer is not home:
            if home is not None:
                home.holders -= 1
            buffer.holders += 1
            self.home = buffer

    def move_into(self, whole: Storage, place: ir.Attrs) -> None:
        """From now on the value, which stays what it is, is kept as a piece of the value of `whole`."""
        if recorder.capture is not None:
            recorder.capture.moved.append(weakref.ref(self))
        recorder.changes += 1
        ahead = self.version + 1 - whole.version  # What tensors know of the old node is no longer to be used.
        if self.whole is None:
            if self.home is not None:
                self.home.holders -= 1
                self.home = None
            held = [self.node]
            del self.node, self.version
        else:
            held = [self._piece]
        state.default.pending.get(self.device, {}).pop(id(self), None)
        self._piece = packing.piece(whole.node, **place)
        self._ahead, self.place, self.whole = ahead, place, whole
        walk.let_go(held)

    def leave(self, node: Node) -> None:
        """A part becomes a storage of its own with the value `node`."""
        recorder.changes += 1
        self.version = self.version
        self.node, self.whole = node, None
        del self._piece, self.place

    def __del__(self) -> None:
        if self.whole is not None:
            held = [self._piece]
            del self._piece
        else:
            if self.home is not None:
                self.home.holders -= 1
            waiting = state.default.pending.get(self.device)
            if waiting is not None:
                waiting.pop(id(self), None)
            held = [self.node]
            del self.node
        walk.let_go(held)


def whole_of(storage: Storage) -> Storage:
    """The storage that has the memory of this one."""
    return storage if storage.whole is None else storage.whole


def wait(storage: Storage) -> None:
    """Has the storage's value computed with what is submitted next."""
    waiting = state.default.pending.setdefault(storage.device, {})
    waiting[id(storage)] = weakref.ref(storage)
