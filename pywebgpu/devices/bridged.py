"""Pyodide's end of the bridge: WebGPU in a browser's page or worker, and in Node.

Uploads, runs and what became free are written as commands into memory that JavaScript sees, and a run hands all of them
over with one call. Only opening and reading wait; where Python cannot be suspended, their awaitable forms are the way.
"""

from __future__ import annotations

import json
import re
import signal
import struct
import threading
import time
import warnings
from array import array
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any, TypeVar

import js
from pyodide.ffi import JsException, can_run_sync, create_proxy, run_sync

import pywebgpu.compiler.driver  # noqa: F401 - here already when the first step needs it
from pywebgpu.compiler import wire
from pywebgpu.compiler.program import Program
from pywebgpu.devices import features as adapter_features
from pywebgpu.devices import js_modules, transcode
from pywebgpu.devices.adapters import SOFTWARE, AdapterInfo
from pywebgpu.devices.base import GONE, RECOVER, Buffer, check_room, check_supported
from pywebgpu.devices.timing import Timing
from pywebgpu.errors import (
    CannotWaitError,
    CompileError,
    DeviceError,
    DeviceLostError,
    IntegerOverflowError,
    PywebgpuError,
    of_row,
)
from pywebgpu.ir.graph import Spec
from pywebgpu.kernels import tuning
from pywebgpu.kernels.kernel import Kernel
from pywebgpu.kernels.launch import Tuning
from pywebgpu.kernels.target import CLOCK
from pywebgpu.settings import settings
from pywebgpu.support.ends import Ends
from pywebgpu.support.formats import WORD

if TYPE_CHECKING:
    from pyodide.ffi import JsProxy

    from pywebgpu.devices.base import Bytes

FREE, DROP, WRITE, RUN, CLEAR = 1, 2, 3, 4, 5  # the commands of js_bridge/python.mjs
AREA_WORDS = 1 << 14
FULL_WORDS = 1 << 19  # commands of this length are handed over though nothing runs
INLINE_BYTES = 1 << 20  # an upload up to this size goes with the commands
UNREAD = 64  # runs that may be queued before Python waits for the device, where it can
T = TypeVar("T")
FREED_BYTES = 64 << 20  # memory that became free is given back at the latest now

_HAS_JSPI = hasattr(js.WebAssembly, "Suspending")
_KINDS: dict[str, type[PywebgpuError]] = {
    "absent": DeviceError, "device": DeviceError, "lost": DeviceLostError, "compile": CompileError,
    "overflow": IntegerOverflowError,
}  # fmt: skip


_absent: list[str] = []  # why no adapter could be opened, once that was tried
warnings.filterwarnings("ignore", "tqdm:disabling monitor support")  # There are no threads here, which is no news.


def wait(awaitable: Awaitable[T], instead: str) -> T:
    """The value of an awaitable, with Python suspended until it is there.

    Raises CannotWaitError where that is impossible: in a browser without JSPI, or where JavaScript called Python, as in
    event handlers.

    A Ctrl-C meanwhile would end the event loop, whose Python runs then; it is kept until the caller runs again.
    """
    if not can_run_sync():
        close = getattr(awaitable, "close", None)
        if close is not None:
            close()
        handler = "; in an event handler, wrap it: torch.webgpu.handler(function), or make the handler async"
        raise CannotWaitError(f"cannot wait for the device here; use: {instead}{handler if _HAS_JSPI else ''}")
    kept: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: kept.append(number))
    try:
        result: T = run_sync(awaitable)
        return result
    finally:
        signal.signal(signal.SIGINT, before)
        if kept:
            signal.raise_signal(signal.SIGINT)


class Loaded:
    """A Program that JavaScript holds by number."""

    def __init__(self, device: BridgedDevice, number: int, program: Program) -> None:
        self.number, self.program = number, program
        self.faults = any(kernel.faults for kernel in program.kernels)
        self.sizes = [program.sizes[program.slots[slot].buffer] for slot in program.outputs]
        self.pack = struct.Struct(
            "<" + "".join({"f32": "f", "i32": "i", "u32": "I"}[str(d.compute)] for d in program.numbers)
        )
        device.dropped.watch(self, number)


