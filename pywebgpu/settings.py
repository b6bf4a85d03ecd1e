"""Every environment variable, read here and nowhere else."""

import os
import sys
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Settings:
    """Values fixed when the package is imported.

    debug: 0 silent, 1 one line a program, 2 one line a kernel, 3 WGSL text, 4 graphs after each pass.
    device: the default device, "" for: webgpu where a hardware adapter is, else cpu.
    fuse: False makes every node a kernel of its own; values must not change.
    profile: "" for none, 1 prints where the time of the whole process went, any other text is a file for Perfetto.
    pending: recorded nodes after which pending work is submitted by itself.
    pool: megabytes of buffers that a GPU's device keeps to use again.
    portable: kernels for any device with WebGPU, and not for the one that is there: for exports.
    audit: which calls of a compiled step are recorded as ordinary ones and compared with what a replay would do: "" for
        numbers 2, 3, 5, 9, 17 and so on, "1" for all, "0" for none.
    steps: captured steps that one compiled function keeps; the least recently used goes first.
    cache: the folder where compiled Programs are kept from process to process, "" for nowhere.
    node: the program Node, or a folder with its packages, that `pywebgpu node` uses; "" for the installation's own.
    tuning: False launches kernels by the templates' own rules, and not as was measured on adapters of this kind.
    verify: True checks the graph after each pass, and each Program, against what the compiler promises of them.
    cuda: False where CUDA_VISIBLE_DEVICES names none: a program for PyTorch then finds no "cuda", and is on cpu.
    short_tracebacks: False shows this package's own frames in tracebacks, too.
    nans: "0" for no check, "1" raises at the first NaN that an op makes, "inf" at the first infinity, too.
    """

    debug: int = 0
    device: str = ""
    fuse: bool = True
    profile: str = ""
    pending: int = 50_000
    pool: int = 1024
    audit: str = ""
    steps: int = 64
    cache: str = ""
    portable: bool = False
    node: str = ""
    nans: str = "0"
    tuning: bool = True
    verify: bool = False
    cuda: bool = True
    short_tracebacks: bool = True


def default_cache() -> str:
    """Where this user's caches are; nowhere in a browser, whose files end with the page."""
    if sys.platform == "emscripten":
        return ""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(home, "pywebgpu")


def from_environment() -> Settings:
    get = os.environ.get
    return Settings(
        debug=int(get("PYWEBGPU_DEBUG", "0")),
        device=get("PYWEBGPU_DEVICE", ""),
        cuda=get("CUDA_VISIBLE_DEVICES", "0") not in ("", "-1"),
        fuse=get("PYWEBGPU_FUSE", "1") != "0",
        profile=get("PYWEBGPU_PROFILE", ""),
        pending=int(get("PYWEBGPU_PENDING", "50000")),
        pool=int(get("PYWEBGPU_POOL", "1024")),
        audit=get("PYWEBGPU_AUDIT", ""),
        steps=int(get("PYWEBGPU_STEPS", "64")),
        cache=get("PYWEBGPU_CACHE", default_cache()),
        portable=get("PYWEBGPU_PORTABLE", "0") != "0",
        node=get("PYWEBGPU_NODE", ""),
        nans=get("PYWEBGPU_NANS") or "0",
        tuning=get("PYWEBGPU_TUNING", "1") != "0",
        verify=get("PYWEBGPU_VERIFY", "0") != "0",
        short_tracebacks=get("PYWEBGPU_TRACEBACKS", "short") != "full",
    )


settings = from_environment()
