"""How long the steps of Programs took, beside what they are for."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pywebgpu.errors import PywebgpuError
from pywebgpu.inspector.plans import Plan, Plans
from pywebgpu.ir.graph import thread_state

if TYPE_CHECKING:
    from pywebgpu.devices.base import Device
    from pywebgpu.kernels.target import Target


class TimedPlans(Plans):
    """Plans, whose runs are timed on their devices."""

    def __init__(self, target: Target | None = None, *, lines: bool = False) -> None:
        super().__init__(target, lines=lines)
        self.timed: list[Device] = []

    def runs_on(self, device: Device) -> None:
        self.time(device)

    def time(self, device: Device) -> None:
        """Times what runs on a device from now on."""
        if not any(device is known for known in self.timed):
            self.timed.append(device)
            device.time(True)

    def with_seconds(self) -> tuple[Plan, ...]:
        """All plans, with the seconds of their steps where the device has a clock and Python can wait for it."""
        sums: dict[int, list[float]] = {}
        for device in self.timed:
            try:
                timings = device.timings() if device.has_clock and device.target.wgsl else []
            except PywebgpuError:  # It cannot wait here.
                timings = []
            for timing in timings:
                spans = [1e-9 * (end - start) for start, end in timing.spans]
                plan = self.of(timing.program)
                if plan is not None and len(spans) == len(plan.steps):
                    before = sums.get(id(plan), [0.0] * len(spans))
                    sums[id(plan)] = [a + b for a, b in zip(before, spans, strict=True)]
        return tuple(replace(plan, seconds=tuple(sums.get(id(plan), ()))) for plan in self)


def is_timed() -> bool:
    """Whether somebody times what runs: one at a time can."""
    watchers = thread_state.origins.watchers if thread_state.origins else []
    return any(isinstance(records, TimedPlans) for records in watchers)
