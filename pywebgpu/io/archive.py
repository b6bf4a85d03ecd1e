"""Files as torch.save writes them: a zip archive of a pickle and raw storages, which torch.load reads.

What is this library's own goes under PyTorch's name (tensors, dtypes, layers), so that neither side needs the other.
Tensors that share memory share a storage, and keep their strides.
"""

from __future__ import annotations

import functools
import importlib
import io
import os
import pickle
import types
import zipfile
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, NamedTuple, NoReturn

from pywebgpu import devices, dtypes
from pywebgpu.io.torchfile import STORAGES
from pywebgpu.support import atomic, closed_types
from pywebgpu.tensor import size, tensor
from pywebgpu.tensor.layout import strides_of
from pywebgpu.tensor.memory_format import all_of, in_memory

if TYPE_CHECKING:
    from pywebgpu.runtime.storage import Storage

Path = str | os.PathLike[str]
ALIGNMENT = 64  # of storages, so that they can be mapped
PROTOCOL = 2
SPACES = (".nn", ".nn.functional", ".nn.parameter", ".optim", ".optim.lr_scheduler", "", ".optim.swa_utils")
KINDS = {dtype: name for name, dtype in STORAGES.items()}
# What PyTorch keeps in another place than `SPACES` say.
ELSEWHERE = {
    "NonDynamicallyQuantizableLinear": "torch.nn.modules.linear",
    "_rebuild_sparse_tensor": "torch._utils",
    "Tensor": "torch",
}


@dataclass(frozen=True)
class Name:
    """A name of PyTorch's, which need not be installed."""

    module: str
    name: str

    def __call__(self) -> NoReturn:  # The pickler asks whether what it names can be called.
        raise TypeError(f"{self.module}.{self.name} is only named here")


has_check_sums = True  # of what is written; see torch.serialization.set_crc32_options


class Held(NamedTuple):
    """The memory of a tensor."""

    key: str
    dtype: dtypes.DType
    n_items: int


def save(obj: object, f: Path | BinaryIO) -> None:
    """Writes `obj` to a path, where the file appears whole or not at all, or to a file that is open."""
    if isinstance(f, str | os.PathLike):
        folder = os.path.dirname(os.path.realpath(f))
        if not os.path.isdir(folder):
            raise RuntimeError(f"Parent directory {folder} does not exist.")
        with atomic.replaced(f, durable=True) as file:
            _write(obj, file)
    else:
        _write(obj, f)


def _write(obj: object, file: BinaryIO) -> None:
    text = io.BytesIO()
    pickler = _Pickler(text)
    pickler.dump(obj)
    if not hasattr(file, "write"):
        raise AttributeError(
            f"expected 'f' to be string, path, or a file-like object with a 'write' attribute, not {file}"
        )
    is_own = hasattr(file, "seekable") and file.seekable() and file.tell() == 0
    archive_file = file if is_own else io.BytesIO()
    with zipfile.ZipFile(archive_file, "w", zipfile.ZIP_STORED) as archive:
        members = {"data.pkl": text.getvalue(), "byteorder": b"little"}
        members |= {f"data/{key}": pickler.bytes_of(key) for key in pickler.storages}
        for name, data in (members | {"version": b"3\n"}).items():
            entry = _entry(f"archive/{name}", archive)
            archive.writestr(entry, data)
            entry.CRC = entry.CRC if has_check_sums else 0  # PyTorch's word for none.
    if archive_file is not file:
        file.write(archive_file.getvalue())  # type: ignore[attr-defined]  # It is a BytesIO.
    if hasattr(file, "flush"):  # Programs read the file by its name while it is open.
        file.flush()


def _entry(name: str, archive: zipfile.ZipFile) -> zipfile.ZipInfo:
    """A member whose data will begin at a multiple of ALIGNMENT."""
    entry = zipfile.ZipInfo(name)
    begin = archive.start_dir + 30 + len(name) + 4
    gap = -begin % ALIGNMENT
    entry.extra = b"FB" + gap.to_bytes(2, "little") + b"Z" * gap
    return entry


