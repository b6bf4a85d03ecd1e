"""Where the host's time of a step goes, and what one recorded op costs there.

A recorded op is a call that makes or writes a tensor's storage, or a gradient formula of the backward walk. Its time
runs from the end of the op before it, so a view counts with the op that follows, and so does what the program does in
between.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pywebgpu.bench.workloads import Step
from pywebgpu.ir import graph

if TYPE_CHECKING:
    from pywebgpu.nn.module import Module

STEPS = 9  # an odd number, so that a median is one of them


@dataclass(frozen=True, slots=True)
class Host:
    """One steady step on the host: medians over STEPS steps, and for an op the median over the step's ops, too.

    A compiled step records no op and looks for no Program: it is guards and the host program (record), and the run.

    record_ms: the program, its ops and gradients.  key_ms: walking the graph and finding its Program.  run_ms: queueing
    the Program and handing its results out.  dispatch_us: run_ms over the step's dispatches.
    """

    record_ms: float
    key_ms: float
    run_ms: float
    ops: int
    op_us: float
    dispatch_us: float


class Clock:
    """Stands where Origins do (see ir/origin.py), and notes only when things happened."""

    checks = False

    def __init__(self) -> None:
        self.ends = [time.perf_counter()]  # of the step's beginning or the last submit, then of each op
        self.ops: list[float] = []
        self.key = self.run = 0.0
        self._found = self._again = 0.0

    def made(self, storage: object) -> None:
        self.ends.append(time.perf_counter())

    wrote = made

    def gradient(self, node: object, part: object, input_index: int) -> None:
        self.ends.append(time.perf_counter())

    def failed(self, node: object) -> None: ...

    def loading(self, device: object, program: object, roots: object, written: object) -> None:
        self._found = time.perf_counter()

    def again(self, device: object, program: object) -> None:
        self._again = time.perf_counter()

    def compiled(self, program: object, values: Sequence[Any], steps: object) -> None: ...

    def carry(self, old: object, new: object) -> None: ...

    def call(self, module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> object:
        return module.forward(*args, **kwargs)

    @contextmanager
    def span(self, kind: str, name: str) -> Iterator[None]:
        if kind != "run":
            yield
            return
        start = self._found = time.perf_counter()
        if self._again:
            self.run += start - self._again
            self._again = 0.0
        self.close()
        yield
        end = self.ends[0] = time.perf_counter()
        self.key += self._found - start
        self.run += end - self._found

    def close(self) -> None:
        """Makes durations of the ends so far."""
        self.ops += [later - earlier for earlier, later in zip(self.ends, self.ends[1:], strict=False)]
        self.ends = [time.perf_counter()]


def measure(step: Step, submit: Callable[[], object], dispatches: int) -> Host:
    """Runs a step that is warm already."""
    clocks, totals = [], []
    for _ in range(STEPS):
        clock = Clock()
        graph.thread_state.watch(clock)  # type: ignore[arg-type]
        try:
            start = time.perf_counter()
            result = step()
            submit()
            totals.append(time.perf_counter() - start)
        finally:
            graph.thread_state.watch(None)
        clock.close()
        clocks.append(clock)
        del result  # Its memory is the next step's.
    run = statistics.median(clock.run for clock in clocks)
    ops = [statistics.median(clock.ops or [0.0]) for clock in clocks]
    record = [total - clock.key - clock.run for total, clock in zip(totals, clocks, strict=True)]
    return Host(
        record_ms=round(1e3 * statistics.median(record), 4),
        key_ms=round(1e3 * statistics.median(clock.key for clock in clocks), 4),
        run_ms=round(1e3 * run, 4),
        ops=len(clocks[-1].ops),
        op_us=round(1e6 * statistics.median(ops), 3),
        dispatch_us=round(1e6 * run / max(dispatches, 1), 3),
    )
