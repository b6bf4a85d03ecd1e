"""NumPy: the fallback, and the oracle of the WGSL devices.

Each step is one NumPy call. Views stay views; a pointwise step writes into an input that dies with it, and a large
value into the memory of one that is over.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from pywebgpu import dtypes
from pywebgpu.compiler.program import HostCall, Program
from pywebgpu.devices.base import Blocking, Buffer
from pywebgpu.devices.cpu_memory import LARGE, Memory
from pywebgpu.devices.timing import Timing
from pywebgpu.dtypes import DType
from pywebgpu.ir.graph import Composite, Custom, Fused, Generator, Leaf, Movement, Output, Pointwise, Spec, is_view
from pywebgpu.kernels.kernel import Limits
from pywebgpu.kernels.target import Target
from pywebgpu.locking import Deferred
from pywebgpu.numbers import current
from pywebgpu.ops import contraction, movement, pointwise, special
from pywebgpu.shapes import Shape

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pywebgpu.devices.base import Bytes, Handle

Action = tuple[Callable[..., Any], tuple[int, ...], int, int, tuple[int, ...]]
# ^ function, slots read, slot written, slot whose memory it may take (-1: none), slots dead afterwards


class CpuDevice(Blocking):
    """Arrays in host memory. float64 and int64 are exact here."""

    target = Target(wgsl=False, limits=Limits())
    generation = 0
    is_gone = False

    def __init__(self, index: int = 0) -> None:
        self.name = f"cpu:{index}" if index else "cpu"
        self.lock = threading.RLock()  # Of what is counted: no array is written to once it is a buffer's.
        self._freed = Deferred(self.lock, self._free)
        self._memory = Memory(np.empty)
        self.has_clock = True  # The processor's, around each NumPy call.
        self._timed: list[Timing] | None = None  # the runs since `time`
        self.counters = {"dispatches": 0, "submits": 0, "buffers_created": 0, "pipelines_created": 0, "live_bytes": 0}
        self.counters |= {"peak_bytes": 0, "live_buffers": 0, "ffi_calls": 0, "bind_groups_created": 0}
        self.counters["scratch_bytes"] = 0

    def upload(self, data: Bytes, spec: Spec) -> Buffer:
        if spec.dtype is dtypes.bfloat16:
            array = (np.frombuffer(data, "uint16").astype("uint32") << 16).view("float32")
        else:
            array = np.frombuffer(data, special.numpy_dtype(spec.dtype)).copy()
        return self._new(array.reshape(spec.shape))

    def download(self, buffer: Buffer, spec: Spec) -> bytes:
        array = np.ascontiguousarray(buffer.handle)
        if spec.dtype is dtypes.bfloat16:
            array = (array.view("uint32") >> 16).astype("uint16")
        return array.tobytes()

    def load(self, program: Program) -> tuple[Program, list[Action]]:
        return program, _actions(program, self._memory)

    def run(
        self,
        loaded: tuple[Program, list[Action]],
        inputs: Sequence[Buffer],
        numbers: Sequence[float],
        outputs: Sequence[Buffer | None],
    ) -> list[Buffer]:
        program, actions = loaded
        timed = self._timed
        values: list[Any] = [None] * len(program.slots)
        for slot, buffer in zip(program.inputs, inputs, strict=True):
            values[slot] = buffer.handle
        first = len(program.inputs)
        for at, (value, dtype) in enumerate(zip(numbers, program.numbers, strict=True)):
            values[first + at] = np.asarray(current(value, dtype, bits=64), special.numpy_dtype(dtype))
        start, give = time.perf_counter(), self._memory.give
        ended: list[int] = []  # when each step ended, where that is asked for
        with np.errstate(all="ignore"):
            for function, reads, write, into, dead in actions:
                args = [values[slot] for slot in reads]
                values[write] = function(*args) if into < 0 else function(*args, out=values[into])
                del args
                for slot in dead:
                    give(values, slot)
                if timed is not None:
                    ended.append(time.perf_counter_ns())
        if timed is not None:
            spans = list(zip([round(start * 1e9), *ended], ended, strict=False))
            timed.append(Timing(program, start, time.perf_counter(), spans))
        with self.lock:
            self.counters["dispatches"] += len(actions)
            self.counters["submits"] += 1
        made: dict[int, Buffer] = {}
        for slot in program.outputs:
            if slot not in made:
                given = slot < first  # A result that is an input gets memory of its own.
                made[slot] = self._new(np.array(values[slot]) if given else _owned(values[slot]))
        return [made[slot] for slot in program.outputs]

    def time(self, on: bool) -> None:
        """Whether the runs from now on are timed: each step on its own."""
        self._timed = [] if on else None

    def timings(self) -> list[Timing]:
        """The runs that were timed and not asked for yet."""
        found, self._timed = self._timed or [], None if self._timed is None else []
        return found

    def free(self, handle: Handle, nbytes: int) -> None:
        self._freed(nbytes)

    def _free(self, nbytes: int) -> None:
        self.counters["live_bytes"] -= nbytes
        self.counters["live_buffers"] -= 1

    def synchronize(self) -> None: ...

    def reopen(self) -> None: ...

    def close(self) -> None: ...

    def _new(self, array: NDArray[Any]) -> Buffer:
        counters = self.counters
        with self.lock:
            counters["live_bytes"] += array.nbytes
            counters["live_buffers"] += 1
            counters["peak_bytes"] = max(counters["peak_bytes"], counters["live_bytes"])
        return Buffer(self, array, array.nbytes)


def _owned(array: NDArray[Any]) -> NDArray[Any]:
    """The array itself, or a copy where it is a view of memory that another value has too."""
    return array if array.base is None and array.flags.c_contiguous and array.ndim else np.array(array, order="C")


def _actions(program: Program, memory: Memory) -> list[Action]:
    """The steps with their functions bound, and what may be reused and dropped after each."""
    steps = [step for step in program.steps if isinstance(step, HostCall)]
    owner = list(range(len(program.slots)))  # a view's memory is its owner's
    for step in steps:
        if _is_view(step):
            owner[step.slots[-1]] = owner[step.slots[0]]
    last: dict[int, int] = {}
    kept = {owner[slot] for slot in program.outputs}
    shown: dict[int, list[int]] = {}  # by owner, it and the views of it
    for slot, one in enumerate(owner):
        shown.setdefault(one, []).append(slot)
    for at, step in enumerate(steps):
        for slot in step.slots:
            last[owner[slot]] = at
    fresh: set[int] = set()  # Never an input: where a step fails, or is interrupted, all is computed again from them.
    readers = {owner[slot]: 0 for slot in range(len(program.slots))}
    for slot in program.outputs:
        readers[owner[slot]] += 1
    actions: list[Action] = []
    for at, step in enumerate(steps):
        *reads, write = step.slots
        into = -1
        if isinstance(step.op, Pointwise) and isinstance(step.op.reference, str) and program.slots[write].spec.shape:
            for slot in reads:
                same = program.slots[slot].spec == program.slots[write].spec
                if same and slot in fresh and owner[slot] == slot and last[slot] == at and slot not in kept:
                    into = slot
                    break
        if not _is_view(step) and not isinstance(step.op, Generator):
            fresh.add(write)
        over = {owner[s] for s in step.slots if last[owner[s]] == at and owner[s] not in kept}
        dead = tuple([s for one in sorted(over) for s in reversed(shown[one])])  # Views first: they hold their owner.
        spec = program.slots[write].spec
        function = _function(step, spec)
        if into < 0 and prod(spec.shape) * spec.dtype.itemsize >= LARGE:
            function = _recycling(step, spec, function, memory)
        actions.append((function, tuple(reads), write, into, dead))
    return actions


def _is_view(step: HostCall) -> bool:
    """The result is, or may be, a view of the first input's memory."""
    return isinstance(step.op, Custom) or is_view(step.op)


