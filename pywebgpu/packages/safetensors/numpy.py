"""The module safetensors.numpy: NumPy's arrays in files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from pywebgpu import errors
from pywebgpu.io import safetensors as files
from pywebgpu.support import atomic
from pywebgpu.tensor import create

Path = str | os.PathLike[str]
_NAMES = {
    "F64": "float64", "F32": "float32", "F16": "float16", "I64": "int64", "I32": "int32", "I16": "int16", "I8": "int8",
    "U64": "uint64", "U32": "uint32", "U16": "uint16", "U8": "uint8", "BOOL": "bool", "C64": "complex64",
}  # fmt: skip
_CODES = {name: code for code, name in _NAMES.items()}


def load_file(filename: Path, *, backend: str = "mmap") -> dict[str, Any]:
    """The arrays of a file."""
    with open(filename, "rb") as file:
        return load(file.read())


def load(data: bytes) -> dict[str, Any]:
    """The arrays of a file given as its bytes."""
    header, parts = files.parse(data)
    return {name: array(header.entries[name], part) for name, part in parts.items()}


def save_file(tensor_dict: Mapping[str, Any], filename: Path, metadata: Mapping[str, str] | None = None) -> None:
    """Writes arrays to a file."""
    with atomic.replaced(filename, durable=True) as file:
        file.write(save(tensor_dict, metadata))


def save(tensor_dict: Mapping[str, Any], metadata: Mapping[str, str] | None = None) -> bytes:
    """The bytes of a file that holds the arrays."""
    tensors = {}
    for name, value in tensor_dict.items():
        if value.dtype.name not in _CODES:
            raise files.SafetensorError(f"{name!r} has dtype {value.dtype}, for which there is no code")
        data = np.ascontiguousarray(value, value.dtype.newbyteorder("<")).tobytes()
        tensors[name] = create.frombytes(data, files.DTYPES[_CODES[value.dtype.name]], tuple(value.shape), "cpu")
    return files.save(tensors, metadata)


def array(entry: files.Entry, data: files.Bytes) -> Any:
    """An array of its own memory. Raises DTypeError for a dtype that NumPy has not."""
    if entry.dtype not in _NAMES:
        raise errors.DTypeError(f"NumPy has no dtype for {entry.dtype}: read it as a tensor")
    return np.frombuffer(bytearray(data), _NAMES[entry.dtype]).reshape(entry.shape)
