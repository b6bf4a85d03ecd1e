"""No GPU: compiles everything, runs nothing, and refuses to give data back. For tests of the compiler."""

from __future__ import annotations

import time
from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

import pywebgpu.compiler.driver  # noqa: F401 - here already when the first step needs it
from pywebgpu.compiler.program import Program
from pywebgpu.devices.base import Buffer, check_supported
from pywebgpu.devices.blocking import Counting, InProcess
from pywebgpu.devices.pool import Pool, Scratch
from pywebgpu.devices.timing import Timing
from pywebgpu.errors import DeviceError
from pywebgpu.ir.graph import Spec
from pywebgpu.kernels.kernel import Limits
from pywebgpu.kernels.target import Target

if TYPE_CHECKING:
    from pywebgpu.devices.base import Bytes

DESKTOP_BINDING = (2 << 30) - 4  # bytes that desktop adapters bind at once; WebGPU itself promises 128 MiB


class NullDevice(InProcess, Counting):
    """Counts what a WebGPU device would do. `loaded` holds every Program that it was given."""

    name = "null"
    computes = False
    holds_all = False

    def __init__(self, limits: Limits | None = None) -> None:
        super().__init__()
        self.target = Target(
            wgsl=True, limits=limits or Limits(binding_bytes=DESKTOP_BINDING, buffer_bytes=DESKTOP_BINDING)
        )
        self.has_clock = False
        self._scratch = Scratch(Pool(lambda size: None, lambda buffer: None))
        self.loaded: list[Program] = []

    def upload(self, data: Bytes, spec: Spec) -> Buffer:
        check_supported(spec.dtype, self)
        with self.lock:
            return self._new(spec)

    def download(self, buffer: Buffer, spec: Spec) -> bytes:
        raise DeviceError("the null device computes nothing, so it has nothing to download")

    def load(self, program: Program) -> Program:
        with self.lock:
            self.loaded.append(program)
            self._counters["pipelines_created"] += len(program.kernels)
            self._scratch.take({buffer: program.sizes[buffer] for buffer in program.scratch})
            self._counters["scratch_bytes"] = self._scratch.nbytes
            self._count_peak()
        return program

    def run(
        self, loaded: Program, inputs: Sequence[Buffer], numbers: Sequence[float], outputs: Sequence[Buffer | None]
    ) -> list[Buffer]:
        now = time.perf_counter()
        buffers: dict[int, Buffer] = {}
        with self.lock:
            self._counters["dispatches"] += len(loaded.steps)
            self._counters["submits"] += 1
            for slot, output in zip(loaded.outputs, outputs, strict=True):
                if slot not in buffers:
                    buffers[slot] = output or self._new(loaded.slots[slot].spec)
            if self._timed is not None:
                self._timed.append(Timing(loaded, now, time.perf_counter(), []))
        return [buffers[slot] for slot in loaded.outputs]

    def _new(self, spec: Spec) -> Buffer:
        self._take_back()
        nbytes = spec.dtype.format.room(prod(spec.shape))
        counters = self._counters
        counters["live_bytes"] += nbytes
        counters["live_buffers"] += 1
        self._count_peak()
        buffer = Buffer(self, None, nbytes)
        self._ends.watch(buffer, nbytes)
        return buffer

    def _count_peak(self) -> None:
        counters = self._counters
        counters["peak_bytes"] = max(counters["peak_bytes"], counters["live_bytes"] + counters["scratch_bytes"])


def open_device(index: int = 0) -> NullDevice:
    return NullDevice()
