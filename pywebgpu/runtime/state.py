"""What the runtime remembers between calls, as fields of one object: pending work, Programs that are ready, counts."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from typing import Any
from weakref import ref

from pywebgpu.devices.base import Device


class Runtime:
    """The state of one runtime. Nothing else in this package outlives a call, so a new one knows nothing.

    pending: for each device the storages, by id, whose value is still to be computed.
    recorded: tensors made and written since the device's last submit.
    programs: Programs that were loaded, with the device's form of each, the least recently used first.
    """

    __slots__ = ("counters", "pending", "programs", "recorded")

    def __init__(self) -> None:
        self.pending: dict[Device, dict[int, ref[Any]]] = {}
        self.recorded: defaultdict[Device, int] = defaultdict(int)
        self.programs: OrderedDict[Any, Any] = OrderedDict()
        self.counters = {"program_hits": 0, "program_misses": 0, "stored_hits": 0, "stored_misses": 0}


default = Runtime()  # Looked up at each use: a test may put another one here.
