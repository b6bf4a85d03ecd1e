"""Checkpoints: any nest of containers, numbers and tensors as one safetensors file, without pickle.

Tensors stand in the file under their path in the nest; everything around them is JSON in the metadata, with a tensor
replaced by its name. A plain dict of tensors needs no JSON: its file is what any other program would write.
"""

from __future__ import annotations

import base64
import collections
import functools
import importlib
import io
import json
import math
import os
import pickle
import warnings
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, BinaryIO, TypeGuard

from pywebgpu import devices, dtypes
from pywebgpu.io import safetensors
from pywebgpu.support import documents
from pywebgpu.tensor import tensor

if TYPE_CHECKING:
    from pywebgpu.tensor.factory_options import DeviceLike

KEY = "pywebgpu"
VERSION = 1
# The kinds of value that JSON lacks, and how each is made again.
MAPS: dict[str, Callable[[Any], Any]] = {
    "OrderedDict": collections.OrderedDict,
    "Counter": collections.Counter,
    "dict": dict,
}
SEQUENCES: dict[str, Callable[[Any], Any]] = {"tuple": tuple, "set": set, "frozenset": frozenset}
SCALARS: dict[str, Callable[[Any], Any]] = {
    "float": float,
    "bytes": functools.partial(base64.b64decode, validate=True),
    "dtype": dtypes.BY_NAME.__getitem__,
    "device": devices.device,
}

Path = str | os.PathLike[str]
Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
MapLocation = str | devices.device | Mapping[str, str] | Callable[[Any, str], Any] | None


def save(
    obj: object,
    f: Path | BinaryIO,
    pickle_module: object = None,
    pickle_protocol: int = 2,
    _use_new_zipfile_serialization: bool = True,
) -> None:
    """Writes `obj` as PyTorch does, for its torch.load and for `load`; a path that ends in ".safetensors" gets such a
    file, see save_checkpoint.

    A path gets the file whole or not at all. A whole module is written under PyTorch's names for its layers, and read
    with weights_only=False. `pickle_module` and what follows are accepted: there is one format.
    """
    archive: Any = None
    if not (isinstance(f, str | os.PathLike) and os.fspath(f).endswith(".safetensors")):
        archive = _optional("pywebgpu.io.archive")
    (save_checkpoint if archive is None else archive.save)(obj, f)


def save_checkpoint(obj: object, f: Path | BinaryIO) -> None:
    """Writes `obj` as one safetensors file to a path, where it appears whole or not at all, or to a file that is open.

    It may hold tensors, None, bools, numbers, strings, bytes, dtypes, devices, and dicts, lists, tuples and sets of
    these.

    Raises: TypeError for anything else, with its path in `obj`.
    """
    tensors, metadata = encode(obj)
    if isinstance(f, str | os.PathLike):
        safetensors.save_file(tensors, f, metadata)
    else:
        safetensors.write(f, tensors, metadata)


def load(
    f: Path | BinaryIO,
    map_location: MapLocation = None,
    pickle_module: object = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: object,
) -> Any:
    """Reads what `save`, torch.save or a safetensors writer wrote. Code in the file is refused, never run, unless
    weights_only=False says that the file is trusted: then whole modules and other objects are read as pickle does.

    weights_only=None is True unless a `pickle_module` is given, or what the environment says:
    TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD=1 means False, TORCH_FORCE_WEIGHTS_ONLY_LOAD=1 means True for every call.
    `map_location` is a device, or None for the default device (under as_torch, the one that was saved from). A function
    or a dict, which torch takes as well, is asked for each device of the file. `mmap`, `pickle_module` and
    what is for that are accepted and change nothing.

    Raises: SafetensorError or TorchFileError when the file is damaged or holds more than data.
    """
    for unknown in pickle_load_args.keys() - {"encoding", "errors", "fix_imports", "buffers"}:
        raise TypeError(f"load() got an unexpected keyword argument '{unknown}'")
    place, weights_only = _place(map_location), _is_weights_only(weights_only, pickle_module)
    options = {"pickle_module": pickle_module, **pickle_load_args}
    if not isinstance(f, str | os.PathLike):
        if not (hasattr(f, "seek") and hasattr(f, "tell")):
            raise AttributeError(NOT_SEEKABLE)
        is_file = hasattr(f, "seekable") and f.seekable()
        return _read(f if is_file else _in_memory(f), place, weights_only, options)
    with open(f, "rb") as file:
        try:
            return _read(file, place, weights_only, options)
        except (safetensors.SafetensorError, pickle.UnpicklingError) as error:
            raise type(error)(f"{os.fspath(f)}: {error}") from None


