"""PyTorch's own files, read without PyTorch: tensors, containers and numbers, and never code.

A file is a pickle beside raw storages: inside a zip archive, or one after the other in files older than 2020. The
pickle may use the opcodes and the names listed here and nothing else; the names stand for inert stand-ins, tensors come
out of it as records, and only the finished tree of records is turned into tensors.
"""

from __future__ import annotations

import array
import collections
import io
import os
import struct
import zipfile
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, NoReturn

from pywebgpu import devices, dtypes, errors
from pywebgpu.io import pickled, strided
from pywebgpu.io.pickled import StandIn
from pywebgpu.io.pickled import TorchFileError as TorchFileError  # It is this format's, and told under this name.
from pywebgpu.ir.observer import share
from pywebgpu.support import documents
from pywebgpu.support.documents import EXACT, is_size
from pywebgpu.tensor import tensor
from pywebgpu.tensor.copies import empty_strided
from pywebgpu.tensor.copies import strided as strided_view
from pywebgpu.tensor.size import Size

if TYPE_CHECKING:
    from pywebgpu.tensor.factory_options import DeviceLike

    Place = Callable[[str], DeviceLike]

LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
LEGACY_PROTOCOL = 1001

# What a program named as safe to make of a file, by its name there.
allowed: dict[str, object] = share("safe globals", {})
default_order = b"little"  # of archives that do not say which; see torch.serialization.set_default_load_endianness
CODES = strided.CODES
META = "meta"  # the device of tensors without values, of which a file has no bytes
MAX_OVERLAP = 16  # Views may overlap; a small file must not become tensors without end by views of one storage.
STORAGES = {
    "ComplexDoubleStorage": "complex128",
    "ComplexFloatStorage": "complex64",
    "DoubleStorage": "float64",
    "FloatStorage": "float32",
    "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16",
    "LongStorage": "int64",
    "IntStorage": "int32",
    "ShortStorage": "int16",
    "CharStorage": "int8",
    "ByteStorage": "uint8",
    "BoolStorage": "bool",
}


class Storage(NamedTuple):
    """Raw memory by its key in the file. `dtype` is None for bytes whose tensors say what they are."""

    key: str
    dtype: dtypes.DType | None
    n_items: int
    location: str = "cpu"  # the device that it was saved from

    @property
    def n_bytes(self) -> int:
        return self.n_items * (1 if self.dtype is None else self.dtype.itemsize)


class Sparse(NamedTuple):
    """A sparse tensor of the file: the name of its layout, and its parts."""

    layout: str
    parts: tuple[Any, ...]


class Part(NamedTuple):
    """A range of a storage, as files older than tensors that are views have it."""

    storage: Storage
    offset: int
    n_items: int


class Record(NamedTuple):
    """A tensor of the file."""

    storage: Storage
    dtype: dtypes.DType
    view: strided.View
    requires_grad: bool
    is_parameter: bool = False

    def shows_all(self) -> bool:
        """Whether each element of the storage is one of the tensor's."""
        return self.view.offset == 0 and self.view.n_items() * self.dtype.itemsize == self.storage.n_bytes


class Attributed(NamedTuple):
    """A tensor at which a program kept values by name."""

    record: Record
    attributes: dict[str, Any]


def load(file: BinaryIO, place: Place | DeviceLike = None, *, encoding: str = "utf-8") -> Any:
    """What `torch.save` wrote, with its tensors on a device (the default device when None), or on the
    one which a function says for the device that they were saved from.

    encoding: of strings that Python 2 wrote, or "bytes".

    Raises: TorchFileError when the file is damaged, or holds anything but tensors, containers, numbers and strings.
    """
    start = file.tell()
    is_archive = file.read(2) == b"PK"
    size = file.seek(0, os.SEEK_END) - start
    file.seek(start)
    try:
        tree, storages = _from_archive(file, size) if is_archive else _from_stream(file, size, encoding)
        return Builder(storages, place, MAX_OVERLAP * size).build(tree)
    except errors.PywebgpuError:
        raise
    except (zipfile.BadZipFile, EOFError, LookupError, OverflowError, RuntimeError, ValueError, struct.error) as error:
        raise TorchFileError(f"the file is damaged: {error}") from error


