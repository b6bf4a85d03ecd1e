"""Python in the measuring worker: what this device's GPU reaches, in the workloads and rates of `pywebgpu bench`."""

import json
import time
from collections.abc import Callable
from typing import Any

import pywebgpu as torch
from pywebgpu import devices
from pywebgpu.bench import workloads
from pywebgpu.errors import PywebgpuError
from pywebgpu.runtime import executor

TRAINED = ("mlp", "cnn", "gpt")
QUICK = TRAINED[:1]  # where a CPU plays the GPU
SECONDS = 1.0  # that steps are counted for
ENOUGH = 0.1  # seconds that a rate is measured over
SIDES = (256, 512, 1024, 2048, 4096)  # of square matrices
LONG = tuple(1 << power for power in (18, 20, 22, 24, 26))  # elements of a copy


async def main(port: Any) -> None:
    """Opens the device, then measures as often as the page asks."""

    def tell(what: str, **content: Any) -> None:
        port.tell(json.dumps({"is": what, **content}))

    try:
        await torch.webgpu.init()
    except PywebgpuError as error:
        return tell("broken", text=str(error))
    torch.set_default_device("webgpu")
    device = devices.open_device("webgpu")
    tell("ready", adapter={"name": device.info.name, "is_software": device.info.is_software})
    while True:
        command = json.loads(port.take() or "null")
        if command is None:
            await port.arrived()
            continue
        if command["do"] == "start":  # Another library is to train the same.
            training = workloads.WORKLOADS[command["name"]].training
            assert training is not None
            tell("start", start=training.as_data(torch))
            continue
        try:
            for name in QUICK if device.info.is_software else TRAINED:
                tell("measuring", name=f"training {name}")
                speed = await steps_a_second(name, device)
                tell("measured", name=f"training {name}", value=speed, unit="steps/s")
            for name, works, amounts, unit in rates(device):
                tell("measuring", name=name)
                tell("measured", name=name, value=await best(works, amounts, device), unit=unit)
            tell("finished")
        except Exception as error:
            tell("broken", text=f"{type(error).__name__}: {error}")


async def steps_a_second(name: str, device: Any) -> float:
    """A compiled training step, its loss read each time, as a program does that shows it."""
    step = torch.compile(workloads.WORKLOADS[name].build(torch, "webgpu"))
    for _ in range(4):
        await step().item_async()
    count, begun = 0, time.perf_counter()
    while (taken := time.perf_counter() - begun) < SECONDS or count < 3:
        await step().item_async()
        count += 1
    return count / taken


Made = Callable[[int], tuple[Callable[[], object], float]]  # a size -> what works on it, and how much that is


def rates(device: Any) -> list[tuple[str, Made, tuple[int, ...], str]]:
    """Products and a copy: their names, what makes them, sizes, and units of 1e9."""

    def product(dtype: torch.dtype) -> Made:
        def made(side: int) -> tuple[Callable[[], object], float]:
            x = torch.ones(side, side, dtype=dtype)
            return torch.compile(lambda: x @ x), 2.0 * side**3

        return made

    def copy(size: int) -> tuple[Callable[[], object], float]:
        x = torch.ones(size)
        return torch.compile(lambda: x.clone()), 8.0 * size

    found = [("product in float32", product(torch.float32), SIDES, "GFLOP/s")]
    if "shader-f16" in device.info.features:
        found.append(("product in float16", product(torch.float16), SIDES, "GFLOP/s"))
    return [*found, ("copy", copy, LONG, "GB/s")]


async def best(made: Made, sizes: tuple[int, ...], device: Any) -> float:
    """The highest rate among sizes, each larger than the last, until one takes long."""
    found = 0.0
    for size in sizes:
        work, amount = made(size)
        seconds = await duration(work, 3, device)
        count = max(3, min(200, int(ENOUGH / max(seconds, 1e-6))))
        seconds = await duration(work, count, device)
        found = max(found, amount / seconds / 1e9)
        if seconds > ENOUGH / 3:
            break
    return found


async def duration(work: Callable[[], object], count: int, device: Any) -> float:
    """Seconds of one, where several are queued."""
    begun = time.perf_counter()
    for _ in range(count):
        result = work()
        executor.submit(device)
        del result
    await device.synchronize_async()
    return (time.perf_counter() - begun) / count
