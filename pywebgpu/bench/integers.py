"""`pywebgpu bench --integers`: what int64 in 32 bits costs, and what it would cost in 64.

Ops of int64 run with and without the check that their results fit (compiler/passes/checks.py), in turns; then kernels
written for this, whose integers are one word and two. Times are those of the kernels, by the device's own clock.
"""

from __future__ import annotations

import functools
import importlib
import statistics
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from pywebgpu import devices
from pywebgpu.bench import measure
from pywebgpu.compiler import pipeline
from pywebgpu.devices.base import Device
from pywebgpu.devices.timing import Stamps
from pywebgpu.runtime import executor, state

RUNS, TURNS = 9, 7
LARGE, SMALL = 1 << 24, 1 << 14  # elements, on a GPU and on a CPU that plays one
ROWS, WIDTH = 4096, 64  # of a table that is indexed
Step = Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Cost:
    """What was timed in two forms, `plain` and `other`: of each the times of the turns, in ms."""

    name: str
    plain: list[float]
    other: list[float]

    @property
    def ratio(self) -> float:
        return statistics.median(self.other) / statistics.median(self.plain)


def run(device_name: str) -> dict[str, list[Cost]]:
    """Of the check, and of two words; the latter where wgpu-py runs the device.

    Raises ValueError for a device without kernels, or without a clock.
    """
    device = devices.open_device(device_name)
    if not device.target.wgsl or not device.computes or not device.has_clock:
        raise ValueError(
            f"the cost of integers is that of a GPU's kernels, by its clock; device {device.name} has none"
        )
    torch = importlib.import_module("pywebgpu")
    is_small = device.target.features.is_cpu
    settle = (lambda: None) if is_small else functools.partial(_settle, torch, device)
    size = SMALL if is_small else LARGE
    costs = {"check": [_check(name, make(torch, device.name, size), device, settle) for name, make in CHECKED.items()]}
    if hasattr(device, "gpu"):
        costs["words"] = [_words(name, device, size, settle) for name in WORDS]
    return costs


def table(costs: dict[str, list[Cost]]) -> str:
    heads = {"check": ("int64, ops", "unchecked", "checked"), "words": ("integers of", "one word", "two words")}
    lines = []
    for kind, rows in costs.items():
        name, plain, other = heads[kind]
        lines.append(f"{name:44}{plain + ' ms':>26}{other + ' ms':>26}{'ratio':>8}")
        lines += [f"{row.name:44}{_shown(row.plain):>26}{_shown(row.other):>26}{row.ratio:8.3f}" for row in rows]
        lines.append("")
    return "\n".join([*lines, f"medians of {TURNS} turns of {RUNS} runs each, and the least and the most of the turns"])


def as_data(costs: dict[str, list[Cost]]) -> dict[str, list[dict[str, Any]]]:
    return {kind: [asdict(row) for row in rows] for kind, rows in costs.items()}


def _shown(times: list[float]) -> str:
    return f"{statistics.median(times):.4f} ({min(times):.4f}-{max(times):.4f})"


def _settle(torch: Any, device: Device) -> None:
    """Lets the clocks rise: they are low after shaders were compiled."""
    busy = measure.products(torch, device.name)
    until = time.perf_counter() + measure.SETTLING / 4
    while time.perf_counter() < until:
        busy()


# The check


def _elementwise(torch: Any, device: str, size: int) -> Step:
    a, b = _numbers(torch, device, size, 1000), _numbers(torch, device, size, 3)
    return lambda: a * 3 + b


def _positions(torch: Any, device: str, size: int) -> Step:
    """Of the tokens that a mask leaves, as generation counts them."""
    mask = _numbers(torch, device, size, 2).reshape(-1, 1024)
    return lambda: (mask.cumsum(1) - 1) * mask


