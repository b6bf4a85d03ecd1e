"""wgpu-py: WebGPU outside the browser.

A Program becomes pipelines and scratch buffers once (`loaded.py`). A run writes the host numbers that changed, encodes
one compute pass and submits it once. A device may be lost at any time: whatever the driver refuses from then on is a
DeviceLostError, until `reopen`. What was made before is told from what is there now by the wgpu device that it has.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import wgpu

import pywebgpu.compiler.driver  # noqa: F401 - here already when the first step needs it
from pywebgpu import dtypes
from pywebgpu.compiler.program import Program
from pywebgpu.devices import adapters, native_pass, native_read, transcode, tunings
from pywebgpu.devices import features as adapter_features
from pywebgpu.devices.base import GONE, RECOVER, Buffer, check_room, check_supported
from pywebgpu.devices.blocking import Blocking, Counting
from pywebgpu.devices.loaded import Loaded, Pipelines, Residents
from pywebgpu.devices.pool import Chunk, Pool, Scratch
from pywebgpu.devices.reader import FAULT_BYTES, Ahead, Reader
from pywebgpu.devices.timing import Stamps, Timing, Waiting
from pywebgpu.devices.transcode import of_numbers
from pywebgpu.dtypes import DType
from pywebgpu.errors import CompileError, DeviceError, DeviceLostError, PywebgpuError
from pywebgpu.ir.graph import Spec
from pywebgpu.kernels import marks, tuning
from pywebgpu.kernels.kernel import Kernel
from pywebgpu.kernels.launch import Tuning
from pywebgpu.kernels.target import CLOCK
from pywebgpu.settings import settings
from pywebgpu.support import interrupts
from pywebgpu.support.ends import Ends
from pywebgpu.support.formats import WORD
from pywebgpu.support.numbers import too_wide

if TYPE_CHECKING:
    from wgpu import GPUAdapter, GPUBuffer, GPUCommandEncoder, GPUComputePipeline, GPUDevice, GPUQueue

    from pywebgpu.devices.base import Bytes, Handle

STORAGE = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST
STAGING = wgpu.BufferUsage.MAP_READ | wgpu.BufferUsage.COPY_DST
UNIFORM = wgpu.BufferUsage.UNIFORM | wgpu.BufferUsage.COPY_DST
REFUSED = (wgpu.GPUError, RuntimeError, AttributeError)  # what wgpu-py raises where a device is lost
WANTED_LIMITS = (
    "max-storage-buffers-per-shader-stage",
    "max-storage-buffer-binding-size",
    "max-buffer-size",
    "max-compute-invocations-per-workgroup",
    "max-compute-workgroup-size-x",
    "max-compute-workgroup-storage-size",
)


class NativeDevice(Blocking, Counting):
    """One wgpu device. Contexts are objects: several live side by side."""

    holds_all = False

    def __init__(self, index: int = 0) -> None:
        super().__init__()
        self.name = f"webgpu:{index}" if index else "webgpu"
        self._index = index
        self._counters |= {"device_bytes": 0, "waiting_bytes": 0, "pool_reused": 0, "pool_created": 0}
        self._counters |= {"writes": 0, "uploaded_bytes": 0, "downloaded_bytes": 0}
        self.generation = 0
        self._unloaded = Ends()
        self._timed: list[Waiting] | None = None  # the runs since `time`
        self._connect()

    def _connect(self) -> None:
        """Opens the adapter. Raises DeviceError where there is none."""
        adapter = _adapter(self._index)
        self.adapter = str(adapter.info["device"])
        wanted = {name: adapter.limits[name] for name in WANTED_LIMITS}
        self.has_clock = CLOCK in adapter.features
        features: Any = adapter_features.wanted(adapter.features)
        self._gpu = adapter.request_device_sync(required_limits=wanted, required_features=features)
        limits = self._gpu.limits
        profile = adapter_features.native(adapter.info, adapter.features)
        own = tunings.load(adapter.info)
        self.target = adapter_features.target(limits, profile, own)
        self._info = adapter.info
        self._gone: tuple[type[DeviceError], str] | None = None  # why nothing can be done
        self._is_left = False
        self._pool = Pool(lambda size: self._create(size, STORAGE), self._destroy, settings.pool << 20)
        self._scratch = Scratch(self._pool)
        self._staging = Pool(lambda size: self._create(size, STAGING), self._destroy, budget=64 << 20)
        self._pipelines = Pipelines(self._gpu, self._counters, [adapter_features.NATIVE[name] for name in features])
        self._residents = Residents(self._pipelines, profile.kind)
        self._fault = self._create(WORD * marks.WORDS, STORAGE)
        wait_for = native_read.chosen(profile.kind)
        self._reader = Reader(self._gpu, self._staging, self._fault, self._counters, wait_for)

    # Loss

    @property
    def gpu(self) -> GPUDevice:
        """wgpu-py's device."""
        return self._gpu

    @property
    def is_gone(self) -> bool:
        """Whether it was lost, closed, or left in another process."""
        return self._gone is not None

    def reopen(self) -> None:
        """Opens the adapter again after a loss. What was made before belongs to the device that is gone."""
        with self.lock:
            self._gpu.destroy()
            for name in ("live_bytes", "live_buffers", "device_bytes", "scratch_bytes", "waiting_bytes"):
                self._counters[name] = 0
            self._connect()
            self.generation += 1
            self._timed = None if self._timed is None else []

    def leave(self) -> bool:
        self._gone = DeviceError, adapters.FORKED
        self._is_left = True
        return True

    def _check_open(self) -> None:
        if self._gone is not None:
            kind, text = self._gone
            raise kind(f"{self.name}: {text}")

    def _refuse(self, error: Exception) -> NoReturn:
        """Raises what an exception of the driver means. Asked for the least work, a lost device refuses that, too."""
        try:
            self._gpu.create_command_encoder().finish()
        except Exception as refused:
            self._gone = kind, text = DeviceLostError, f"the device is gone: {_last_line(refused)}; {RECOVER}"
            raise kind(f"{self.name}: {text}") from None
        if isinstance(error, wgpu.GPUError):
            raise DeviceError(f"{self.name}: {error}") from error
        raise error

    def _is_stale(self, handle: Handle) -> bool:
        """Whether a buffer was made before the device was lost and opened again."""
        return handle._device is not self._gpu

    # Data

    def upload(self, data: Bytes, spec: Spec) -> Buffer:
        check_supported(spec.dtype, self)
        self._check_open()
        check_room(spec, self)
        content = memoryview(_stored(data, spec.dtype))
        with interrupts.held(), self.lock:
            buffer = self._new(spec.dtype.format.room(prod(spec.shape)))
            self._reader.forget(buffer.handle)
            if content.nbytes:
                try:
                    self._gpu.queue.write_buffer(buffer.handle, 0, content)
                except REFUSED as error:
                    self._refuse(error)
                self._counters["ffi_calls"] += 1
                self._counters["writes"] += 1
                self._counters["uploaded_bytes"] += content.nbytes
        return buffer

    def zeros(self, spec: Spec) -> Buffer:
        check_supported(spec.dtype, self)
        self._check_open()
        check_room(spec, self)
        with interrupts.held(), self.lock:
            buffer = self._new(spec.dtype.format.room(prod(spec.shape)))
            self._reader.forget(buffer.handle)
            try:
                encoder = self._gpu.create_command_encoder()
                encoder.clear_buffer(buffer.handle)
                self._gpu.queue.submit([encoder.finish()])
            except REFUSED as error:
                self._refuse(error)
            self._counters["ffi_calls"] += 4
        return buffer

    def download(self, buffer: Buffer, spec: Spec) -> bytes:
        self._check_open()
        if self._is_stale(buffer.handle):
            raise DeviceLostError(f"{self.name}: {GONE}")
        count = prod(spec.shape)
        raw = self._read(buffer.handle, spec.dtype.format.nbytes(count))
        self._counters["downloaded_bytes"] += len(raw)
        if spec.dtype is dtypes.int64:
            return np.frombuffer(raw, "int32").astype("int64").tobytes()
        return transcode.elements(raw, spec.dtype, count)

    def _read(self, handle: Handle, nbytes: int) -> bytes:
        """A buffer's first bytes, once all that was queued has run. Raises for an index that was out of range."""
        try:
            with interrupts.held():
                with self.lock:
                    self._check_open()
                    reader = self._reader
                    reading = reader.begin(handle, nbytes)
                    if reading is None:
                        return b""
                    if reading.loaded is not None:
                        self._encode_ahead(reading.loaded)
                try:
                    with interrupts.allowed():
                        reading.wait()  # Other threads go on meanwhile.
                except BaseException:
                    reader.leave(reading)
                    raise
                with self.lock:
                    self._residents.return_memory()
                    return reader.finish(reading)
        except PywebgpuError:
            raise
        except REFUSED as error:
            self._refuse(error)

    def _take_back(self) -> None:
        """What buffers and Programs that ended had goes back to the pools. The lock is held."""
        for left in self._unloaded.take():
            self._unload(*left)
        for handle, nbytes in self._ends.take():
            if self._is_stale(handle):
                continue
            self._counters["live_bytes"] -= nbytes
            self._counters["live_buffers"] -= 1
            if self._gone is None:
                self._pool.give(handle, nbytes)
                self._counters["waiting_bytes"] = self._pool.waiting_bytes

    def _new(self, nbytes: int) -> Buffer:
        self._take_back()
        handle = self._pool.take(nbytes)
        counters = self._counters
        counters["live_bytes"] += nbytes
        counters["live_buffers"] += 1
        self._count_peak()
        buffer = Buffer(self, handle, nbytes)
        # It also keeps the handle out of cyclic garbage, where wgpu's finaliser would end it.
        self._ends.watch(buffer, handle, nbytes)
        return buffer

    def _count_peak(self) -> None:
        counters, pool = self._counters, self._pool
        counters["waiting_bytes"], counters["pool_reused"] = pool.waiting_bytes, pool.reused
        counters["pool_created"] = pool.created
        counters["peak_bytes"] = max(counters["peak_bytes"], counters["live_bytes"] + counters["scratch_bytes"])

    def _create(self, size: int, usage: int) -> GPUBuffer:
        self._counters["buffers_created"] += 1
        self._counters["ffi_calls"] += 1
        try:
            buffer = self._gpu.create_buffer(size=size, usage=usage)
        except REFUSED as error:
            self._refuse(DeviceError(f"{self.name}: cannot create a buffer of {size} bytes: {error}"))
        self._counters["device_bytes"] += size
        return buffer

    def _destroy(self, buffer: GPUBuffer) -> None:
        self._counters["device_bytes"] -= buffer.size
        buffer.destroy()

    # Programs

    def prepare(self, kernel: Kernel) -> None:
        with self.lock:
            if self._gone is None:
                self._pipelines.begin(kernel)

    def load(self, program: Program) -> Loaded:
        with self.lock:
            self._check_open()
            self._take_back()
            pipelines = self._pipelines_of(program)
            chunks = self._scratch.take({b: program.sizes[b] for b in program.scratch})
            self._counters["scratch_bytes"] = self._scratch.nbytes
            self._count_peak()
            loaded = Loaded(self.name, program, pipelines, chunks, self._fault, self._counters)
            if loaded.words:
                loaded.uniform = self._create(WORD * len(loaded.words), UNIFORM)
            self._unloaded.watch(loaded, self._gpu, [*chunks.values()], loaded.uniform, loaded.ahead)
            self._make_resident(loaded)
            return loaded

    def _pipelines_of(self, program: Program) -> list[GPUComputePipeline]:
        try:
            return self._pipelines.get(program.kernels)
        except CompileError as error:
            self._refuse(error)

    def _make_resident(self, loaded: Loaded) -> None:
        """It has its pipelines now; those lose theirs that are too many then."""
        self._residents.add(loaded)
        for surplus in self._residents.surplus():
            self._reader.drop(surplus)
            surplus.unload()

    def _unload(self, gpu: GPUDevice, chunks: list[Chunk], uniform: GPUBuffer | None, ahead: list[Ahead]) -> None:
        """Takes back what a Program had that nobody has any more."""
        if self._gone is not None or gpu is not self._gpu:
            return
        self._scratch.give(chunks)
        self._counters["scratch_bytes"] = self._scratch.nbytes
        if uniform is not None:
            self._destroy(uniform)
        for run in ahead:
            self._reader.give_back(run.reading)

    def _bound(
        self, program: Program, inputs: Sequence[Buffer], outputs: Sequence[Buffer | None]
    ) -> tuple[dict[int, Buffer], dict[int, Any]]:
        """The buffers of outputs by their slots, new ones where none is given; handles by the program's buffers."""
        buffers: dict[int, Buffer] = {}
        handles: dict[int, Any] = {}
        for slot, buffer in zip(program.inputs, inputs, strict=True):
            handles[program.slots[slot].buffer] = buffer.handle
        for slot, output in zip(program.outputs, outputs, strict=True):
            if slot not in buffers:
                number = program.slots[slot].buffer
                if output is None or (output.handle._device is not self._gpu and number not in handles):
                    output = self._new(program.sizes[number])
                buffers[slot] = output
                handles[number] = output.handle
        return buffers, handles

    def run(
        self, loaded: Loaded, inputs: Sequence[Buffer], numbers: Sequence[float], outputs: Sequence[Buffer | None]
    ) -> list[Buffer]:
        with self.lock:
            self._check_open()
            if loaded.gpu is not self._gpu:
                raise DeviceLostError(f"{self.name}: {GONE}")
            start, program = time.perf_counter(), loaded.program
            if loaded.pipelines is None:
                loaded.give(self._pipelines_of(program))
                self._make_resident(loaded)
            self._residents.ran(loaded)
            buffers, handles = self._bound(program, inputs, outputs)
            packed = of_numbers(loaded.pack, numbers, program.numbers) if program.numbers else b""
            timed = self.has_clock and self._timed is not None
            try:
                if packed != loaded.numbers and loaded.uniform is not None:
                    self._gpu.queue.write_buffer(loaded.uniform, 0, loaded.uniform_words(packed))
                    loaded.numbers = packed
                    self._counters["ffi_calls"] += 1
                    self._counters["writes"] += 1
                period = _period(self._gpu.queue) if timed else 0
                stamps = Stamps(self._gpu, len(program.steps), period, self._counters) if timed else None
                if program.steps:
                    outputs = [buffers[slot].handle for slot in program.outputs]
                    self._encode(loaded, loaded.bind(handles), outputs, stamps)
            except REFUSED as error:
                self._refuse(error)
            if self._timed is not None:
                self._timed.append(self._waiting(program, start, stamps))
            return [buffers[slot] for slot in program.outputs]

    def time(self, on: bool) -> None:
        """Whether the runs from now on are timed: a pass a step, which costs more than one pass for all of them."""
        self._timed = [] if on else None

    def timings(self) -> list[Timing]:
        """The runs that were timed and not asked for yet. Waits for them."""
        self._check_open()
        timed, self._timed = self._timed or [], None if self._timed is None else []
        try:
            return [waiting.finish() for waiting in timed]
        except REFUSED as error:
            self._refuse(error)

    def _waiting(self, program: Program, start: float, stamps: Stamps | None) -> Waiting:
        """A run that was just queued; without a clock the host waits for it."""
        end = time.perf_counter()
        if stamps is not None:
            return Waiting(program, start, end, stamps.read, whole=False)
        self.synchronize()
        span = round(start * 1e9), time.perf_counter_ns()
        return Waiting(program, start, end, lambda: [span], whole=True)

    def _encode(self, loaded: Loaded, groups: list[Any], outputs: list[Any], stamps: Stamps | None) -> None:
        reader = self._reader
        reader.may_fault |= loaded.faults
        commands = reader.adopt(loaded, groups, outputs) if stamps is None else None
        if commands is None:
            reader.forget()
            commands = self._commands(loaded, groups, lambda encoder: reader.foresee(loaded, outputs, encoder), stamps)
        if len(commands) == 1:
            self._gpu.queue.submit(commands)
        else:
            reader.submitted(native_read.submit(self._gpu.queue, commands[0]))
            self._gpu.queue.submit(commands[1:])
        loaded.past.append(([*groups], outputs))
        counters = self._counters
        counters["dispatches"] += len(groups)
        counters["submits"] += len(commands)
        counters["ffi_calls"] += 3 * len(groups) + 5

    def _commands(
        self,
        loaded: Loaded,
        groups: list[Any],
        bring: Callable[[GPUCommandEncoder], None],
        stamps: Stamps | None = None,
    ) -> list[Any]:
        """A run's commands: a second part where much is left to do after what `bring` adds what brings it back to."""
        end = len(groups)
        cut = loaded.cut() if stamps is None else end
        first = self._encoded(loaded, groups, range(cut), stamps)
        bring(first)
        rest = [self._encoded(loaded, groups, range(cut, end), None)] if cut < end else []
        return [encoder.finish() for encoder in (first, *rest)]

    def _encoded(self, loaded: Loaded, groups: list[Any], part: range, stamps: Stamps | None) -> GPUCommandEncoder:
        """The dispatches of a run, or of a part of it."""
        encoder = self._gpu.create_command_encoder()
        every = loaded.pipelines_of_steps, groups, loaded.grids
        steps = [items[part.start : part.stop] for items in every]
        if stamps is None:
            computing = encoder.begin_compute_pass()
            native_pass.dispatch(computing, *steps)
            computing.end()
            return encoder
        for index, step in enumerate(zip(*steps, strict=True)):
            writes: Any = stamps.around(index)
            computing = encoder.begin_compute_pass(timestamp_writes=writes)
            native_pass.dispatch(computing, *zip(step, strict=True))
            computing.end()
        stamps.resolve(encoder)
        return encoder

    def _encode_ahead(self, loaded: Loaded) -> None:
        """Encodes the next run of a Program that is run again and again, while the device is busy with this one."""
        ahead = loaded.foretold()
        if ahead is not None and loaded.wanted is not None and self._timed is None:
            self._reader.encode_ahead(loaded, *ahead, lambda bring: self._commands(loaded, ahead[0], bring))

    def keep_tuning(self, tuned: Tuning) -> str:
        """Kernels are launched by this table from now on, in later processes too. Where it is kept; "" nowhere."""
        self.target = replace(self.target, tuning=tuned)
        return tunings.save(self._info, tuning.own_text(self.target.features, tuned))

    def synchronize(self) -> None:
        # By a read, since wgpu-py 0.32 raises in on_submitted_work_done_sync: it has the callback's type wrong.
        self._read(self._fault, FAULT_BYTES)

    def close(self) -> None:
        if not self._is_left:
            self._gone = DeviceError, "the device was closed; tensors that lived on it are gone"
            self._pool.close()
            self._staging.close()
            self._gpu.destroy()


