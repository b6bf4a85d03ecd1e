"""Device cpu where NumPy is not installed, as in most browsers: it holds values, and computes none.

So `x.cpu().tolist()` works everywhere, and a state that was brought to the host can go back to a device. Once NumPy was
installed it computes, too, with the values that it holds.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from pywebgpu.compiler.program import Loaded, Program
from pywebgpu.devices import adapters
from pywebgpu.devices.base import Blocking, Buffer, Counting, host_target
from pywebgpu.devices.timing import Timing
from pywebgpu.errors import DeviceError
from pywebgpu.ir.graph import Spec

if TYPE_CHECKING:
    from pywebgpu.devices.base import Bytes


class CpuStorageDevice(Blocking, Counting):
    """Elements as bytes, in Python's memory."""

    name = "cpu"
    target = host_target()
    has_clock = False
    generation = 0
    is_gone = False

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.RLock()  # Where there is no NumPy there is one thread.
        self._counters = {"dispatches": 0, "submits": 0, "buffers_created": 0, "pipelines_created": 0, "live_bytes": 0}
        self._counters |= {"peak_bytes": 0, "live_buffers": 0, "ffi_calls": 0, "bind_groups_created": 0}
        self._counters["scratch_bytes"] = 0
        self._computing: Any = None  # the device that computes, once there is NumPy

    def upload(self, data: Bytes, spec: Spec) -> Buffer:
        held = bytes(data)
        self._take_back()
        counters = self._counters
        counters["live_bytes"] += len(held)
        counters["live_buffers"] += 1
        counters["peak_bytes"] = max(counters["peak_bytes"], counters["live_bytes"])
        buffer = Buffer(self, held, len(held))
        self._ends.watch(buffer, len(held))
        return buffer

    def download(self, buffer: Buffer, spec: Spec) -> bytes:
        if isinstance(buffer.handle, bytes):
            return buffer.handle
        found: bytes = self._computing.download(buffer, spec)
        return found

    def load(self, program: Program) -> Loaded:
        if self._computing is None:
            if find_spec("numpy") is None:
                trouble = adapters.problem()
                other = f"there is no other device ({trouble})" if trouble else "compute on webgpu"
                raise DeviceError(f"device cpu computes with NumPy, which is not installed; {other}, or install NumPy")
            self._computing = import_module("pywebgpu.devices.cpu").open_device()
        return program, self._computing.load(program)

    def run(
        self, loaded: Loaded, inputs: Sequence[Buffer], numbers: Sequence[float], outputs: Sequence[Buffer | None]
    ) -> list[Buffer]:
        program, actions = loaded
        for slot, buffer in zip(program.inputs, inputs, strict=True):
            if isinstance(buffer.handle, bytes):
                buffer.handle = self._computing.upload(buffer.handle, program.slots[slot].spec).handle
        found: list[Buffer] = self._computing.run(actions, inputs, numbers, outputs)
        return found

    def time(self, on: bool) -> None: ...

    def timings(self) -> list[Timing]:
        return []

    def synchronize(self) -> None: ...

    def reopen(self) -> None: ...

    def close(self) -> None: ...


def open_device(index: int = 0) -> CpuStorageDevice:
    return CpuStorageDevice()
