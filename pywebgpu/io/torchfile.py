"""PyTorch's own files, read without PyTorch: tensors, containers and numbers, and never code.

A file is a pickle beside raw storages: inside a zip archive, or one after the other in files older than 2020. The
pickle may use the opcodes and the names listed here and nothing else; the names stand for inert stand-ins, tensors come
out of it as records, and only the finished tree of records is turned into tensors.
"""

import collections
import io
import os
import pickle
import pickletools
import zipfile
from collections.abc import Callable
from typing import Any, BinaryIO, NamedTuple

from pywebgpu import dtypes, errors
from pywebgpu.io import strided
from pywebgpu.tensor import tensor

LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
LEGACY_PROTOCOL = 1001

# Opcodes of containers, numbers, strings, the memo, and of calls of a listed name.
OPCODES = """
    PROTO FRAME STOP MARK POP POP_MARK DUP NONE NEWTRUE NEWFALSE
    INT BININT BININT1 BININT2 LONG LONG1 LONG4 FLOAT BINFLOAT
    STRING BINSTRING SHORT_BINSTRING UNICODE BINUNICODE SHORT_BINUNICODE BINUNICODE8 BINBYTES SHORT_BINBYTES BINBYTES8
    EMPTY_LIST LIST APPEND APPENDS EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3
    EMPTY_DICT DICT SETITEM SETITEMS EMPTY_SET ADDITEMS FROZENSET
    PUT BINPUT LONG_BINPUT MEMOIZE GET BINGET LONG_BINGET GLOBAL STACK_GLOBAL REDUCE BUILD BINPERSID
"""
ALLOWED_OPCODES = frozenset(OPCODES.split())
STORAGES = {
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


class TorchFileError(errors.PywebgpuError, pickle.UnpicklingError, ValueError):
    """The file is damaged, or holds something else than tensors, containers, numbers and strings."""


# The next classes stand on the stack of the pickle, whose BUILD writes into objects: tuples have nothing to write into.
class Storage(NamedTuple):
    """Raw memory by its key in the file. `dtype` is None for bytes whose tensors say what they are."""

    key: str
    dtype: dtypes.DType | None
    n_items: int

    @property
    def n_bytes(self) -> int:
        return self.n_items * (1 if self.dtype is None else self.dtype.itemsize)


class Record(NamedTuple):
    """A tensor of the file."""

    storage: Storage
    dtype: dtypes.DType
    view: strided.View
    requires_grad: bool


class StandIn(NamedTuple):
    """What a name in the file stands for: something to call, a value, or neither."""

    name: str
    call: Callable[..., Any] | None = None
    value: Any = None

    def __call__(self, *arguments: Any) -> Any:
        if self.call is None:
            raise TorchFileError(f"the file calls {self.name}, which makes no value")
        return self.call(*arguments)


def load(file: BinaryIO, device: Any = None) -> Any:
    """What `torch.save` wrote, with its tensors on `device` (the default device when None).

    Raises: TorchFileError when the file is damaged, or holds anything but tensors, containers, numbers and strings.
    """
    start = file.tell()
    is_archive = file.read(2) == b"PK"
    file.seek(start)
    try:
        tree, storages = _from_archive(file) if is_archive else _from_stream(file)
        return _Builder(storages, device).build(tree)
    except errors.PywebgpuError:
        raise
    except (zipfile.BadZipFile, EOFError, RuntimeError, ValueError) as error:
        raise TorchFileError(f"the file is damaged: {error}") from error


def _from_archive(file: BinaryIO) -> tuple[Any, Callable[[Storage], bytes]]:
    """The tree of an archive, and how to read its storages."""
    archive = zipfile.ZipFile(file)
    names = archive.namelist()
    roots = [name.removesuffix("data.pkl") for name in names if name.count("/") <= 1 and name.endswith("data.pkl")]
    if len(roots) != 1:
        raise TorchFileError("the archive has no data.pkl: it was not written by torch.save")
    root = roots[0]
    if f"{root}constants.pkl" in names:
        raise TorchFileError("the archive holds a TorchScript program, not tensors; save its state_dict() instead")
    if f"{root}byteorder" in names and _member(archive, f"{root}byteorder").strip() != b"little":
        raise TorchFileError("the archive was written on a big-endian machine")

    def read(storage: Storage) -> bytes:
        name = f"{root}data/{storage.key}"
        if name not in names or archive.getinfo(name).file_size != storage.n_bytes:
            raise TorchFileError(f"the archive has no storage {storage.key} of {storage.n_bytes} bytes")
        return _member(archive, name)

    return _unpickle(io.BytesIO(_member(archive, f"{root}data.pkl")))[0], read


def _member(archive: zipfile.ZipFile, name: str) -> bytes:
    """One file of an archive. torch.save packs nothing, so one that is packed may be a trap of any size."""
    if archive.getinfo(name).compress_type != zipfile.ZIP_STORED:
        raise TorchFileError(f"the archive holds {name} compressed, which torch.save does not do")
    return archive.read(name)


def _from_stream(file: BinaryIO) -> tuple[Any, Callable[[Storage], bytes]]:
    """The tree of a file without an archive, and how to read its storages, which come last."""
    if _unpickle(file)[0] != LEGACY_MAGIC or _unpickle(file)[0] != LEGACY_PROTOCOL:
        raise TorchFileError("the file was not written by torch.save: it is a pickle of another kind")
    system = _unpickle(file)[0]
    if not isinstance(system, dict) or system.get("little_endian") is not True:
        raise TorchFileError("the file was written on a big-endian machine")
    tree, storages = _unpickle(file)
    places = {}
    for key in _unpickle(file)[0]:
        if key not in storages or int.from_bytes(file.read(8), "little") != storages[key].n_items:
            raise TorchFileError(f"the file has no storage {key} of the size that its tensors need")
        places[key] = file.tell()
        file.seek(storages[key].n_bytes, os.SEEK_CUR)

    def read(storage: Storage) -> bytes:
        file.seek(places.get(storage.key, 0))
        data = file.read(storage.n_bytes)
        if storage.key not in places or len(data) != storage.n_bytes:
            raise TorchFileError(f"the file ends before storage {storage.key}")
        return data

    return tree, read


def _unpickle(file: BinaryIO) -> tuple[Any, dict[str, Storage]]:
    """One pickle, from where the file stands, and the storages that it names."""
    start = file.tell()
    n_opcodes = 0
    try:
        for opcode, argument, _ in pickletools.genops(file):
            n_opcodes += 1
            # A memo slot far out would make the unpickler take memory for all slots before it.
            if opcode.name not in ALLOWED_OPCODES or ("PUT" in opcode.name and int(argument or 0) > n_opcodes):
                raise TorchFileError(
                    f"the file uses the opcode {opcode.name} {argument or ''}, which tensors do not need"
                )
        file.seek(start)
        reader = _Unpickler(file)
        return reader.load(), reader.storages
    except TorchFileError:
        raise
    except Exception as error:  # A damaged pickle may raise anything.
        raise TorchFileError(f"the file is damaged: {type(error).__name__}: {error}") from None


class _Unpickler(pickle.Unpickler):
    """Finds the names of `NAMES` and nothing else, and keeps storages as records."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__(file)
        self.storages: dict[str, Storage] = {}

    def find_class(self, module: str, name: str) -> StandIn:
        found = NAMES.get(f"{module}.{name}")
        if found is None:
            raise TorchFileError(
                f"the file holds a {module}.{name}; only tensors, containers, numbers and strings are read: "
                "save a state_dict() instead of a whole object"
            )
        return found

    def persistent_load(self, pid: Any) -> Storage:
        kind, stand_in, key, _, n_items, *view = pid
        dtype = stand_in.value
        if kind != "storage" or any(view) or type(key) is not str or type(n_items) is not int or n_items < 0:
            raise TorchFileError(f"the file has a storage of an unknown kind: {pid}")
        return self.storages.setdefault(key, Storage(key, dtype, n_items))


class _Builder:
    """Turns the tree of records into tensors. Records of the same memory become tensors that share it."""

    def __init__(self, read: Callable[[Storage], bytes], device: Any) -> None:
        self.read = read
        self.device = device
        self.data: tuple[str, bytes] = ("", b"")  # Of the last storage: many tensors may be views of one.
        self.made: dict[Record, tensor.Tensor] = {}

    def build(self, node: Any) -> Any:
        match node:
            case Record():
                return self.tensor(node)
            case StandIn(value=value) if value is not None:
                return value
            case StandIn() | Storage():
                raise TorchFileError(f"the file holds a {node[0]}, which is no tensor, container, number or string")
            case collections.Counter():
                return collections.Counter({self.build(key): value for key, value in node.items()})
            case dict():
                return type(node)((self.build(key), self.build(value)) for key, value in dict.items(node))
            case list() | tuple() | set() | frozenset():
                return type(node)([self.build(item) for item in node])
            case None | bool() | int() | float() | str() | bytes():
                return node
        raise TorchFileError(f"the file holds a {type(node).__name__}")

    def tensor(self, record: Record) -> tensor.Tensor:
        key = record._replace(requires_grad=False)
        if key not in self.made:
            if self.data[0] != record.storage.key:
                self.data = (record.storage.key, self.read(record.storage))
            self.made[key] = strided.read(self.data[1], record.dtype, record.view, self.device)
        found: tensor.Tensor = self.made[key].detach()
        return found.requires_grad_(record.requires_grad)


def _record(storage: Any, offset: Any, shape: Any, strides: Any, requires_grad: Any = False, *rest: Any) -> Record:
    """torch._utils._rebuild_tensor, _v2 and _v3; what else these are given (hooks, metadata) is not read."""
    if not isinstance(storage, Storage):
        raise TorchFileError("the file has a tensor without a storage")
    stated = rest[1].value if len(rest) > 1 and isinstance(rest[1], StandIn) else None
    dtype = storage.dtype or stated
    if not isinstance(dtype, dtypes.DType):
        raise TorchFileError("the file has a tensor of a dtype that is not known here")
    view = strided.View(offset, tuple(shape), tuple(strides))
    problem = view.problem(storage.n_bytes // dtype.itemsize)
    if problem:
        raise TorchFileError(f"the file is damaged: {problem}")
    return Record(storage, dtype, view, requires_grad is True)


def _parameter(data: Any, requires_grad: Any, *rest: Any) -> Record:
    if not isinstance(data, Record):
        raise TorchFileError("the file has a parameter without a tensor")
    return data._replace(requires_grad=requires_grad is True)


def _names() -> dict[str, StandIn]:
    """Every name that a file may use."""
    calls: dict[str, Callable[..., Any]] = {
        "collections.OrderedDict": collections.OrderedDict,
        "collections.Counter": collections.Counter,
        "collections.defaultdict": lambda *factory: {},
        "torch.Size": tuple,
        "torch.device": lambda *parts: ":".join(str(part) for part in parts),
        "torch._utils._rebuild_tensor": _record,
        "torch._utils._rebuild_tensor_v2": _record,
        "torch._utils._rebuild_tensor_v3": _record,
        "torch._utils._rebuild_parameter": _parameter,
        "torch._utils._rebuild_parameter_with_state": _parameter,
        "torch._tensor._rebuild_from_type_v2": lambda function, kind, arguments, state: function(*arguments),
        "_codecs.encode": lambda text, coding: text.encode("latin1"),  # How protocol 2 spells bytes.
    }
    out = {name: StandIn(name, call) for name, call in calls.items()}
    inert = ["torch.Tensor", "torch.nn.parameter.Parameter", "torch.storage.UntypedStorage", "torch.UntypedStorage"]
    out |= {name: StandIn(name) for name in inert}
    for module in ("builtins", "__builtin__"):
        out |= {f"{module}.{kind.__name__}": StandIn(kind.__name__, kind) for kind in (set, frozenset, dict, list, int)}
    out |= {f"torch.{dtype.name}": StandIn(f"torch.{dtype.name}", value=dtype) for dtype in dtypes.ALL}
    out |= {f"torch.{name}": StandIn(name, value=dtypes.BY_NAME[dtype]) for name, dtype in STORAGES.items()}
    return out


NAMES = _names()