def _flat_index(torch: Any, device: str, size: int) -> Step:
    """Rows and columns become positions in a flat table, which are read."""
    flat = torch.ones(ROWS * WIDTH, device=device)
    rows, columns = _numbers(torch, device, size, ROWS), _numbers(torch, device, size, WIDTH)
    return lambda: flat[rows * WIDTH + columns]


def _embedding(torch: Any, device: str, size: int) -> Step:
    rows = torch.ones(ROWS, WIDTH, device=device)
    ids = _numbers(torch, device, max(size // WIDTH, 1), ROWS - 1)
    return lambda: torch.nn.functional.embedding(ids + 1, rows)


def _count(torch: Any, device: str, size: int) -> Step:
    counts, ones = torch.zeros(ROWS, dtype=torch.int64, device=device), torch.ones(size // 16, dtype=torch.int64)
    ids, ones = _numbers(torch, device, size // 16, ROWS), ones.to(device)
    return lambda: counts.scatter_add(0, ids, ones)


def _total(torch: Any, device: str, size: int) -> Step:
    numbers = _numbers(torch, device, size, 100)
    return lambda: numbers.sum()


CHECKED: dict[str, Callable[[Any, str, int], Step]] = {
    "a * 3 + b": _elementwise,
    "(mask.cumsum(1) - 1) * mask": _positions,
    "flat[rows * width + columns]": _flat_index,
    "embedding(ids + 1)": _embedding,
    "counts.scatter_add(0, ids, ones)": _count,
    "numbers.sum()": _total,
}


def _numbers(torch: Any, device: str, size: int, limit: int) -> Any:
    numbers = torch.randint(limit, (size,), device=device)
    numbers[:1].item()  # It is there, and no graph bounds it.
    return numbers


def _check(name: str, step: Step, device: Device, settle: Step) -> Cost:
    unchecked = tuple(each for each in pipeline.DEVICE if each.name != "check_integers")
    forms: list[tuple[Any, Any]] = [(unchecked, OrderedDict()), (pipeline.DEVICE, OrderedDict())]
    times: list[list[float]] = [[], []]
    for turn in range(TURNS + 1):
        for form, taken in zip(forms, times, strict=True):
            with _compiled_by(*form):
                ms = _time(step, device)
            if turn:  # In the first it is compiled.
                taken.append(ms)
        if not turn:
            settle()
    return Cost(name, *times)


@contextmanager
def _compiled_by(passes: tuple[pipeline.Pass, ...], programs: Any) -> Iterator[None]:
    """Programs are those of these passes, which are kept apart from all others."""
    runtime = state.default
    before = pipeline.DEVICE, runtime.programs, runtime.is_stored
    pipeline.DEVICE, runtime.programs, runtime.is_stored = passes, programs, False
    try:
        yield
    finally:
        pipeline.DEVICE, runtime.programs, runtime.is_stored = before


def _time(step: Step, device: Device) -> float:
    """Median ms of the kernels of a step."""
    device.time(True)
    for _ in range(RUNS):
        result = step()
        executor.submit(device)
        del result
    times = [sum(end - start for start, end in timing.spans) for timing in device.timings()]
    device.time(False)
    return statistics.median(times) / 1e6


# Two words

HEAD = """
@group(0) @binding(0) var<storage, read> a: array<T>;
@group(0) @binding(1) var<storage, read> b: array<T>;
@group(0) @binding(2) var<storage, read_write> out: array<U>;
fn add(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
  let low = x.x + y.x;
  return vec2(low, x.y + y.y + u32(low < x.x));
}
fn mul(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
  let xl = x.x & 0xffffu; let xh = x.x >> 16u; let yl = y.x & 0xffffu; let yh = y.x >> 16u;
  let cross = xh * yl + ((xl * yl) >> 16u);
  let middle = (cross & 0xffffu) + xl * yh;
  let high = xh * yh + (cross >> 16u) + (middle >> 16u);
  return vec2(x.x * y.x, high + x.x * y.y + x.y * y.x);
}
fn less(x: vec2<u32>, y: vec2<u32>) -> bool {
  return select(bitcast<i32>(x.y) < bitcast<i32>(y.y), x.x < y.x, x.y == y.y);
}
@compute @workgroup_size(256) fn main(@builtin(global_invocation_id) id: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>) {
  let i = id.y * groups.x * 256u + id.x;
  if (i < N) { out[i] = VALUE; }
}
"""
# What is computed: the type of results, and the value in one word and in two.
WORDS: dict[str, tuple[str, str, str]] = {
    "a + b": ("T", "a[i] + b[i]", "add(a[i], b[i])"),
    "a * b": ("T", "a[i] * b[i]", "mul(a[i], b[i])"),
    "a < b": ("u32", "u32(a[i] < b[i])", "u32(less(a[i], b[i]))"),
    "a * b + a": ("T", "a[i] * b[i] + a[i]", "add(mul(a[i], b[i]), a[i])"),
    "b[a], within bounds": (
        "T",
        "b[select(0u, u32(a[i]), u32(a[i]) < arrayLength(&b))]",
        "b[select(0u, a[i].x, a[i].y == 0u && a[i].x < arrayLength(&b))]",
    ),
}


def _words(name: str, device: Any, size: int, settle: Step) -> Cost:
    import numpy as np  # Where wgpu-py is, NumPy is; pages have neither.

    gpu = device.gpu
    result, one_word, two_words = WORDS[name]
    groups = -(-size // 256)
    grid = (min(groups, 32768), -(-groups // 32768), 1)
    forms = []
    for kind, nbytes, value in (("i32", 4, one_word), ("vec2<u32>", 8, two_words)):
        text = HEAD.replace("VALUE", value).replace("array<U>", f"array<{result}>").replace("<T>", f"<{kind}>")
        module = gpu.create_shader_module(code=text.replace("(i < N)", f"(i < {size}u)"))
        compute = gpu.create_compute_pipeline(layout="auto", compute={"module": module, "entry_point": "main"})
        buffers = [gpu.create_buffer(size=nbytes * size, usage="STORAGE | COPY_DST") for _ in range(3)]
        for buffer, seed in zip(buffers[:2], (1, 2), strict=True):
            words = np.zeros((size, nbytes // 4), np.int32)  # The lower word first; the upper is that of small numbers.
            words[:, 0] = np.random.default_rng(seed).integers(size, size=size)
            gpu.queue.write_buffer(buffer, 0, words)
        entries = [{"binding": index, "resource": {"buffer": buffer}} for index, buffer in enumerate(buffers)]
        group = gpu.create_bind_group(layout=compute.get_bind_group_layout(0), entries=entries)
        forms.append((compute, group, buffers))
    settle()
    times: list[list[float]] = [[], []]
    for turn in range(TURNS + 1):
        for (compute, group, _), taken in zip(forms, times, strict=True):
            ms = _time_words(device, compute, group, grid)
            if turn:
                taken.append(ms)
    for _, _, buffers in forms:
        for buffer in buffers:
            buffer.destroy()
    return Cost(name, *times)


def _time_words(device: Any, compute: Any, group: Any, grid: tuple[int, int, int]) -> float:
    period = importlib.import_module("pywebgpu.devices.native")._period(device.gpu.queue)  # Of wgpu-py, which is there.
    stamps = Stamps(device.gpu, RUNS, period, {"ffi_calls": 0, "submits": 0})
    encoder = device.gpu.create_command_encoder()
    for index in range(RUNS):
        writes: Any = stamps.around(index)
        computing = encoder.begin_compute_pass(timestamp_writes=writes)
        computing.set_pipeline(compute)
        computing.set_bind_group(0, group)
        computing.dispatch_workgroups(*grid)
        computing.end()
    stamps.resolve(encoder)
    device.gpu.queue.submit([encoder.finish()])
    return statistics.median([end - start for start, end in stamps.read()]) / 1e6
