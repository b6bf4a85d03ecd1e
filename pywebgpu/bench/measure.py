"""Timing of steps, and what a device counted while they ran."""

import gc
import importlib
import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from types import ModuleType
from typing import Any

from pywebgpu import devices
from pywebgpu.bench import host, plans
from pywebgpu.bench.workloads import Step, Workload
from pywebgpu.devices.base import Device
from pywebgpu.runtime import executor

WARM_UP = 3  # steps that compile, and that fill the pools
SETTLING = 1.0  # seconds of products before steps count: a GPU's clocks fall while kernels are compiled
COUNTED = ("dispatches", "submits", "buffers_created", "pipelines_created", "bind_groups_created", "ffi_calls")


@dataclass(frozen=True, slots=True)
class Measurement:
    """One workload on one device. Times and counts are of one steady step: ms is the median, counts are medians.

    first_ms is the very first step, compilation included. host_ms is the time until Python had queued a step, without
    waiting for its result; on device cpu queueing is running. Its parts, from record_ms to dispatch_us, are a Host's
    (see host.py), measured apart. Losses are of the first step and of the last; a workload without a loss has the mean
    magnitude of its result there.

    peak_bytes: the most that tensors and the insides of Programs took at a time, with all that building took.
    planned_bytes is what a step's Program takes by its plan, inputs included, and bound_bytes what its fullest moment
    has in use; on device cpu, which plans nothing, they are those of a GPU.
    """

    name: str
    host: str
    device: str
    adapter: str | None
    ms: float
    ms_min: float
    ms_max: float
    first_ms: float
    host_ms: float
    record_ms: float
    key_ms: float
    run_ms: float
    ops: int
    op_us: float
    dispatch_us: float
    dispatches: int
    submits: int
    buffers_created: int
    pipelines_created: int
    bind_groups_created: int
    ffi_calls: int
    peak_bytes: int
    planned_bytes: int
    bound_bytes: int
    live_bytes: int
    steps: int
    loss_first: float | None
    loss_last: float | None
    peers: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Engine:
    """How a library is driven: `submit` queues what was recorded, `wait` ends when it has run.

    busy: what keeps a GPU at work for a moment; None where there is none.
    """

    submit: Callable[[], None]
    wait: Callable[[], None]
    computes: bool = True
    counters: Callable[[], dict[str, int]] = dict
    busy: Callable[[], object] | None = None


@dataclass(frozen=True, slots=True)
class Sample:
    """One step: its time, the part until its work was queued, what was counted, its loss where that is known."""

    ms: float
    host_ms: float
    counts: dict[str, int]
    loss: float | None


def measure(workload: Workload, device_name: str, steps: int, *, compiled: bool = False) -> Measurement:
    """Builds a workload on a device and runs it: WARM_UP steps, then `steps` that count."""
    device = devices.open_device(device_name)
    gc.collect()
    counters = device.counters
    others = counters["live_bytes"]
    counters["peak_bytes"] = others + counters["scratch_bytes"]
    engine, plain = prepare(workload, device)
    step = importlib.import_module("pywebgpu").compile(plain) if compiled else plain
    samples = sample(step, engine, steps)
    counts = _counts(samples)
    peak = device.counters["peak_bytes"]
    memory = plans.planned(workload.name, step if device.target.wgsl else plain)
    parts = host.measure(step, engine.submit, counts["dispatches"])
    engine.wait()
    return Measurement(
        name=workload.name,
        host=getattr(device, "host", "native"),
        device=device.name,
        adapter=adapter(device),
        **summary(samples),
        **asdict(parts),
        **counts,
        peak_bytes=peak - others,
        planned_bytes=memory.planned_bytes,
        bound_bytes=memory.bound_bytes,
        live_bytes=device.counters["live_bytes"] - others,
    )


def prepare(workload: Workload, device: Device) -> tuple[Engine, Step]:
    """A workload built on a device, its weights and batch uploaded."""
    library = importlib.import_module("pywebgpu")
    features = device.target.features
    is_gpu = bool(features.kind or features.family) and not features.is_cpu
    busy = products(library, device.name) if is_gpu else None
    engine = Engine(lambda: executor.submit(device), device.synchronize, device.computes, lambda: device.counters, busy)
    step = workload.build(library, device.name)
    engine.submit()
    engine.wait()
    return engine, step


def sample(step: Step, engine: Engine, steps: int) -> list[Sample]:
    """Runs a step WARM_UP + `steps` times, and reads the loss each time where there is one."""
    last = WARM_UP + steps - 1
    samples = [one(step, engine, is_shown=index in (0, last)) for index in range(WARM_UP)]
    settle(engine)
    return samples + [one(step, engine, is_shown=index == last) for index in range(WARM_UP, last + 1)]


def settle(engine: Engine) -> None:
    """Keeps a GPU at work until its clocks are those of a long run."""
    until = time.perf_counter() + SETTLING
    while engine.busy is not None and time.perf_counter() < until:
        engine.busy()
        engine.submit()
        engine.wait()


def products(library: ModuleType, device: str) -> Callable[[], object]:
    """Work of some milliseconds on a GPU, which leaves nothing."""
    operand: list[Any] = []

    def busy() -> object:
        if not operand:
            operand.append(library.ones(2048, 2048, device=device))
        for _ in range(8):
            library.sum(operand[0] @ operand[0]).item()
        return None

    return busy


def one(step: Step, engine: Engine, *, is_shown: bool = True) -> Sample:
    """Runs a step. `is_shown`: of a result that is no loss, the mean magnitude is read."""
    before = dict(engine.counters())
    start = time.perf_counter()
    result = step()
    engine.submit()
    queued = time.perf_counter()
    is_loss = engine.computes and result.ndim == 0
    loss: float | None = None
    if is_loss:
        loss = float(result.item())
    else:
        engine.wait()
    end = time.perf_counter()
    counters = engine.counters()
    counts = {name: counters[name] - before[name] for name in before}
    if engine.computes and is_shown and not is_loss:
        loss = float(result.abs().mean().item())
    return Sample((end - start) * 1e3, (queued - start) * 1e3, counts, loss)


def summary(samples: list[Sample]) -> dict[str, Any]:
    """The times and losses of a Measurement."""
    steady = samples[WARM_UP:]
    times = [measured.ms for measured in steady]
    return {
        "ms": round(statistics.median(times), 4),
        "ms_min": round(min(times), 4),
        "ms_max": round(max(times), 4),
        "first_ms": round(samples[0].ms, 4),
        "host_ms": round(statistics.median(measured.host_ms for measured in steady), 4),
        "steps": len(steady),
        "loss_first": samples[0].loss,
        "loss_last": samples[-1].loss,
    }


def _counts(samples: list[Sample]) -> dict[str, Any]:
    return {
        name: statistics.median_low([measured.counts.get(name, 0) for measured in samples[WARM_UP:]])
        for name in COUNTED
    }


def adapter(device: Device) -> str | None:
    """What computes, by name."""
    if device.is_host:
        return f"NumPy on {platform.processor() or platform.machine() or 'an unnamed processor'}"
    name: str | None = getattr(device, "adapter", None)
    return name
