"""Where programs run. Opening a device imports its backend only."""

from __future__ import annotations

import atexit
import sys
import threading
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from pywebgpu.devices import adapters
from pywebgpu.devices.base import Device
from pywebgpu.errors import DeviceError
from pywebgpu.settings import settings

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from pywebgpu.dtypes import DType

_MODULES = {
    "cpu": "cpu",
    "meta": "meta",
    "null": "null",
    "webgpu": "bridged" if sys.platform == "emscripten" else "native",
}
# PyTorch's other devices have names, and can be compared; nothing lies on them.
_OTHERS = frozenset(
    ["cuda", "hip", "hpu", "ipu", "lazy", "maia", "mps", "mtia", "privateuseone", "vulkan", "xla", "xpu"]
)
_HINT = '; the GPU is "webgpu" here, and "cuda" too in `python -m pywebgpu run SCRIPT`'
adopted: dict[str, str] = {}  # names that stand for a kind of device: "cuda" where a program of PyTorch runs
_asked: list[Callable[[], None]] = []
_open: dict[str, Device] = {}
_opening = threading.RLock()


class device:
    """Names a device: `device("webgpu")`, `device("webgpu", 1)`, `device(1)`, `device("cpu")`. Raises RuntimeError for
    what PyTorch has no such name for; those that are not here are refused where tensors shall lie on them."""

    __slots__ = ("index", "type")

    def __init__(self, type: str | int | device, index: int | None = None) -> None:
        if isinstance(type, int):
            if type < 0:
                raise RuntimeError("Device index must not be negative")
            type = f"{'cuda' if 'cuda' in adopted else 'webgpu'}:{type}"
        name, _, number = str(type).partition(":")
        if name not in _MODULES and name not in _OTHERS:
            known = f"Expected one of {', '.join(_MODULES)} device type at start of device string: {type}"
            raise RuntimeError(known + _HINT * (name == "gpu"))
        if number and not number.isdecimal():
            raise RuntimeError(f"Invalid device string: '{type}'")
        self.type: str = name
        self.index: int | None = int(number) if number else index
        if _asked and name in adopted:
            request()

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __repr__(self) -> str:
        return f"device(type={self.type!r}" + (")" if self.index is None else f", index={self.index})")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, device) and (self.type, self.index or 0) == (other.type, other.index or 0)

    def __hash__(self) -> int:
        return hash((self.type, self.index or 0))

    def __enter__(self) -> device:
        """Inside the block, new tensors live here."""
        _wanted.outer = (*_wanted.outer, _wanted.name)
        _wanted.name = str(self)
        return self

    def __exit__(self, *error: object) -> None:
        *outer, _wanted.name = _wanted.outer
        _wanted.outer = tuple(outer)


def named(name: str) -> device:
    """A device that nobody asks for: the default one, or a tensor's."""
    opened_name = device.__new__(device)
    opened_name.type, _, number = name.partition(":")
    opened_name.index = int(number) if number else None
    return opened_name


def open_device(name: str | int | device | None = None) -> Device:
    """The opened device of a name; None is the default device. Opening happens once."""
    wanted = name if isinstance(name, device) else named(default_device()) if name is None else device(name)
    key = f"{wanted.type}:{wanted.index or 0}"
    backend = _open.get(key)
    if backend is None:
        with _opening:
            backend = _open.get(key)
            if backend is None:
                return open_device(wanted.type) if _is_first(wanted) else _opened(wanted, key)
    return backend


def open_for(dtype: DType | None, name: str | int | device | None = None) -> Device:
    """As open_device, but where neither the call nor the program names a device, cpu for what the default cannot hold.

    Libraries keep constants of float64 and count on PyTorch's default, which is cpu.
    """
    opened = open_device(name)
    is_named = name is not None or _wanted.outer or not _wanted.is_of_import
    if dtype is None or dtype.compute is not None or is_named or opened.holds_all:
        return opened
    return open_device("cpu")


def _opened(wanted: device, key: str) -> Device:
    backend: Device = _backend(wanted.type).open_device(wanted.index or 0)
    if wanted.type in adopted:
        backend.name, backend.is_host = wanted.type, False  # As it is of the device whose name it has.
    return _open.setdefault(key, backend)


