"""Graph -> values: finds or compiles the Program, runs it, hangs the buffers on the nodes.

A Storage names the node that is its current value. Whatever live storages of a device still wait for goes into one
Program: forward, backward and update of an ordinary loop are one submit.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict, defaultdict
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from pywebgpu.devices.base import Buffer, Device
from pywebgpu.errors import PywebgpuError
from pywebgpu.gradient import backward
from pywebgpu.graph import key, walk
from pywebgpu.graph.ir import Node
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
    """

    __slots__ = ("__weakref__", "device", "home", "node", "version")

    def __init__(self, node: Node, device: Device) -> None:
        self.node, self.device = node, device
        self.version = 0
        self.home: Buffer | None = None
        if node.buffer is None:
            _wait(self)
        else:
            self._settle()

    def write(self, node: Node) -> None:
        """Makes `node` the value. Saved copies of the old value are stale from now on."""
        self.node.stale = True
        self.node = node
        self.version += 1
        if node.buffer is None:
            _wait(self)
        else:
            self._settle()

    def _settle(self) -> None:
        """Takes the node's buffer as home."""
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


def submit(device: Device) -> None:
    """Queues everything that live storages of the device wait for. Waits for nothing."""
    recorded[device] = 0
    waiting = _pending.get(device)
    if not waiting:
        return
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
        return
    try:
        _run(device, list(roots.values()), storages)
    except (PywebgpuError, RuntimeError, IndexError) as error:
        _run_apart(device, storages)
        raise error
    except BaseException:
        for storage in storages:
            _wait(storage)
        raise
    for storage in storages:
        storage._settle()


def _run_apart(device: Device, storages: list[Storage]) -> None:
    """Computes what can be computed after a Program failed, value by value.

    A value that fails again is dropped from the queue: its error was raised once, and again by whoever reads it.
    """
    for storage in storages:
        if storage.node.buffer is None:
            with suppress(PywebgpuError, RuntimeError, IndexError):
                _run(device, [storage.node], [storage])
        if storage.node.buffer is not None:
            storage._settle()


def _run(device: Device, roots: list[Node], storages: list[Storage]) -> None:
    order = walk.toposort(roots)
    data, numbers = compiler.leaves(order)
    place = {id(root): at for at, root in enumerate(roots)}
    outputs: list[Buffer | None] = [None] * len(roots)
    leaf_of = {id(node.buffer): at for at, node in enumerate(data)}
    written = []
    for storage in storages:
        home, at = storage.home, place[id(storage.node)]
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
    for at, leaf in written:
        if (at, leaf) not in program.written:
            outputs[at] = None
    buffers = device.run(loaded, [node.buffer for node in data], [node.buffer for node in numbers], outputs)
    given: set[int] = set()
    for root, buffer in zip(roots, buffers, strict=True):
        buffer.holders += id(buffer) in given  # Equal values share it for good, so no write in place may go there.
        given.add(id(buffer))
        root.stale = root.stale or walk.base(root).stale  # A view of what was overwritten stays known as one.
        root.buffer = buffer
        if not root.requires or root.freed:
            root.inputs = ()


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
        program = compiler.compile_graph(tuple(roots), device.target, written)
        loaded = (program, device.load(program))
        _programs[found] = loaded
        if len(_programs) > PROGRAMS:
            _programs.popitem(last=False)
    else:
        counters["program_hits"] += 1
        _programs.move_to_end(found)
    return loaded


def _force(storage: Storage) -> None:
    if storage.node.buffer is None:
        _wait(storage)
        submit(storage.device)


def read(storage: Storage) -> bytes:
    """The bytes of a storage's value. Waits for the device."""
    _force(storage)
    return storage.device.download(storage.node.buffer, storage.node.spec)


async def read_async(storage: Storage) -> bytes:
    """As read, also where Python cannot wait. Only a device behind the bridge has to be awaited."""
    _force(storage)
    download = getattr(storage.device, "download_async", None)
    if download is None:
        return storage.device.download(storage.node.buffer, storage.node.spec)
    found: bytes = await download(storage.node.buffer, storage.node.spec)
    return found


def live(device: Device) -> Iterable[Storage]:
    """Storages of the device that wait for their value."""
    return [s for ref in _pending.get(device, {}).values() if (s := ref()) is not None]
