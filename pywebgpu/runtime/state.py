"""What the runtime remembers between calls, as fields of one object: pending work, Programs that are ready, counts."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection
from typing import Any
from weakref import WeakSet, ref

from pywebgpu.devices.base import Device
from pywebgpu.ir.graph import Node

Samples = tuple[Collection[Node], ...]  # what stands for a sample of each vmap that runs


class Queue:
    """What one thread recorded for one device and did not submit: storages by id, and how many values since then.

    Of those that ended, `storages` has the dead references until `forget_ended`.
    """

    __slots__ = ("_owner", "_samples", "hurries", "recorded", "storages")

    def __init__(self, owner: ref[Any], samples: Samples = ()) -> None:
        self._owner, self._samples = owner, samples
        self.recorded = 0
        self.hurries: Any = None  # asked of each value whether it may not wait (see fixed_memory.py), for a while
        self.storages: dict[int, ref[Any]] = {}

    @property
    def stand_ins(self) -> frozenset[Node]:
        """What stands for values that will never be there."""
        return frozenset().union(*self._samples)

    def add(self, storage: object) -> None:
        """At the end, also where one that ended had the same id: programs are found by the order of what they give."""
        self.storages.pop(id(storage), None)
        self.storages[id(storage)] = ref(storage)

    def forget_ended(self) -> None:
        """Only for the thread that records here: another storage may have the id of one that ended."""
        for number in [number for number, storage in self.storages.items() if storage() is None]:
            del self.storages[number]

    @property
    def is_left(self) -> bool:
        """Whether its thread has ended."""
        return self._owner() is None

    @property
    def is_held(self) -> bool:
        """Whether its thread captures a step, whose work is its own."""
        owner = self._owner()
        return owner is not None and owner.is_held


class _Queues(dict[Device, Queue]):
    """The queues of one thread; they are listed for other threads, too."""

    def __init__(self, listed: dict[Device, list[Queue]], samples: Samples = ()) -> None:
        super().__init__()
        self._listed, self._samples = listed, samples
        self.is_held = False

    def apart(self, stand_ins: Collection[Node]) -> _Queues:
        """The queues of this thread while it records a function over stand-ins, which may become more: no other thread
        sees them."""
        return _Queues({device: [] for device in self._listed}, (*self._samples, stand_ins))

    def __missing__(self, device: Device) -> Queue:
        queue = self[device] = Queue(ref(self), self._samples)
        self._listed.setdefault(device, []).append(queue)
        return queue


class _Local(threading.local):
    """`queues`: those of the thread that asks."""

    def __init__(self, listed: dict[Device, list[Queue]]) -> None:
        self.queues = _Queues(listed)


class Runtime:
    """The state of one runtime. Nothing else in this package outlives a call, so a new one knows nothing.

    lock: held while work is collected, compiled and queued, and where storages change buffers; not while a read waits.
    local: `local.queues` are this thread's queues. queues: those of all threads.
    programs: Programs that were loaded, with the device's form of each, the least recently used first.
    failed: nodes whose value could not be computed.
    is_stored: Programs may be read from disk and stored there.
    """

    __slots__ = ("counters", "failed", "is_stored", "local", "lock", "programs", "queues")

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.queues: dict[Device, list[Queue]] = {}
        self.local = _Local(self.queues)
        self.programs: OrderedDict[Any, Any] = OrderedDict()
        self.failed: WeakSet[Node] = WeakSet()
        self.is_stored = True
        self.counters = {"program_hits": 0, "program_misses": 0, "stored_hits": 0, "stored_misses": 0}


default = Runtime()  # Looked up at each use: a test may put another one here.
