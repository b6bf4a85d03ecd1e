"""torch.mps: there is none, and programs that ask go on without it; unless as_torch gave a device this name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pywebgpu import devices
from pywebgpu.support import lazy
from pywebgpu.tensor import random
from pywebgpu.torch_api import cuda, memory, webgpu
from pywebgpu.torch_api.cuda import Event as Event

if TYPE_CHECKING:
    from pywebgpu.tensor.tensor import Tensor

NAME = "mps"


def is_available() -> bool:
    """False: a program that can use several devices takes "cuda", which is the same one."""
    return False


def device_count() -> int:
    """0, as is_available."""
    return 0


def _require(name: str) -> None:
    if NAME not in devices.adopted:
        raise RuntimeError(f'Cannot execute {name}() without MPS backend: the GPU is device "webgpu"')


def synchronize() -> None:
    """Runs all that is pending, and waits until it is done."""
    _require("synchronize")
    webgpu.synchronize(NAME)


def empty_cache() -> None:
    """Nothing to do: memory goes back with its last tensor."""
    _require("empty_cache")


def current_allocated_memory() -> int:
    """Bytes that tensors hold."""
    _require("current_allocated_memory")
    return memory.allocated(NAME)


def driver_allocated_memory() -> int:
    """Bytes that were taken from the device in all."""
    _require("driver_allocated_memory")
    statistics = memory.stats(NAME)
    return statistics.get("device_bytes", statistics["live_bytes"])


def recommended_max_memory() -> int:
    """As far as torch.cuda.get_device_properties goes."""
    _require("recommended_max_memory")
    return cuda.Properties(NAME).total_memory


def manual_seed(seed: int) -> None:
    """Nothing: torch.manual_seed seeds all devices."""


def seed() -> None:
    """Nothing, as manual_seed."""


def get_rng_state(device: object = NAME) -> Tensor:
    """The state of draws: one for all devices."""
    return random.get_rng_state()


def set_rng_state(new_state: Tensor, device: object = NAME) -> None:
    """Draws go on from a state."""
    random.set_rng_state(new_state)


__getattr__ = lazy.absent(__name__)
