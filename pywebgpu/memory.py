"""torch.memory: what a device holds and has done."""

from __future__ import annotations

from typing import Any

from pywebgpu import devices, realize


def stats(device: Any = None) -> dict[str, int]:
    """Counters of the device: live and peak bytes, buffers, dispatches, submits, programs found and compiled."""
    return {**devices.open_device(device).counters, **realize.counters}


def allocated(device: Any = None) -> int:
    """Bytes of live buffers."""
    return devices.open_device(device).counters["live_bytes"]


def reset_peak(device: Any = None) -> None:
    """Peak bytes count from now."""
    counters = devices.open_device(device).counters
    counters["peak_bytes"] = counters["live_bytes"]
