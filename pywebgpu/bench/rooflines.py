"""`pywebgpu bench --rooflines`: how near kernels come to what bounds them on this adapter, both measured in one run.

What moves memory is held against a copy, scans against a copy of as many elements, what multiplies against the fastest
product of large matrices. Times are the device's own, of the kernels alone; where it has no clock, those of queued
steps.
"""

from __future__ import annotations

import importlib
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any

from pywebgpu import devices
from pywebgpu.bench import measure
from pywebgpu.devices.base import Device
from pywebgpu.dtypes import DType
from pywebgpu.tensor.tensor import Tensor

RUNS = 9
WARM_UP = 3
LARGE, SMALL = 1 << 26, 1 << 20  # elements of what moves memory, on a GPU and on a CPU that plays one
SCANNED = (10**4, 10**5, 3 * 10**5, 10**6, 10**7, 10**8, 3 * 10**8)  # elements of a row
SMALL_SCANNED = 10**4, 10**6
SIDE, SMALL_SIDE = 4096, 256  # of square matrices
TOKENS, HEADS, DEPTH = (512, 1024, 4096), 12, 64


@dataclass(frozen=True, slots=True)
class Kernel:
    """What was timed: bytes that it has to move, or multiplications and additions that it has to do."""

    name: str
    ms: float
    nbytes: int = 0
    operations: int = 0

    @property
    def rate(self) -> float:
        """Bytes, or operations, a second."""
        return (self.nbytes or self.operations) / (1e-3 * self.ms)


Made = tuple[str, Callable[[], object], int, int]  # a name, what runs it, and its bytes or operations


def run(device_name: str) -> list[Kernel]:
    """All of them, in the order of the table."""
    device = devices.open_device(device_name)
    if not device.target.wgsl or not device.computes:
        raise ValueError(f"rooflines are those of a GPU's kernels, and device {device.name} has none")
    torch = importlib.import_module("pywebgpu")
    busy = measure.products(torch, device.name) if not device.target.features.is_cpu else None
    kernels = []
    for make in (*_moving(torch, device), *_scanning(torch, device), *_multiplying(torch, device)):
        name, step, nbytes, operations = make()
        kernels.append(Kernel(name, _time(step, device, busy), nbytes, operations))
    return kernels


def table(kernels: list[Kernel]) -> str:
    copy = kernels[0].rate
    best = max(kernel.rate for kernel in kernels if kernel.name.startswith("float32"))
    lines = [f"{'kernel':44}{'ms':>10}{'rate':>16}{'share':>8}"]
    for kernel in kernels:
        copy = kernel.rate if kernel.name.startswith("copy") else copy
        rate = f"{kernel.rate / 1e9:.1f} GB/s" if kernel.nbytes else f"{kernel.rate / 1e12:.2f} TFLOP/s"
        lines.append(
            f"{kernel.name:44}{kernel.ms:10.4f}{rate:>16}{kernel.rate / (copy if kernel.nbytes else best):8.2f}"
        )
    return "\n".join([*lines, "", "share: of the bandwidth of the copy above, or of the fastest product of float32."])


def as_data(kernels: list[Kernel]) -> list[dict[str, Any]]:
    return [
        {"name": kernel.name, "ms": kernel.ms, "bytes": kernel.nbytes, "operations": kernel.operations}
        for kernel in kernels
    ]


def _time(step: Callable[[], object], device: Device, busy: Callable[[], object] | None) -> float:
    """Median ms of the kernels of a step."""
    for _ in range(WARM_UP):
        step()
    device.synchronize()
    until = time.perf_counter() + measure.SETTLING / 4
    while busy is not None and time.perf_counter() < until:
        busy()
    if not device.has_clock:
        begun = time.perf_counter()
        for _ in range(RUNS):
            step()
        device.synchronize()
        return (time.perf_counter() - begun) * 1e3 / RUNS
    device.time(True)
    for _ in range(RUNS):
        step()
    times = [sum(end - start for start, end in timing.spans) for timing in device.timings()]
    device.time(False)
    return statistics.median(times) / 1e6


def _moving(torch: ModuleType, device: Device) -> list[Callable[[], Made]]:
    size = SMALL if device.target.features.is_cpu else LARGE
    data = partial(_ones, torch, device)
    return [*_by_element(torch, data, size), *_by_row(torch, data, size), _of_classes(torch, data, size)]


def _ones(torch: ModuleType, device: Device, *shape: int) -> Tensor:
    filled: Tensor = torch.ones(shape, device=device.name)
    return filled


