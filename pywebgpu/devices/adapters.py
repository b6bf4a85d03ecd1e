"""Which WebGPU adapters this machine has, and which device is the default.

Apart from `native.py` because it must work, and say what is missing, where wgpu-py is not installed or finds nothing.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pywebgpu.devices import features as adapter_features
from pywebgpu.errors import CannotWaitError, DeviceError
from pywebgpu.kernels.target import Features
from pywebgpu.settings import settings

if TYPE_CHECKING:
    from wgpu import GPUAdapter

SOFTWARE = ("llvmpipe", "lavapipe", "swiftshader", "softpipe", "basic render driver")


FORKED = (
    "this process was forked from one that uses WebGPU, whose driver cannot be reached from here: start processes by "
    'multiprocessing.get_context("spawn"), or use device="cpu"'
)
_IN_PYODIDE = sys.platform == "emscripten"
_left: list[int] = []  # processes that were forked, of which this is the last


@dataclass(frozen=True, slots=True)
class AdapterInfo:
    """One way to reach one GPU. `is_software` is True where a CPU plays the GPU: right, but slower than NumPy."""

    name: str
    backend: str  # Vulkan, Metal, D3D12, OpenGL
    kind: str  # DiscreteGPU, IntegratedGPU, VirtualGPU, CPU, Unknown
    driver: str
    is_software: bool
    limits: dict[str, int]
    features: tuple[str, ...]
    profile: Features = field(default_factory=Features)  # what a device of it would have for kernels

    @property
    def is_complete(self) -> bool:
        """OpenGL cannot keep all that WebGPU promises (limits, timing, exact buffers), so it is listed and not used."""
        return self.backend != "OpenGL"


def adapters() -> list[AdapterInfo]:
    """Every adapter that wgpu-py finds, in its order; empty where wgpu-py is missing. In a browser the one offered."""
    return list(_survey()[0])


def leave() -> None:
    """In a forked process: what wgpu-py has of the parent's driver is never used again, not even to be given back."""
    api: Any = sys.modules.get("wgpu.backends.wgpu_native._api")
    if api is not None:
        _left.append(os.getpid())
        api.libf = None  # By which its objects end what they stand for; they do nothing where it is None.
        _skip_exit_handlers()


def _skip_exit_handlers() -> None:
    """A driver's own one waits for threads that a forked process lacks, and Mesa's then ends in a segmentation fault.

    Those that are added from now on still run, then what C code has not written yet is written, then all is over.
    """
    with suppress(AttributeError, ImportError, OSError):  # Where there is no glibc.
        libc: Any = importlib.import_module("ctypes").CDLL(None)
        libc.on_exit(libc._exit, None)
        libc.__cxa_atexit(libc.fflush, None, None)


def return_memory() -> None:
    """Gives the system what C code has freed: glibc keeps it in an arena for each thread that compiled something."""
    with suppress(AttributeError, ImportError, OSError):  # Where there is no glibc.
        importlib.import_module("ctypes").CDLL(None).malloc_trim(0)


def is_forked() -> bool:
    """Whether this process was forked from one that uses wgpu-py."""
    return bool(_left)


def problem() -> str:
    """Why device webgpu cannot run here; "" when it can."""
    usable, trouble = _survey()
    if trouble or any(adapter.is_complete for adapter in usable):
        return trouble
    return "wgpu-py finds no adapter but OpenGL's, which cannot keep all that WebGPU promises"


def choose_default() -> tuple[str, str]:
    """The default device's name, and why it is that one.

    A software adapter is never the default, because device cpu does the same work faster.
    Raises: CannotWaitError where nobody opened the browser's adapter yet, and Python cannot wait for it.
    """
    if settings.device:
        return settings.device, "the environment variable PYWEBGPU_DEVICE says so"
    if _IN_PYODIDE:
        try:
            return "webgpu", f"{_opened_info().name} is what WebGPU offers here"
        except CannotWaitError:
            raise
        except DeviceError as error:
            return "cpu", str(error)
    complete = [adapter for adapter in adapters() if adapter.is_complete]
    hardware = [adapter for adapter in complete if not adapter.is_software]
    if hardware:
        return "webgpu", f"{hardware[0].name} is a hardware adapter ({hardware[0].backend})"
    if complete:
        return "cpu", f"there is no hardware adapter; {complete[0].name} is software, which is slower than NumPy"
    return "cpu", problem()


def _survey() -> tuple[tuple[AdapterInfo, ...], str]:
    """The adapters, and what is wrong. In a browser asking is opening, and that may become possible later."""
    if is_forked():
        return (), FORKED
    if not _IN_PYODIDE:
        return _survey_native()
    try:
        return (_opened_info(),), ""
    except DeviceError as error:
        return (), str(error)


def _opened_info() -> AdapterInfo:
    """What the browser offers. Raises DeviceError."""
    info: AdapterInfo = importlib.import_module("pywebgpu.devices").open_device("webgpu").info
    return info


@functools.cache  # Asking takes 0.2 s and more, and the hardware stays.
def _survey_native() -> tuple[tuple[AdapterInfo, ...], str]:
    if importlib.util.find_spec("wgpu") is None:
        return (), "wgpu-py is not installed"
    try:
        with quiet_mesa():
            import wgpu

            described = tuple(_describe(adapter) for adapter in wgpu.gpu.enumerate_adapters_sync())
    except Exception as error:  # A driver may fail in any way; the cpu device works all the same.
        return (), f"wgpu-py failed to list adapters: {type(error).__name__}: {error}"
    return described, "" if described else "wgpu-py finds no adapter: no GPU driver is installed"


def _describe(adapter: GPUAdapter) -> AdapterInfo:
    info = adapter.info
    name = str(info["device"] or info["description"] or "unnamed adapter")
    kind = str(info["adapter_type"])
    is_software = kind == "CPU" or any(word in name.lower() for word in SOFTWARE)
    limits = {str(key): int(value) for key, value in sorted(adapter.limits.items())}
    features = tuple(sorted(adapter.features))
    driver, profile = str(info["description"]), adapter_features.native(info, features)
    return AdapterInfo(name, str(info["backend_type"]), kind, driver, is_software, limits, features, profile)


@contextmanager
def quiet_mesa() -> Iterator[None]:
    """Mesa writes an error on stderr when XDG_RUNTIME_DIR is not set, and needs nothing that lies there."""
    if "XDG_RUNTIME_DIR" in os.environ or sys.platform != "linux":
        yield
        return
    os.environ["XDG_RUNTIME_DIR"] = tempfile.gettempdir()
    try:
        yield
    finally:
        del os.environ["XDG_RUNTIME_DIR"]
