"""wgpu-py: WebGPU outside the browser.

A Program becomes pipelines and scratch buffers once. A run writes the host numbers that changed, encodes one compute
pass and submits it once; bind groups are kept for buffers that come again.
"""

from __future__ import annotations

import struct
import time
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from math import prod
from typing import Any

import numpy as np
import wgpu

from pywebgpu import dtypes
from pywebgpu.devices import adapters
from pywebgpu.devices.base import Buffer, check_supported
from pywebgpu.devices.pool import Chunk, Pool, Scratch
from pywebgpu.devices.timing import Stamps, Timing, Waiting
from pywebgpu.devices.words import of_numbers
from pywebgpu.dtypes import DType, Kind
from pywebgpu.errors import CompileError, DeviceError, RangeError
from pywebgpu.graph.ir import Spec
from pywebgpu.kernels.kernel import Kernel, Limits
from pywebgpu.numbers import overflow, too_wide
from pywebgpu.program.program import Dispatch, Program, Slot, Target
from pywebgpu.settings import settings

STORAGE = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST
STAGING = wgpu.BufferUsage.MAP_READ | wgpu.BufferUsage.COPY_DST
UNIFORM = wgpu.BufferUsage.UNIFORM | wgpu.BufferUsage.COPY_DST
GROUPS = 32  # bind groups kept for a step
FAULT_BYTES = 16
WORD = {"f32": "float32", "i32": "int32", "u32": "uint32"}
WANTED_LIMITS = (
    "max-storage-buffers-per-shader-stage",
    "max-storage-buffer-binding-size",
    "max-buffer-size",
    "max-compute-invocations-per-workgroup",
    "max-compute-workgroup-size-x",
    "max-compute-workgroup-storage-size",
)


class Loaded:
    """A Program on this device: pipelines, scratch, the uniform of host numbers, bind groups."""

    def __init__(
        self, device: NativeDevice, program: Program, pipelines: list[Any], chunks: dict[int, Chunk], uniform: Any
    ) -> None:
        self.program, self.pipelines, self.chunks, self.uniform = program, pipelines, chunks, uniform
        self.scratch = {buffer: chunk.buffer for buffer, chunk in chunks.items()}
        self._device = device
        self.numbers = b""
        self.bound: dict[int, int] = {}  # the handle that each buffer of an input or output had in the last run
        self.groups: list[Any] = [None] * len(program.steps)  # of each step, for those handles
        self.kept: list[OrderedDict[tuple[int, ...], tuple[Any, list[Any]]]] = [OrderedDict() for _ in program.steps]
        self.steps_of: dict[int, set[int]] = {}  # the steps that bind a buffer
        for at, step in enumerate(program.steps):
            for slot in step.slots:
                self.steps_of.setdefault(program.slots[slot].buffer, set()).add(at)
        self.faults = any(kernel.faults for kernel in program.kernels)
        self.pack = struct.Struct(
            "<" + "".join({"f32": "f", "i32": "i", "u32": "I"}[str(d.wgsl)] for d in program.numbers)
        )

    def __del__(self) -> None:
        self._device.unload(self)