def _is_first(wanted: device) -> bool:
    """Whether an index names the first device: there is one host, whatever its index. Raises RuntimeError for an
    adapter that is not there."""
    if not wanted.index or wanted.type in ("cpu", "meta", "null") or wanted.type not in _MODULES:
        return bool(wanted.index)
    is_single = sys.platform == "emscripten" or wanted.type in adopted
    count = 1 if is_single else len([adapter for adapter in adapters.adapters() if adapter.is_complete])
    if wanted.index >= count:
        raise DeviceError(f"invalid device ordinal: {wanted} was asked for, and there are {count}")
    return False


def adopt(name: str, kind: str) -> None:
    """From now on there is one device of this name, of a kind that there is."""
    _MODULES[name] = _MODULES[kind]
    adopted[name] = kind


def on_request(act: Callable[[], None]) -> None:
    """Calls `act` when somebody asks for an adopted device for the first time."""
    _asked[:] = [act]


def request() -> None:
    """Somebody asks for an adopted device."""
    while _asked:
        _asked.pop()()


def opened() -> list[Device]:
    """All devices that are open."""
    return list(_open.values())


def leave() -> list[Device]:
    """In a forked process: gives up the devices that only the parent can reach, and returns them."""
    adapters.leave()
    left = {key: opened for key, opened in _open.items() if opened.leave()}
    for key in left:
        del _open[key]
    return list(left.values())


async def open_device_async(name: str | int | device = "webgpu") -> Device:
    """As open_device, also where Python cannot wait for the browser to open one."""
    wanted = device(name)
    key = f"{wanted.type}:{wanted.index or 0}"
    if key not in _open and wanted.type == "webgpu" and sys.platform == "emscripten":
        opened: Device = await _backend("webgpu").open_device_async(wanted.index or 0)
        return _open.setdefault(key, opened)
    return open_device(wanted)


def _backend(kind: str) -> ModuleType:
    """The module of a kind of device. Raises DeviceError where it needs a package that is not installed."""
    if kind == "cpu" and sys.platform == "emscripten" and find_spec("numpy") is None:
        return import_module("pywebgpu.devices.cpu_storage")  # A page need not load cpu.py to learn that it cannot be.
    if kind not in _MODULES:
        raise RuntimeError(f"there is no device {kind}{_HINT}")
    try:
        return import_module(f"pywebgpu.devices.{_MODULES[kind]}")
    except ModuleNotFoundError as error:
        other = ""
        if kind == "cpu":
            trouble = adapters.problem()
            other = f", and there is no other: {trouble}" if trouble else ', or use device="webgpu"'
        package = {"numpy": "NumPy", "wgpu": "wgpu-py"}.get(error.name or "", error.name)
        raise DeviceError(f'device {kind} needs {package}: pip install "pywebgpu[native]"{other}') from None


class _Wanted(threading.local):
    """The default device that a thread asked for, if it did, and those outside of its `with device(...)` blocks."""

    name: str | None = None
    is_of_import: bool = False  # The program itself named none: importing this library as torch did.
    outer: tuple[str | None, ...] = ()


_wanted = _Wanted()
_chosen: list[str] = []  # what this machine's default is, once it is known


def default_device() -> str:
    """webgpu where a hardware adapter is, else cpu; PYWEBGPU_DEVICE and set_default_device override it."""
    name = _wanted.name
    if name is not None:
        return name
    if not _chosen:
        chosen = settings.device or adapters.choose_default()[0]
        if chosen == "cpu" and sys.platform == "emscripten":
            return chosen  # For now: a page may still be opening its adapter.
        _chosen.append(chosen)
    return _chosen[0]


_device = device  # In a function whose argument has that name.


def set_default_device(device: str | int | device | None) -> None:
    """Where new tensors of this thread live; None: where those of a thread live that said nothing."""
    _wanted.name, _wanted.is_of_import = None if device is None else str(_device(device)), False


def set_default_of_import(device: str) -> None:
    """As set_default_device, of a device that no program named."""
    set_default_device(device)
    _wanted.is_of_import = True


@atexit.register
def _close_all() -> None:
    """Before Python takes its modules apart: a buffer that goes later has nowhere to go back to."""
    for opened in _open.values():
        opened.close()


def close(name: str | int | device) -> None:
    """Gives a device back. Using a tensor of it afterwards raises DeviceError."""
    wanted = device(name)
    closed = _open.pop(f"{wanted.type}:{wanted.index or 0}", None)
    if closed is not None:
        closed.close()
