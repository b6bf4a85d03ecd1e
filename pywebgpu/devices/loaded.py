"""A Program on a wgpu device: pipelines, scratch, and bind groups for the sets of buffers that come again."""

from __future__ import annotations

import os
import struct
from array import array
from collections import OrderedDict, deque
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from operator import is_
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary, ref

from pywebgpu.compiler.program import Dispatch, Program, Slot
from pywebgpu.devices import adapters, native_shader
from pywebgpu.devices.base import GONE
from pywebgpu.devices.pool import Chunk
from pywebgpu.errors import CompileError, DeviceLostError
from pywebgpu.kernels.kernel import Checks, Kernel
from pywebgpu.support.formats import WORD

if TYPE_CHECKING:
    from wgpu import GPUBindGroup, GPUBuffer, GPUComputePipeline, GPUDevice

    from pywebgpu.devices.reader import Ahead

SUBGROUP_LINE = "enable subgroups;\n"
ALIGNED = 64  # words: where blocks of host numbers may begin
# Multiplications: what takes a fast GPU a millisecond, in which a host reads a value and prepares the next run.
LONG = 2 * 10**10
GROUPS = 32  # bind groups kept for a step
# Bytes of WGSL whose pipelines a device keeps: for each, llvmpipe takes 300 bytes of memory and SwiftShader 60.
TEXTS = {"cpu": 1 << 17}
TEXTS_OF_A_GPU = 1 << 22
RECENT = 8  # Programs that keep their pipelines however long their texts are: those that ran last


Bound = tuple[list[Any], list[Any]]  # the bind groups of a run, and the buffers of its outputs


Key = tuple[str, Checks]  # of a pipeline: its text, and what is checked. What is loaded may bind other buffers


class Pipelines:
    """Pipelines by their text: equal kernels of all Programs share one, which goes with the last of them."""

    def __init__(self, gpu: GPUDevice, counters: dict[str, int], features: Collection[str]) -> None:
        self._gpu, self._counters, self._features = gpu, counters, features
        self._found: WeakValueDictionary[Key, Any] = WeakValueDictionary()
        self._coming: dict[Key, Future[Any]] = {}
        self._threads = ThreadPoolExecutor(os.cpu_count() or 1)  # Kept: new threads would take new memory each time.

    def __len__(self) -> int:
        return len(self._found)

    @property
    def text_bytes(self) -> int:
        """Of all texts whose pipelines are there."""
        return sum([len(wgsl) for wgsl, _ in list(self._found)])

    def begin(self, kernel: Kernel) -> None:
        """Starts to compile, in a thread, what the next `get` asks for: drivers take up to a second for a long text."""
        key = kernel.wgsl, kernel.checks
        if key not in self._coming and self._found.get(key) is None:
            self._coming[key] = self._threads.submit(self._compile, kernel)

    def get(self, kernels: Sequence[Kernel]) -> list[GPUComputePipeline]:
        """Those of some kernels; new ones compile side by side.

        Raises CompileError with the kernel's lines where the driver refuses it, or lacks a feature.
        """
        wanted = {(kernel.wgsl, kernel.checks): kernel for kernel in kernels}
        pipelines = {key: self._found.get(key) for key in wanted}
        new = {key: kernel for key, kernel in wanted.items() if pipelines[key] is None}
        try:
            if len(new) == 1 and not self._coming:
                compiled = {key: self._compile(kernel) for key, kernel in new.items()}
            else:
                for kernel in new.values():
                    self.begin(kernel)
                compiled = {key: self._coming[key].result() for key in new}
        finally:
            for coming in self._coming.values():  # What was begun for a Program that came to nothing goes as well.
                coming.cancel()
            self._coming = {}
        self._found.update(compiled)
        self._counters["pipelines_created"] += len(compiled)
        self._counters["ffi_calls"] += 2 * len(compiled)
        pipelines.update(compiled)
        return [pipelines[kernel.wgsl, kernel.checks] for kernel in kernels]

    def _compile(self, kernel: Kernel) -> GPUComputePipeline:
        missing = [name for name in kernel.needs if name not in self._features]
        if missing:
            raise CompileError(f"{kernel.name}: this device lacks {', '.join(missing)}")
        # Naga knows the functions of subgroups, and not the line that enables them.
        code = kernel.wgsl.replace(SUBGROUP_LINE, "", 1)
        try:
            module = native_shader.module(self._gpu, code, kernel.name, kernel.checks)
            compute = {"module": module, "entry_point": "main"}
            return self._gpu.create_compute_pipeline(layout="auto", compute=compute, label=kernel.name)
        except Exception as error:  # Whatever wgpu-py raises: it is about this shader, or the device is gone.
            text = _numbered(kernel.wgsl)
            raise CompileError(f"{kernel.name}: the shader does not compile: {error}\n{text}") from error


