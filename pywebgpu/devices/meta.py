"""A device that has shapes and dtypes, and no values: models of any size are made there at once, and filled later."""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from pywebgpu.compiler.program import Loaded, Program
from pywebgpu.devices.base import Buffer
from pywebgpu.devices.blocking import COUNTERS, InProcess
from pywebgpu.ir.graph import Spec
from pywebgpu.kernels.kernel import Limits
from pywebgpu.kernels.target import Target

if TYPE_CHECKING:
    from pywebgpu.devices.base import Bytes

NO_DATA = "Cannot copy out of meta tensor; no data!"
NO_MODULE = (
    f"{NO_DATA} Please use torch.nn.Module.to_empty() instead of torch.nn.Module.to() when moving module from meta to "
    "a different device."
)
NO_ARRAY = "can't convert meta device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first."
NO_NUMBER = "Tensor.item() cannot be called on meta tensors"
NO_OP = (
    "for {}: copying from a non-meta parameter in the checkpoint to a meta parameter in the current model, which is a "
    "no-op. (Did you mean to pass `assign=True` to assign items in the state dictionary to their corresponding key in "
    "the module instead of copying them in place?)"
)


class MetaDevice(InProcess):
    """What is recorded here counts as computed. Its buffers take no memory."""

    name = "meta"
    target = Target(wgsl=False, limits=Limits(buffer_bytes=sys.maxsize))
    computes = False
    has_values = False
    has_storages = True
    has_clock = False

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.counters = dict.fromkeys(COUNTERS, 0)

    def upload(self, data: Bytes, spec: Spec) -> Buffer:
        return self.zeros(spec)

    def zeros(self, spec: Spec) -> Buffer:
        return Buffer(self, None, 0)

    def download(self, buffer: Buffer, spec: Spec) -> NoReturn:
        raise NotImplementedError(NO_DATA)

    def load(self, program: Program) -> Loaded:
        raise NotImplementedError("the meta device runs nothing")

    def run(
        self, loaded: Loaded, inputs: Sequence[Buffer], numbers: Sequence[float], outputs: Sequence[Buffer | None]
    ) -> NoReturn:
        raise NotImplementedError("the meta device runs nothing")


def open_device(index: int = 0) -> MetaDevice:
    return MetaDevice()
