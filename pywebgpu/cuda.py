"""torch.cuda: there is none, and programs that ask go on without it."""

from __future__ import annotations

from typing import NoReturn

from pywebgpu.amp import cuda as amp  # noqa: F401 - torch.cuda.amp

MISSING = 'Torch not compiled with CUDA enabled: use device "webgpu", or torch.get_default_device()'


def is_available() -> bool:
    return False


def is_initialized() -> bool:
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    return False


def device_count() -> int:
    return 0


def current_device() -> int:
    raise AssertionError(MISSING)


def get_device_name(device: object = None) -> str:
    raise AssertionError(MISSING)


def get_device_properties(device: object = None) -> NoReturn:
    raise AssertionError(MISSING)


def set_device(device: object) -> None:
    raise AssertionError(MISSING)


def synchronize(device: object = None) -> None:
    raise AssertionError(MISSING)


def manual_seed(seed: int) -> None:
    """Nothing: there is no CUDA generator. torch.manual_seed seeds all devices."""


manual_seed_all = manual_seed


def empty_cache() -> None: ...


def reset_peak_memory_stats(device: object = None) -> None: ...


def memory_allocated(device: object = None) -> int:
    return 0


max_memory_allocated = memory_reserved = max_memory_reserved = memory_allocated
