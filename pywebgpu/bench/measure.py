"""Timing of steps, and what a device counted while they ran."""

import gc
import importlib
import platform
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pywebgpu import devices, realize
from pywebgpu.bench.workloads import Step, Workload
from pywebgpu.devices.base import Device

WARM_UP = 3  # steps that compile, and that fill the pools
COUNTED = ("dispatches", "submits", "buffers_created", "pipelines_created", "ffi_calls")


@dataclass(frozen=True, slots=True)
class Measurement:
    """One workload on one device. Times and counts are of one steady step: ms is the median, counts are medians.

    first_ms is the very first step, compilation included. host_ms is the time until Python had queued a step, without
    waiting for its result; on device cpu queueing is running. Losses are of the first step and of the last; a workload
    without a loss has the mean magnitude of its result there.
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
    dispatches: int
    submits: int
    buffers_created: int
    pipelines_created: int
    ffi_calls: int
    peak_bytes: int
    live_bytes: int
    steps: int
    loss_first: float | None
    loss_last: float | None
    peers: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Engine:
    """How a library is driven: `submit` queues what was recorded, `wait` ends when it has run."""

    submit: Callable[[], None]
    wait: Callable[[], None]
    computes: bool = True
    counters: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sample:
    """One step: its time, the part until its work was queued, what was counted, its loss where that is known."""

    ms: float
    host_ms: float
    counts: dict[str, int]
    loss: float | None


def measure(workload: Workload, device_name: str, steps: int) -> Measurement:
    """Builds a workload on a device and runs it: WARM_UP steps, then `steps` that count."""
    device = devices.open_device(device_name)
    gc.collect()
    counters = device.counters
    others = counters["live_bytes"]
    counters["peak_bytes"] = others
    engine = Engine(lambda: realize.submit(device), device.synchronize, device.name != "null", counters)
    step = workload.build(importlib.import_module("pywebgpu"), device_name)
    engine.submit()
    engine.wait()
    samples = sample(step, engine, steps)
    return Measurement(
        name=workload.name,
        host="pyodide" if sys.platform == "emscripten" else "native",
        device=device.name,
        adapter=_adapter(device),
        **summary(samples),
        **_counts(samples),
        peak_bytes=counters["peak_bytes"] - others,
        live_bytes=counters["live_bytes"] - others,
    )


def sample(step: Step, engine: Engine, steps: int) -> list[Sample]:
    """Runs a step WARM_UP + `steps` times, and reads the loss each time where there is one."""
    counters, samples = engine.counters, []
    last = WARM_UP + steps - 1
    for at in range(last + 1):
        before = dict(counters)
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
        counts = {name: counters[name] - before[name] for name in before}
        if engine.computes and at in (0, last) and not is_loss:
            loss = float(result.abs().mean().item())
        del result  # Its memory is the next step's.
        samples.append(Sample((end - start) * 1e3, (queued - start) * 1e3, counts, loss))
    return samples


def summary(samples: list[Sample]) -> dict[str, Any]:
    """The times and losses of a Measurement."""
    steady = samples[WARM_UP:]
    times = [one.ms for one in steady]
    return {
        "ms": round(statistics.median(times), 4),
        "ms_min": round(min(times), 4),
        "ms_max": round(max(times), 4),
        "first_ms": round(samples[0].ms, 4),
        "host_ms": round(statistics.median(one.host_ms for one in steady), 4),
        "steps": len(steady),
        "loss_first": samples[0].loss,
        "loss_last": samples[-1].loss,
    }


def _counts(samples: list[Sample]) -> dict[str, Any]:
    return {name: statistics.median_low([one.counts.get(name, 0) for one in samples[WARM_UP:]]) for name in COUNTED}


def _adapter(device: Device) -> str | None:
    """What computes, by name."""
    if device.name == "cpu":
        return f"NumPy on {platform.processor() or platform.machine() or 'an unnamed processor'}"
    name: str | None = getattr(device, "adapter", None)
    return name