def _function(step: HostCall, spec: Spec) -> Callable[..., Any]:
    op, attrs = step.op, dict(step.attrs)
    if isinstance(op, Custom):
        return lambda value, *sources: value
    assert not isinstance(op, Leaf | Fused | Output | Composite), "what has no meaning of its own was replaced"
    reference: Any = op.reference
    if isinstance(reference, str):
        function = getattr(np, reference)
        if op is pointwise.neg and spec.dtype is dtypes.bool_:
            function = np.logical_not
        if op is pointwise.copy and spec.dtype is dtypes.bool_:
            function = lambda a, out=None: np.logical_or(a, a, out=out)  # noqa: E731 - NumPy has no positive of bools
        return _rounded(function) if spec.dtype is dtypes.bfloat16 else function
    if isinstance(op, Generator):
        attrs["spec"] = spec
    bound = lambda *arrays: reference(np, *arrays, **attrs)  # noqa: E731 - a closure over this step
    return _rounded(bound) if spec.dtype is dtypes.bfloat16 and not isinstance(op, Movement) else bound


def _recycling(step: HostCall, spec: Spec, function: Callable[..., Any], memory: Memory) -> Callable[..., Any]:
    """The same, with the result in memory that was used before, where NumPy can be told where to write."""
    op, dtype, shape = step.op, special.numpy_dtype(spec.dtype), spec.shape
    if spec.dtype is dtypes.bfloat16:
        return function
    if isinstance(op, Pointwise) and isinstance(op.reference, str):
        return lambda *arrays: function(*arrays, out=memory.take(dtype, shape))
    if op is pointwise.where:
        return lambda c, a, b: special.where(np, c, a, b, lambda: memory.take(dtype, shape))
    if op is contraction.matmul and spec.dtype.itemsize >= 4:
        return lambda a, b: np.matmul(a, b, out=memory.take(dtype, shape))
    if op is movement.reshape:
        return _Reshape(shape, lambda: memory.take(dtype, shape))
    if op is movement.pad:
        return lambda a: movement.padded(a, memory.take(dtype, shape), **step.attrs)
    return function


class _Reshape:
    """A reshape that knows from its first run whether it is a view: what it reads lies alike in all of them."""

    def __init__(self, shape: Shape, room: Callable[[], NDArray[Any]]) -> None:
        self._shape, self._room, self._copies = shape, room, False

    def __call__(self, a: NDArray[Any]) -> NDArray[Any]:
        if self._copies:
            out = self._room()
            np.copyto(out.reshape(a.shape), a)
            return out
        out = a.reshape(self._shape)
        self._copies = not np.may_share_memory(out, a)
        return out


def _rounded(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *arrays, out=None: special.round_bfloat16(np, function(*arrays))


def numpy_dtype(dtype: DType) -> str:
    return special.numpy_dtype(dtype)


def open_device(index: int = 0) -> CpuDevice:
    return CpuDevice(index)
