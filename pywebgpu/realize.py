"""Graph -> values: finds or compiles the Program, runs it, hangs the buffers on the nodes.

A Storage names the node that is its current value. Whatever live storages of a device still wait for goes into one
Program: forward, backward and update of an ordinary loop are one submit.
"""

from __future__ import annotations

import gc
import os
import weakref
from collections import OrderedDict, defaultdict
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from math import prod
from typing import Any

from pywebgpu import devices, stored
from pywebgpu.devices.base import Buffer, Device
from pywebgpu.errors import CaptureError, PywebgpuError
from pywebgpu.gradient import backward
from pywebgpu.graph import ir, key, walk
from pywebgpu.graph.ir import Node
from pywebgpu.live import plain, recorder
from pywebgpu.ops import indexing, movement, packing, pointwise
from pywebgpu.program import compile as compiler
from pywebgpu.settings import settings

PROGRAMS = 512  # programs kept, the least recently used goes first

_programs: OrderedDict[Any, Any] = OrderedDict()
_pending: dict[Device, dict[int, weakref.ref[Storage]]] = {}
counters = {"program_hits": 0, "program_misses": 0}
recorded: defaultdict[Device, int] = defaultdict(int)  # tensors made and written since the device's last submit


class Storage:
    """What a tensor and its views share: the node that is the value now, and how often it was written.

    home: the buffer of an earlier value, kept so that a write in place may go there.
    whole, place: of a `Part` alone.
    """

    __slots__ = ("__weakref__", "device", "home", "node", "place", "version", "whole")

    whole: Storage
    place: ir.Attrs

    def __init__(self, node: Node, device: Device) -> None:
        self.node, self.device = node, device
        self.version = 0
        self.home: Buffer | None = None
        if recorder.tape is not None:
            recorder.tape.storages.append(weakref.ref(self))
        if ir.recording.trace is not None:
            ir.recording.trace.made(self)
        if node.buffer is None:
            _wait(self)
        else:
            self._settle()

    @classmethod
    def empty(cls, spec: ir.Spec, device: Device) -> Storage:
        """One whose first value a run will give."""
        made = cls.__new__(cls)
        made.node, made.device, made.version, made.home = Node(ir.DATA, (), ir.NO_ATTRS, spec), device, 0, None
        return made

    def write(self, node: Node) -> None:
        """Makes `node` the value. Saved copies of the old value are stale from now on."""
        if recorder.tape is not None:
            recorder.tape.begun.setdefault(id(self), (self, self.node))
            if node.buffer is not None:  # Another value's memory: each run of the step copies what is there then.
                node = pointwise.copy(node)
        self.node.stale = True
        self.node = node
        self.version += 1
        if ir.recording.trace is not None:
            ir.recording.trace.wrote(self)
        if node.buffer is None:
            _wait(self)
        else:
            self._settle()

    def claim(self) -> None:
        """Has a node of its own from now on, where it shared that of an equal value: a step reads it from here."""
        node = self.node
        if node.buffer is not None and not node.inputs and getattr(node, "storage", lambda: self)() is not self:
            self.node = ir.data(node.spec, node.buffer)
            self.node.storage = weakref.ref(self)
            self.version += 1

    def _settle(self) -> None:
        """Takes the node's buffer as home."""
        self.node.storage = weakref.ref(self)
        buffer = self.node.buffer
        if buffer is not self.home:
            if self.home is not None:
                self.home.holders -= 1
            buffer.holders += 1
            self.home = buffer

    def __del__(self) -> None:
        if self.home is not None:
            self.home.holders -= 1
        waiting = _pending.get(self.device)
        if waiting is not None:
            waiting.pop(id(self), None)
        held = [self.node]
        del self.node
        walk.let_go(held)


_node, _version = Storage.__dict__["node"], Storage.__dict__["version"]


class Part(Storage):
    """A storage whose value is a piece of another's, and changes with it: see `move`. A write of its own ends that."""

    __slots__ = ()

    @property
    def node(self) -> Node:  # type: ignore[override]
        own: Node = _node.__get__(self)
        now = self.whole.node
        if not own.inputs or own.inputs[0] is not now:
            own = packing.piece(now, **self.place)
            _node.__set__(self, own)
        return own

    @property
    def version(self) -> int:  # type: ignore[override]
        return self.whole.version + int(_version.__get__(self))

    def write(self, node: Node) -> None:
        if recorder.tape is not None:
            recorder.tape.moved.append(weakref.ref(self))
        self.leave(self.node)
        self.write(node)

    def claim(self) -> None:
        """Also forgets how an earlier value of the whole was computed."""
        self.whole.claim()
        _node.__set__(self, self.node)

    def leave(self, node: Node) -> None:
        """Becomes a storage of its own with the value `node`."""
        recorder.changes += 1
        version = self.version
        self.__class__ = Storage  # type: ignore[assignment]
        _node.__set__(self, node)
        _version.__set__(self, version)
        del self.whole

    def __del__(self) -> None:
        held = [_node.__get__(self)]
        _node.__delete__(self)
        walk.let_go(held)