def _last_line(error: Exception) -> str:
    return str(error).strip().rpartition("\n")[2].strip() or type(error).__name__


def _adapter(index: int) -> GPUAdapter:
    if adapters.is_forked():
        raise DeviceError(f"webgpu: {adapters.FORKED}")
    with adapters.quiet_mesa():
        candidates = [a for a in wgpu.gpu.enumerate_adapters_sync() if a.info["backend_type"] != "OpenGL"]
    if not candidates:
        raise DeviceError(f"webgpu: {adapters.problem()}; `python -m pywebgpu doctor` says what to install")
    candidates.sort(
        key=lambda a: ("DiscreteGPU", "IntegratedGPU", "VirtualGPU", "Unknown", "CPU").index(a.info["adapter_type"])
    )
    return candidates[index % len(candidates)]


def _stored(data: Bytes, dtype: DType) -> Bytes:
    """As transcode.stored, with NumPy, which takes an eighth of the time."""
    if dtype is not dtypes.int64:
        return transcode.stored(data, dtype)
    array = np.frombuffer(data, "int64")
    narrow = array.astype("int32")
    if (narrow != array).any():
        raise too_wide(int(array[narrow != array][0]))
    return narrow.data


def _period(queue: GPUQueue) -> float:
    """Nanoseconds of a tick. WebGPU says 1; wgpu-native leaves the ticks of the driver as they are."""
    with suppress(Exception):  # The call is not in wgpu-py's public interface.
        from wgpu.backends.wgpu_native import lib

        return float(lib.wgpuQueueGetTimestampPeriod(queue._internal)) or 1.0
    return 1.0


def open_device(index: int = 0) -> NativeDevice:
    return NativeDevice(index)