def _is_weights_only(argument: bool | None, pickle_module: object) -> bool:
    names = ("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD")
    always, never = (os.environ.get(name, "0") in ("1", "y", "yes", "true") for name in names)
    if always and never:
        raise RuntimeError(f"Only one of {names[0]} and {names[1]} should be set, but both were set.")
    if argument is None and never:
        warnings.warn(
            f"Environment variable {names[1]} detected, since the `weights_only` argument was not explicitly passed "
            "to `torch.load`, forcing weights_only=False.",
            UserWarning,
            stacklevel=3,
        )
        return False
    return always or (pickle_module is None if argument is None else argument)


def encode(obj: object) -> tuple[dict[str, tensor.Tensor], dict[str, str]]:
    """The tensors of `obj` by name, and the metadata that says how to put them together."""
    if _is_plain(obj):
        return dict(obj), {"format": "pt"}
    encoder = _Encoder()
    value = encoder.encode(obj, ())
    text = json.dumps({"version": VERSION, "value": value}, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return encoder.tensors, {"format": "pt", KEY: text}


def decode(tensors: Mapping[str, tensor.Tensor], metadata: Mapping[str, str]) -> object:
    """What `encode` was given."""
    if KEY not in metadata:
        return dict(tensors)
    try:
        fields = documents.parse(metadata[KEY])
        if fields["version"] != VERSION:
            raise safetensors.SafetensorError(
                f"written as version {documents.shown(fields['version'])}; this is version {VERSION}"
            )
        return _decoded(fields["value"], tensors)
    except safetensors.SafetensorError:
        raise
    except (ArithmeticError, KeyError, TypeError, ValueError, RuntimeError) as error:
        raise safetensors.SafetensorError(f"the metadata is damaged: {type(error).__name__}: {error}") from None


def _is_plain(obj: object) -> TypeGuard[dict[str, tensor.Tensor]]:
    return type(obj) is dict and all(
        type(name) is str and name != "__metadata__" and isinstance(value, tensor.Tensor) and not value.requires_grad
        for name, value in obj.items()
    )


class _Encoder:
    """Turns a nest into JSON. A tensor met twice is stored once, and is one tensor again when it is read.

    JSON's own null, bool, number, string and list mean themselves; all else is an object with one key, its kind.
    """

    def __init__(self) -> None:
        self.tensors: dict[str, tensor.Tensor] = {}
        self.names: dict[int, str] = {}
        self.open: list[int] = []  # The containers around the value at hand.

    def encode(self, value: object, path: tuple[Any, ...]) -> Json:
        match value:
            case tensor.Tensor():
                return self.tensor(value, path)
            case dtypes.DType(name=name):
                return {"dtype": name}
            case devices.device():
                return {"device": str(value)}
            case None | bool() | str():
                return value
            case int():
                return int(value)
            case float():
                return float(value) if math.isfinite(value) else {"float": repr(float(value))}
            case bytes() | bytearray():
                return {"bytes": base64.b64encode(value).decode("ascii")}
            case dict() | list() | tuple() | set() | frozenset():
                return self.container(value, path)
        if type(value).__module__ == "numpy" and getattr(value, "shape", None) == ():
            return self.encode(value.item(), path)  # type: ignore[attr-defined]
        hint = "; save its state_dict() instead" if hasattr(value, "state_dict") else ""
        where = "".join(f"[{key!r}]" for key in path) or "the object"
        raise TypeError(f"save: {where} is a {type(value).__name__}, which a checkpoint cannot hold{hint}")

    def tensor(self, value: tensor.Tensor, path: tuple[Any, ...]) -> Json:
        if id(value) not in self.names:
            name = ".".join(str(key) for key in path) or "tensor"
            while name in self.tensors or name == "__metadata__":
                name += "_"
            self.tensors[name] = value
            self.names[id(value)] = name
        out: dict[str, Json] = {"tensor": self.names[id(value)]}
        return out | {"requires_grad": True} if value.requires_grad else out

    def container(self, value: Collection[Any], path: tuple[Any, ...]) -> Json:
        if id(value) in self.open:
            raise ValueError(f"save: {path} holds itself")
        if len(self.open) == documents.MAX_DEPTH:  # It could be written, and would be refused when it is read.
            raise ValueError(f"save: the object holds containers in containers, more than {documents.MAX_DEPTH} deep")
        self.open.append(id(value))
        try:
            if not isinstance(value, dict):
                items = [self.encode(item, (*path, i)) for i, item in enumerate(value)]
                known = next((kind for kind in SEQUENCES if kind in _names(value)), None)
                return items if known is None else {known: items}
            kind = next(kind for kind in MAPS if kind in _names(value))
            if kind == "dict" and all(type(key) is str for key in value):
                return {"dict": {key: self.encode(item, (*path, key)) for key, item in value.items()}}
            return {kind: [[self.encode(key, path), self.encode(item, (*path, key))] for key, item in value.items()]}
        finally:
            self.open.pop()


def _names(value: object) -> list[str]:
    """The class of a value and the classes that it extends: a subclass is stored as the known one."""
    return [kind.__name__ for kind in type(value).__mro__]


def _decoded(value: Any, tensors: Mapping[str, tensor.Tensor]) -> Any:
    if isinstance(value, list):
        return [_decoded(item, tensors) for item in value]
    if not isinstance(value, dict):
        return value
    (kind, content), *flags = value.items()
    if kind == "tensor":
        return tensors[content].requires_grad_() if flags else tensors[content]
    if kind == "dict" and isinstance(content, dict):
        return {key: _decoded(item, tensors) for key, item in content.items()}
    if kind in MAPS:
        return MAPS[kind]({_decoded(key, tensors): _decoded(item, tensors) for key, item in content})
    if kind in SEQUENCES:
        return SEQUENCES[kind](_decoded(item, tensors) for item in content)
    if kind in SCALARS:
        return SCALARS[kind](content)
    raise ValueError(f"a value of the unknown kind {documents.shown(kind)}")


def _optional(name: str) -> Any:
    """A module that the page which trains comes without; None there."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        return None


NOT_SEEKABLE = (
    "You can only torch.load from a file that is seekable. Please pre-load the data into a buffer like io.BytesIO and "
    "try to load from it instead."
)


def _in_memory(file: Any) -> BinaryIO:
    """The rest of something that reads as a file does, and of which nothing else is known."""
    if not hasattr(file, "readinto"):
        return io.BytesIO(file.read())
    parts, room = [], bytearray(1 << 20)
    while n := file.readinto(memoryview(room)):
        parts.append(bytes(room[:n]))
    return io.BytesIO(b"".join(parts))


def _read(file: BinaryIO, place: Callable[[str], DeviceLike], weights_only: bool, options: Mapping[str, Any]) -> object:
    """Tells the formats apart by their first bytes: a safetensors header begins with a brace."""
    first = file.read(9)
    file.seek(-len(first), os.SEEK_CUR)
    if first[8:] != b"{" and first[:1] in (b"P", b"\x80"):
        reader = _optional("pywebgpu.io.torchfile")
        if reader is None:
            raise safetensors.SafetensorError("it is a file of PyTorch, which cannot be read here")
        if first[:2] == b"PK" and not (weights_only and not reader.allowed):
            reader = _optional("pywebgpu.io.objects")
            return reader.load_allowed(file, place) if weights_only else reader.load(file, place, **options)
        return reader.load(file, place, encoding=options.get("encoding", "utf-8"))
    return decode(*safetensors.read(file, place("cpu")))


class _OnHost:
    """What torch hands to a function with each location: the storage, which is on the host, and may be moved."""

    device = "cpu"

    def cpu(self) -> str:
        return "cpu"

    def cuda(self, device: object = None) -> str:
        return "cuda"


def _place(map_location: MapLocation) -> Callable[[str], DeviceLike]:
    """Where tensors go, by the device that they were saved from."""

    def place(location: str) -> DeviceLike:
        location_map: Any = map_location
        if isinstance(location_map, Mapping):
            location_map = next(
                (target for name, target in location_map.items() if _is_same(str(name), location)), None
            )
        elif callable(location_map):
            answer = location_map(_OnHost(), location)
            location_map = "cpu" if isinstance(answer, _OnHost) else answer
        if location_map is None and location.partition(":")[0] in devices.adopted:
            return location
        return location_map  # type: ignore[no-any-return]

    return place


def _is_same(first: str, other: str) -> bool:
    return first.removesuffix(":0") == other.removesuffix(":0")
