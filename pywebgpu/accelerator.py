"""torch.accelerator: the device that is not the CPU, whichever it is; here webgpu, where it is the default."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from pywebgpu import devices, lazy, webgpu

if TYPE_CHECKING:
    from types import ModuleType

    from pywebgpu.tensor.factory_options import DeviceLike


NAME = "cuda"


def is_available() -> bool:
    """Whether the default device is a GPU, or as_torch gave the chosen one its name."""
    if NAME in devices.adopted:
        devices.request()
        return True
    return devices.default_device().startswith("webgpu")


def current_accelerator(check_available: bool = False) -> devices.device | None:
    """Device webgpu, or None where it is not what tensors are made on."""
    return devices.device(NAME if NAME in devices.adopted else "webgpu") if is_available() else None


def get_device_module(device: DeviceLike = None) -> ModuleType:
    """torch.webgpu, torch.cuda or torch.cpu, by a device; of the current accelerator, or cpu, if None."""
    found = current_accelerator() if device is None else devices.device(device)
    kind = "cpu" if found is None else found.type
    found_module: ModuleType = getattr(import_module("pywebgpu"), kind)
    return found_module


def device_count() -> int:
    """How many adapters there are."""
    return 1 if NAME in devices.adopted else webgpu.device_count() if is_available() else 0


def current_device_index() -> int:
    """The number of the adapter in use."""
    return 0


def set_device_index(device: int | str | devices.device) -> None:
    """Only index 0 exists."""
    index = device if isinstance(device, int) else devices.device(device).index or 0
    if index:
        raise RuntimeError(f"there is no accelerator {index}")


def synchronize(device: DeviceLike = None) -> None:
    """Runs all that is pending, and waits until it is done."""
    webgpu.synchronize(device)


def empty_cache() -> None:
    """Nothing to do: memory goes back with its last tensor."""


def memory_allocated(device: DeviceLike = None) -> int:
    """Bytes that tensors hold."""
    return devices.open_device(device).counters["live_bytes"]


def max_memory_allocated(device: DeviceLike = None) -> int:
    """The most bytes that tensors and Programs held at a time."""
    return devices.open_device(device).counters["peak_bytes"]


__getattr__ = lazy.absent(__name__)