class BridgedDevice:
    """The adapter that the browser, or Dawn, offers. Contexts are objects: several live side by side."""

    is_host = False
    computes = True
    has_values = True
    has_storages = True
    holds_all = False

    def __init__(self, bridge: JsProxy, index: int = 0) -> None:
        self.name = f"webgpu:{index}" if index else "webgpu"
        self.lock = threading.RLock()  # Pyodide has one thread.
        self.generation = self._numbers = 0
        self._counters = {"ffi_calls": 0, "peak_bytes": 0, "uploaded_bytes": 0, "downloaded_bytes": 0}
        self._timed: list[Timing] | None = None  # the runs since `time`, whose spans JavaScript has
        self._ends, self.dropped = Ends(), Ends()  # of buffers, and of Programs
        self._connect(bridge)

    def _connect(self, bridge: JsProxy) -> None:
        """Takes a device of JavaScript. What has a number up to the present one belongs to an earlier one."""
        info = json.loads(bridge.info)
        self.info = _described(info)
        self.adapter, self.host = self.info.name, str(info["host"])
        limits = {_dashed(name): size for name, size in info["limits"].items()}
        self.target = adapter_features.target(limits, self.info.profile, info["tuning"])
        self._bridge = bridge
        self._flush_area, self._read, self._read_now = bridge.flush, bridge.read, bridge.readNow
        bridge.bridge.pool.budget = settings.pool << 20
        self._counters |= {"live_bytes": 0, "live_buffers": 0, "scratch_bytes": 0}
        self._used = self._unread = self._freed_bytes = 0
        self._stale = self._numbers
        self._freed: list[int] = []
        self.has_clock = CLOCK in info["features"]
        self._gone: tuple[type[DeviceError], str] | None = None  # why nothing can be done
        self._area = bytearray()
        self._attach(AREA_WORDS)

    # Loss

    @property
    def gpu(self) -> JsProxy:
        """JavaScript's GPUDevice."""
        return self._bridge.bridge.gpu

    @property
    def is_gone(self) -> bool:
        """Whether it was lost, or closed."""
        return self._gone is not None

    def reopen(self) -> None:
        """As NativeDevice.reopen."""
        wait(self.reopen_async(), "await torch.webgpu.recover_async()")

    async def reopen_async(self) -> None:
        """As reopen, where Python cannot wait as well."""
        self._bridge.close()
        self._connect(await _open_bridge())
        self.generation += 1
        self._timed = None if self._timed is None else []

    def leave(self) -> bool:
        return False  # Pyodide does not fork.

    def _check_open(self) -> None:
        if self._gone is not None:
            kind, text = self._gone
            raise kind(f"{self.name}: {text}")

    def _told(self, error: JsException) -> PywebgpuError:
        """An exception of JavaScript as one of ours."""
        if getattr(error, "kind", "") != "lost":
            return _translated(error)
        self._gone = kind, text = DeviceLostError, f"{error.message}; {RECOVER}"
        return kind(f"{self.name}: {text}")

    def _check_made(self, number: int) -> None:
        """Raises DeviceLostError for a buffer, or a Program, of a device that was lost."""
        if number <= self._stale:
            raise DeviceLostError(f"{self.name}: {GONE}")

    # Commands

    def _attach(self, size: int) -> None:
        """Gives the commands an area of `size` words; what is in the present one moves along."""
        area = bytearray(WORD * size)
        if self._used:
            area[: WORD * self._used] = self._area[: WORD * self._used]
        self._area, self._words = area, memoryview(area).cast("i")
        self._counters["ffi_calls"] += 1
        self._bridge.attach(create_proxy(area))

    def _append(self, command: Sequence[int], payload: Bytes = b"") -> None:
        """Writes words, then bytes."""
        start = self._used
        middle = start + len(command)
        end = middle + len(payload) // WORD
        if end > len(self._words):
            self._attach(2 * end)
        self._words[start:middle] = array("i", command)
        if payload:
            self._area[WORD * middle : WORD * end] = payload
        self._used = end

    def _take_back(self) -> None:
        """Counts buffers that ended."""
        for handle, nbytes in self._ends.take():
            if handle > self._stale:
                self._counters["live_bytes"] -= nbytes
                self._counters["live_buffers"] -= 1
                self._freed.append(handle)
                self._freed_bytes += nbytes

    def _append_freed(self) -> None:
        self._take_back()
        if self._freed:
            freed, self._freed = self._freed, []
            self._freed_bytes = 0
            self._append((FREE, len(freed), *freed))
        for (number,) in self.dropped.take():
            if number > self._stale:
                self._append((DROP, number))

    def _taken(self) -> int:
        """How many words the next call takes along."""
        self._append_freed()
        taken, self._used = self._used, 0
        self._counters["ffi_calls"] += 1
        return taken

    def _call(self, function: Callable[..., Any], *args: Any) -> Any:
        try:
            return function(*args)
        except JsException as error:
            raise self._told(error) from None

    # Data

    def upload(self, data: Bytes, spec: Spec) -> Buffer:
        check_supported(spec.dtype, self)
        self._check_open()
        check_room(spec, self)
        content = memoryview(transcode.stored(data, spec.dtype)).cast("B")
        buffer = self._new(spec.dtype.format.room(prod(spec.shape)))
        self._counters["uploaded_bytes"] += content.nbytes
        if content.nbytes <= INLINE_BYTES:
            padded = content if content.nbytes else bytes(WORD)
            self._append((WRITE, buffer.handle, len(padded) // WORD), padded)
            if self._used > FULL_WORDS:
                self._call(self._flush_area, self._taken())
        else:
            self._call(self._bridge.write, self._taken(), buffer.handle, content)
        return buffer

    def zeros(self, spec: Spec) -> Buffer:
        check_supported(spec.dtype, self)
        self._check_open()
        check_room(spec, self)
        nbytes = spec.dtype.format.room(prod(spec.shape))
        buffer = self._new(nbytes)
        self._append((CLEAR, buffer.handle, nbytes // WORD))
        return buffer

    def download(self, buffer: Buffer, spec: Spec) -> bytes:
        read = self._read_now if can_run_sync() else self._read
        try:
            result, finish = self._start_read(read, buffer, spec)
            if type(result) is not int:
                result = wait(result, "await x.item_async(), x.tolist_async(), x.cpu_async(), torch.save_async()")
            return finish(result)
        except JsException as error:
            raise self._told(error) from None

    async def download_async(self, buffer: Buffer, spec: Spec) -> bytes:
        """As download, where Python cannot wait as well."""
        arriving, finish = self._start_read(self._read, buffer, spec)
        try:
            return finish(await arriving)
        except JsException as error:
            raise self._told(error) from None

    def _start_read(self, read: Callable[..., Any], buffer: Buffer, spec: Spec) -> tuple[Any, Callable[[Any], bytes]]:
        self._check_open()
        self._check_made(buffer.handle)
        self._unread = 0
        count = prod(spec.shape)
        taken = self._taken()
        nbytes = spec.dtype.format.nbytes(count)
        self._counters["downloaded_bytes"] += nbytes
        if nbytes == WORD:
            arriving = read(taken, buffer.handle, WORD)
            return arriving, lambda word: transcode.elements(int(word).to_bytes(WORD, "little"), spec.dtype, count)
        target = bytearray(nbytes)
        arriving = read(taken, buffer.handle, nbytes, target)
        return arriving, lambda _: transcode.elements(target, spec.dtype, count)

    def _new(self, nbytes: int) -> Buffer:
        self._take_back()
        self._numbers += 1
        counters = self._counters
        counters["live_bytes"] += nbytes
        counters["live_buffers"] += 1
        self._count_peak()
        if self._freed_bytes > FREED_BYTES:
            self._append_freed()
        buffer = Buffer(self, self._numbers, nbytes)
        self._ends.watch(buffer, self._numbers, nbytes)
        return buffer

    def _count_peak(self) -> None:
        counters = self._counters
        counters["peak_bytes"] = max(counters["peak_bytes"], counters["live_bytes"] + counters["scratch_bytes"])

    # Programs

    def prepare(self, kernel: Kernel) -> None:
        if self._gone is None:
            self._bridge.prepare(wire.kernel_json(kernel))

    def load(self, program: Program) -> Loaded:
        self._check_open()
        self._numbers += 1
        loaded = Loaded(self, self._numbers, program)
        self._counters["ffi_calls"] += 1
        self._counters["scratch_bytes"] = self._call(self._bridge.load, loaded.number, wire.to_json(program))
        self._count_peak()
        return loaded

    def run(
        self, loaded: Loaded, inputs: Sequence[Buffer], numbers: Sequence[float], outputs: Sequence[Buffer | None]
    ) -> list[Buffer]:
        self._check_open()
        if self._stale:
            self._check_made(min([loaded.number, *[buffer.handle for buffer in inputs]]))
            outputs = [None if output is None or output.handle <= self._stale else output for output in outputs]
        start = time.perf_counter()
        program = loaded.program
        self._append_freed()
        buffers: dict[int, Buffer] = {}
        command = [RUN, loaded.number, *[buffer.handle for buffer in inputs]]
        for slot, output, nbytes in zip(program.outputs, outputs, loaded.sizes, strict=True):
            buffer = buffers.get(slot)
            if buffer is None:
                buffers[slot] = buffer = output or self._new(nbytes)
            command.append(buffer.handle)
        before = self._used
        self._append(command, transcode.of_numbers(loaded.pack, numbers, program.numbers))
        self._counters["ffi_calls"] += 1
        if not self._call(self._flush_area, self._used):
            self._used = before
            self._call(self._bridge.check)
        self._used = 0
        if self._timed is not None:
            self._timed.append(Timing(program, start, time.perf_counter(), []))
        self._unread += 1
        if self._unread > UNREAD and can_run_sync():
            self.synchronize()
        return [buffers[slot] for slot in program.outputs]

    def time(self, on: bool) -> None:
        """As NativeDevice.time."""
        self._timed = [] if on else None
        self._call(self._bridge.time, self._taken(), on)

    def timings(self) -> list[Timing]:
        timings: list[Timing] = wait(self.timings_async(), "await profiler.stop_async()")
        return timings

    async def timings_async(self) -> list[Timing]:
        """As timings, where Python cannot wait as well."""
        self._check_open()
        try:
            ticks_of_timings = json.loads(await self._bridge.timings(self._taken()))
        except JsException as error:
            raise self._told(error) from None
        timed, self._timed = self._timed or [], None if self._timed is None else []
        pairs = [list(zip(ticks[::2], ticks[1::2], strict=True)) for ticks in ticks_of_timings]
        is_whole = not self.has_clock
        return [replace(timing, spans=spans, whole=is_whole) for timing, spans in zip(timed, pairs, strict=True)]

    def synchronize(self) -> None:
        wait(self.synchronize_async(), "await torch.webgpu.synchronize_async()")

    async def synchronize_async(self) -> None:
        """As synchronize, where Python cannot wait as well."""
        self._check_open()
        self._unread = 0
        try:
            await self._bridge.settle(self._taken())
        except JsException as error:
            raise self._told(error) from None

    @property
    def counters(self) -> dict[str, int]:
        """What was done so far, always in the same dictionary. Asking crosses to JavaScript, which is not counted."""
        self._take_back()
        self._counters.update(json.loads(self._bridge.counters()))
        return self._counters

    def keep_tuning(self, tuned: Tuning) -> str:
        """As NativeDevice.keep_tuning."""
        self.target = replace(self.target, tuning=tuned)
        place: str = wait(
            self._bridge.keep(tuning.own_text(self.target.features, tuned)), "a worker, or runPythonAsync"
        )
        return place

    def close(self) -> None:
        self._gone = DeviceError, "the device was closed; tensors that lived on it are gone"
        self._bridge.close()


def _translated(error: JsException) -> PywebgpuError:
    """An exception of JavaScript as one of ours."""
    kind = getattr(error, "kind", "device")
    text = str(error.message)
    if kind == "fault":
        number, size = re.findall(r"-?\d+", text)
        return of_row(int(number), int(size))
    return _KINDS.get(kind, DeviceError)(text if kind in ("overflow", "compile") else f"webgpu: {text}")


def _dashed(name: str) -> str:
    """As wgpu-py names a limit."""
    return re.sub("[A-Z]", lambda match: f"-{match[0].lower()}", name)


def _described(info: dict[str, Any]) -> AdapterInfo:
    name = str(info["name"])
    is_software = bool(info["isFallback"]) or any(word in f"{name} {info['architecture']}".lower() for word in SOFTWARE)
    features = tuple(sorted(info["features"]))
    profile = adapter_features.bridged(info, is_software=is_software)
    kind = "CPU" if is_software else "Unknown"
    return AdapterInfo(name, "WebGPU", kind, "", is_software, info["limits"], features, profile)


async def open_device_async(index: int = 0) -> BridgedDevice:
    """Opens the adapter of this page or process. Raises DeviceError where there is none."""
    return BridgedDevice(await _open_bridge(), index)


async def _open_bridge() -> JsProxy:
    try:
        bridge = await (await js_modules.load("python.mjs")).open()
    except JsException as error:
        trouble = _translated(error)
        _absent[:] = [str(trouble)]
        raise trouble from None
    _absent.clear()
    return bridge


def open_device(index: int = 0) -> BridgedDevice:
    if not can_run_sync():
        if _absent or not getattr(js.navigator, "gpu", None):
            raise DeviceError(_absent[0] if _absent else "webgpu: there is no navigator.gpu here")
        raise CannotWaitError(
            "device webgpu is not open, and Python cannot wait for it here: await torch.webgpu.init()"
        )
    return wait(open_device_async(index), "")