def _from_archive(file: BinaryIO, size: int) -> tuple[Any, Callable[[Storage], bytes]]:
    """The tree of an archive of `size` bytes, and how to read its storages."""
    text, read = opened(file, size)
    return _unpickle(io.BytesIO(text))[0], read


def opened(file: BinaryIO, size: int) -> tuple[bytes, Callable[[Storage], bytes]]:
    """The pickle of an archive of `size` bytes, and how to read its storages."""
    archive = zipfile.ZipFile(file)
    names = archive.namelist()
    roots = [name.removesuffix("data.pkl") for name in names if name.count("/") <= 1 and name.endswith("data.pkl")]
    if len(roots) != 1:
        raise TorchFileError("the archive has no data.pkl: it was not written by torch.save")
    root = roots[0]
    if f"{root}constants.pkl" in names:
        raise TorchFileError("the archive holds a TorchScript program, not tensors; save its state_dict() instead")
    order = _member(archive, f"{root}byteorder", size).strip() if f"{root}byteorder" in names else default_order

    def read(storage: Storage) -> bytes:
        member = archive.NameToInfo.get(f"{root}data/{storage.key}")
        if member is None or member.file_size != storage.n_bytes:
            raise TorchFileError(f"the archive has no storage {storage.key} of {storage.n_bytes} bytes")
        return _in_order(_member(archive, member.filename, size), storage.dtype, order)

    return _member(archive, f"{root}data.pkl", size), read


def _in_order(data: bytes, dtype: dtypes.DType | None, order: bytes) -> bytes:
    """Elements with the little end first."""
    if order == b"little" or dtype is None:
        return data
    width = (dtype.part or dtype).itemsize
    if width == 1:
        return data
    words = array.array(CODES[width], data)
    words.byteswap()
    return words.tobytes()


def _member(archive: zipfile.ZipFile, name: str, size: int) -> bytes:
    """One file of an archive. torch.save packs nothing, so one that is packed may be a trap of any size."""
    member = archive.getinfo(name)
    if member.compress_type != zipfile.ZIP_STORED:
        raise TorchFileError(f"the archive holds {name} compressed, which torch.save does not do")
    if member.compress_size != member.file_size or not 0 <= member.header_offset <= size - member.file_size:
        raise TorchFileError(f"the archive ends before its file {name} does")
    return archive.read(name) if member.CRC else _unchecked(archive, member)


