"""What devices have in common where Python can wait: all but those behind the bridge."""

from __future__ import annotations

import os
import sys
import threading
from math import prod
from typing import TYPE_CHECKING

from pywebgpu.kernels.kernel import Limits
from pywebgpu.kernels.target import Target
from pywebgpu.support.ends import Ends

if TYPE_CHECKING:
    from pywebgpu.devices.base import Buffer, Device
    from pywebgpu.devices.timing import Timing
    from pywebgpu.ir.graph import Spec
    from pywebgpu.kernels.kernel import Kernel

COUNTERS = (
    "dispatches", "submits", "buffers_created", "pipelines_created", "bind_groups_created", "ffi_calls",
    "live_bytes", "live_buffers", "peak_bytes", "scratch_bytes",
)  # fmt: skip


class Blocking:
    """A device for hosts where Python can always wait: its forms to await are done when they are called."""

    is_host = False
    computes = True
    has_values = True
    has_storages = True
    holds_all = True

    async def download_async(self: Device, buffer: Buffer, spec: Spec) -> bytes:
        return self.download(buffer, spec)

    async def timings_async(self: Device) -> list[Timing]:
        return self.timings()

    async def synchronize_async(self: Device) -> None:
        self.synchronize()

    async def reopen_async(self: Device) -> None:
        self.reopen()

    def zeros(self: Device, spec: Spec) -> Buffer:
        return self.upload(bytes(prod(spec.shape) * spec.dtype.itemsize), spec)

    def prepare(self, kernel: Kernel) -> None:
        """All is made by `load`."""

    def leave(self) -> bool:
        return False


class InProcess(Blocking):
    """A device that is a part of this process: it is always there, and what it is asked for is done at once."""

    generation = 0
    is_gone = False
    _timed: list[Timing] | None = None  # the runs since `time`

    def time(self, on: bool) -> None:
        """Whether the runs from now on are timed."""
        self._timed = [] if on else None

    def timings(self) -> list[Timing]:
        """The runs that were timed and not asked for yet."""
        timings, self._timed = self._timed or [], None if self._timed is None else []
        return timings

    def synchronize(self) -> None: ...

    def reopen(self) -> None: ...

    def close(self) -> None: ...


class Counting:
    """The counters of a device that takes back what its buffers left by `_take_back`."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._ends = Ends()
        self._counters = dict.fromkeys(COUNTERS, 0)

    @property
    def counters(self) -> dict[str, int]:
        with self.lock:
            self._take_back()
        return self._counters

    def _take_back(self) -> None:
        """Counts buffers that ended, which left their bytes. The lock is held."""
        for (nbytes,) in self._ends.take():
            self._counters["live_bytes"] -= nbytes
            self._counters["live_buffers"] -= 1


def host_target() -> Target:
    """Device cpu's, whose values may be as large as this machine's memory."""
    largest = sys.maxsize
    if sys.platform != "emscripten" and hasattr(os, "sysconf"):
        largest = min(largest, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return Target(wgsl=False, limits=Limits(buffer_bytes=largest))
