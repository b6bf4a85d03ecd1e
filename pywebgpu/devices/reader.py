"""Bringing bytes back from a wgpu device: pooled staging buffers, and fault words where a kernel may have left some.

What was read after a Program's last run is brought along with its next one, in the same submit: a training loop reads
the loss of each step. While it waits for that, the next run is encoded as it will probably be. js_bridge/reader.mjs
does the same.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import ref

from pywebgpu.devices.loaded import Loaded
from pywebgpu.devices.native_read import Direct, Promised
from pywebgpu.devices.pool import Pool
from pywebgpu.errors import of_row
from pywebgpu.support.numbers import overflow

if TYPE_CHECKING:
    from wgpu import GPUBuffer, GPUCommandEncoder, GPUDevice

    from pywebgpu.devices.base import Handle

Way = type[Direct] | type[Promised]
FAULT_BYTES = 16
FORESEEN_BYTES = 4096  # a result up to this size may be brought back before anybody asks


@dataclass(slots=True, eq=False)
class Reading:
    """Bytes on their way. `handle` is the buffer that they come from."""

    handle: Any
    nbytes: int
    with_fault: bool
    staging: Any
    loaded: Loaded | None = None  # whose run brought them before anybody asked
    arriving: Direct | Promised | None = None
    submission: Any = None  # of several of its run, the one that brings them

    @property
    def total(self) -> int:
        return self.nbytes + (FAULT_BYTES if self.with_fault else 0)

    def start(self, gpu: GPUDevice, wait_for: Way) -> Reading:
        """After the submit, once somebody waits for it."""
        self.arriving = wait_for(gpu, self.staging, self.total, self.submission)
        return self

    def wait(self) -> None:
        """Until the bytes are there."""
        if self.arriving is not None:
            self.arriving.wait()


@dataclass(slots=True, eq=False)
class Ahead:
    """Commands of a run that is still to come: they fit if it binds `groups`, and is read as the last one was."""

    groups: list[Any]
    commands: list[Any]
    reading: Reading


class Reader:
    """The reads of one opening of a device, in the order of its queue. Its device's lock is held in every call."""

    def __init__(
        self, gpu: GPUDevice, staging: Pool[GPUBuffer], fault: GPUBuffer, counters: dict[str, int], wait_for: Way
    ) -> None:
        self._way = wait_for
        self._gpu, self._staging, self._fault, self._counters = gpu, staging, fault, counters
        self._foreseen: Reading | None = None
        # The last run, and the buffers of its outputs. Its Program may go meanwhile, with its pipelines and scratch.
        self._last: tuple[ref[Loaded], list[Any]] | None = None
        self.may_fault = False  # a kernel may have left a fault that no read has told of

    def foresee(self, loaded: Loaded, outputs: list[Any], encoder: GPUCommandEncoder) -> None:
        """Called in each run before its submit: adds what was read after this Program's last run."""
        self.forget()
        self._last = ref(loaded), outputs
        if loaded.wanted is not None:
            output_index, nbytes = loaded.wanted
            self._foreseen = self._encode(encoder, outputs[output_index], nbytes)
            self._foreseen.loaded = loaded

    def submitted(self, submission: object) -> None:
        """The first part of a run is queued, and what was foreseen with it."""
        if self._foreseen is not None:
            self._foreseen.submission = submission

    def encode_ahead(
        self,
        loaded: Loaded,
        groups: list[Any],
        outputs: list[Any],
        commands: Callable[[Callable[[GPUCommandEncoder], None]], list[Any]],
    ) -> None:
        """Keeps a run that is encoded and not submitted, with the read that follows it."""
        self.drop(loaded)
        assert loaded.wanted is not None
        output_index, nbytes = loaded.wanted
        before, self.may_fault = self.may_fault, loaded.faults
        readings: list[Reading] = []
        buffer = commands(lambda encoder: readings.append(self._encode(encoder, outputs[output_index], nbytes)))
        self.may_fault = before
        loaded.ahead.append(Ahead(groups, buffer, readings[0]))

    def adopt(self, loaded: Loaded, groups: list[Any], outputs: list[Any]) -> Any:
        """The commands of a run that were encoded ahead, in place of `foresee`; None where there are none."""
        if not loaded.ahead:
            return None
        ahead = loaded.ahead[0]
        self.forget()
        reading, wanted = ahead.reading, loaded.wanted
        is_read = wanted is not None and (outputs[wanted[0]], wanted[1]) == (reading.handle, reading.nbytes)
        if not is_read or ahead.groups != groups or reading.with_fault != self.may_fault:
            self.drop(loaded)
            return None
        self._foreseen, self.may_fault = reading, False
        loaded.ahead.clear()
        self._last, reading.loaded = (ref(loaded), outputs), loaded
        return ahead.commands

    def drop(self, loaded: Loaded) -> None:
        """What was encoded ahead of a Program is not to be run."""
        for ahead in loaded.ahead:
            self.give_back(ahead.reading)
        loaded.ahead.clear()

    def give_back(self, reading: Reading) -> None:
        """Nobody waits for it, or it has arrived."""
        self._staging.give(reading.staging, reading.total)

    def forget(self, handle: Handle = None) -> None:
        """Nobody read what was foreseen, or that buffer is written: it is not foreseen again."""
        speculative = self._foreseen
        if speculative is not None and (handle is None or speculative.handle is handle):
            assert speculative.loaded is not None
            speculative.loaded.wanted, self._foreseen = None, None
            self.may_fault |= speculative.with_fault
            self.give_back(speculative)

    def begin(self, handle: Handle, nbytes: int) -> Reading | None:
        """Starts to read a buffer's first bytes, or finds them on their way. None where there is nothing to read."""
        speculative = self._foreseen
        if speculative is not None and speculative.handle is handle and speculative.nbytes == nbytes:
            self._foreseen = None
            return speculative.start(self._gpu, self._way)
        if speculative is not None and speculative.with_fault:
            self.forget()  # A fault is told by the next read, and that is this one.
        if not nbytes and not self.may_fault:
            return None
        encoder = self._gpu.create_command_encoder()
        reading = self._encode(encoder, handle, nbytes)
        self._gpu.queue.submit([encoder.finish()])
        self._counters["submits"] += 1
        self._counters["ffi_calls"] += 4
        if self._last is not None and nbytes <= FORESEEN_BYTES:
            last, outputs = self._last
            loaded, output_index = (
                last(),
                next((output_index for output_index, output in enumerate(outputs) if output is handle), None),
            )
            if loaded is not None and output_index is not None:
                loaded.wanted = output_index, nbytes
        return reading.start(self._gpu, self._way)

    def leave(self, reading: Reading) -> None:
        """Nobody waits for it any more, though it may still be written."""
        self.may_fault |= reading.with_fault
        self._staging.lose(reading.staging)

    def finish(self, reading: Reading) -> bytes:
        """The bytes, once they arrived. Raises for an index that was out of range in a kernel since the last read."""
        assert reading.arriving is not None
        raw = reading.arriving.take()
        self._counters["ffi_calls"] += 4
        self.give_back(reading)
        if reading.with_fault:
            self._check_fault(raw[reading.nbytes :])
        return raw[: reading.nbytes]

    def _encode(self, encoder: GPUCommandEncoder, handle: Handle, nbytes: int) -> Reading:
        with_fault, self.may_fault = self.may_fault, False
        staging = self._staging.take(nbytes + (FAULT_BYTES if with_fault else 0))
        if nbytes:
            encoder.copy_buffer_to_buffer(handle, 0, staging, 0, nbytes)
        if with_fault:
            encoder.copy_buffer_to_buffer(self._fault, 0, staging, nbytes, FAULT_BYTES)
        self._counters["ffi_calls"] += 2
        return Reading(handle, nbytes, with_fault, staging)

    def _check_fault(self, words: bytes) -> None:
        happened, index, size, is_overflow = struct.unpack("<IiiI", words)
        if happened:
            self._gpu.queue.write_buffer(self._fault, 0, bytes(FAULT_BYTES))
            self._counters["ffi_calls"] += 1
            if is_overflow:
                raise overflow(words[4:12].rstrip(b"\0").decode())
            raise of_row(index, size)