def _unchecked(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """A file of an archive that was written without check sums."""
    file: Any = archive.fp
    file.seek(member.header_offset)
    header = file.read(30)
    file.seek(sum(struct.unpack("<HH", header[26:])), os.SEEK_CUR)
    data: bytes = file.read(member.file_size)
    if header[:4] != b"PK\3\4" or len(data) != member.file_size:
        raise TorchFileError(f"the archive ends before its file {member.filename} does")
    return data


def _from_stream(file: BinaryIO, size: int, encoding: str) -> tuple[Any, Callable[[Storage], bytes]]:
    """The tree of a file of `size` bytes without an archive, and how to read its storages, which come last."""
    end = file.tell() + size
    source = _Bounded(file, end)
    if _unpickle(source)[0] != LEGACY_MAGIC or _unpickle(source)[0] != LEGACY_PROTOCOL:
        raise TorchFileError("the file was not written by torch.save: it is a pickle of another kind")
    system = _unpickle(source)[0]
    if not isinstance(system, dict) or system.get("little_endian") is not True:
        raise TorchFileError("the file was written on a big-endian machine")
    tree, storages = _unpickle(source, encoding)
    keys = _unpickle(source)[0]
    if not isinstance(keys, list) or not all(type(key) is str for key in keys) or len(set(keys)) != len(keys):
        raise TorchFileError("the file has no list of its storages")
    offsets = {}
    for key in keys:
        if key not in storages or int.from_bytes(file.read(8), "little") != storages[key].n_items:
            raise TorchFileError(f"the file has no storage {key} of the size that its tensors need")
        offsets[key] = file.tell()
        if file.seek(storages[key].n_bytes, os.SEEK_CUR) > end:
            raise TorchFileError(f"the file ends before storage {key} does")

    def read(storage: Storage) -> bytes:
        if storage.key not in offsets:
            raise TorchFileError(f"the file has no storage {storage.key}")
        file.seek(offsets[storage.key])
        return file.read(storage.n_bytes)

    return tree, read


class _Bounded:
    """A file of which no more is read than is there: room for what a damaged length asks for is never made."""

    def __init__(self, file: BinaryIO, end: int) -> None:
        self.file, self.end = file, end
        self.readline = file.readline

    def read(self, n: int) -> bytes:
        if n > 1024 and n > self.end - self.file.tell():
            raise TorchFileError(f"the file ends before {n} bytes of its pickle do")
        return self.file.read(n)


def _unpickle(source: pickled.Source, encoding: str = "utf-8") -> tuple[Any, dict[str, Storage]]:
    """One pickle, from where the file stands, and the storages that it names."""
    storages: dict[str, Storage] = {}

    def persistent(pid: object) -> Storage | Part:
        held = storage(pid)
        memory = held.storage if isinstance(held, Part) else held
        known = storages.setdefault(memory.key, memory)
        if known != memory and (known.n_items or memory.n_items):  # All without memory have one key.
            raise TorchFileError(f"the file has two storages {documents.shown(memory.key)}")
        return held

    return pickled.read(source, NAMES, persistent, encoding), storages


def storage(pid: object) -> Storage | Part:
    """The storage that a pickle means by what it keeps outside itself."""
    parts: Any = pid if type(pid) is tuple and 5 <= len(pid) <= 6 else [None] * 5
    parts = [part.decode("ascii") if type(part) is bytes else part for part in parts]
    kind, stand_in, key, location, n_items, *view = parts
    fits = kind == "storage" and type(stand_in) is StandIn and type(key) is type(location) is str and is_size(n_items)
    if not fits:
        raise TorchFileError("the file has a storage of an unknown kind")
    adopted = key.partition("-")[0] if "-" in key else location  # See archive._key.
    memory = Storage(key, stand_in.value, n_items, adopted)
    if not view or view[0] is None:
        return memory
    _, offset, count = view[0] if type(view[0]) is tuple and len(view[0]) == 3 else (None, -1, -1)
    if not (is_size(offset) and is_size(count) and offset + count <= n_items) or memory.dtype is None:
        raise TorchFileError("the file has a part of a storage that ends before it does")
    return Part(memory, offset, count)


class Builder:
    """Turns the tree of records into tensors. Records of the same memory become tensors that share it.

    What stands in the tree twice is built once, so that it takes no longer than the tree is large.
    """

    def __init__(self, read: Callable[[Storage], bytes], place: Place | DeviceLike, n_bytes: int) -> None:
        self.read, self.place = read, place if callable(place) else lambda location: place
        self.n_bytes = n_bytes  # that tensors may still take
        self.data: tuple[str, bytes] = ("", b"")  # Of the last storage: many tensors may be views of one.
        self.made: dict[Record, tensor.Tensor] = {}
        self.wholes: dict[str, tensor.Tensor] = {}  # for each storage a tensor that shows all of it
        self.storages: dict[Storage, Any] = {}
        self.known: dict[int, Any] = {}

    def build(self, node: object) -> object:
        if id(node) in self.known:
            return self.known[id(node)]
        built: Any
        match node:
            case None | bool() | int() | float() | complex() | str() | bytes() | bytearray() | devices.device():
                return node
            case StandIn(value=value) if value is not None:
                return value
            case Storage():
                return self.storage(node)
            case Sparse():
                built = sparse(node.layout, tuple(self.build(part) for part in node.parts))
            case StandIn():
                raise TorchFileError(f"the file holds a {node[0]}, which is no tensor, container, number or string")
            case Record():
                built = self.tensor(node)
            case Part(storage=storage, offset=offset, n_items=n_items):
                built = self.part(storage, offset, n_items)
            case Attributed(record=record, attributes=attributes):
                built = self.tensor(record)
                built.__dict__.update({name: self.build(value) for name, value in attributes.items()})
            case dict():
                built = type(node)()
                for key, value in node.items():
                    built[self.build(key)] = self.build(value)
            case _:
                assert isinstance(node, list | tuple | set | frozenset)
                built = type(node)([self.build(item) for item in node])
        self.known[id(node)] = built
        return built

    def tensor(self, record: Record) -> tensor.Tensor:
        key = record._replace(requires_grad=False, is_parameter=False)
        if key.storage.key == META and key not in self.made:
            self.made[key] = empty_strided(record.view.shape, record.view.strides, dtype=record.dtype, device=META)
        if key not in self.made:
            shared = self.wholes.get(key.storage.key)
            if shared is None and not key.shows_all():
                shared = self.whole(key.storage)
            if shared is not None and _storages().can_show(shared, key.dtype):
                flat = _storages().UntypedStorage._of(shared)._as_tensor(key.dtype)
                self.made[key] = strided_view(flat, key.view.shape, key.view.strides, key.view.offset)
            else:
                self.made[key] = self.read_view(key.storage, key.dtype, key.view)
                self.wholes.setdefault(key.storage.key, self.made[key])
        alias: tensor.Tensor = self.made[key].detach()
        if record.is_parameter:
            parameter: tensor.Tensor = import_module("pywebgpu.nn.parameter").Parameter(alias, record.requires_grad)
            return parameter
        return alias.requires_grad_(record.requires_grad)

    def read_view(self, storage: Storage, dtype: dtypes.DType, view: strided.View) -> Any:
        """A tensor of memory of its own."""
        self.n_bytes -= view.n_items() * dtype.itemsize
        if self.n_bytes < 0:
            raise TorchFileError(f"the file has tensors of more than {MAX_OVERLAP} times its size")
        if self.data[0] != storage.key:
            self.data = (storage.key, self.read(storage))
        return strided.read(self.data[1], dtype, view, self.place(storage.location))

    def whole(self, storage: Storage) -> Any:
        """A tensor that shows all of a storage."""
        if storage.key not in self.wholes:
            view = strided.View(0, (storage.n_items,), (1,))
            self.wholes[storage.key] = self.read_view(storage, storage.dtype or dtypes.uint8, view)
        return self.wholes[storage.key]

    def storage(self, storage: Storage) -> Any:
        """The storage itself, as programs keep it: the memory of the tensors that show it."""
        if storage not in self.storages:
            untyped = _storages().UntypedStorage._of(self.whole(storage))
            typed = _storages().TypedStorage
            self.storages[storage] = (
                untyped if storage.dtype is None else typed(wrap_storage=untyped, dtype=storage.dtype)
            )
        return self.storages[storage]

    def part(self, storage: Storage, offset: int, n_items: int) -> Any:
        """A storage that shows a range of another."""
        assert storage.dtype is not None
        width = storage.dtype.itemsize
        untyped = self.storage(storage).untyped()[width * offset : width * (offset + n_items)]
        return _storages().TypedStorage(wrap_storage=untyped, dtype=storage.dtype)


def _storages() -> Any:
    return import_module("pywebgpu.tensor.storages")


def sparse(layout: str, parts: tuple[Any, ...]) -> Any:
    """A sparse tensor of its parts: indices, values, a size, and of coordinates whether each is there once.

    Raises: ShapeError where they do not fit.
    """
    try:
        if layout == "torch.sparse_coo":
            indices, values, size, *rest = parts
            create = import_module("pywebgpu.sparse").sparse_coo_tensor
            return create(indices, values, size, check_invariants=True, is_coalesced=bool(rest and rest[0]))
        compressed = import_module("pywebgpu.sparse.compressed")
        kind = compressed.BY_NAME[layout.rpartition("_")[2]]
        return compressed.sparse_compressed_tensor(*parts, layout=kind, check_invariants=True)
    except RuntimeError as error:
        raise errors.ShapeError(f"the file has a sparse tensor of parts that do not fit: {error}") from None


def sparse_record(layout: Any, parts: Any) -> Sparse:
    """torch._utils._rebuild_sparse_tensor."""
    name = layout if type(layout) is str else str(getattr(layout, "value", layout))
    if name not in LAYOUTS or type(parts) is not tuple or not 3 <= len(parts) <= 4:
        raise TorchFileError("the file has a sparse tensor of an unknown layout")
    return Sparse(name, parts)


LAYOUTS = tuple(f"torch.sparse_{name}" for name in ("coo", "csr", "csc", "bsr", "bsc"))


def layout_name(name: Any) -> str:
    """torch.serialization._get_layout: here the name stands for the layout until the tensor is made."""
    if name not in (*LAYOUTS, "torch.strided"):
        raise TorchFileError(f"the file has a tensor of the layout {documents.shown(name)}")
    return str(name)


def record(storage: Any, offset: Any, shape: Any, strides: Any, requires_grad: Any = False, *rest: Any) -> Record:
    """torch._utils._rebuild_tensor, _v2 and _v3; what else these are given (hooks, metadata) is not read."""
    if type(storage) is not Storage:
        raise TorchFileError("the file has a tensor without a storage")
    stated = getattr(rest[1], "value", rest[1]) if len(rest) > 1 else None
    dtype = storage.dtype or stated
    if not isinstance(dtype, dtypes.DType):
        raise TorchFileError("the file has a tensor of a dtype that is not known here")
    if type(shape) not in (tuple, list) or type(strides) not in (tuple, list):
        raise TorchFileError("the file has a tensor without a shape")
    view = strided.View(offset, tuple(shape), tuple(strides))
    problem = view.problem(storage.n_bytes // dtype.itemsize)
    if problem:
        raise TorchFileError(f"the file is damaged: {problem}")
    if requires_grad is True and not dtype.is_floating_point:
        raise TorchFileError(f"the file has a tensor of {dtype.name} that requires a gradient")
    return Record(storage, dtype, view, requires_grad is True)


def meta_record(dtype: Any, shape: Any, strides: Any, requires_grad: Any) -> Record:
    """torch._utils._rebuild_meta_tensor_no_storage: a tensor without values."""
    stated = dtype.value if type(dtype) is StandIn else dtype
    if not (isinstance(stated, dtypes.DType) and type(shape) is type(strides) is tuple):
        raise TorchFileError("the file has a tensor without a dtype or a shape")
    view = strided.View(0, shape, strides)
    problem = view.problem(EXACT)
    if problem:
        raise TorchFileError(f"the file is damaged: {problem}")
    return Record(Storage(META, stated, 0, META), stated, view, requires_grad is True)


def _parameter(data: object, requires_grad: object, *rest: Any) -> Record:
    if type(data) is not Record:
        raise TorchFileError("the file has a parameter without a tensor")
    return data._replace(requires_grad=requires_grad is True and data.dtype.is_floating_point, is_parameter=True)


def _parameter_with_state(data: object, requires_grad: object, hooks: object, state: object) -> Record | Attributed:
    return _attributed(_parameter(data, requires_grad), state)


def _of_type(function: object, kind: object, arguments: object, state: object) -> Record | Attributed:
    """torch._tensor._rebuild_from_type_v2: a tensor of a subclass, which is read as a tensor."""
    known = type(function) is StandIn and function.call in (record, meta_record, _parameter)
    if not known or type(arguments) is not tuple:
        raise TorchFileError("the file has a tensor of an unknown kind")
    return _attributed(function.call(*arguments), state)  # type: ignore[attr-defined]


def _attributed(record: Record, state: object) -> Record | Attributed:
    """With the attributes that are none of a tensor's own."""
    attributes = state if type(state) is dict else {}
    free = {name: value for name, value in attributes.items() if type(name) is str and not hasattr(tensor.Tensor, name)}
    return Attributed(record, free) if free else record


def _of_wrapper(*facts: object) -> NoReturn:
    raise TorchFileError("the file has a tensor whose class computes it: name the class as safe")


def _ordered(pairs: object = ()) -> collections.OrderedDict[Any, Any]:
    ordered: collections.OrderedDict[Any, Any] = collections.OrderedDict()
    pickled.fill(ordered, [part for pair in _items(pairs) for part in _pair(pair)])
    return ordered


def _counter(counts: dict[Any, int] | None = None) -> collections.Counter[Any]:
    if counts is not None and type(counts) is not dict:
        raise TorchFileError("the file has a Counter that counts nothing")
    return collections.Counter(counts)


def _items(items: object = ()) -> Sequence[Any]:
    """A list or a tuple, for what is made of one."""
    if type(items) not in (list, tuple):
        raise TorchFileError(f"the file makes a container of a {type(items).__name__}")
    return items  # type: ignore[return-value]


def _pair(pair: object) -> Sequence[Any]:
    if type(pair) not in (list, tuple) or len(pair) != 2:  # type: ignore[arg-type]
        raise TorchFileError("the file has a dict of what are no pairs")
    return pair  # type: ignore[return-value]


def _keys(items: object = ()) -> list[Any]:
    return [pickled.check_key(item) for item in _items(items)]


def _size(sizes: Any = ()) -> Size:
    if not all(is_size(n) for n in _items(sizes)):
        raise TorchFileError("the file has a torch.Size of what are no sizes")
    return Size(sizes)


def device(*parts: Any) -> str | devices.device:
    """torch.device: one that is here, or else its name. PyTorch has no word for webgpu but "privateuseone"."""
    if not all(type(part) in (str, int) for part in parts):
        raise TorchFileError("the file has a torch.device without a name")
    name = ":".join(str(part) for part in parts).replace("privateuseone", "webgpu")
    try:
        return devices.device(name)
    except RuntimeError:
        return name


def _encoded(text: object, coding: object = "latin1") -> bytes:
    """How protocol 2 spells bytes; later ones have them as they are."""
    if type(text) is bytes:
        return text
    if type(text) is not str:
        raise TorchFileError("the file has bytes that are no text")
    return text.encode("latin1")


def _complex(real: object = 0.0, imag: object = 0.0) -> complex:
    if type(real) is not float or type(imag) is not float:
        raise TorchFileError("the file has a complex number of what are no numbers")
    return complex(real, imag)


def _names() -> dict[str, StandIn]:
    """Every name that a file may use."""
    calls: dict[str, Callable[..., Any]] = {
        "collections.OrderedDict": _ordered,
        "collections.Counter": _counter,
        "collections.defaultdict": lambda *factory: {},
        "torch.Size": _size,
        "torch.device": device,
        "torch._utils._rebuild_tensor": record,
        "torch._utils._rebuild_tensor_v2": record,
        "torch._utils._rebuild_tensor_v3": record,
        "torch._utils._rebuild_meta_tensor_no_storage": meta_record,
        "torch._utils._rebuild_parameter": _parameter,
        "torch._utils._rebuild_parameter_with_state": _parameter_with_state,
        "torch._utils._rebuild_sparse_tensor": sparse_record,
        "torch._utils._rebuild_wrapper_subclass": _of_wrapper,
        "torch.serialization._get_layout": layout_name,
        "torch._tensor._rebuild_from_type_v2": _of_type,
        "_codecs.encode": _encoded,
    }
    for module in ("builtins", "__builtin__"):
        calls |= {
            f"{module}.set": lambda items=(): set(_keys(items)),
            f"{module}.frozenset": lambda items=(): frozenset(_keys(items)),
            f"{module}.dict": lambda: {},
            f"{module}.list": lambda items=(): list(_items(items)),
            f"{module}.bytes": lambda: b"",
            f"{module}.complex": _complex,
            f"{module}.bytearray": lambda data=b"", coding="latin1": bytearray(_encoded(data) if data else b""),
        }
    inert = ["torch.Tensor", "torch.nn.parameter.Parameter", "torch.storage.UntypedStorage", "torch.UntypedStorage"]
    inert += ["builtins.int", "__builtin__.int"]  # what a defaultdict counts with
    out = {name: StandIn(name, call) for name, call in calls.items()}
    out |= {name: StandIn(name) for name in inert}
    out |= {f"torch.{dtype.name}": StandIn(f"torch.{dtype.name}", value=dtype) for dtype in dtypes.ALL}
    out |= {f"torch.{name}": StandIn(name, value=dtypes.BY_NAME[dtype]) for name, dtype in STORAGES.items()}
    return out


NAMES = _names()
