"""`pywebgpu bench --growth`: what the first steps of ever deeper models cost on the host, with nothing stored on disk.

On device null: nothing runs, so what is left is recording and compiling.
"""

import gc
import importlib
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from pywebgpu import devices
from pywebgpu.bench import gpt, workloads
from pywebgpu.runtime import executor, program_cache, state

LAYERS = (1, 2, 4, 8, 16, 32, 64)
WIDTH = 64


@dataclass(frozen=True, slots=True)
class Growth:
    """An eager loop's first two steps of AdamW, in milliseconds of processor time.

    programs: those that were compiled for both.  dispatches, kernels, planned_bytes, bound_bytes: of the largest one.
    """

    layers: int
    first_ms: float
    second_ms: float
    programs: int
    dispatches: int
    kernels: int
    planned_bytes: int
    bound_bytes: int


def measure(layers: int) -> Growth:
    """The workload gpt with so many layers."""
    step = workloads.training_of(gpt.Shape(layers=layers, width=WIDTH)).build(
        importlib.import_module("pywebgpu"), "null"
    )
    executor.submit(devices.open_device("null"))
    program_cache.clear()
    counters, was_stored = state.default.counters, state.default.is_stored
    compiled = counters["program_misses"]
    state.default.is_stored = False
    try:
        times = [_timed(step), _timed(step)]
    finally:
        state.default.is_stored = was_stored
    largest = max((entry[0] for entry in state.default.programs.values()), key=lambda program: len(program.steps))
    return Growth(
        layers=layers,
        first_ms=times[0],
        second_ms=times[1],
        programs=counters["program_misses"] - compiled,
        dispatches=len(largest.steps),
        kernels=len(largest.kernels),
        planned_bytes=largest.peak_bytes,
        bound_bytes=largest.lower_bound,
    )


def _timed(step: Callable[[], Any]) -> float:
    gc.collect()
    start = time.process_time()
    result = step()
    executor.submit(devices.open_device("null"))
    elapsed = time.process_time() - start
    del result
    return round(1e3 * elapsed, 3)


def table(growths: list[Growth]) -> str:
    heading = f"{'layers':>6}{'first':>10}{'second':>10}{'programs':>10}{'dispatches':>12}{'kernels':>9}"
    lines = [
        "AdamW steps of a gpt of width 64, device null, times in ms of the processor",
        "",
        heading + f"{'ratio':>8}",
    ]
    for growth in growths:
        ratio = growth.planned_bytes / growth.bound_bytes
        counts = f"{growth.programs:10}{growth.dispatches:12}{growth.kernels:9}{ratio:8.3f}"
        lines.append(f"{growth.layers:6}{growth.first_ms:10.1f}{growth.second_ms:10.1f}{counts}")
    lines += [
        "",
        "first, second: steps of an eager loop.  programs: what both had compiled.  kernels: texts that differ.",
    ]
    return "\n".join([*lines, "ratio: planned bytes over those in use at the fullest step."])


def as_data(growths: list[Growth]) -> list[dict[str, Any]]:
    return [asdict(growth) for growth in growths]