class Residents:
    """The Programs that have their pipelines, the least recently run first. The device's lock is held in every call.

    A driver keeps what it made of each text: memory of the process that no pool counts. So others may hold as many
    Programs as they like, and one that ran long ago gets its pipelines again when it runs again.
    """

    def __init__(self, pipelines: Pipelines, kind: str) -> None:
        """kind: of the adapter."""
        self._pipelines, self._text_bytes = pipelines, TEXTS.get(kind, TEXTS_OF_A_GPU)
        self._is_cpu, self._has_freed = kind == "cpu", False
        self._loaded: OrderedDict[int, ref[Loaded]] = OrderedDict()

    def __len__(self) -> int:
        return sum(loaded() is not None for loaded in self._loaded.values())

    def add(self, loaded: Loaded) -> None:
        """It has its pipelines now."""
        self._loaded = OrderedDict(
            (number, reference) for number, reference in self._loaded.items() if reference() is not None
        )
        self._loaded[id(loaded)] = ref(loaded)

    def ran(self, loaded: Loaded) -> None:
        self._loaded.move_to_end(id(loaded))

    def surplus(self) -> Iterator[Loaded]:
        """Those whose pipelines are too many. Each is to lose its own before the next is asked for."""
        while len(self._loaded) > RECENT and self._pipelines.text_bytes > self._text_bytes:
            loaded = self._loaded.popitem(last=False)[1]()
            if loaded is not None:
                self._has_freed = True
                yield loaded

    def return_memory(self) -> None:
        """Called once the driver has ended what is over, as in a read: a CPU's pipelines are memory of the process."""
        if self._has_freed and self._is_cpu:
            adapters.return_memory()
        self._has_freed = False


