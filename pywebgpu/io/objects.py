"""Whole objects from files of torch.save: models and whatever else they hold, under PyTorch's names or a program's own.

Reading one imports what it names and calls it, as Python's pickle does: for files that one trusts. Where a program
named what is safe (torch.serialization.add_safe_globals), that and what tensors need is called, and nothing else.
"""

from __future__ import annotations

import functools
import importlib
import io
import os
import pickle
import pickletools
from typing import TYPE_CHECKING, Any, BinaryIO
from weakref import WeakValueDictionary

from pywebgpu import dtypes
from pywebgpu.io import archive, pickled, torchfile
from pywebgpu.io.pickled import TorchFileError
from pywebgpu.tensor import size, tensor
from pywebgpu.tensor.storages import TypedStorage

if TYPE_CHECKING:
    from pywebgpu.io.torchfile import Place


def load(file: BinaryIO, place: Place, pickle_module: Any = None, **options: Any) -> Any:
    """What torch.save wrote into an archive, with its tensors where `place` says. Raises TorchFileError.

    pickle_module: its Unpickler reads, instead of Python's. options: what an Unpickler takes, as encoding.
    """
    start = file.tell()
    n_bytes = file.seek(0, os.SEEK_END) - start
    file.seek(start)
    text, read = torchfile.opened(file, n_bytes)
    kind: Any = _Unpickler
    if pickle_module is not None and pickle_module is not pickle:
        kind = type("Unpickler", (_Unpickler, pickle_module.Unpickler), {"load": pickle_module.Unpickler.load})
    return _loaded(kind(text, torchfile.Builder(read, place, torchfile.MAX_OVERLAP * n_bytes), **options))


def load_allowed(file: BinaryIO, place: Place) -> object:
    """As torchfile.load, but with what the program named as safe. Raises TorchFileError for anything else."""
    start = file.tell()
    n_bytes = file.seek(0, os.SEEK_END) - start
    file.seek(start)
    text, read = torchfile.opened(file, n_bytes)
    others = sorted(names(text) - torchfile.NAMES.keys())
    for path in others:
        if not is_allowed(path):
            raise pickled.refused(path[:160])
    if not others:
        file.seek(start)
        return torchfile.load(file, place)
    return _loaded(_Allowed(text, torchfile.Builder(read, place, torchfile.MAX_OVERLAP * n_bytes)))


def _loaded(unpickler: Any) -> object:
    """The object of a pickle. Its storages are read before the file is closed."""
    result: object = unpickler.load()
    unpickler.memo = {}
    for late in list(unpickler.late.values()):
        late.untyped()
    return result


def names(text: bytes) -> set[str]:
    """What a pickle names, as module.name, read without making any of it."""
    full_names: set[str] = set()
    pushed: list[str | None] = []  # The texts on the stack; None for anything else that the memo gave.
    memo: dict[int, str | None] = {}
    last: str | None = None
    for opcode, argument, _ in pickletools.genops(text):
        name = opcode.name
        if name == "GLOBAL":
            full_names.add(str(argument).replace(" ", ".", 1))
        elif name == "STACK_GLOBAL":
            full_names.add(".".join(str(part) for part in pushed[-2:]))
        elif name in ("MEMOIZE", "PUT", "BINPUT", "LONG_BINPUT"):
            memo[len(memo) if argument is None else int(argument)] = last
            continue
        elif name.endswith("GET"):
            pushed.append(memo.get(int(argument or 0)))
        elif isinstance(argument, str):
            pushed.append(argument)
        last = argument if isinstance(argument, str) and "GLOBAL" not in name else None
    return full_names


def is_allowed(path: str) -> bool:
    """Whether a program named it, or what is here under that name of PyTorch's."""
    if path.partition(".")[0] in pickled.BLOCKED:
        return False
    if path in torchfile.allowed:
        return True
    try:
        return path.startswith("torch.") and _ours(path, path.rpartition(".")[2]) in torchfile.allowed.values()
    except TorchFileError:
        return False


class _LateStorage(TypedStorage):
    """A storage of a file, whose bytes are read when a program asks for them: tensors say which of it they show."""

    def __init__(self, builder: torchfile.Builder, storage: torchfile.Storage) -> None:
        self.dtype, self.builder, self.stored = storage.dtype or dtypes.uint8, builder, storage

    def __getattr__(self, name: str) -> Any:
        if name != "_untyped_storage":
            raise AttributeError(f"'TypedStorage' object has no attribute {name!r}")
        self._untyped_storage = self.builder.storage(self.stored).untyped()
        return self._untyped_storage


