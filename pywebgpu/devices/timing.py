"""How long the steps of Programs take on a device: what is kept of a run, and the clock of a wgpu device.

Apart from the devices because profiling changes how a run is encoded: a pass a step, each between two timestamps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pywebgpu.compiler.program import Program

if TYPE_CHECKING:
    from wgpu import GPUCommandEncoder, GPUDevice

Spans = list[tuple[int, int]]
QUERIES = 4096  # that WebGPU allows in one set
USAGES = "QUERY_RESOLVE | COPY_SRC"


@dataclass(frozen=True, slots=True, eq=False)
class Timing:
    """One run of a Program. `start` and `end` are when the host began to queue it and had done so, in seconds.

    spans: for each step its start and end by the device's own clock, in nanoseconds. `whole`: there is no such clock,
    and one span says when the host began and when it knew that all was done.
    """

    program: Program
    start: float
    end: float
    spans: Spans
    whole: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Waiting:
    """The same while the device still runs: `read` waits for the spans."""

    program: Program
    start: float
    end: float
    read: Callable[[], Spans]
    whole: bool

    def finish(self) -> Timing:
        return Timing(self.program, self.start, self.end, self.read(), self.whole)


class Stamps:
    """Timestamps around each step of one run on a wgpu device with the feature timestamp-query."""

    def __init__(self, gpu: GPUDevice, steps: int, period: float, counters: dict[str, int]) -> None:
        """period: nanoseconds of a tick. counters: the device's."""
        self._gpu, self._period, self._counters = gpu, period, counters
        counts = [min(QUERIES, 2 * steps - start) for start in range(0, 2 * steps, QUERIES)]
        self._sets = [gpu.create_query_set(type="timestamp", count=count) for count in counts]
        self._results = [gpu.create_buffer(size=8 * count, usage=USAGES) for count in counts]
        counters["ffi_calls"] += 2 * len(counts)

    def around(self, step: int) -> dict[str, Any]:
        """The timestamp_writes of the pass that is this step."""
        set_index, index = divmod(2 * step, QUERIES)
        return {
            "query_set": self._sets[set_index],
            "beginning_of_pass_write_index": index,
            "end_of_pass_write_index": index + 1,
        }

    def resolve(self, encoder: GPUCommandEncoder) -> None:
        for queries, result in zip(self._sets, self._results, strict=True):
            encoder.resolve_query_set(queries, 0, result.size // 8, result, 0)
            self._counters["ffi_calls"] += 1

    def read(self) -> Spans:
        """Waits for the run."""
        self._counters["submits"] += len(self._results)  # wgpu-py's read_buffer copies by one of its own.
        self._counters["ffi_calls"] += 9 * len(self._results)
        ticks = [tick for result in self._results for tick in self._gpu.queue.read_buffer(result).cast("Q")]
        for thing in (*self._sets, *self._results):
            thing.destroy()
        times = [round(tick * self._period) for tick in ticks]
        return list(zip(times[::2], times[1::2], strict=True))
