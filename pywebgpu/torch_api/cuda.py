"""torch.cuda: there is none, and programs that ask go on without it; unless as_torch gave a device this name."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from pywebgpu import devices
from pywebgpu.amp import cuda as amp  # noqa: F401 - torch.cuda.amp
from pywebgpu.support import lazy
from pywebgpu.tensor import limits, random
from pywebgpu.torch_api import memory, webgpu

if TYPE_CHECKING:
    from pywebgpu.tensor.tensor import Tensor

MISSING = 'Torch not compiled with CUDA enabled: use device "webgpu", or torch.get_default_device()'
NAME = "cuda"


class Properties(NamedTuple):
    """What get_device_properties tells: of memory and processors nothing is known."""

    name: str
    major: int = 8
    minor: int = 0
    total_memory: int = 8 << 30
    multi_processor_count: int = 1


def is_available() -> bool:
    if NAME not in devices.adopted:
        return False
    devices.request()
    return True


def _require() -> None:
    if NAME not in devices.adopted:
        raise AssertionError(MISSING)


def is_initialized() -> bool:
    return NAME in devices.adopted


def init() -> None:
    _require()


def is_bf16_supported(including_emulation: bool = True) -> bool:
    return NAME in devices.adopted


def device_count() -> int:
    return 1 if is_available() else 0


def current_device() -> int:
    _require()
    return 0


def get_device_name(device: object = None) -> str:
    _require()
    return webgpu.get_device_name() if devices.adopted[NAME] == "webgpu" else devices.adopted[NAME]


def get_device_properties(device: object = None) -> Properties:
    return Properties(get_device_name())


def get_device_capability(device: object = None) -> tuple[int, int]:
    _require()
    return 8, 0


def set_device(device: object) -> None:
    _require()


@contextlib.contextmanager
def device(device: object) -> Iterator[None]:
    """Nothing to choose: there is one."""
    yield


def synchronize(device: object = None) -> None:
    _require()
    webgpu.synchronize(NAME)


def manual_seed(seed: int) -> None:
    """Nothing: torch.manual_seed seeds all devices."""


manual_seed_all = manual_seed


def get_rng_state(device: object = None) -> Tensor:
    """The state of draws: one for all devices."""
    return random.get_rng_state()


def get_rng_state_all() -> list[Tensor]:
    return [random.get_rng_state()] * device_count()


def set_rng_state(new_state: Tensor, device: object = None) -> None:
    random.set_rng_state(new_state)


def set_rng_state_all(new_states: Sequence[Tensor]) -> None:
    for new_state in new_states[:1]:
        random.set_rng_state(new_state)


def seed() -> None:
    """Nothing, as manual_seed."""


seed_all = seed
initial_seed = random.initial_seed


def empty_cache() -> None: ...


ipc_collect = empty_cache


def reset_peak_memory_stats(device: object = None) -> None:
    if NAME in devices.adopted:
        memory.reset_peak(NAME)


reset_max_memory_allocated = reset_max_memory_cached = reset_peak_memory_stats


def reset_accumulated_memory_stats(device: object = None) -> None:
    """Nothing to do: PyTorch's counters that only grow are not kept here."""


def host_memory_stats() -> dict[str, int]:
    """{}: no memory of the host is pinned."""
    return {}


host_memory_stats_as_nested_dict = host_memory_stats


def reset_peak_host_memory_stats() -> None:
    """Nothing to do, as host_memory_stats."""


reset_accumulated_host_memory_stats = reset_peak_host_memory_stats


def memory_allocated(device: object = None) -> int:
    return memory.allocated(NAME) if NAME in devices.adopted else 0


def max_memory_allocated(device: object = None) -> int:
    return memory.stats(NAME)["peak_bytes"] if NAME in devices.adopted else 0


def memory_reserved(device: object = None) -> int:
    return memory_allocated()


def max_memory_reserved(device: object = None) -> int:
    return max_memory_allocated()


memory_cached, max_memory_cached = memory_reserved, max_memory_reserved