def _by_element(torch: ModuleType, data: Callable[..., Tensor], size: int) -> list[Callable[[], Made]]:
    compiled = torch.compile

    def copy() -> Made:
        x = data(size)
        step = compiled(lambda: x.clone())
        return f"copy, {size} elements", step, 8 * size, 0

    def pointwise() -> Made:
        x, y = data(size), data(size)
        step = compiled(lambda: torch.tanh(x * 1.5 + y) * x)
        return "pointwise, two read and one written", step, 12 * size, 0

    def adamw() -> Made:
        weight = torch.nn.Parameter(data(size))
        weight.grad = data(size)
        step = compiled(torch.optim.AdamW([weight], lr=1e-3).step)
        return "AdamW", step, 28 * size, 0

    return [copy, pointwise, adamw]


def _by_row(torch: ModuleType, data: Callable[..., Tensor], size: int) -> list[Callable[[], Made]]:
    compiled, width = torch.compile, 768
    rows = size // width  # A copy of fewer bytes is slower, too.

    def normed() -> Made:
        x, weight, bias = data(rows, width), data(width), data(width)
        step = compiled(lambda: torch.nn.functional.layer_norm(x, (width,), weight, bias))
        return f"layer_norm, {rows} x {width}", step, 8 * rows * width, 0

    def normed_back() -> Made:
        x, g = data(rows, width).requires_grad_(), data(rows, width)
        weight, bias = data(width).requires_grad_(), data(width).requires_grad_()

        def step() -> object:
            out = torch.nn.functional.layer_norm(x, (width,), weight, bias)
            return torch.autograd.grad(out, (x, weight, bias), g)

        return f"layer_norm and its gradients, {rows} x {width}", compiled(step), 12 * rows * width, 0

    def softmax() -> Made:
        x = data(rows, width)
        return f"softmax, {rows} x {width}", compiled(lambda: torch.softmax(x, -1)), 8 * rows * width, 0

    return [normed, normed_back, softmax]


def _of_classes(torch: ModuleType, data: Callable[..., Tensor], size: int) -> Callable[[], Made]:
    def losses() -> Made:
        many, classes = max(size >> 17, 8), 50257 if size == LARGE else 2003
        x = data(many, classes).requires_grad_()
        targets = torch.zeros(many, dtype=torch.int64, device=x.device)

        def step() -> object:
            return torch.autograd.grad(torch.nn.functional.cross_entropy(x, targets), x)

        return f"cross_entropy and its gradient, {many} x {classes}", torch.compile(step), 8 * many * classes, 0

    return losses


def _scanning(torch: ModuleType, device: Device) -> list[Callable[[], Made]]:
    """Running sums along one row, each after a copy of as many elements, as far as the device can hold them."""

    def made(name: str, size: int) -> Callable[[], Made]:
        def scan() -> Made:
            x = torch.ones(size, device=device.name)
            step = torch.compile((lambda: x.clone()) if name == "copy" else (lambda: x.cumsum(0)))
            return f"{name}, {size} elements", step, 8 * size, 0

        return scan

    sizes = SMALL_SCANNED if device.target.features.is_cpu else SCANNED
    fitting = [size for size in sizes if 4 * size <= device.target.limits.buffer_bytes]
    return [made(name, size) for size in fitting for name in ("copy", "cumsum")]


def _multiplying(torch: ModuleType, device: Device) -> list[Callable[[], Made]]:
    is_small = device.target.features.is_cpu
    side = SMALL_SIDE if is_small else SIDE

    def product(layout: str, dtype: DType) -> Callable[[], Made]:
        def made() -> Made:
            x = torch.ones(side, side, device=device.name).to(dtype)
            y = torch.ones(side, side, device=device.name).to(dtype)
            left, right = x if layout[0] == "n" else x.t(), y if layout[1] == "n" else y.t()
            name = f"{str(dtype)[6:]} product of {side} x {side}, {layout}"
            return name, torch.compile(lambda: left @ right), 0, 2 * side**3

        return made

    def attention(tokens: int) -> Callable[[], Made]:
        def made() -> Made:
            shape = (1, HEADS, tokens, DEPTH)
            q, k, v = (torch.ones(shape, device=device.name).requires_grad_() for _ in range(3))
            g = torch.ones(shape, device=device.name)

            def step() -> object:
                out = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
                return torch.autograd.grad(out, (q, k, v), g)

            # Seven products of half of the scores, two of them forward.
            return (
                f"causal attention and its gradients, {tokens}",
                torch.compile(step),
                0,
                7 * HEADS * tokens**2 * DEPTH,
            )

        return made

    half_products = [product("nn", torch.float16)] if not is_small else []
    singles = [product(layout, torch.float32) for layout in ("nn", "nt", "tn")]
    return [*singles, *half_products, *map(attention, TOKENS[:1] if is_small else TOKENS)]
