"""Who loads data: this process, and no other one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pywebgpu.data.loader import get_worker_info as get_worker_info

_worker_info: WorkerInfo | None = None


@dataclass
class WorkerInfo:
    """What a process that loads data knows of itself; there is none here."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


def _generate_state(base_seed: int, worker_id: int) -> list[int]:
    """Four words that seed NumPy's generator in a process. Source: O'Neill 2015, seed_seq_fe."""
    a, b, mask = 0x43B0D7E5, 0x931E8875, 0xFFFFFFFF
    multiplier, mixed = a, []

    def hashed(value: int) -> int:
        nonlocal multiplier
        value = (value ^ multiplier) & mask
        multiplier = multiplier * b & mask
        value = value * multiplier & mask
        return (value ^ value >> 16) & mask

    def mix(x: int, y: int) -> int:
        result = ((0xCA01F9DD * x & mask) - (0x4973F715 * y & mask)) & mask
        return (result ^ result >> 16) & mask

    entropy = [worker_id, base_seed & mask, base_seed >> 32 & mask, 0]
    pool = [hashed(word) for word in entropy]
    for source in range(4):
        for target in range(4):
            if source != target:
                pool[target] = mix(pool[target], hashed(pool[source]))
    multiplier = 0x8B51F9DD
    for word in pool:
        word = (word ^ multiplier) & mask
        multiplier = multiplier * 0x58F38DED & mask
        word = word * multiplier & mask
        mixed.append((word ^ word >> 16) & mask)
    return mixed