class _Unpickler(pickle.Unpickler):
    def __init__(self, text: bytes, builder: torchfile.Builder, **options: Any) -> None:
        super().__init__(io.BytesIO(text), **options)
        self.builder = builder
        self.late: WeakValueDictionary[torchfile.Storage, Any] = WeakValueDictionary()  # those that the result holds

    def persistent_load(self, pid: Any) -> Any:
        stored = torchfile.storage(pid)
        if isinstance(stored, torchfile.Part):
            return self.builder.build(stored)
        return self.late.setdefault(stored, _LateStorage(self.builder, stored))

    def find_class(self, module: str, name: str) -> Any:
        if module.partition(".")[0] != "torch":
            return super().find_class(module, name)
        path = f"{module}.{name}"
        match path:
            case "torch._utils._rebuild_tensor_v2" | "torch._utils._rebuild_tensor_v3" | "torch._utils._rebuild_tensor":
                return lambda late, *rest: self.builder.tensor(torchfile.record(late.stored, *rest))
            case "torch._utils._rebuild_sparse_tensor":
                return lambda layout, parts: torchfile.sparse(str(layout), parts)
            case "torch.serialization._get_layout":
                return torchfile.layout_name
            case "torch._utils._rebuild_meta_tensor_no_storage":
                return lambda *record: self.builder.tensor(torchfile.meta_record(*record))
            case "torch._utils._rebuild_parameter":
                return lambda data, wants, *rest: archive.parameter()(data, wants)
            case "torch._utils._rebuild_parameter_with_state":
                return lambda data, wants, hooks, state: _with_state(archive.parameter()(data, wants), state)
            case "torch._tensor._rebuild_from_type_v2":
                return _of_class
            case "torch._utils._rebuild_wrapper_subclass":
                return _wrapper
            case "torch.device":
                return torchfile.device
            case "torch.Size":
                return size.Size
            case "torch.nn.parameter.Parameter" | "torch.nn.Parameter":
                return archive.parameter()
            case "torch.Tensor" | "torch._tensor.Tensor":
                return tensor.Tensor
        stand_in = torchfile.NAMES.get(path)
        if stand_in is not None:
            return stand_in.value if isinstance(stand_in.value, dtypes.DType) and not _is_storage(name) else stand_in
        return _ours(path, name)


def _of_class(build: Any, kind: type[Any], arguments: tuple[Any, ...], state: Any) -> Any:
    """torch._tensor._rebuild_from_type_v2: a tensor of a program's class, with what the program kept at it."""
    built = build(*arguments)
    value = built if type(built) is kind else built.as_subclass(kind)
    return _with_state(value, state)


def _with_state(value: Any, state: Any) -> Any:
    """A tensor with what the program kept at it: attributes, and what is in slots of its class."""
    kind = type(value)
    if hasattr(kind, "__setstate__"):
        value.__setstate__(state)
        return value
    for part in state if isinstance(state, tuple) else (state,):
        for name, item in (part or {}).items():
            setattr(value, name, item)
    return value


def _wrapper(
    kind: type[Any], dtype: Any, shape: Any, strides: Any, offset: Any, layout: Any, device: Any, requires_grad: bool
) -> Any:
    """torch._utils._rebuild_wrapper_subclass: a tensor whose class computes it."""
    return tensor.Tensor._make_wrapper_subclass(kind, shape, dtype=dtype, device=device, requires_grad=requires_grad)


class _Allowed(_Unpickler):
    """Finds what a program named as safe, and what tensors and containers are made of."""

    def find_class(self, module: str, name: str) -> object:
        path = f"{module}.{name}"
        if path in torchfile.allowed:
            return torchfile.allowed[path]
        if path not in torchfile.NAMES and not is_allowed(path):
            raise pickled.refused(path[:160])
        if module.partition(".")[0] == "torch":
            loaded: object = super().find_class(module, name)
            return loaded
        return torchfile.NAMES[path].call


def _is_storage(name: str) -> bool:
    return name in torchfile.STORAGES or name == "UntypedStorage"


@functools.cache
def _ours(path: str, name: str) -> Any:
    """This library's class or function of a name of PyTorch's, wherever PyTorch keeps it."""
    for space in archive.SPACES:
        attribute = getattr(importlib.import_module(f"pywebgpu{space}"), name, None)
        if attribute is not None:
            return attribute
    raise TorchFileError(f"the file holds a {path}, which is not here")
