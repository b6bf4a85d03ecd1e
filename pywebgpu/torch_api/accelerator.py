"""torch.accelerator: the device that is not the CPU, whichever it is; here webgpu, where it is the default."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING

from pywebgpu import devices, dtypes
from pywebgpu.support import lazy
from pywebgpu.torch_api import cuda, memory, webgpu

if TYPE_CHECKING:
    from types import ModuleType

    from pywebgpu.dtypes import DType
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
    chosen = current_accelerator() if device is None else devices.device(device)
    kind = "cpu" if chosen is None else chosen.type
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


@contextlib.contextmanager
def device_index(device: int | None) -> Iterator[None]:
    """Another adapter inside a `with` block: only index 0 exists, and None changes nothing."""
    if device is not None:
        set_device_index(device)
    yield


def current_device_idx() -> int:
    """The older name of current_device_index."""
    warnings.warn("Use `current_device_index` instead.", FutureWarning, stacklevel=2)
    return current_device_index()


def set_device_idx(device: int | str | devices.device) -> None:
    """The older name of set_device_index."""
    warnings.warn("Use `set_device_index` instead.", FutureWarning, stacklevel=2)
    set_device_index(device)


def current_stream(device: DeviceLike = None) -> cuda.Stream:
    """The only queue that there is. Raises RuntimeError where there is no accelerator."""
    if not is_available():
        raise RuntimeError("Cannot access accelerator device when none is available.")
    return cuda.Stream()


def set_stream(stream: object) -> None:
    """Nothing to choose: there is one."""
    current_stream()


def get_device_capability(device: DeviceLike = None) -> dict[str, set[DType]]:
    """supported_dtypes: those that the device computes with."""
    opened = devices.open_device(device)
    return {"supported_dtypes": {dtype for dtype in dtypes.ALL if dtype.compute is not None or not opened.target.wgsl}}


def synchronize(device: DeviceLike = None) -> None:
    """Runs all that is pending, and waits until it is done."""
    webgpu.synchronize(device)


def empty_cache() -> None:
    """Nothing to do: memory goes back with its last tensor."""


def empty_host_cache() -> None:
    """Nothing to do: no memory of the host is kept for copies."""


def memory_allocated(device: DeviceLike = None) -> int:
    """Bytes that tensors hold."""
    return devices.open_device(device).counters["live_bytes"]


def max_memory_allocated(device: DeviceLike = None) -> int:
    """The most bytes that tensors and Programs held at a time."""
    return devices.open_device(device).counters["peak_bytes"]


def memory_reserved(device: DeviceLike = None) -> int:
    """Bytes that were taken from the device in all."""
    counters = devices.open_device(device).counters
    return counters.get("device_bytes", counters["live_bytes"])


def max_memory_reserved(device: DeviceLike = None) -> int:
    """The most bytes that were known to be taken: what is taken now, or the most that tensors and Programs held."""
    return max(memory_reserved(device), max_memory_allocated(device))


def memory_stats(device: DeviceLike = None) -> dict[str, int]:
    """Counters of the device, and four of them by PyTorch's names."""
    return {
        **memory.stats(device),
        "allocated_bytes.all.current": memory_allocated(device),
        "allocated_bytes.all.peak": max_memory_allocated(device),
        "reserved_bytes.all.current": memory_reserved(device),
        "reserved_bytes.all.peak": max_memory_reserved(device),
    }


def reset_peak_memory_stats(device: DeviceLike = None) -> None:
    """Peak bytes count from now."""
    memory.reset_peak(device)


def reset_accumulated_memory_stats(device: DeviceLike = None) -> None:
    """Nothing to do: PyTorch's counters that only grow are not kept here."""


__getattr__ = lazy.absent(__name__)
