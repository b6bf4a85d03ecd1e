"""Every environment variable, read here and nowhere else."""

import os
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Settings:
    """Values fixed when the package is imported.

    debug: 0 silent, 1 one line a program, 2 one line a kernel, 3 WGSL text, 4 graphs after each pass.
    device: the default device, "" for: webgpu where a hardware adapter is, else cpu.
    fuse: False makes every node a kernel of its own; values must not change.
    pending: recorded nodes after which pending work is submitted by itself.
    """

    debug: int = 0
    device: str = ""
    fuse: bool = True
    pending: int = 50_000


def from_environment() -> Settings:
    get = os.environ.get
    return Settings(
        debug=int(get("PYWEBGPU_DEBUG", "0")),
        device=get("PYWEBGPU_DEVICE", ""),
        fuse=get("PYWEBGPU_FUSE", "1") != "0",
        pending=int(get("PYWEBGPU_PENDING", "50000")),
    )


settings = from_environment()
