"""Whole objects from files of torch.save: models and whatever else they hold, under PyTorch's names or a program's own.

Reading one imports what it names and calls it, as Python's pickle does: for files that one trusts.
"""

from __future__ import annotations

import functools
import importlib
import io
import os
import pickle
from typing import TYPE_CHECKING, Any, BinaryIO

from pywebgpu import dtypes
from pywebgpu.io import archive, torchfile
from pywebgpu.io.pickled import TorchFileError
from pywebgpu.tensor import size, tensor

if TYPE_CHECKING:
    from pywebgpu.io.torchfile import Place


def load(file: BinaryIO, place: Place) -> Any:
    """What torch.save wrote into an archive, with its tensors where `place` says. Raises TorchFileError."""
    start = file.tell()
    n_bytes = file.seek(0, os.SEEK_END) - start
    file.seek(start)
    text, read = torchfile.opened(file, n_bytes)
    return _Unpickler(text, torchfile.Builder(read, place, torchfile.MAX_OVERLAP * n_bytes)).load()


class _Unpickler(pickle.Unpickler):
    def __init__(self, text: bytes, builder: torchfile.Builder) -> None:
        super().__init__(io.BytesIO(text))
        self.builder = builder

    def persistent_load(self, pid: Any) -> torchfile.Storage:
        return torchfile.storage(pid)

    def find_class(self, module: str, name: str) -> Any:
        if module.partition(".")[0] != "torch":
            return super().find_class(module, name)
        path = f"{module}.{name}"
        match path:
            case "torch._utils._rebuild_tensor_v2" | "torch._utils._rebuild_tensor_v3" | "torch._utils._rebuild_tensor":
                return lambda *given: self.builder.tensor(torchfile.record(*given))  # Nobody keeps the record.
            case "torch._utils._rebuild_parameter":
                return lambda data, wants, *rest: archive.parameter()(data, wants)
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


def _is_storage(name: str) -> bool:
    return name in torchfile.STORAGES or name == "UntypedStorage"


@functools.cache
def _ours(path: str, name: str) -> Any:
    """This library's class or function of a name of PyTorch's, wherever PyTorch keeps it."""
    for space in archive.SPACES:
        found = getattr(importlib.import_module(f"pywebgpu{space}"), name, None)
        if found is not None:
            return found
    raise TorchFileError(f"the file holds a {path}, which is not here")
