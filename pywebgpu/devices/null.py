"""No GPU: compiles everything, runs nothing, and refuses to give data back. For tests of the compiler."""

from collections.abc import Sequence
from typing import Any

from pywebgpu.devices.base import Buffer, check_supported
from pywebgpu.errors import DeviceError
from pywebgpu.graph.ir import Spec
from pywebgpu.kernels.kernel import Limits
from pywebgpu.program.program import Program, Target


class NullDevice:
    """Counts what a WebGPU device would do. `loaded` holds every Program that it was given."""

    name = "null"

    def __init__(self, limits: Limits | None = None) -> None:
        self.target = Target(wgsl=True, limits=limits or Limits())
        self.loaded: list[Program] = []
        self.counters = dict.fromkeys(
            ("dispatches", "submits", "buffers_created", "pipelines_created", "bind_groups_created"), 0
        )
        self.counters |= {"live_bytes": 0, "live_buffers": 0, "peak_bytes": 0, "ffi_calls": 0}

    def upload(self, data: Any, spec: Spec) -> Buffer:
        check_supported(spec.dtype, self.name)
        return self._new(spec)

    def download(self, buffer: Buffer, spec: Spec) -> bytes:
        raise DeviceError("the null device computes nothing, so it has nothing to download")

    def load(self, program: Program) -> Program:
        self.loaded.append(program)
        self.counters["pipelines_created"] += len(program.kernels)
        return program

    def run(
        self, loaded: Program, inputs: Sequence[Buffer], numbers: Sequence[float], outputs: Sequence[Buffer | None]
    ) -> list[Buffer]:
        self.counters["dispatches"] += len(loaded.steps)
        self.counters["submits"] += 1
        made: dict[int, Buffer] = {}
        for slot, given in zip(loaded.outputs, outputs, strict=True):
            if slot not in made:
                made[slot] = given or self._new(loaded.slots[slot].spec)
        return [made[slot] for slot in loaded.outputs]

    def free(self, handle: Any, nbytes: int) -> None:
        self.counters["live_bytes"] -= nbytes
        self.counters["live_buffers"] -= 1

    def synchronize(self) -> None: ...

    def close(self) -> None: ...

    def _new(self, spec: Spec) -> Buffer:
        nbytes = 4
        for n in spec.shape:
            nbytes *= n
        counters = self.counters
        counters["live_bytes"] += max(4, nbytes)
        counters["live_buffers"] += 1
        counters["peak_bytes"] = max(counters["peak_bytes"], counters["live_bytes"])
        return Buffer(self, None, max(4, nbytes))


def open_device(index: int = 0) -> NullDevice:
    return NullDevice()
