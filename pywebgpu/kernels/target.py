"""What a device is to the compiler: limits, features, tuning. Data only; compilation takes a Target, never a device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import Any

from pywebgpu.kernels.kernel import Limits

SUBGROUPS, F16, MATRICES, CLOCK = "subgroups", "shader-f16", "chromium-experimental-subgroup-matrix", "timestamp-query"
NEEDED = (F16, SUBGROUPS, MATRICES)  # the features that a kernel may need, in the order in which its text enables them


@dataclass(frozen=True, slots=True)
class SubgroupMatrix:
    """A product that a subgroup computes as one: m x k by k x n numbers, and the kind of the sums."""

    component: str
    result: str
    m: int
    n: int
    k: int


@dataclass(frozen=True, slots=True)
class Features:
    """What an adapter has beyond what WebGPU promises everywhere. names: WebGPU's names of features.

    subgroup_sizes: the smallest and the largest; (0, 0) without subgroups.  matrices: the subgroup matrices it has.
    family: whose adapter it is ("nvidia", "llvmpipe" …), "" unknown.  kind: "discrete", "integrated", "cpu" or "".
    translator: what reads the WGSL: "naga", "tint", "" nothing.  cores: that run workgroups side by side, 0 unknown.
    """

    names: tuple[str, ...] = ()
    subgroup_sizes: tuple[int, int] = (0, 0)
    matrices: tuple[SubgroupMatrix, ...] = ()
    family: str = ""
    kind: str = ""
    translator: str = ""
    cores: int = 0

    def __contains__(self, name: str) -> bool:
        return name in self.names

    @property
    def is_cpu(self) -> bool:
        return self.kind == "cpu"


@dataclass(frozen=True)
class Target:
    """What the compiler must know of a device. `wgsl` False: each op runs as its NumPy meaning.

    tuning: by case, the launch that was found to be the fastest (see launch.py).
    """

    wgsl: bool
    limits: Limits
    features: Features = field(default_factory=Features)
    tuning: Mapping[Any, Any] = field(default_factory=dict, hash=False)

    @property
    def is_cpu(self) -> bool:
        """Whether a CPU plays the GPU."""
        return self.limits.emulated or self.features.is_cpu

    @cached_property
    def digest(self) -> str:
        """Stands for all of it, in the keys of caches."""
        words = self.wgsl, self.limits, self.features, sorted(self.tuning.items())
        return sha256(repr(words).encode()).hexdigest()