def mem_get_info(device: object = None) -> tuple[int, int]:
    """Bytes that are free, and all, as far as `get_device_properties` goes."""
    total = get_device_properties().total_memory
    return max(total - memory_allocated(), 0), total


def memory_stats(device: object = None) -> dict[str, int]:
    """Counters of the device, and two of them by PyTorch's names."""
    statistics = {"allocated_bytes.all.current": memory_allocated(), "allocated_bytes.all.peak": max_memory_allocated()}
    return {**memory.stats(NAME), **statistics} if NAME in devices.adopted else {}


def memory_stats_as_nested_dict(device: object = None) -> dict[str, Any]:
    """As memory_stats, with a dict for each part of a name."""
    nested: dict[str, Any] = {}
    for name, count in memory_stats().items():
        *parts, last = name.split(".")
        inner = nested
        for part in parts:
            inner = inner.setdefault(part, {})
        inner[last] = count
    return nested


def memory_summary(device: object = None, abbreviated: bool = False) -> str:
    return memory.memory_summary(NAME) if NAME in devices.adopted else ""


class AcceleratorError(RuntimeError):
    """What a program catches of a device; errors of devices here are torch.errors.DeviceError."""


class OutOfMemoryError(RuntimeError):
    """What a program catches where memory ends; here that is an error of the device."""


class Event:
    """A moment of the host, after all that was queued is done."""

    def __init__(self, enable_timing: bool = False, **options: Any) -> None:
        self._at = 0.0

    def record(self, stream: object = None) -> None:
        synchronize()
        self._at = time.perf_counter()

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds."""
        return (end_event._at - self._at) * 1e3

    def synchronize(self) -> None: ...

    def wait(self, stream: object = None) -> None: ...

    def query(self) -> bool:
        return True


class Stream(contextlib.nullcontext[None]):
    """The only queue that there is; a `with` block of it changes nothing."""

    def __init__(self, device: object = None, priority: int = 0, **options: Any) -> None: ...

    def synchronize(self) -> None:
        synchronize()

    def wait_stream(self, stream: object) -> None: ...

    def wait_event(self, event: object) -> None: ...

    def record_event(self, event: Event | None = None) -> Event:
        recorded = event or Event()
        recorded.record()
        return recorded


def current_stream(device: object = None) -> Stream:
    return Stream()


default_stream = current_stream


@contextlib.contextmanager
def stream(stream: object) -> Iterator[None]:
    yield


class StreamContext(contextlib.nullcontext[None]):
    """A `with` block of a queue: there is one, so it changes nothing."""

    def __init__(self, stream: object) -> None:
        super().__init__()
        self.stream = stream


class device_of(contextlib.nullcontext[None]):
    """A `with` block of a tensor's device: there is one, so it changes nothing."""

    def __init__(self, obj: object) -> None:
        super().__init__()


def set_stream(stream: object) -> None:
    """Nothing to choose: there is one queue."""
    _require()


def is_current_stream_capturing() -> bool:
    """False: torch.compile records calls, not queues."""
    return False


def is_tf32_supported() -> bool:
    """False: float32 is computed in float32."""
    return False


def can_device_access_peer(device: object, peer_device: object) -> bool:
    """False: there is one device."""
    _require()
    return False


def get_arch_list() -> list[str]:
    """[]: nothing is compiled for a kind of CUDA's."""
    return []


def get_gencode_flags() -> str:
    """The empty string, as get_arch_list."""
    return ""


def get_sync_debug_mode() -> int:
    """0: no wait is reported."""
    _require()
    return 0


def set_sync_debug_mode(debug_mode: int | str) -> None:
    """Takes 0 or "default". Raises NotImplementedError for others."""
    _require()
    if debug_mode not in (0, "default"):
        raise NotImplementedError("set_sync_debug_mode: waits are not reported; torch.profiler shows where time goes")


class CudaError(RuntimeError):
    """What a program catches of CUDA's runtime; errors of devices here are torch.errors.DeviceError."""


class DeferredCudaCallError(Exception):
    """What a program catches of calls that wait for CUDA; none do here."""


globals().update(limits.legacy("cuda.", NAME))
__getattr__ = lazy.absent(__name__)