def whole_of(storage: Storage) -> Storage:
    """The storage that has the memory of this one."""
    return storage.whole if isinstance(storage, Part) else storage


def move(storage: Storage, whole: Storage, place: ir.Attrs) -> None:
    """From now on the value of `storage`, which stays what it is, is kept as a piece of the value of `whole`."""
    if recorder.tape is not None:
        recorder.tape.moved.append(weakref.ref(storage))
    recorder.changes += 1
    version = storage.version + 1 - whole.version  # What tensors know of the old node is no longer to be used.
    if type(storage) is Storage and storage.home is not None:
        storage.home.holders -= 1
        storage.home = None
    _pending.get(storage.device, {}).pop(id(storage), None)
    held = [_node.__get__(storage)]
    storage.whole, storage.place = whole, place
    storage.__class__ = Part
    _node.__set__(storage, packing.piece(whole.node, **place))
    _version.__set__(storage, version)
    walk.let_go(held)


def _wait(storage: Storage) -> None:
    waiting = _pending.setdefault(storage.device, {})
    waiting[id(storage)] = weakref.ref(storage)


def record(device: Device) -> None:
    """Counts one more recorded value: a loop which reads nothing must not grow for ever."""
    recorded[device] += 1
    if recorded[device] > settings.pending:
        submit(device)


def clear() -> None:
    """Forgets all compiled programs."""
    _programs.clear()


def forget(device: Device) -> None:
    """Drops what was compiled for a device that is gone, and what waits to run on it."""
    for found in [found for found in _programs if found[0] is device]:
        del _programs[found]
    _pending.pop(device, None)
    recorded.pop(device, None)
    recorder.changes += 1  # Captured steps look whether they can still run.


def _leave() -> None:
    """In a forked process, which can reach no driver of its parent."""
    for device in devices.leave():
        forget(device)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave)


def submit(device: Device) -> None:
    """Queues everything that live storages of the device wait for. Waits for nothing; not while a step is captured."""
    if recorder.tape is None:
        with ir.recording.span("run", device.name):
            submit_now(device)


@dataclass(frozen=True, slots=True)
class Run:
    """A Program that ran: its leaves, and the storages that took its outputs (an output may have none)."""

    device: Device
    program: Any
    loaded: Any
    data: list[Node]
    numbers: list[Node]
    outputs: list[list[Storage]]


def submit_now(device: Device, *, dry: bool = False) -> Run | None:
    """Queues everything that live storages of the device wait for. None where nothing does.

    dry: the Program is found or compiled and loaded, and does not run.
    """
    recorded[device] = 0
    waiting = _pending.get(device)
    if not waiting:
        return None
    found = [storage for ref in list(waiting.values()) if (storage := ref()) is not None]
    waiting.clear()
    storages: list[Storage] = []
    roots: dict[int, Node] = {}
    for storage in found:
        if storage.node.buffer is None:
            roots[id(storage.node)] = storage.node
            storages.append(storage)
        else:
            storage._settle()
    for node in backward.saved_nodes(list(roots.values())):
        roots.setdefault(id(node), node)
    if not roots:
        return None
    try:
        done = _run(device, list(roots.values()), storages, dry=dry)
    except (PywebgpuError, RuntimeError, IndexError) as error:
        if not device.is_gone:
            _run_apart(device, storages)
        raise error
    except BaseException:
        for storage in storages:
            _wait(storage)
        raise
    for storage in () if dry else storages:
        storage._settle()
    return done


def _run_apart(device: Device, storages: list[Storage]) -> None:
    """Computes what can be computed after a Program failed, value by value.

    A value that fails again is dropped from the queue: its error was raised once, and again by whoever reads it.
    """
    for storage in storages:
        if storage.node.buffer is None:
            with suppress(PywebgpuError, RuntimeError, IndexError):
                _run(device, [storage.node], [storage], dry=False)
        if storage.node.buffer is not None:
            storage._settle()


def _run(device: Device, roots: list[Node], storages: list[Storage], *, dry: bool) -> Run:
    order = walk.toposort(roots)
    data, numbers = compiler.leaves(order)
    place = {id(root): at for at, root in enumerate(roots)}
    outputs: list[Buffer | None] = [None] * len(roots)
    leaf_of = {id(node.buffer): at for at, node in enumerate(data)}
    written = []
    takers: list[list[Storage]] = [[] for _ in roots]
    for storage in storages:
        home, at = storage.home, place[id(storage.node)]
        takers[at].append(storage)
        if (
            home is not None
            and home.holders == 1
            and outputs[at] is None
            and home.nbytes == _bytes(device, storage.node)
        ):
            outputs[at] = home
            if id(home) in leaf_of:
                written.append((at, leaf_of[id(home)]))
    program, loaded = _load(device, order, roots, tuple(written))
    done = Run(device, program, loaded, data, numbers, takers)
    if dry:
        return done
    for at, leaf in written:
        if (at, leaf) not in program.written:
            outputs[at] = None
    buffers = device.run(loaded, [node.buffer for node in data], [plain(node.buffer) for node in numbers], outputs)
    given: set[int] = set()
    for root, buffer in zip(roots, buffers, strict=True):
        buffer.holders += id(buffer) in given  # Equal values share it for good, so no write in place may go there.
        given.add(id(buffer))
        root.stale = walk.is_stale(root)  # A view of what was overwritten stays known as one.
        root.buffer = buffer
        if not root.requires or root.freed:
            root.inputs = ()
    return done


