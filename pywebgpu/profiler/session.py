"""Recording: what the host did, what ran on the devices, what they held."""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import asdict
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pywebgpu import devices
from pywebgpu.devices.timing import Timing
from pywebgpu.inspector.times import TimedPlans
from pywebgpu.ir import origin
from pywebgpu.ir.graph import thread_state
from pywebgpu.profiler import averages, chrome
from pywebgpu.profiler import events as timeline
from pywebgpu.runtime import executor

if TYPE_CHECKING:
    from pywebgpu.devices.base import Device


class ProfilerActivity(Enum):
    """What is recorded. WEBGPU is whatever device computes; The others are names of
    it, for programs that say so."""

    CPU = 0
    WEBGPU = 1
    CUDA = 1
    XPU = 1
    MTIA = 1
    HPU = 1
    PrivateUse1 = 1


class ProfilerAction(Enum):
    """What a schedule asks for at a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


_RECORDS = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)
Schedule = Callable[[int], ProfilerAction]


def supported_activities() -> set[ProfilerActivity]:
    """CPU, and CUDA, which stands for the device whatever it is."""
    return {ProfilerActivity.CPU, ProfilerActivity.WEBGPU}


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Schedule:
    """For each step: nothing for `wait`, warming up for `warmup`, recording for `active`, and again `repeat` times.

    repeat 0 is for ever. skip_first steps come before all that; skip_first_wait leaves the first `wait` out.
    """
    if min(wait, warmup, repeat, skip_first) < 0 or active <= 0:
        raise ValueError("Invalid profiler schedule arguments")
    length = wait + warmup + active

    def action(step: int) -> ProfilerAction:
        session = step - skip_first + (wait if skip_first_wait else 0)
        if session < 0 or step < skip_first or (repeat and session // length >= repeat):
            return ProfilerAction.NONE
        position = session % length
        if position < wait:
            return ProfilerAction.NONE
        if position < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if position < length - 1 else ProfilerAction.RECORD_AND_SAVE

    return action


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False
) -> Callable[[profile], None]:
    """An `on_trace_ready` that writes a trace a recording into a folder."""

    def write(messages: profile) -> None:
        folder = Path(dir_name)
        folder.mkdir(parents=True, exist_ok=True)
        name = f"{worker_name or 'pywebgpu'}.{time.time_ns()}.pt.trace.json"
        messages.export_chrome_trace(str(folder / (name + ".gz" if use_gzip else name)))

    return write


class record_function:
    """Names a part of the program: a context manager, or a decorator. Costs nothing while nobody records."""

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name
        self._open: list[AbstractContextManager[None]] = []

    def __enter__(self) -> Self:
        self._open.append(thread_state.span("label", self.name))
        self._open[-1].__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._open.pop().__exit__(*error)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def named(*args: Any, **kwargs: Any) -> object:
            with thread_state.span("label", self.name):
                return function(*args, **kwargs)

        return named


class _Session(TimedPlans):
    """All that is told while it watches."""

    def __init__(self, *, lines: bool, memory: bool) -> None:
        super().__init__(lines=lines)
        self.spans: list[origin.Span] = []
        self.samples: list[timeline.Sample] = []
        self.timings: dict[str, list[Timing]] = {}
        self.start = self.end = time.perf_counter()
        self._memory = memory

    def span(self, span: origin.Span) -> None:
        self.spans.append(span)

    def runs_on(self, device: Device) -> None:
        super().runs_on(device)
        self.sample(device)

    def sample(self, device: Device) -> None:
        if self._memory:
            counters = device.counters
            now = time.perf_counter()
            self.samples.append(timeline.Sample(device.name, now, counters["live_bytes"], counters["scratch_bytes"]))

    def stop(self) -> None:
        for device in self.timed:
            self.timings[device.name] = device.timings()
        self._finish()

    async def stop_async(self) -> None:
        for device in self.timed:
            self.timings[device.name] = await device.timings_async()
        self._finish()

    def _finish(self) -> None:
        for device in self.timed:
            self.sample(device)
            device.time(False)

    def notes(self) -> list[str]:
        """What the reader of a table must know."""
        blind = [device.name for device in self.timed if not device.has_clock and device.computes]
        timeline_events = [
            f"{name} has no timestamps: its times are of whole programs, by the host's clock" for name in blind
        ]
        if any(not device.computes for device in self.timed):
            timeline_events.append("device null computes nothing: its kernels take no time")
        return timeline_events


class profile:
    """Records between `start` and `stop`, or in a `with` block: the host's time, every kernel's, and memory.

    activities: both by default. schedule: which steps to record, told of by `step()`; `on_trace_ready(self)` is called
    after each recording. profile_memory: what devices hold before each Program. with_stack: the program's line of each
    kernel. Each kernel is a pass of its own while this records, so a step takes longer than it otherwise does.

    Raises: NotImplementedError for with_flops.
    """

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        schedule: Schedule | None = None,
        on_trace_ready: Callable[[profile], Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: object = None,
        acc_events: bool = False,
    ) -> None:
        if with_flops:
            raise NotImplementedError("profile(): with_flops is not supported")
        self.activities = set(ProfilerActivity if activities is None else activities)
        self.schedule, self.on_trace_ready = schedule, on_trace_ready
        self.step_num = 0
        self._memory, self._lines = profile_memory, with_stack
        self._metadata: dict[str, Any] = {}
        self._session: _Session | None = None
        self._done: _Session | None = None
        self._step: AbstractContextManager[None] | None = None

    # Recording

    def start(self) -> None:
        self._enter(self._action())

    def stop(self) -> None:
        """Waits for the devices. Where Python cannot wait: stop_async."""
        if self._session is not None:
            self._leave().stop()
            self._ready()

    async def stop_async(self) -> None:
        """As stop, where Python cannot wait as well."""
        if self._session is not None:
            await self._leave().stop_async()
            self._ready()

    def step(self) -> None:
        """One step of the program has ended."""
        before = self._action()
        self._mark(None)
        self.step_num += 1
        after = self._action()
        if before is ProfilerAction.RECORD_AND_SAVE or (before in _RECORDS and after not in _RECORDS):
            self.stop()
        self._enter(after)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: Any) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        self.start()
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self.stop_async()

    def _action(self) -> ProfilerAction:
        return ProfilerAction.RECORD if self.schedule is None else self.schedule(self.step_num)

    def _enter(self, action: ProfilerAction) -> None:
        if action in _RECORDS and self._session is None:
            _submit_all()  # What waits from before is none of this.
            self._session = _Session(lines=self._lines, memory=self._memory)
            origin.watch(self._session)
            if ProfilerActivity.WEBGPU in self.activities:
                for device in devices.opened():
                    self._session.time(device)
            self._session.start = time.perf_counter()
        if self._session is not None and (self.schedule is not None or self.step_num):
            self._mark(thread_state.span("step", f"ProfilerStep#{self.step_num}"))

    def _leave(self) -> _Session:
        self._mark(None)
        session = self._session
        assert session is not None
        _submit_all()
        session.end = time.perf_counter()
        origin.unwatch(session)
        self._session, self._done = None, session
        return session

    def _mark(self, span: AbstractContextManager[None] | None) -> None:
        """Ends the span of a step and begins another."""
        if self._step is not None:
            self._step.__exit__(None, None, None)
        self._step = span
        if span is not None:
            span.__enter__()

    def _ready(self) -> None:
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    # Results

    def events(self) -> list[timeline.Event]:
        """Everything that was recorded last, in order of time. Raises RuntimeError where nothing was."""
        session = self._finished()
        collected: list[timeline.Event] = []
        if ProfilerActivity.CPU in self.activities:
            collected += timeline.of_host(session.spans)
        if ProfilerActivity.WEBGPU in self.activities:
            for name, timings in session.timings.items():
                collected += timeline.of_device(name, timings, session)
        return sorted(collected, key=lambda event: event.start)

    def memory_timeline(self) -> list[timeline.Sample]:
        """What the devices held, where `profile_memory` is on."""
        return list(self._finished().samples)

    @property
    def function_events(self) -> list[timeline.Event]:
        """As `events()`, by its older name."""
        return self.events()

    def table(self, *args: Any, **options: Any) -> str:
        """That of `key_averages()`."""
        return self.key_averages().table(*args, **options)

    __str__ = table

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, *, group_by: str = "op"
    ) -> averages.Averages:
        """Sums by "op", "kernel", "module", "phase", "label" or "line"; see `table` of the result."""
        session = self._finished()
        group_by = "line" if group_by_stack_n else group_by
        return averages.average(self.events(), group_by, session.notes(), 1e6 * (session.end - session.start))

    def add_metadata(self, key: str, value: str) -> None:
        self._metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        self._metadata[key] = json.loads(value)

    def export_chrome_trace(self, path: str) -> None:
        """A file for Perfetto or chrome://tracing; gzip where its name ends with .gz."""
        chrome.write(path, self.events(), self._finished().samples, self._metadata)

    def as_data(self) -> dict[str, Any]:
        """All of it as dictionaries and lists: sums by each key, memory, notes."""
        session = self._finished()
        keys = ("kernel", "op", "module", "phase", "label")
        sums = {key: [asdict(row) for row in self.key_averages(group_by=key)] for key in keys}
        memory = [asdict(sample) for sample in session.samples]
        wall = 1e6 * (session.end - session.start)
        return {"wall_time": wall, "by": sums, "memory": memory, "notes": session.notes(), "metadata": self._metadata}

    def export_json(self, path: str) -> None:
        Path(path).write_text(json.dumps(self.as_data(), indent=1), encoding="utf-8")

    def _finished(self) -> _Session:
        if self._done is None:
            raise RuntimeError("Profiler didn't finish running")
        return self._done


def _submit_all() -> None:
    for device in devices.opened():
        executor.submit(device)
