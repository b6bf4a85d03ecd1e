"""wgpu-py: WebGPU outside the browser.

A Program becomes pipelines and scratch buffers once. A run writes the host numbers that changed, encodes one compute
pass and submits it once; bind groups are kept for every set of buffers that comes again.
"""

from __future__ import annotations

import struct
from collections import OrderedDict
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
import wgpu

from pywebgpu import dtypes
from pywebgpu.devices import adapters
from pywebgpu.devices.base import Buffer, check_supported
from pywebgpu.devices.pool import Pool
from pywebgpu.dtypes import DType, Kind
from pywebgpu.errors import CompileError, DeviceError, DTypeError, RangeError
from pywebgpu.graph.ir import Spec
from pywebgpu.kernels.kernel import Kernel, Limits
from pywebgpu.program.program import Dispatch, Program, Target

STORAGE = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST
STAGING = wgpu.BufferUsage.MAP_READ | wgpu.BufferUsage.COPY_DST
UNIFORM = wgpu.BufferUsage.UNIFORM | wgpu.BufferUsage.COPY_DST
GROUPS = 8  # sets of bind groups kept for a Program
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
        self, program: Program, pipelines: list[Any], scratch: dict[int, Any], uniform: Any, pool: Pool
    ) -> None:
        self.program, self.pipelines, self.scratch, self.uniform = program, pipelines, scratch, uniform
        self._pool = pool
        self.numbers = b""
        self.groups: OrderedDict[tuple[int, ...], tuple[list[Any], list[Any]]] = OrderedDict()
        self.faults = any(kernel.faults for kernel in program.kernels)
        self.pack = struct.Struct(
            "<" + "".join({"f32": "f", "i32": "i", "u32": "I"}[str(d.wgsl)] for d in program.numbers)
        )

    def __del__(self) -> None:
        for buffer, handle in self.scratch.items():
            self._pool.give(handle, self.program.sizes[buffer])


