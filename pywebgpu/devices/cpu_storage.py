"""Device cpu where NumPy is not installed, as in most browsers: it holds values, and the GPU computes with them.

So a program that makes its tensors on the host and moves its model runs everywhere, `x.cpu().tolist()` needs no
device, and a state that was brought to the host goes back. Where NumPy was installed by the time it first computes,
NumPy does; where there is no GPU either, it computes none.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from pywebgpu import devices
from pywebgpu.compiler.program import Loaded, Program
from pywebgpu.devices import adapters
from pywebgpu.devices.base import Buffer
from pywebgpu.devices.blocking import Blocking, Counting, host_target
from pywebgpu.devices.timing import Timing
from pywebgpu.errors import DeviceError
from pywebgpu.ir.graph import Spec

if TYPE_CHECKING:
    from pywebgpu.devices.base import Bytes, Device
    from pywebgpu.kernels.kernel import Kernel
    from pywebgpu.kernels.target import Target

ON_GPU = "device cpu computes on the GPU here, as NumPy is not installed; float64 it does not compute"


class CpuStorageDevice(Blocking, Counting):
    """Elements as bytes in Python's memory; what was computed with is a buffer of the device that computes."""

    name = "cpu"
    is_host = True
    has_clock = False

    def __init__(self) -> None:
        super().__init__()
        self._computing: Device | None = None

    @property
    def target(self) -> Target:
        computing = self._find_computing()
        return host_target() if computing is None else computing.target

    @property
    def generation(self) -> int:
        return 0 if self._computing is None else self._computing.generation

    @property
    def is_gone(self) -> bool:
        return self._computing is not None and self._computing.is_gone

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
        held = buffer.handle
        return held if isinstance(held, bytes) else held.device.download(held, spec)

    async def download_async(self, buffer: Buffer, spec: Spec) -> bytes:
        held = buffer.handle
        return held if isinstance(held, bytes) else await held.device.download_async(held, spec)

    def prepare(self, kernel: Kernel) -> None:
        if self._computing is not None:
            self._computing.prepare(kernel)

    def load(self, program: Program) -> Loaded:
        computing = self._find_computing()
        if computing is None:
            trouble = adapters.problem()
            other = f"there is no other device ({trouble})" if trouble else "compute on webgpu"
            raise DeviceError(f"device cpu computes with NumPy, which is not installed; {other}, or install NumPy")
        if computing.target.wgsl:
            warnings.warn(ON_GPU, stacklevel=2)  # Python's filters show it once.
        return program, computing.load(program)

    def run(
        self, loaded: Loaded, inputs: Sequence[Buffer], numbers: Sequence[float], outputs: Sequence[Buffer | None]
    ) -> list[Buffer]:
        program, actions = loaded
        computing = self._computing
        assert computing is not None  # It loaded the Program.
        lent = [
            _lent(buffer, computing, program.slots[slot].spec)
            for slot, buffer in zip(program.inputs, inputs, strict=True)
        ]
        written = [
            None if buffer is None else _lent(buffer, computing, program.slots[slot].spec)
            for slot, buffer in zip(program.outputs, outputs, strict=True)
        ]
        results = computing.run(actions, lent, numbers, written)
        return [
            Buffer(self, result, result.nbytes) if output is None else output
            for result, output in zip(results, outputs, strict=True)
        ]

    def time(self, on: bool) -> None: ...

    def timings(self) -> list[Timing]:
        return []

    def synchronize(self) -> None:
        if self._computing is not None:
            self._computing.synchronize()

    async def synchronize_async(self) -> None:
        if self._computing is not None:
            await self._computing.synchronize_async()

    def reopen(self) -> None:
        if self._computing is not None:
            self._computing.reopen()

    async def reopen_async(self) -> None:
        if self._computing is not None:
            await self._computing.reopen_async()

    def close(self) -> None: ...

    def _find_computing(self) -> Device | None:
        """The device that computes, once one can: it is chosen once, as values lie in its buffers then."""
        if self._computing is None:
            if find_spec("numpy") is not None:
                self._computing = import_module("pywebgpu.devices.cpu").open_device()
            else:
                with suppress(DeviceError):  # Also where Python cannot wait for a GPU that is still being opened.
                    self._computing = devices.open_device("webgpu")
        return self._computing


def _lent(buffer: Buffer, computing: Device, spec: Spec) -> Buffer:
    """The buffer of the device that computes, which is made of bytes when it is first asked for."""
    if isinstance(buffer.handle, bytes):
        buffer.handle = computing.upload(buffer.handle, spec)
    lent: Buffer = buffer.handle
    return lent


def open_device(index: int = 0) -> CpuStorageDevice:
    return CpuStorageDevice()
