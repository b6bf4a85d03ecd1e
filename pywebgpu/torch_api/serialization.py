"""torch.serialization: what a file may be made of, and settings of reading and writing files."""

from __future__ import annotations

import enum
import io
import os
import warnings
from collections.abc import Callable, Iterable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, BinaryIO, Self

from pywebgpu import devices
from pywebgpu.io import archive, objects, torchfile
from pywebgpu.io.state import load as load
from pywebgpu.io.state import save as save
from pywebgpu.support import lazy

if TYPE_CHECKING:
    Global = type[object] | Callable[..., object]

DEFAULT_PROTOCOL, STORAGE_KEY_SEPARATOR = 2, ","
FileLike = str | os.PathLike[str] | BinaryIO
MAP_LOCATION = Callable[[object, str], object] | devices.device | str | dict[str, str] | None
MAP_SHARED, MAP_PRIVATE = 1, 2  # as of mmap, which a page's Python lacks


class LoadEndianness(enum.Enum):
    """The order of bytes that a file is read in."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


class SourceChangeWarning(Warning):
    """What a program catches of classes whose text changed; a file holds none here."""


def add_safe_globals(safe_globals: Iterable[Global | tuple[object, ...]]) -> None:
    """Classes and functions that load may make and call, though weights_only is True; each alone, or with its name."""
    for entry in safe_globals:
        torchfile.allowed |= {_name(entry): entry[0] if isinstance(entry, tuple) else entry}


def get_safe_globals() -> list[object]:
    """Those that were added."""
    return list(torchfile.allowed.values())


def clear_safe_globals() -> None:
    """None are safe from now on but what tensors need."""
    torchfile.allowed.clear()


class safe_globals:
    """add_safe_globals inside a `with` block."""

    def __init__(self, safe_globals: Iterable[Global | tuple[object, ...]]) -> None:
        self.added = list(safe_globals)
        self.before: dict[str, object] = {}

    def __enter__(self) -> Self:
        self.before = dict(torchfile.allowed)
        add_safe_globals(self.added)
        return self

    def __exit__(self, *error: object) -> None:
        torchfile.allowed.clear()
        torchfile.allowed.update(self.before)


def _is_zipfile(f: BinaryIO) -> bool:
    """Whether an archive begins where a file stands, which stays there."""
    start = f.tell()
    head = f.read(4)
    f.seek(start)
    return head == b"PK\3\4"


def get_unsafe_globals_in_checkpoint(f: str | os.PathLike[str] | BinaryIO) -> list[str]:
    """What a file of torch.save names that load refuses while weights_only is True."""
    if isinstance(f, str | os.PathLike):
        with open(f, "rb") as file:
            return get_unsafe_globals_in_checkpoint(io.BytesIO(file.read()))
    start = f.tell()
    n_bytes = f.seek(0, os.SEEK_END) - start
    f.seek(start)
    if f.read(2) != b"PK":
        raise ValueError("Expected input to be a checkpoint returned by torch.save")
    f.seek(start)
    text, _ = torchfile.opened(f, n_bytes)
    return [name for name in objects.names(text) if name not in torchfile.NAMES and not objects.is_allowed(name)]


def _name(entry: Global | tuple[object, ...]) -> str:
    """What it is called in a file."""
    if isinstance(entry, tuple):
        if len(entry) != 2:
            rule = "Expected tuple of length 2 (global, str of callable full path)"
            raise ValueError(f"{rule}, but got tuple of length: {len(entry)}")
        if not isinstance(entry[1], str):
            raise TypeError(f"Expected second item in tuple to be str of callable full path, but got: {type(entry[1])}")
        return entry[1]
    known = archive.torch_name(entry)
    return f"{known.module}.{known.name}" if known is not None else f"{entry.__module__}.{entry.__qualname__}"


def default_restore_location(storage: object, location: str) -> str:
    """The device of a location, for a function that load is given as map_location; `storage` is not looked at."""
    try:
        return str(devices.device(location))
    except RuntimeError as error:
        raise RuntimeError(f"don't know how to restore data location of a storage (tagged with {location})") from error


# Settings. A file's bytes are read as they are needed, little end first.

_settings: dict[str, int | LoadEndianness | None] = {"mmap": MAP_PRIVATE, "endianness": None}


def get_default_mmap_options() -> int:
    """What set_default_mmap_options was given; mmap.MAP_PRIVATE before."""
    return int(_settings["mmap"])  # type: ignore[arg-type]


class set_default_mmap_options:
    """Kept and given back, inside a `with` block or from now on: `mmap` of load is accepted and changes nothing."""

    def __init__(self, flags: int) -> None:
        if flags not in (MAP_PRIVATE, MAP_SHARED):
            raise ValueError(
                "Invalid argument in function set_default_mmap_options, expected mmap.MAP_PRIVATE or mmap.MAP_SHARED, "
                f"but got {flags}"
            )
        self.before, _settings["mmap"] = _settings["mmap"], flags

    def __enter__(self) -> None: ...

    def __exit__(self, *error: object) -> None:
        _settings["mmap"] = self.before


def get_crc32_options() -> bool:
    """What set_crc32_options was given; True before."""
    return archive.has_check_sums


def set_crc32_options(compute_crc32: bool) -> None:
    """Whether save writes check sums of its parts: without them damage is not noticed."""
    archive.has_check_sums = compute_crc32


def get_default_load_endianness() -> LoadEndianness | None:
    """What set_default_load_endianness was given; None before."""
    endianness = _settings["endianness"]
    return endianness if isinstance(endianness, LoadEndianness) else None


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """The order of bytes in archives that do not say theirs."""
    if endianness is not None and not isinstance(endianness, LoadEndianness):
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    _settings["endianness"] = endianness
    torchfile.default_order = b"big" if endianness is LoadEndianness.BIG else b"little"


def check_module_version_greater_or_equal(
    module: ModuleType, req_version_tuple: Sequence[int | str], error_if_malformed: bool = True
) -> bool:
    """Whether a module's __version__ is at least that. Raises RuntimeError, or warns, where it is no version."""
    try:
        parts = module.__version__.split(".")
        kinds = [type(part) for part in req_version_tuple]
        return tuple(kind(parts[index]) for index, kind in enumerate(kinds)) >= tuple(req_version_tuple)
    except Exception as error:
        text = (
            f"'{module.__name__}' module version string is malformed '{module.__version__}' and cannot be compared "
            f"with tuple {tuple(req_version_tuple)}"
        )
        if error_if_malformed:
            raise RuntimeError(text) from error
        warnings.warn(text + ", but continuing assuming that requirement is met", stacklevel=2)
        return True


__getattr__ = lazy.absent(__name__)