class NativeDevice:
    """One wgpu device. Contexts are objects: several live side by side."""

    def __init__(self, index: int = 0) -> None:
        self.name = f"webgpu:{index}" if index else "webgpu"
        adapter = _adapter(index)
        self.adapter = str(adapter.info["device"])
        wanted = {name: adapter.limits[name] for name in WANTED_LIMITS}
        self._gpu = adapter.request_device_sync(required_limits=wanted)
        limits = self._gpu.limits
        self.target = Target(
            wgsl=True,
            limits=Limits(
                workgroup_size=min(256, limits["max-compute-invocations-per-workgroup"]),
                bindings=min(limits["max-storage-buffers-per-shader-stage"], 16),
                binding_bytes=min(limits["max-storage-buffer-binding-size"], limits["max-buffer-size"]),
                shared_bytes=limits["max-compute-workgroup-storage-size"],
            ),
        )
        self.counters = dict.fromkeys(
            ("dispatches", "submits", "buffers_created", "pipelines_created", "bind_groups_created", "ffi_calls"), 0
        )
        self.counters |= {"live_bytes": 0, "live_buffers": 0, "peak_bytes": 0}
        self._pool = Pool(lambda size: self._create(size, STORAGE), lambda buffer: buffer.destroy())
        self._staging = Pool(lambda size: self._create(size, STAGING), lambda buffer: buffer.destroy(), budget=64 << 20)
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
        """Tells of an index that was out of range in a kernel since the last read."""
        self._may_fault = False
        happened, index, size = struct.unpack("<Iii", words[:12])
        if happened:
            self._gpu.queue.write_buffer(self._fault, 0, bytes(FAULT_BYTES))
            raise RangeError(f"index {index} is out of bounds for dimension with size {size}")

    def free(self, handle: Any, nbytes: int) -> None:
        self.counters["live_bytes"] -= nbytes
        self.counters["live_buffers"] -= 1
        self._held.pop(id(handle), None)
        if not self._closed:
            self._pool.give(handle, nbytes)

    def _new(self, nbytes: int) -> Buffer:
        handle = self._pool.take(nbytes)
        counters = self.counters
        counters["live_bytes"] += nbytes
        counters["live_buffers"] += 1
        counters["peak_bytes"] = max(counters["peak_bytes"], counters["live_bytes"])
        self._held[id(handle)] = handle
        return Buffer(self, handle, nbytes)

    def _create(self, size: int, usage: int) -> Any:
        self.counters["buffers_created"] += 1
        self.counters["ffi_calls"] += 1
        try:
            return self._gpu.create_buffer(size=size, usage=usage)
        except wgpu.GPUError as error:
            raise DeviceError(f"webgpu: cannot create a buffer of {size} bytes: {error}") from error

    # Programs

    def load(self, program: Program) -> Loaded:
        self._check_open()
        pipelines = [self._pipeline(kernel) for kernel in program.kernels]
        scratch = {b: self._pool.take(program.sizes[b]) for b in program.scratch}
        uniform = self._create(16 * -(-len(program.numbers) // 4), UNIFORM) if program.numbers else None
        return Loaded(program, pipelines, scratch, uniform, self._pool)

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
            packed = loaded.pack.pack(*numbers)
            if packed != loaded.numbers:
                self._gpu.queue.write_buffer(loaded.uniform, 0, packed + bytes(-len(packed) % 16))
                loaded.numbers = packed
                self.counters["ffi_calls"] += 1
        if program.steps:
            self._encode(loaded, self._bind(loaded, handles))
        self._may_fault |= loaded.faults
        return [made[slot] for slot in program.outputs]

    def _encode(self, loaded: Loaded, groups: list[Any]) -> None:
        encoder = self._gpu.create_command_encoder()
        computing = encoder.begin_compute_pass()
        kernels, pipelines = loaded.program.kernels, loaded.pipelines
        for step, group in zip(loaded.program.steps, groups, strict=True):
            assert isinstance(step, Dispatch)
            computing.set_pipeline(pipelines[step.kernel])
            computing.set_bind_group(0, group)
            computing.dispatch_workgroups(*kernels[step.kernel].grid)
        computing.end()
        self._gpu.queue.submit([encoder.finish()])
        counters = self.counters
        counters["dispatches"] += len(groups)
        counters["submits"] += 1
        counters["ffi_calls"] += 3 * len(groups) + 5

    def _bind(self, loaded: Loaded, handles: dict[int, Any]) -> list[Any]:
        """Bind groups of every step for these buffers: kept ones, or new ones."""
        key = tuple([id(handle) for handle in handles.values()])
        kept = loaded.groups.get(key)
        if kept is not None:
            loaded.groups.move_to_end(key)
            return kept[0]
        program = loaded.program
        every = loaded.scratch | handles
        groups = [self._group(loaded, step, every) for step in program.steps if isinstance(step, Dispatch)]
        loaded.groups[key] = (groups, list(handles.values()))
        if len(loaded.groups) > GROUPS:
            loaded.groups.popitem(last=False)
        return groups

    def _group(self, loaded: Loaded, step: Dispatch, handles: dict[int, Any]) -> Any:
        program, kernel = loaded.program, loaded.program.kernels[step.kernel]
        buffers = [handles[program.slots[slot].buffer] for slot in step.slots]
        if kernel.numbers:
            buffers.append(loaded.uniform)
        if kernel.faults:
            buffers.append(self._fault)
        entries = [{"binding": at, "resource": {"buffer": buffer}} for at, buffer in enumerate(buffers)]
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
    """Bytes of the dtype -> the 32-bit words that a kernel sees. Raises DTypeError for an int64 that does not fit."""
    if dtype is dtypes.bfloat16:
        return np.frombuffer(data, "uint16").astype("uint32") << 16
    array = np.frombuffer(data, dtype.name)
    if dtype is dtypes.int64 and array.size and (array.min() < -(2**31) or array.max() >= 2**31):
        raise DTypeError("webgpu stores int64 as int32: a value is out of range; keep such numbers on the cpu device")
    return array if dtype.itemsize == 4 else array.astype(WORD[str(dtype.wgsl)])


def _from_words(raw: bytes, dtype: DType) -> bytes:
    words = np.frombuffer(raw, WORD[str(dtype.wgsl)])
    if dtype is dtypes.bfloat16:
        return bytes((words.view("uint32") >> 16).astype("uint16").tobytes())
    if dtype.kind is Kind.BOOL:
        return bytes((words != 0).tobytes())
    return raw if dtype.itemsize == 4 else bytes(words.astype(dtype.name).tobytes())


def _numbered(wgsl: str) -> str:
    return "\n".join(f"{at:4} {line}" for at, line in enumerate(wgsl.splitlines(), 1))


def open_device(index: int = 0) -> NativeDevice:
    return NativeDevice(index)