class NativeDevice:
    """One wgpu device. Contexts are objects: several live side by side."""

    def __init__(self, index: int = 0) -> None:
        self.name = f"webgpu:{index}" if index else "webgpu"
        adapter = _adapter(index)
        self.adapter = str(adapter.info["device"])
        wanted = {name: adapter.limits[name] for name in WANTED_LIMITS}
        self.has_clock = "timestamp-query" in adapter.features
        features: Any = ["timestamp-query"] if self.has_clock else []
        self._gpu = adapter.request_device_sync(required_limits=wanted, required_features=features)
        self._timed: list[Waiting] | None = None  # the runs since `time`
        limits = self._gpu.limits
        self.target = Target(
            wgsl=True,
            limits=Limits()
            if settings.portable
            else Limits(
                workgroup_size=min(256, limits["max-compute-invocations-per-workgroup"]),
                bindings=min(limits["max-storage-buffers-per-shader-stage"], 16),
                binding_bytes=min(limits["max-storage-buffer-binding-size"], limits["max-buffer-size"]),
                shared_bytes=limits["max-compute-workgroup-storage-size"],
                emulated=adapters.is_emulated(self.adapter),
            ),
        )
        self.counters = dict.fromkeys(
            ("dispatches", "submits", "buffers_created", "pipelines_created", "bind_groups_created", "ffi_calls"), 0
        )
        self.counters |= {"live_bytes": 0, "live_buffers": 0, "peak_bytes": 0, "device_bytes": 0, "scratch_bytes": 0}
        self.counters |= {"waiting_bytes": 0, "pool_reused": 0, "pool_created": 0}
        self._pool = Pool(lambda size: self._create(size, STORAGE), self._destroy)
        self._scratch = Scratch(self._pool)
        self._staging = Pool(lambda size: self._create(size, STAGING), self._destroy, budget=64 << 20)
        self._pipelines: dict[str, Any] = {}
        self._fault = self._create(FAULT_BYTES, STORAGE)
        self._may_fault = self._closed = False
        # Keeps a handle out of cyclic garbage: there wgpu's finaliser would end it before ours gives it to the pool.
        self._held: dict[int, Any] = {}

    # Data

    def upload(self, data: Any, spec: Spec) -> Buffer:
        check_supported(spec.dtype, self.name)
        self._check_open()
        words = _to_words(data, spec.dtype)
        buffer = self._new(max(4, 4 * prod(spec.shape)))
        if words.nbytes:
            self._gpu.queue.write_buffer(buffer.handle, 0, words)
            self.counters["ffi_calls"] += 1
        return buffer

    def download(self, buffer: Buffer, spec: Spec) -> bytes:
        return _from_words(self._read(buffer.handle, 4 * prod(spec.shape)), spec.dtype)

    def _read(self, handle: Any, nbytes: int) -> bytes:
        """A buffer's first bytes, once all that was queued has run. Raises for an index that was out of range."""
        self._check_open()
        may_fault, total = self._may_fault, nbytes + (FAULT_BYTES if self._may_fault else 0)
        if not total:
            return b""
        staging = self._staging.take(total)
        encoder = self._gpu.create_command_encoder()
        if nbytes:
            encoder.copy_buffer_to_buffer(handle, 0, staging, 0, nbytes)
        if may_fault:
            encoder.copy_buffer_to_buffer(self._fault, 0, staging, nbytes, FAULT_BYTES)
        self._gpu.queue.submit([encoder.finish()])
        staging.map_sync(wgpu.MapMode.READ, 0, total)
        raw = bytes(staging.read_mapped(0, total))
        staging.unmap()
        self._staging.give(staging, total)
        self.counters["ffi_calls"] += 7
        if may_fault:
            self._raise_fault(raw[nbytes:])
        return raw[:nbytes]

    def _raise_fault(self, words: bytes) -> None:
        """Tells of an index that was out of range, or an int64 too large, in a kernel since the last read."""
        self._may_fault = False
        happened, index, size, is_overflow = struct.unpack("<IiiI", words)
        if happened:
            self._gpu.queue.write_buffer(self._fault, 0, bytes(FAULT_BYTES))
            if is_overflow:
                raise overflow(words[4:12].rstrip(b"\0").decode())
            raise RangeError(f"index {index} is out of bounds for dimension with size {size}")

    def free(self, handle: Any, nbytes: int) -> None:
        self.counters["live_bytes"] -= nbytes
        self.counters["live_buffers"] -= 1
        self._held.pop(id(handle), None)
        if not self._closed:
            self._pool.give(handle, nbytes)
            self.counters["waiting_bytes"] = self._pool.waiting_bytes

    def _new(self, nbytes: int) -> Buffer:
        handle = self._pool.take(nbytes)
        counters = self.counters
        counters["live_bytes"] += nbytes
        counters["live_buffers"] += 1
        self._count_peak()
        self._held[id(handle)] = handle
        return Buffer(self, handle, nbytes)

    def _count_peak(self) -> None:
        counters, pool = self.counters, self._pool
        counters["waiting_bytes"], counters["pool_reused"] = pool.waiting_bytes, pool.reused
        counters["pool_created"] = pool.created
        counters["peak_bytes"] = max(counters["peak_bytes"], counters["live_bytes"] + counters["scratch_bytes"])

    def _create(self, size: int, usage: int) -> Any:
        self.counters["buffers_created"] += 1
        self.counters["ffi_calls"] += 1
        try:
            buffer = self._gpu.create_buffer(size=size, usage=usage)
        except wgpu.GPUError as error:
            raise DeviceError(f"webgpu: cannot create a buffer of {size} bytes: {error}") from error
        self.counters["device_bytes"] += size
        return buffer

    def _destroy(self, buffer: Any) -> None:
        self.counters["device_bytes"] -= buffer.size
        buffer.destroy()

    # Programs

    def load(self, program: Program) -> Loaded:
        self._check_open()
        pipelines = [self._pipeline(kernel) for kernel in program.kernels]
        chunks = self._scratch.take({b: program.sizes[b] for b in program.scratch})
        self.counters["scratch_bytes"] = self._scratch.nbytes
        self._count_peak()
        uniform = self._create(16 * -(-len(program.numbers) // 4), UNIFORM) if program.numbers else None
        return Loaded(self, program, pipelines, chunks, uniform)

    def unload(self, loaded: Loaded) -> None:
        """Takes back what a Program had, once nobody has it."""
        if self._closed:
            return
        self._scratch.give(loaded.chunks.values())
        self.counters["scratch_bytes"] = self._scratch.nbytes
        if loaded.uniform is not None:
            self._destroy(loaded.uniform)

    def _pipeline(self, kernel: Kernel) -> Any:
        found = self._pipelines.get(kernel.wgsl)
        if found is None:
            try:
                module = self._gpu.create_shader_module(code=kernel.wgsl, label=kernel.name)
                compute = {"module": module, "entry_point": "main"}
                found = self._gpu.create_compute_pipeline(layout="auto", compute=compute, label=kernel.name)
            except wgpu.GPUError as error:
                raise CompileError(
                    f"{kernel.name}: the shader does not compile: {error}\n{_numbered(kernel.wgsl)}"
                ) from error
            self._pipelines[kernel.wgsl] = found
            self.counters["pipelines_created"] += 1
            self.counters["ffi_calls"] += 2
        return found

    def run(
        self, loaded: Loaded, inputs: Sequence[Buffer], numbers: Sequence[float], outputs: Sequence[Buffer | None]
    ) -> list[Buffer]:
        self._check_open()
        start = time.perf_counter()
        program = loaded.program
        made: dict[int, Buffer] = {}
        handles: dict[int, Any] = {}
        for slot, buffer in zip(program.inputs, inputs, strict=True):
            handles[program.slots[slot].buffer] = buffer.handle
        for slot, given in zip(program.outputs, outputs, strict=True):
            if slot not in made:
                made[slot] = given or self._new(max(4, 4 * prod(program.slots[slot].spec.shape)))
                handles[program.slots[slot].buffer] = made[slot].handle
        if program.numbers:
            packed = of_numbers(loaded.pack, numbers, program.numbers)
            if packed != loaded.numbers:
                self._gpu.queue.write_buffer(loaded.uniform, 0, packed + bytes(-len(packed) % 16))
                loaded.numbers = packed
                self.counters["ffi_calls"] += 1
        timed = self.has_clock and self._timed is not None
        stamps = Stamps(self._gpu, len(program.steps), _period(self._gpu.queue)) if timed else None
        if program.steps:
            self._encode(loaded, self._bind(loaded, handles), stamps)
        if self._timed is not None:
            self._timed.append(self._waiting(program, start, stamps))
        self._may_fault |= loaded.faults
        return [made[slot] for slot in program.outputs]

    def time(self, on: bool) -> None:
        """Whether the runs from now on are timed: a pass a step, which costs more than one pass for all of them."""
        self._timed = [] if on else None

    def timings(self) -> list[Timing]:
        """The runs that were timed and not asked for yet. Waits for them."""
        found = [waiting.finish() for waiting in self._timed or ()]
        if self._timed:
            self._timed = []
        return found

    def _waiting(self, program: Program, start: float, stamps: Stamps | None) -> Waiting:
        """A run that was just queued; without a clock the host waits for it."""
        end = time.perf_counter()
        if stamps is not None:
            return Waiting(program, start, end, stamps.read, whole=False)
        self.synchronize()
        span = round(start * 1e9), time.perf_counter_ns()
        return Waiting(program, start, end, lambda: [span], whole=True)

    def _encode(self, loaded: Loaded, groups: list[Any], stamps: Stamps | None) -> None:
        encoder = self._gpu.create_command_encoder()
        computing: Any = encoder.begin_compute_pass() if stamps is None else None
        kernels, pipelines = loaded.program.kernels, loaded.pipelines
        for at, (step, group) in enumerate(zip(loaded.program.steps, groups, strict=True)):
            assert isinstance(step, Dispatch)
            if stamps is not None:
                if computing is not None:
                    computing.end()
                computing = encoder.begin_compute_pass(timestamp_writes=stamps.around(at))
            computing.set_pipeline(pipelines[step.kernel])
            computing.set_bind_group(0, group)
            computing.dispatch_workgroups(*kernels[step.kernel].grid)
        computing.end()
        if stamps is not None:
            stamps.resolve(encoder)
        self._gpu.queue.submit([encoder.finish()])
        counters = self.counters
        counters["dispatches"] += len(groups)
        counters["submits"] += 1
        counters["ffi_calls"] += 3 * len(groups) + 5

    def _bind(self, loaded: Loaded, handles: dict[int, Any]) -> list[Any]:
        """Bind groups of every step for these buffers: only steps whose buffers changed get another one."""
        changed: set[int] = set()
        bound = loaded.bound
        if not bound:
            changed.update(range(len(loaded.groups)))
        for buffer, handle in handles.items():
            if bound.get(buffer) != id(handle):
                bound[buffer] = id(handle)
                changed |= loaded.steps_of.get(buffer, set())
        if changed:
            every = loaded.scratch | handles
            for at in changed:
                loaded.groups[at] = self._kept_group(loaded, at, every)
        return loaded.groups

    def _kept_group(self, loaded: Loaded, at: int, handles: dict[int, Any]) -> Any:
        step, kept = loaded.program.steps[at], loaded.kept[at]
        used = [handles[loaded.program.slots[slot].buffer] for slot in step.slots]
        key = tuple([id(handle) for handle in used])
        if key not in kept:
            assert isinstance(step, Dispatch)
            kept[key] = (self._group(loaded, step, handles), used)  # Held, so that no other handle takes over an id.
            if len(kept) > GROUPS:
                kept.popitem(last=False)
        kept.move_to_end(key)
        return kept[key][0]

    def _group(self, loaded: Loaded, step: Dispatch, handles: dict[int, Any]) -> Any:
        program, kernel = loaded.program, loaded.program.kernels[step.kernel]
        resources = [_resource(program.slots[slot], handles) for slot in step.slots]
        if kernel.numbers:
            resources.append({"buffer": loaded.uniform})
        if kernel.faults:
            resources.append({"buffer": self._fault})
        entries = [{"binding": at, "resource": resource} for at, resource in enumerate(resources)]
        self.counters["bind_groups_created"] += 1
        self.counters["ffi_calls"] += 2
        layout = loaded.pipelines[step.kernel].get_bind_group_layout(0)
        return self._gpu.create_bind_group(layout=layout, entries=entries)

    def synchronize(self) -> None:
        # By a read, since wgpu-py 0.32 raises in on_submitted_work_done_sync: it has the callback's type wrong.
        self._read(self._fault, FAULT_BYTES)

    def close(self) -> None:
        self._closed = True
        self._pool.close()
        self._staging.close()
        self._gpu.destroy()

    def _check_open(self) -> None:
        if self._closed:
            raise DeviceError(f"{self.name}: the device was closed; tensors that lived on it are gone")


def _resource(slot: Slot, handles: dict[int, Any]) -> dict[str, Any]:
    """What stands in a bind group for a slot: the whole buffer, or the slot's range of it."""
    buffer = handles[slot.buffer]
    return {"buffer": buffer} if slot.offset is None else {"buffer": buffer, "offset": slot.offset, "size": slot.nbytes}


def _adapter(index: int) -> Any:
    with adapters.quiet_mesa():
        found = [a for a in wgpu.gpu.enumerate_adapters_sync() if a.info["backend_type"] != "OpenGL"]
    if not found:
        raise DeviceError(f"webgpu: {adapters.problem()}; `python -m pywebgpu doctor` says what to install")
    found.sort(
        key=lambda a: ("DiscreteGPU", "IntegratedGPU", "VirtualGPU", "Unknown", "CPU").index(a.info["adapter_type"])
    )
    return found[index % len(found)]


def _to_words(data: Any, dtype: DType) -> Any:
    """Bytes of the dtype -> the 32-bit words that a kernel sees. An int64 that does not fit is an error."""
    if dtype is dtypes.bfloat16:
        return np.frombuffer(data, "uint16").astype("uint32") << 16
    array = np.frombuffer(data, dtype.name)
    if dtype is dtypes.int64 and array.size and (array.min() < -(2**31) or array.max() >= 2**31):
        raise too_wide(int(next(value for value in (array.min(), array.max()) if not -(2**31) <= value < 2**31)))
    return array if dtype.itemsize == 4 else array.astype(WORD[str(dtype.wgsl)])


def _from_words(raw: bytes, dtype: DType) -> bytes:
    words = np.frombuffer(raw, WORD[str(dtype.wgsl)])
    if dtype is dtypes.bfloat16:
        return bytes((words.view("uint32") >> 16).astype("uint16").tobytes())
    if dtype.kind is Kind.BOOL:
        return bytes((words != 0).tobytes())
    return raw if dtype.itemsize == 4 else bytes(words.astype(dtype.name).tobytes())


def _period(queue: Any) -> float:
    """Nanoseconds of a tick. WebGPU says 1; wgpu-native leaves the ticks of the driver as they are."""
    with suppress(Exception):  # The call is not in wgpu-py's public interface.
        from wgpu.backends.wgpu_native import lib

        return float(lib.wgpuQueueGetTimestampPeriod(queue._internal)) or 1.0
    return 1.0


def _numbered(wgsl: str) -> str:
    return "\n".join(f"{at:4} {line}" for at, line in enumerate(wgsl.splitlines(), 1))


def open_device(index: int = 0) -> NativeDevice:
    return NativeDevice(index)
