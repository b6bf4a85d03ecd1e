"""The device contract. Backends know Programs and bytes, and nothing of ops' rules or of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Protocol
from weakref import ref

from pywebgpu.compiler.program import Loaded, Program
from pywebgpu.devices.timing import Timing
from pywebgpu.dtypes import DType
from pywebgpu.errors import DeviceError
from pywebgpu.ir.graph import Spec
from pywebgpu.kernels.kernel import Kernel, too_large
from pywebgpu.kernels.target import Target
from pywebgpu.support.numbers import unsupported

Handle = Any  # a backend's own handle of memory: a GPUBuffer, a number of JavaScript's, an array
Bytes = bytes | bytearray | memoryview
IMPOSSIBLE = 2**40  # bytes
RECOVER = "torch.webgpu.recover() opens it again"
GONE = (
    "this value was on a device that was lost, and went with it; write it anew, as load_state_dict() and "
    "Checkpointer.restore() do"
)


class Device(Protocol):
    """One opened device. `name` is what `str(tensor.device)` says.

    What waits has a form to await, for hosts where Python cannot wait: the names with `_async`.

    A device that was lost may be opened again, and stays the same object: its tensors can be written anew, and what
    they held is gone. `generation` counts that; what was loaded for an earlier one cannot run.
    """

    name: str
    is_host: bool  # values are in the host's memory, as those of PyTorch's device cpu
    computes: bool  # it runs kernels; false of devices that only count or only know shapes
    has_values: bool  # what it computes can be read; false of device meta, which knows shapes and dtypes alone
    has_storages: bool  # false of wrappers, which their classes compute
    holds_all: bool  # values of all dtypes, also of those that WGSL lacks
    has_clock: bool  # it can tell how long a step took
    lock: Any  # re-entrant; held in every call, and not while a read waits

    @property
    def target(self) -> Target:
        """What Programs for it are made of."""

    @property
    def generation(self) -> int: ...

    @property
    def is_gone(self) -> bool:
        """Whether it was lost, closed, or left in the process that this one was forked from."""

    @property
    def counters(self) -> dict[str, int]:
        """What was done so far, and what is there: dispatches, submits, buffers, bytes."""

    def upload(self, data: Bytes, spec: Spec) -> Buffer:
        """Little-endian bytes of the spec's dtype, row-major -> a buffer."""

    def zeros(self, spec: Spec) -> Buffer:
        """A buffer of zeros, which are not sent where the device can make them."""

    def download(self, buffer: Buffer, spec: Spec) -> bytes:
        """The opposite of upload. Waits for the device."""

    async def download_async(self, buffer: Buffer, spec: Spec) -> bytes: ...

    def prepare(self, kernel: Kernel) -> None:
        """May start to compile a kernel of the Program that is loaded next. Waits for nothing, raises nothing."""

    def load(self, program: Program) -> Loaded:
        """Makes what a Program needs once: pipelines, scratch. The result goes to `run`."""

    def run(
        self, loaded: Loaded, inputs: Sequence[Buffer], numbers: Sequence[float], outputs: Sequence[Buffer | None]
    ) -> list[Buffer]:
        """Queues the Program. An output that is given is written in place; None gets a new buffer.

        It is called where interrupts are held back: what it queued, the caller knows of.
        """

    def time(self, on: bool) -> None:
        """Whether the runs from now on are timed, step by step where the device `has_clock`."""

    def timings(self) -> list[Timing]:
        """The runs that were timed and not asked for yet. Waits for them."""

    async def timings_async(self) -> list[Timing]: ...

    def synchronize(self) -> None:
        """Waits until all that was queued is done."""

    async def synchronize_async(self) -> None: ...

    def reopen(self) -> None:
        """Opens it again after a loss."""

    async def reopen_async(self) -> None: ...

    def leave(self) -> bool:
        """Called in a forked process: whether only the parent can reach it, so that nothing here may from now on."""

    def close(self) -> None: ...


class Buffer:
    """A device's memory for one value. Its device takes it back in a call that follows the end of the last reference.

    kept: how many besides storages need it to stay what it is.
    """

    __slots__ = ("__weakref__", "_holders", "device", "handle", "kept", "nbytes")

    def __init__(self, device: Device, handle: Handle, nbytes: int) -> None:
        self.device, self.handle, self.nbytes = device, handle, nbytes
        self.kept = 0
        self._holders: list[ref[Any]] = []

    def held_by(self, storage: object) -> None:
        """It is the value of a storage, which needs not say when it ends."""
        if self._holders:
            self._holders = [holder for holder in self._holders if holder() is not None]
        self._holders.append(ref(storage))

    def left_by(self, storage: object) -> None:
        """It is no longer the value of a storage."""
        self._holders.remove(ref(storage))

    @property
    def may_be_written(self) -> bool:
        """Whether it is the value of one storage, and nobody else needs it."""
        holders = self._holders
        if self.kept or not holders:
            return False
        if len(holders) == 1:  # As for nearly all: it is asked of each output of each run.
            return holders[0]() is not None
        return [holder() is not None for holder in holders].count(True) == 1


def check_room(spec: Spec, device: Device) -> None:
    """Raises DeviceError for a value that the device cannot hold."""
    count, limits = prod(spec.shape), device.target.limits
    size = spec.dtype.format.room(count) if device.target.wgsl else count * spec.dtype.itemsize
    trouble = too_large(spec, size, limits)
    if trouble:
        raise DeviceError(f"{device.name}: {trouble}")


def check_possible(spec: Spec, device: Device) -> None:
    """Raises DeviceError for a value so large that no device holds it, nor could compute it without storing it."""
    size = prod(spec.shape) * spec.dtype.itemsize
    if size > IMPOSSIBLE:
        raise DeviceError(
            f"{device.name}: a value of {spec.dtype}{list(spec.shape)} takes {size} bytes, and no device holds so "
            "many; use smaller tensors"
        )


def check_supported(dtype: DType, device: Device) -> None:
    """Raises DTypeError for a dtype that the device cannot hold."""
    if dtype.compute is None and not device.holds_all:
        raise unsupported(dtype, device.name)
