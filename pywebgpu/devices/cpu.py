"""NumPy: the fallback, and the oracle of the WGSL devices.

Each step is one NumPy call. Views stay views; a pointwise step writes into an input that dies with it, and a large
value into the memory of one that is over.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pywebgpu.compiler.program import Program
from pywebgpu.devices.base import Buffer
from pywebgpu.devices.blocking import Counting, InProcess, host_target
from pywebgpu.devices.cpu_calls import Calls
from pywebgpu.devices.cpu_memory import Memory
from pywebgpu.devices.timing import Timing
from pywebgpu.dtypes import DType
from pywebgpu.errors import HostMemoryError
from pywebgpu.ir.graph import Spec
from pywebgpu.ops import special
from pywebgpu.support import interrupts
from pywebgpu.support.numbers import current

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pywebgpu.devices.base import Bytes

_CHANGES = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.true_divide}


class CpuDevice(InProcess, Counting):
    """Arrays in host memory. float64 and int64 are exact here.

    An array that is a buffer's is written to where its value is overwritten in a small part, and nobody else has it.
    """

    target = host_target()
    is_host = True

    def __init__(self, index: int = 0) -> None:
        super().__init__()
        self.name = f"cpu:{index}" if index else "cpu"
        self._memory = Memory(np.empty)
        self.has_clock = True  # The processor's, around each NumPy call.

    def upload(self, data: Bytes, spec: Spec) -> Buffer:
        array = special.from_bytes(np, data, spec.dtype)
        return self._new((array if spec.dtype in special.ROUNDED else array.copy()).reshape(spec.shape))

    def hold(self, array: NDArray[Any]) -> Buffer:
        """A buffer whose memory is an array's."""
        return self._new(array)

    def array(self, nbytes: int) -> NDArray[Any]:
        return np.empty(nbytes, "uint8")

    def is_native(self, dtype: DType) -> bool:
        """Whether an array has the bytes of the dtype."""
        return dtype not in special.ROUNDED

    def is_owned(self, buffer: Buffer) -> bool:
        """Whether its array is all of its memory, row by row."""
        flags = buffer.handle.flags
        return bool(flags.owndata and flags.c_contiguous and flags.writeable)

    def element(self, buffer: Buffer, number: int) -> Any:
        """An element, by its number in row-major order, as a number of Python."""
        return buffer.handle.item(number)

    def lies_in_order(self, buffer: Buffer) -> bool:
        """Whether its elements lie row by row, and may be written to."""
        flags = buffer.handle.flags
        return bool(flags.c_contiguous and flags.writeable)

    def write_element(self, buffer: Buffer, number: int, name: str, value: float) -> None:
        """Writes to an element of an array that lies in order: a number ("set"), or what `add`, `sub`, `mul` or `div`
        makes of the element and the number."""
        part = buffer.handle.reshape(-1)[number : number + 1]
        if name == "set":
            part[0] = value
        else:
            with np.errstate(all="ignore"):
                _CHANGES[name](part, part.dtype.type(value), out=part)

    def download(self, buffer: Buffer, spec: Spec) -> bytes:
        return special.stored(np, np.ascontiguousarray(buffer.handle), spec.dtype).tobytes()

    def load(self, program: Program) -> tuple[Program, Calls]:
        return program, Calls(program, self._memory)

    def run(
        self,
        loaded: tuple[Program, Calls],
        inputs: Sequence[Buffer],
        numbers: Sequence[float],
        outputs: Sequence[Buffer | None],
    ) -> list[Buffer]:
        program, calls = loaded
        self._memory.note_run()
        try:
            buffers = self._run(program, calls, inputs, numbers, outputs)
        except BaseException:
            calls.undo()
            raise
        calls.done()
        return buffers

    def _run(
        self,
        program: Program,
        calls: Calls,
        inputs: Sequence[Buffer],
        numbers: Sequence[float],
        outputs: Sequence[Buffer | None],
    ) -> list[Buffer]:
        leaves: list[Any] = [buffer.handle for buffer in inputs]
        try:
            with interrupts.allowed(), np.errstate(all="ignore"):
                for value, dtype, kind in zip(numbers, program.numbers, calls.kinds, strict=True):
                    number = current(value, dtype, bits=64)
                    leaves.append(number if kind is None else np.array(number, kind))
                results = calls.run(leaves) if self._timed is None else self._run_timed(program, calls, leaves)
        except MemoryError as error:
            raise HostMemoryError(f"{self.name}: {error or 'out of memory'}; use smaller tensors") from None
        first = len(program.inputs)
        arrays: dict[int, NDArray[Any]] = {}
        buffers_of_slots: dict[int, Buffer] = {}
        for slot, value, home in zip(program.outputs, results, outputs, strict=True):
            if home is not None and home.handle is value and slot >= first:
                buffers_of_slots[slot] = home  # It was written in place.
            elif slot not in arrays:
                is_input = slot < first  # A result that is an input gets memory of its own.
                arrays[slot] = np.array(value) if is_input else _owned(value)
        with self.lock:
            self._counters["dispatches"] += len(program.steps)
            self._counters["submits"] += 1
            buffers = self._buffers(arrays.values())
        buffers_of_slots |= zip(arrays, buffers, strict=True)
        return [buffers_of_slots[slot] for slot in program.outputs]

    def _run_timed(self, program: Program, calls: Calls, leaves: list[Any]) -> Sequence[Any]:
        start = time.perf_counter()
        ended: list[int] = []  # when each step ended
        results = calls.timed(leaves, lambda: ended.append(time.perf_counter_ns()))
        spans = list(zip([round(start * 1e9), *ended], ended, strict=False))
        assert self._timed is not None
        self._timed.append(Timing(program, start, time.perf_counter(), spans))
        return results

    def _new(self, array: NDArray[Any]) -> Buffer:
        with interrupts.held(), self.lock:
            return self._buffers([array])[0]

    def _buffers(self, arrays: Collection[NDArray[Any]]) -> list[Buffer]:
        """Buffers of arrays, counted. The lock is held."""
        self._take_back()
        buffers = [Buffer(self, array, array.nbytes) for array in arrays]
        for buffer in buffers:
            self._ends.watch(buffer, buffer.nbytes)
        counters = self._counters
        counters["live_bytes"] += sum([buffer.nbytes for buffer in buffers])
        counters["live_buffers"] += len(buffers)
        if counters["live_bytes"] > counters["peak_bytes"]:
            counters["peak_bytes"] = counters["live_bytes"]
        return buffers


def _owned(array: NDArray[Any]) -> NDArray[Any]:
    """The array itself, or a copy where it is a view of memory that another value has too."""
    return array if array.base is None and array.flags.c_contiguous and array.ndim else np.array(array, order="C")


def numpy_dtype(dtype: DType) -> str:
    return special.numpy_dtype(dtype)


def open_device(index: int = 0) -> CpuDevice:
    return CpuDevice(index)
