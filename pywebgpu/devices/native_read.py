"""Bytes of a mapped wgpu buffer by the driver's own functions: wgpu-py's submit once more, and wake a thread to poll.

Who waits here polls, and cannot be interrupted meanwhile. So it is for devices that take no longer than a GPU does.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wgpu import GPUBuffer, GPUCommandBuffer, GPUDevice, GPUQueue

READ = 1  # GPUMapMode.READ, as WebGPU counts
_SUCCESS = 1

try:  # These are not in wgpu-py's public interface.
    from wgpu.backends.wgpu_native import ffi, lib
    from wgpu.backends.wgpu_native._api import libf

    _map: Any = lib.wgpuBufferMapAsync
    _range: Any = lib.wgpuBufferGetConstMappedRange
    _unmap: Any = lib.wgpuBufferUnmap
    _poll: Any = lib.wgpuDevicePoll
    _submit: Any = libf.wgpuQueueSubmitForIndex
    _mode: Any = lib.WGPUCallbackMode_AllowProcessEvents

    @ffi.callback("void(WGPUMapAsyncStatus, WGPUStringView, void *, void *)")  # type: ignore[untyped-decorator]
    def _arrived(status: int, message: Any, handle_number: Any, _: Any) -> None:
        reading = _waiting.pop(int(ffi.cast("intptr_t", handle_number)), None)
        if reading is not None:
            reading.status = status

    is_here = True
except (ImportError, AttributeError):
    is_here = False


def chosen(kind: str) -> type[Direct] | type[Promised]:
    """How buffers of an adapter of this kind are read."""
    return Direct if is_here and kind != "cpu" else Promised


def submit(queue: GPUQueue, commands: GPUCommandBuffer) -> object:
    """Queues commands. What can be waited for without what is queued later; None where that cannot be."""
    if not is_here:
        queue.submit([commands])
        return None
    own: Any = queue
    wrapped: Any = commands
    return ffi.new(
        "WGPUSubmissionIndex *", _submit(own._internal, 1, ffi.new("WGPUCommandBuffer[]", [wrapped._internal]))
    )


_waiting: dict[int, Direct] = {}  # by a number that the driver gives back
_numbers = count(1)


class Direct:
    """A buffer that is being mapped, once it was submitted what writes it."""

    __slots__ = ("_buffer", "_device", "_nbytes", "_submission", "status")

    def __init__(self, device: GPUDevice, buffer: GPUBuffer, nbytes: int, submission: object) -> None:
        own: Any = buffer
        wrapped: Any = device
        self._buffer, self._device, self._nbytes, self.status = own._internal, wrapped._internal, nbytes, 0
        self._submission = ffi.NULL if submission is None else submission
        number = next(_numbers)
        _waiting[number] = self
        info = ffi.new("WGPUBufferMapCallbackInfo *")
        info.mode, info.callback, info.userdata1 = _mode, _arrived, ffi.cast("void *", number)
        _map(self._buffer, READ, 0, nbytes, info[0])

    def wait(self) -> None:
        while not self.status:
            _poll(self._device, True, self._submission)  # Other threads go on meanwhile.

    def take(self) -> bytes:
        """The bytes, after which the buffer may be written again. RuntimeError where the device was lost."""
        mapped = _range(self._buffer, 0, self._nbytes) if self.status == _SUCCESS else None
        if not mapped:
            raise RuntimeError(f"a buffer could not be mapped ({self.status})")
        raw: bytes = ffi.buffer(mapped, self._nbytes)[:]
        _unmap(self._buffer)
        return raw


class Promised:
    """The same by wgpu-py, which may be interrupted."""

    __slots__ = ("_arriving", "_buffer", "_nbytes")

    def __init__(self, device: GPUDevice, buffer: GPUBuffer, nbytes: int, submission: object) -> None:
        self._buffer, self._nbytes = buffer, nbytes
        self._arriving: Any = buffer.map_async(READ, 0, nbytes)

    def wait(self) -> None:
        self._arriving.sync_wait()

    def take(self) -> bytes:
        raw = bytes(self._buffer.read_mapped(0, self._nbytes))
        self._buffer.unmap()
        return raw