PURE: Any = pickle._Pickler  # In Python, so that methods can be replaced.


class _Pickler(PURE):  # type: ignore[misc]
    """Python's own pickler, which may name what is not installed."""

    dispatch: ClassVar = dict(PURE.dispatch)

    def __init__(self, file: BinaryIO) -> None:
        super().__init__(file, PROTOCOL)
        self.storages: dict[str, tuple[tensor.Tensor, dtypes.DType]] = {}
        self._keys: dict[int, str] = {}

    def bytes_of(self, key: str) -> bytes:
        """All that a storage holds. Only another order is laid out first: device cpu needs NumPy for that."""
        elements = self.storages[key][0]
        return (elements if elements.is_contiguous() else in_memory(elements)).tobytes()

    def persistent_id(self, obj: Any) -> object:
        if type(obj).__module__ == "torch.storage" and hasattr(obj, "untyped"):
            return self._storage(obj)
        if type(obj) is not Held:
            return None
        kind = KINDS.get(obj.dtype.name)
        n_items = obj.n_items if kind else obj.n_items * obj.dtype.itemsize
        return "storage", Name("torch", kind or "UntypedStorage"), obj.key, "cpu", n_items

    def save(self, obj: Any, save_persistent_id: bool = True) -> None:
        if isinstance(obj, int | float) and type(obj) not in (int, float, bool):
            obj = int(obj) if isinstance(obj, int) else float(obj)  # A number of this library's, or NumPy's.
        elif type(obj).__module__ == "numpy" and getattr(obj, "shape", None) == ():
            obj = obj.item()
        known = Name("torch", obj.name) if isinstance(obj, dtypes.DType) else torch_name(obj)
        if known is not None:
            self.save_name(known)
        else:
            super().save(obj, save_persistent_id)

    def reducer_override(self, obj: Any) -> Any:
        match obj:
            case tensor.Tensor() if _is_of_program(obj) or (type(obj) is tensor.Tensor and obj._attributes()):
                return self._of_class(obj)
            case tensor.Tensor():
                return self._tensor(obj) if obj.layout is closed_types.strided else self._sparse(obj)
            case closed_types.Layout():
                return Name("torch.serialization", "_get_layout"), (str(obj),)
            case devices.device():
                kind = "privateuseone" if obj.type == "webgpu" else obj.type
                return Name("torch", "device"), (kind,) if obj.index is None else (kind, obj.index)
            case size.Size():
                return Name("torch", "Size"), (tuple(obj),)
        return NotImplemented

    def _tensor(self, value: tensor.Tensor) -> tuple[Any, tuple[Any, ...]]:
        if isinstance(value, parameter()):
            facts: tuple[Any, ...] = value.detach(), value.requires_grad, OrderedDict()
            state = value._attributes()
            if state:
                return Name("torch._utils", "_rebuild_parameter_with_state"), (*facts, state)
            return Name("torch._utils", "_rebuild_parameter"), facts
        return self._memory(value)

    def _of_class(self, value: Any) -> tuple[Any, tuple[Any, ...]]:
        """A tensor of a program's own class, with what the program keeps at it."""
        kind = type(value)
        if isinstance(value._storage.device, importlib.import_module("pywebgpu.tensor.wrapper").WrapperDevice):
            facts = value.dtype, size.Size(value.shape), value.stride(), value.storage_offset(), value.layout
            make: Any = Name("torch._utils", "_rebuild_wrapper_subclass")
            arguments: tuple[Any, ...] = kind, *facts, value.device, value.requires_grad
        else:
            make, arguments = self._memory(value)
        return Name("torch._tensor", "_rebuild_from_type_v2"), (make, kind, arguments, _state(value))

    def _memory(self, value: tensor.Tensor) -> tuple[Any, tuple[Any, ...]]:
        storage, (strides, offset) = value._storage, strides_of(value)
        if value.is_meta:
            facts = value.dtype, tuple(value.shape), tuple(strides), value.requires_grad
            return Name("torch._utils", "_rebuild_meta_tensor_no_storage"), facts
        key, elements = self._keys.setdefault(id(storage), self._key(storage)), all_of(value)
        self._keep(key, elements, value.dtype)
        held = Held(key, value.dtype, elements.nbytes // value.dtype.itemsize)
        wants = value.requires_grad and value.is_leaf
        arguments: tuple[Any, ...] = held, offset, tuple(value.shape), tuple(strides), wants, OrderedDict()
        if value.dtype.name in KINDS:
            return Name("torch._utils", "_rebuild_tensor_v2"), arguments
        return Name("torch._utils", "_rebuild_tensor_v3"), (*arguments, value.dtype)

    def _storage(self, obj: Any) -> object:
        """A storage that a program keeps, all of it."""
        elements, dtype = obj.untyped()._whole, getattr(obj, "dtype", None)
        key = self._keys.setdefault(id(elements._storage), self._key(elements._storage))
        self._keep(key, elements, dtype or elements.dtype)
        kind = None if dtype is None else KINDS.get(dtype.name)
        n_items = obj.nbytes() // dtype.itemsize if kind and dtype is not None else obj.nbytes()
        return "storage", Name("torch", kind or "UntypedStorage"), key, "cpu", n_items

    def _keep(self, key: str, elements: tensor.Tensor, dtype: dtypes.DType) -> None:
        if elements.numel() and self.storages.setdefault(key, (elements, dtype))[1] is not dtype:
            raise RuntimeError("Cannot save multiple tensors or storages that view the same data as different types")
        self.storages.setdefault(key, (elements, dtype))

    def _sparse(self, value: Any) -> tuple[Any, tuple[Any, ...]]:
        layout = str(value.layout)
        if layout == "torch.sparse_coo":
            parts = value._indices(), value._values(), size.Size(value.shape), value.is_coalesced()
        else:
            parts = value.compressed, value.plain, value.values(), size.Size(value.shape)
        return Name("torch._utils", "_rebuild_sparse_tensor"), (value.layout, parts)

    def _key(self, storage: Storage) -> str:
        """A new one. It says which device of a program's own names ("cuda") the memory is of: PyTorch, which need not
        have that device, is told "cpu"."""
        kind = storage.device.name.partition(":")[0]
        return f"{kind}-{len(self._keys)}" if kind in devices.adopted else str(len(self._keys))

    def save_name(self, obj: Name) -> None:
        self.write(pickle.GLOBAL + f"{obj.module}\n{obj.name}\n".encode())

    dispatch[Name] = save_name


@functools.cache
def parameter() -> Any:
    """The class of parameters: layers are no part of files."""
    return importlib.import_module("pywebgpu.nn.parameter").Parameter


def _is_of_program(value: tensor.Tensor) -> bool:
    """Whether a tensor is of a class that is not of this library, and says nothing of how it is pickled."""
    kind = type(value)
    is_own = kind is tensor.Tensor or kind is parameter() or kind.__module__.startswith("pywebgpu.")
    return not is_own and kind.__reduce_ex__ is tensor.Tensor.__reduce_ex__


def _state(value: Any) -> object:
    """What the program keeps at a tensor: as its class says it, else attributes, and what is in slots of the class."""
    kind: Any = type(value)
    if kind.__getstate__ is not object.__getstate__:
        return value.__getstate__()
    slots = value._in_slots()
    return (value._attributes(), slots) if slots else value._attributes()


def torch_name(obj: object) -> Name | None:
    """What PyTorch calls a class or function of this library, if it has it."""
    if not isinstance(obj, type | types.FunctionType) or not (obj.__module__ or "").startswith("pywebgpu."):
        return None
    own = obj.__name__
    if own in ELSEWHERE:
        return Name(ELSEWHERE[own], own)
    for space in SPACES:
        attribute = importlib.import_module(f"pywebgpu{space}")
        if getattr(attribute, own, None) is obj:
            return Name(f"torch{space}", own)
    return None
