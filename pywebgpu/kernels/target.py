"""What a device is to the compiler: limits, features, tuning. Data only; compilation takes a Target, never a device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pywebgpu.kernels.kernel import Limits


@dataclass(frozen=True)
class Target:
    """What the compiler must know of a device. `wgsl` False: each op runs as its NumPy meaning.

    tuning: by case, the launch that was found to be the fastest (see launch.py).
    """

    wgsl: bool
    limits: Limits
    tuning: Mapping[Any, Any] = field(default_factory=dict, hash=False)
