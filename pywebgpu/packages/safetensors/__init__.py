"""The package safetensors: files of tensors, read one tensor at a time."""

from __future__ import annotations

import importlib
import os
from typing import Any

from pywebgpu.io import safetensors as files
from pywebgpu.io.safetensors import SafetensorError

__all__ = ["SafetensorError", "__version__", "deserialize", "safe_open"]
__version__ = "0.8.0"  # whose functions these are

_TENSORS, _ARRAYS = ("pt", "torch", "pytorch"), ("np", "numpy")


class safe_open:
    """A file whose tensors are read when they are asked for.

    framework: "pt" gives tensors on `device`, "np" NumPy's arrays. Raises SafetensorError where the file is damaged,
    FileNotFoundError where there is none.
    """

    def __init__(
        self, filename: str | os.PathLike[str], framework: str, device: Any = "cpu", *, backend: str = "mmap"
    ) -> None:
        if framework not in (*_TENSORS, *_ARRAYS):
            raise SafetensorError(f"framework {framework!r} is not here: there are 'pt' and 'np'")
        self._has_arrays, self._device = framework in _ARRAYS, device
        try:
            self._file = open(filename, "rb")  # noqa: SIM115 - it is open as long as this object
        except FileNotFoundError:
            raise FileNotFoundError(f"No such file or directory: {os.fspath(filename)}") from None
        self._header = files.read_header(self._file)

    def __enter__(self) -> safe_open:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def keys(self) -> list[str]:
        """The names of the tensors, sorted."""
        return sorted(self._header.entries)

    def offset_keys(self) -> list[str]:
        """The names of the tensors, as they lie in the file."""
        entries = self._header.entries
        return sorted(entries, key=lambda name: entries[name].begin)

    def metadata(self) -> dict[str, str] | None:
        """The strings that stand beside the tensors; None where there are none."""
        return self._header.metadata or None

    def get_tensor(self, name: str) -> Any:
        """A tensor, or an array. Raises SafetensorError where the file has none of this name."""
        self._entry(name)
        if self._has_arrays:
            arrays: Any = importlib.import_module("pywebgpu.packages.safetensors.numpy")
            return arrays.array(self._header.entries[name], files.read_bytes(self._file, self._header, name))
        return files.read_tensor(self._file, self._header, name, self._device)

    def get_tensors(self) -> dict[str, Any]:
        """All tensors, by name."""
        return {name: self.get_tensor(name) for name in self.offset_keys()}

    def get_slice(self, name: str) -> _Slice:
        """What gives parts of a tensor when it is indexed."""
        return _Slice(self, name, self._entry(name))

    def _entry(self, name: str) -> files.Entry:
        if name not in self._header.entries:
            raise SafetensorError(f"File does not contain tensor {name}")
        return self._header.entries[name]


class _Slice:
    """A tensor of a file, read when it is indexed."""

    def __init__(self, file: safe_open, name: str, entry: files.Entry) -> None:
        self._file, self._name, self._stored = file, name, entry

    def get_shape(self) -> list[int]:
        return list(self._stored.shape)

    def get_dtype(self) -> str:
        """The dtype's code in the file, as "F32"."""
        return self._stored.dtype

    def __getitem__(self, index: Any) -> Any:
        return self._file.get_tensor(self._name)[index]


def deserialize(bytes: bytes) -> list[tuple[str, dict[str, Any]]]:
    """The tensors of a file as plain data: shape, dtype's code, bytes."""
    header, parts = files.parse(bytes)
    return [
        (
            name,
            {"shape": list(header.entries[name].shape), "dtype": header.entries[name].dtype, "data": bytearray(data)},
        )
        for name, data in parts.items()
    ]
