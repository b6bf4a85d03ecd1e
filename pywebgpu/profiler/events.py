"""What was recorded, as events: a kernel that ran, or a span of the host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pywebgpu.compiler.program import Program, Words
from pywebgpu.devices.timing import Timing
from pywebgpu.inspector.plans import Plans, Step, bare
from pywebgpu.ir.origin import Origin, Span

UNKNOWN = Origin(phase="")


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that took time, in microseconds of the host's clock.

    device: where it ran; "" for a span of the host.  kind: kernel, program (where steps have no times), or a span's.
    """

    name: str
    kind: str
    device: str
    start: float
    time: float
    origin: Origin
    op: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)

    count = 1  # of how many calls it is

    @property
    def label(self) -> str:
        """For the host, what `record_function` or the optimizer is called."""
        return f"Optimizer.step#{self.name}.step" if self.kind == "optimizer" else self.name


@dataclass(frozen=True, slots=True)
class Sample:
    """What a device held at a moment: bytes of tensors, of what passes inside Programs."""

    device: str
    time: float
    live_bytes: int
    scratch_bytes: int


def of_host(spans: Sequence[Span]) -> list[Event]:
    return [
        Event(span.name, span.kind, "", 1e6 * span.start, 1e6 * (span.end - span.start), Origin(phase=span.phase))
        for span in spans
    ]


def of_device(device: str, timings: Sequence[Timing], plans: Plans) -> list[Event]:
    """An event a step, or one a run where steps have no times of their own."""
    timed = [timing for timing in timings if timing.spans]
    if not timed:
        return []
    # The device's clock starts anywhere; no run began before the host queued it.
    shift = max(1e9 * timing.start - timing.spans[0][0] for timing in timed)
    events: list[Event] = []
    for number, timing in enumerate(timed):
        if timing.whole:
            first, last = timing.spans[0]
            name = f"program of {len(timing.program.steps)} steps"
            events.append(Event(name, "program", device, first / 1e3, (last - first) / 1e3, UNKNOWN, "program"))
            continue
        plan = plans.of(timing.program) or bare(timing.program)
        for (first, last), step in zip(timing.spans, plan.steps, strict=True):
            start, took = (first + shift) / 1e3, max(0, last - first) / 1e3
            details = _details(step, plan.program) | {"run": number}
            events.append(Event(step.name, "kernel", device, start, took, step.origin, step.op, details))
    return events


def _details(step: Step, program: Program) -> dict[str, Any]:
    """program: that of the plan, whose slots the step names."""
    slots = [program.slots[slot] for slot in (*step.reads, *step.writes)]
    step_index: dict[str, Any] = {
        "ops": ", ".join(step.work),
        "shapes": [list(slot.spec.shape) for slot in slots if not isinstance(slot.spec, Words)],
        "bytes": sum(slot.nbytes for slot in slots),
    }
    return step_index if step.kernel is None else step_index | {"grid": list(step.kernel.grid)}