class Loaded:
    """A Program on one opening of a device: pipelines, scratch, the uniform of host numbers, bind groups."""

    def __init__(
        self,
        device: str,
        program: Program,
        pipelines: list[Any],
        chunks: dict[int, Chunk],
        fault: GPUBuffer,
        counters: dict[str, int],
    ) -> None:
        self.program, self.chunks = program, chunks
        self.uniform: GPUBuffer | None = None
        self.gpu, self._device, self._fault, self._counters = fault._device, device, fault, counters
        steps = [step for step in program.steps if isinstance(step, Dispatch)]
        self.give(pipelines)
        self.grids = [program.kernels[step.kernel].grid for step in steps]
        self._scratch = {buffer: chunk.buffer for buffer, chunk in chunks.items()}
        self.numbers = b""
        self.words: list[int] = []  # of the uniform: which host number each is
        self._starts: dict[tuple[int, ...], int] = {}  # of its blocks, in bytes
        for block in program.blocks:
            self.words += [block[0]] * (-len(self.words) % ALIGNED)
            self._starts[block] = WORD * len(self.words)
            self.words += [*block, *[block[0]] * (-len(block) % 4)]
        self.wanted: tuple[int, int] | None = None  # the output that was read after the last run, and its bytes
        self.past: deque[Bound] = deque(maxlen=3)  # what the last runs bound
        self.ahead: list[Ahead] = []  # the next run, as it will probably be
        self._cuts: dict[int, int] = {}  # by the output that is wanted, after how many steps a run is cut
        self._bound: dict[int, int] = {}  # the handle that each buffer of an input or output had in the last run
        self._handles: list[Any] = []  # those themselves: most runs have the same
        self._groups: list[Any] = [None] * len(program.steps)  # of each step, for those handles
        self._kept: list[OrderedDict[tuple[int, ...], tuple[Any, list[Any]]]] = [OrderedDict() for _ in program.steps]
        self._steps_of: dict[int, set[int]] = {}  # the steps that bind a buffer
        for index, step in enumerate(program.steps):
            for slot in step.slots:
                self._steps_of.setdefault(program.slots[slot].buffer, set()).add(index)
        self.faults = any(kernel.faults for kernel in program.kernels)
        self.pack = struct.Struct(
            "<" + "".join({"f32": "f", "i32": "i", "u32": "I"}[str(d.compute)] for d in program.numbers)
        )

    def give(self, pipelines: list[Any]) -> None:
        """The pipelines of its kernels."""
        self.pipelines: list[Any] | None = pipelines
        self.pipelines_of_steps = [pipelines[step.kernel] for step in self.program.steps if isinstance(step, Dispatch)]

    def unload(self) -> None:
        """Without its pipelines and what was made for them. What was encoded ahead was dropped."""
        self.pipelines, self.pipelines_of_steps = None, []
        self._bound.clear()
        self._handles.clear()
        self._groups = [None] * len(self._groups)
        for kept in self._kept:
            kept.clear()
        self.past.clear()

    def uniform_words(self, packed: bytes) -> bytes:
        """What the uniform holds, of the host numbers in their order."""
        words = memoryview(packed).cast("I")
        return array("I", [words[number] for number in self.words]).tobytes()

    def bind(self, handles: dict[int, Any]) -> list[Any]:
        """Bind groups of every step for these buffers: only steps whose buffers changed get another one."""
        bound, now = self._bound, [*handles.values()]
        if bound and len(now) == len(self._handles) and all(map(is_, now, self._handles)):
            return self._groups
        self._handles = now
        changed: set[int] = set()
        if not bound:
            changed.update(range(len(self._groups)))
        for buffer, handle in handles.items():
            if bound.get(buffer) != id(handle):
                bound[buffer] = id(handle)
                changed |= self._steps_of.get(buffer, set())
        if changed:
            every = self._scratch | handles
            try:
                for index in changed:
                    self._groups[index] = self._kept_group(index, every)
            except BaseException:
                bound.clear()  # What the steps are bound to is not what was noted.
                raise
        return self._groups

    def cut(self) -> int:
        """After how many steps what is wanted is there and told of, if much is left to do; else after all.

        As js_bridge/program.mjs has it.
        """
        if self.wanted is None:
            return len(self.program.steps)
        output = self.wanted[0]
        if output not in self._cuts:
            self._cuts[output] = _cut(self.program, output)
        return self._cuts[output]

    def foretold(self) -> Bound | None:
        """What the next run will bind, where runs bind what they bound before, or two sets of it in turns."""
        if len(self.past) < 3 or self.past[0] != self.past[2]:
            return None
        return self.past[1]

    def _kept_group(self, step_index: int, handles: dict[int, Any]) -> GPUBindGroup:
        step, kept = self.program.steps[step_index], self._kept[step_index]
        used = [handles[self.program.slots[slot].buffer] for slot in step.slots]
        key = tuple([id(handle) for handle in used])
        if key not in kept:
            assert isinstance(step, Dispatch)
            if any(handle._device is not self.gpu for handle in used):
                raise DeviceLostError(f"{self._device}: {GONE}")
            kept[key] = (self._group(step, handles), used)  # Held, so that no other handle takes over an id.
            if len(kept) > GROUPS:
                kept.popitem(last=False)
        kept.move_to_end(key)
        return kept[key][0]

    def _group(self, step: Dispatch, handles: dict[int, Any]) -> GPUBindGroup:
        program, kernel = self.program, self.program.kernels[step.kernel]
        resources = [_resource(program, program.slots[slot], handles) for slot in step.slots]
        if kernel.numbers:
            place = {"offset": self._starts[step.numbers], "size": 16 * -(-len(step.numbers) // 4)}
            resources.append({"buffer": self.uniform, **place})
        if kernel.faults:
            resources.append({"buffer": self._fault})
        entries = [{"binding": index, "resource": resource} for index, resource in enumerate(resources)]
        self._counters["bind_groups_created"] += 1
        self._counters["ffi_calls"] += 2
        assert self.pipelines is not None
        layout = self.pipelines[step.kernel].get_bind_group_layout(0)
        return self.gpu.create_bind_group(layout=layout, entries=entries)


def _cut(program: Program, output: int) -> int:
    """The same for one of the outputs."""
    buffer = program.slots[program.outputs[output]].buffer
    end = after = len(program.steps)
    work = 0
    while after:
        step = program.steps[after - 1]
        assert isinstance(step, Dispatch)
        kernel = program.kernels[step.kernel]
        written = [program.slots[slot].buffer for slot, writes in zip(step.slots, kernel.writes, strict=True) if writes]
        if kernel.faults or buffer in written:
            break
        work += kernel.work
        after -= 1
    return after if after and work >= LONG else end


def _resource(program: Program, slot: Slot, handles: dict[int, Any]) -> dict[str, Any]:
    """What stands in a bind group for a slot: what the Program knows of the buffer, or the slot's range of it."""
    size = program.sizes[slot.buffer] if slot.offset is None else slot.nbytes
    return {"buffer": handles[slot.buffer], "offset": slot.offset or 0, "size": size}


def _numbered(wgsl: str) -> str:
    return "\n".join(f"{number:4} {line}" for number, line in enumerate(wgsl.splitlines(), 1))
