"""torch.memory: what a device holds and has done, and, while it is tracked, which line made what is still there."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, Any, Self
from weakref import WeakKeyDictionary

from pywebgpu import devices
from pywebgpu.compiler.program import Program
from pywebgpu.devices.base import Device
from pywebgpu.dtypes import DType
from pywebgpu.ir import origin
from pywebgpu.ir.origin import Origin
from pywebgpu.runtime import executor, state
from pywebgpu.runtime.storage import Storage

if TYPE_CHECKING:
    from pywebgpu.tensor.factory_options import DeviceLike


def stats(device: DeviceLike = None) -> dict[str, int]:
    """Counters of the device, and of the programs found and compiled.

    live_bytes: of tensors.  scratch_bytes: of what passes inside Programs, which all of them share.  peak_bytes: the
    most that both were together.  waiting_bytes: free, kept to be used again.  device_bytes: all from the device.
    pool_reused, pool_created: how often a buffer was found there, and had to be made.
    uploaded_bytes, downloaded_bytes: what crossed to a GPU's device and back.  writes: how often something was written
    to it, data or numbers that changed.
    """
    return {**devices.open_device(device).counters, **state.default.counters}


def allocated(device: DeviceLike = None) -> int:
    """Bytes of live buffers."""
    return devices.open_device(device).counters["live_bytes"]


def reset_peak(device: DeviceLike = None) -> None:
    """Peak bytes count from now."""
    counters = devices.open_device(device).counters
    counters["peak_bytes"] = counters["live_bytes"] + counters["scratch_bytes"]


def memory_summary(device: DeviceLike = None, rows: int = 10) -> str:
    """The same as text, with the largest live tensors by the line that made them where `track` is on."""
    opened = devices.open_device(device)
    statistics = stats(device)
    names = {
        "live_bytes": "live tensors", "scratch_bytes": "inside programs", "peak_bytes": "peak of both",
        "waiting_bytes": "waiting in the pool", "device_bytes": "on the device in all",
    }  # fmt: skip
    lines = [f"device {opened.name}: {statistics['live_buffers']} live buffers"]
    lines += [f"  {text:22}{in_units(statistics[name]):>12}" for name, text in names.items() if name in statistics]
    if statistics.get("pool_created"):
        asked = statistics["pool_reused"] + statistics["pool_created"]
        lines.append(f"  {'found in the pool':22}{_share(statistics['pool_reused'], asked):>12} of {asked}")
    tracked = live_tensors(device)
    for tensor in tracked[:rows]:
        lines.append(f"  {in_units(tensor.nbytes):>12}  {tensor.count} x {tensor.text}  {tensor.line}")
    if len(tracked) > rows:
        lines.append(f"  {len(tracked) - rows} more lines")
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Live:
    """Live tensors that one line made, all of one shape and dtype. `line` is "" for those older than the tracking."""

    line: str
    module: str
    shape: tuple[int, ...]
    dtype: DType
    count: int
    nbytes: int

    @property
    def text(self) -> str:
        return f"{self.dtype.name}{list(self.shape)}"


class Tracking(origin.Watcher[Storage, Program, Device]):
    """Remembers the line that made each tensor, until `stop` or the end of a `with` block."""

    lines = True

    def __init__(self) -> None:
        self._made: WeakKeyDictionary[Storage, Origin] = WeakKeyDictionary()

    def made(self, storage: Storage, origin: Origin) -> None:
        self._made[storage] = origin

    def storages(self) -> Mapping[Storage, Origin]:
        return dict(self._made)

    def stop(self) -> None:
        if self in _tracking:
            _tracking.remove(self)
            origin.unwatch(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        self.stop()


_tracking: list[Tracking] = []


def track() -> Tracking:
    """Names, from now on, the line of the program that made each tensor: see `live_tensors` and `memory_summary`."""
    tracking = Tracking()
    origin.watch(tracking)
    _tracking.append(tracking)
    return tracking


def live_tensors(device: DeviceLike = None) -> list[Live]:
    """What was made while `track` is on and is still alive, the largest first. A value that waits counts, too."""
    opened = devices.open_device(device)
    origins: dict[Storage, Origin] = {}
    for tracking in _tracking:
        origins.update(tracking.storages())
    totals: Counter[tuple[str, str, tuple[int, ...], DType]] = Counter()
    nbytes: Counter[tuple[str, str, tuple[int, ...], DType]] = Counter()
    wholes = {id(storage.whole) for storage in origins if storage.whole is not None}  # Their parts are listed.
    for storage, where in origins.items():
        if storage.device is opened and id(storage) not in wholes:
            shape, dtype = storage.node.spec
            key = where.line, where.module, tuple(shape), dtype
            totals[key] += 1
            nbytes[key] += dtype.format.nbytes(prod(shape)) if opened.target.wgsl else prod(shape) * dtype.itemsize
    return [Live(*key, count=totals[key], nbytes=size) for key, size in nbytes.most_common()]


@dataclass(frozen=True, slots=True)
class Leaks:
    """What calls of a function left behind: how live bytes and tensors grew, and which lines made what stayed."""

    calls: int
    nbytes: int
    count: int
    lines: tuple[Live, ...]

    @property
    def ok(self) -> bool:
        return not self.lines and self.nbytes <= 0

    def __str__(self) -> str:
        verdict = "OK" if self.ok else "FAIL"
        grown = f"{in_units(max(self.nbytes, 0))} and {max(self.count, 0)} tensors more"
        lines = [f"leaks {verdict}: {grown} after {self.calls} calls"]
        lines += [f"  {in_units(row.nbytes):>12}  {row.count} x {row.text}  {row.line}" for row in self.lines]
        return "\n".join(lines)


def leaks(function: Callable[[], object], *, calls: int = 6, device: DeviceLike = None) -> Leaks:
    """Calls a function, a training step for example, and tells whether memory stays behind, and made by which lines.

    Three calls are for what is made once. What grows in the first half of `calls` and in the second is a leak.
    """
    opened = devices.open_device(device)
    for _ in range(3):
        function()
    seen = []
    with track():
        for _ in range(2):
            for _ in range(-(-calls // 2)):
                function()
            executor.submit(opened)
            gc.collect()
            rows = {(row.line, row.text): row for row in live_tensors(device)}
            counters = opened.counters
            seen.append((rows, counters["live_bytes"], counters["live_buffers"]))
    (before, bytes_before, buffers_before), (after, bytes_after, buffers_after) = seen
    grown = []
    for key, row in after.items():
        old = before.get(key)
        if old is not None and row.count > old.count:
            grown.append(replace(row, count=row.count - old.count, nbytes=row.nbytes - old.nbytes))
    growth = (bytes_after - bytes_before, buffers_after - buffers_before)
    return Leaks(-(-calls // 2), *growth, tuple(sorted(grown, key=lambda row: -row.nbytes)))


def in_units(nbytes: int) -> str:
    """As 12 B, 3.40 MB."""
    size, unit = float(nbytes), "B"
    for larger in ("kB", "MB", "GB"):
        if size >= 1000:
            size, unit = size / 1000, larger
    return f"{nbytes} B" if unit == "B" else f"{size:.2f} {unit}"


def _share(part: int, total: int) -> str:
    return f"{100 * part / total:.1f}%" if total else "-"