def run_again(
    run: Run, inputs: list[Buffer], numbers: list[float], outputs: list[Buffer | None], takers: list[list[Storage]]
) -> None:
    """Runs a Program once more and hands its results to the storages of `takers`."""
    if ir.recording.trace is not None:
        ir.recording.trace.again(run.device, run.program)
    buffers = run.device.run(run.loaded, inputs, numbers, outputs)
    for buffer, storages in zip(buffers, takers, strict=True):
        for storage in storages:
            before = storage.node
            before.stale = True
            if isinstance(storage, Part):
                storage.leave(before)
            storage.node = ir.data(before.spec, buffer)
            storage.version += 1
            storage._settle()


def _bytes(device: Device, node: Node) -> int:
    size = 4 if device.target.wgsl else node.spec.dtype.itemsize
    for n in node.spec.shape:
        size *= n
    return max(4, size) if device.target.wgsl else size


def _load(device: Device, order: list[Node], roots: list[Node], written: tuple[tuple[int, int], ...]) -> Any:
    found = (device, key.structure(order, roots), written)
    loaded = _programs.get(found)
    if loaded is None:
        counters["program_misses"] += 1
        with ir.recording.span("compile", "compile"):
            program = _program(device, found[1], roots, written)
        loaded = (program, device.load(program))
        _programs[found] = loaded
        if len(_programs) > PROGRAMS:
            _programs.popitem(last=False)
    else:
        counters["program_hits"] += 1
        _programs.move_to_end(found)
    if ir.recording.trace is not None:
        ir.recording.trace.loading(device, loaded[0], roots, written)
    return loaded


def _program(device: Device, structure: key.Structure, roots: list[Node], written: tuple[tuple[int, int], ...]) -> Any:
    """From an earlier process, or compiled now. Where somebody wants to see the passes, they run."""
    file = None if settings.debug or ir.recording.trace is not None else stored.find(structure, device.target, written)
    program = None if file is None else stored.load(file)
    if program is None:
        was_on = gc.isenabled()
        gc.disable()  # It makes much and no cycles; a collection this deep in calls overflows the stack of a browser.
        try:
            program = compiler.compile_graph(tuple(roots), device.target, written)
        finally:
            if was_on:
                gc.enable()
        if file is not None:
            stored.save(program, file)
    return program


def _force(storage: Storage) -> None:
    tape = recorder.tape
    if tape is not None and not (storage.node.buffer is not None and any(ref() is storage for ref in tape.storages)):
        raise CaptureError(
            "a value is read on the host while a compiled step is captured: the step runs as one Program, whose values "
            "are there when it is over. Return the tensor, or register it with pywebgpu.capture(name, tensor)"
        )
    if storage.node.buffer is None:
        _wait(storage)
        submit(storage.device)


def _alone(storage: Storage) -> Storage:
    """A storage with a buffer that holds this value and no other. All parts of one shape share a Program for it."""
    if not isinstance(storage, Part):
        return storage
    _force(storage.whole)
    shape = storage.place["shape"]
    cut = {"starts": (storage.place["start"],), "sizes": (prod(shape),), "steps": (1,)}
    node = movement.reshape(indexing.slice_of_data(storage.whole.node, **cut), shape=shape)
    return Storage(pointwise.copy(node), storage.device)


def read(storage: Storage) -> bytes:
    """The bytes of a storage's value. Waits for the device."""
    storage = _alone(storage)
    _force(storage)
    return storage.device.download(storage.node.buffer, storage.node.spec)


async def read_async(storage: Storage) -> bytes:
    """As read, also where Python cannot wait. Only a device behind the bridge has to be awaited."""
    storage = _alone(storage)
    _force(storage)
    download = getattr(storage.device, "download_async", None)
    if download is None:
        return storage.device.download(storage.node.buffer, storage.node.spec)
    found: bytes = await download(storage.node.buffer, storage.node.spec)
    return found


def live(device: Device) -> Iterable[Storage]:
    """Storages of the device that wait for their value."""
    return [s for ref in _pending.get(device, {}).values() if (s := ref()) is not None]


def waiting() -> list[Device]:
    """Devices with work that is not queued yet."""
    return [device for device in _pending if live(device)]
