"""Steps on demand: this library's end of a comparison, in a page where Python waits for its turns."""

import json
from dataclasses import asdict

from pywebgpu import devices
from pywebgpu.bench import measure, workloads
from pywebgpu.bench.measure import Engine
from pywebgpu.bench.workloads import Step
from pywebgpu.step_capture.function import compile


class Turns:
    """Workloads that stand ready on device webgpu; `is_compiled` says whether each step is a captured one."""

    def __init__(self, *, is_compiled: bool) -> None:
        self.device = devices.open_device("webgpu")
        self._is_compiled = is_compiled
        self._ready: dict[str, tuple[Engine, Step]] = {}

    def build(self, name: str) -> None:
        engine, step = measure.prepare(workloads.WORKLOADS[name], self.device)
        self._ready[name] = engine, compile(step) if self._is_compiled else step

    def run(self, name: str, steps: int) -> str:
        """The next steps of a workload: JSON of a list of Samples."""
        engine, step = self._ready[name]
        return json.dumps([asdict(measure.one(step, engine)) for _ in range(steps)])

    @property
    def adapter(self) -> str:
        return measure.adapter(self.device) or ""
