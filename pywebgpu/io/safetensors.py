"""The safetensors format: weight files that are one JSON header and plain bytes, read and written without NumPy.

A file is 8 bytes (the length of the header, little-endian), the header, the data. The header maps each name to a dtype,
a shape and the offsets of its bytes, and "__metadata__" to strings. The ranges cover the data without gap or overlap.
Source: github.com/huggingface/safetensors, README "Format".  Against that package: what it refuses is refused.
"""

from __future__ import annotations

import array
import io
import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

from pywebgpu import devices, dtypes, errors
from pywebgpu.support import atomic, documents
from pywebgpu.support.documents import Malformed, is_shape, is_size, shown
from pywebgpu.tensor import create, tensor

if TYPE_CHECKING:
    from pywebgpu.tensor.factory_options import DeviceLike

MAX_HEADER = 100_000_000
DTYPES = {
    "C64": dtypes.complex64,
    "F64": dtypes.float64,
    "F32": dtypes.float32,
    "F16": dtypes.float16,
    "BF16": dtypes.bfloat16,
    "I64": dtypes.int64,
    "I32": dtypes.int32,
    "I16": dtypes.int16,
    "I8": dtypes.int8,
    "F8_E4M3": dtypes.float8_e4m3fn,
    "F8_E5M2": dtypes.float8_e5m2,
    "F8_E8M0": dtypes.float8_e8m0fnu,
    "F8_E4M3FNUZ": dtypes.float8_e4m3fnuz,
    "F8_E5M2FNUZ": dtypes.float8_e5m2fnuz,
    "U16": dtypes.uint16,
    "U32": dtypes.uint32,
    "U64": dtypes.uint64,
    "U8": dtypes.uint8,
    "BOOL": dtypes.bool_,
}
CODES = {dtype.name: code for code, dtype in DTYPES.items()}
ITEM_SIZES = {code: dtype.itemsize for code, dtype in DTYPES.items()}

Path = str | os.PathLike[str]
Bytes = bytes | bytearray | memoryview


class SafetensorError(errors.PywebgpuError, ValueError):
    """The file is not a safetensors file, is damaged, or holds what this library cannot."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One tensor of a file: its dtype's code, its shape, and its offsets in the data."""

    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class Header:
    """What a file says of itself, checked. `size` bytes stand before the data."""

    entries: dict[str, Entry]
    metadata: dict[str, str]
    size: int


def save_file(tensors: Mapping[str, tensor.Tensor], filename: Path, metadata: Mapping[str, str] | None = None) -> None:
    """Writes tensors to a file, which appears whole or not at all.

    Raises: TypeError for a name that is no string or a value that is no tensor.
    """
    with atomic.replaced(filename, durable=True) as file:
        write(file, tensors, metadata)


def load_file(filename: Path, device: DeviceLike = None) -> dict[str, tensor.Tensor]:
    """The tensors of a file, in the order of its header, on `device` (the default device when None).

    Raises: SafetensorError when the file is damaged; OSError when it cannot be read.
    """
    with open(filename, "rb") as file:
        try:
            return read(file, device)[0]
        except SafetensorError as error:
            raise SafetensorError(f"{os.fspath(filename)}: {error}") from None


def load_folder(folder: Path, device: DeviceLike = None) -> dict[str, tensor.Tensor]:
    """The tensors of a folder's model.safetensors, or of the shards that its index names. Raises as `load_file`."""
    index = os.path.join(folder, "model.safetensors.index.json")
    shards = {"model.safetensors"}
    if os.path.exists(index):
        with open(index, encoding="utf-8") as file:
            shards = set(json.load(file)["weight_map"].values())
    tensors: dict[str, tensor.Tensor] = {}
    for shard in sorted(shards):
        tensors.update(load_file(os.path.join(folder, shard), device))
    return tensors


def save(tensors: Mapping[str, tensor.Tensor], metadata: Mapping[str, str] | None = None) -> bytes:
    """The bytes of a file that holds the tensors."""
    file = io.BytesIO()
    write(file, tensors, metadata)
    return file.getvalue()


def load(data: Bytes, device: DeviceLike = None) -> dict[str, tensor.Tensor]:
    """The tensors of a file given as its bytes."""
    header, slices = parse(data)
    return {name: _tensor(name, header.entries[name], slices[name], device) for name in slices}


def parse(data: Bytes) -> tuple[Header, dict[str, memoryview]]:
    """The header of a file given as its bytes, and the bytes of each tensor, which are not copied.

    Raises: SafetensorError for a header which is too long, no JSON, or not what the format asks for; for a dtype which
    is not known; for ranges which do not fit the shapes, overlap, leave a gap or end elsewhere than the data.
    """
    view = memoryview(data).cast("B")
    size = _header_size(bytes(view[:8]), len(view))
    header = parse_header(bytes(view[8:size]), len(view) - size)
    body = view[size:]
    return header, {name: body[entry.begin : entry.end] for name, entry in header.entries.items()}


def parse_header(text: bytes, data_size: int) -> Header:
    """Checks the header of a file whose data has `data_size` bytes. Raises as `parse`."""
    if not text.startswith(b"{"):
        raise SafetensorError("the header does not start with '{'")
    try:
        fields = documents.parse(text)
        "".join(fields).encode()
    except (Malformed, UnicodeEncodeError) as error:
        raise SafetensorError(f"the header is damaged: {error}") from None
    metadata = fields.pop("__metadata__", None)
    metadata = {} if metadata is None else metadata
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise SafetensorError("__metadata__ must map strings to strings")
    entries = {name: _entry(name, field) for name, field in fields.items()}
    end = 0
    for name, entry in sorted(entries.items(), key=lambda item: (item[1].begin, item[1].end)):
        if entry.begin != end:
            kind = "overlap" if entry.begin < end else "leave a gap"
            raise SafetensorError(f"the bytes of {shown(name)} begin at {entry.begin}, not at {end}: ranges {kind}")
        end = entry.end
    if end != data_size:
        raise SafetensorError(f"the tensors take {end} bytes, but the file has {data_size}")
    return Header(entries, metadata, 8 + len(text))


def read(file: BinaryIO, device: DeviceLike = None) -> tuple[dict[str, tensor.Tensor], dict[str, str]]:
    """The tensors and the metadata of a file that is open and can seek. One tensor at a time is held on the host."""
    start = file.tell()
    header = read_header(file)
    names = sorted(header.entries, key=lambda name: header.entries[name].begin)
    tensors = {name: read_tensor(file, header, name, device, start=start) for name in names}
    return {name: tensors[name] for name in header.entries}, header.metadata


def read_header(file: BinaryIO) -> Header:
    """The header of a file that is open and can seek, from where it stands. Raises as `parse`."""
    start = file.tell()
    length = file.seek(0, os.SEEK_END) - start
    file.seek(start)
    size = _header_size(file.read(8), length)
    return parse_header(_exactly(file, size - 8), length - size)


def read_bytes(file: BinaryIO, header: Header, name: str, *, start: int = 0) -> bytes:
    """The data of one tensor of an open file, whose header begins at `start`."""
    entry = header.entries[name]
    file.seek(start + header.size + entry.begin)
    return _exactly(file, entry.end - entry.begin)


def read_tensor(file: BinaryIO, header: Header, name: str, device: DeviceLike, *, start: int = 0) -> tensor.Tensor:
    """One tensor of an open file, whose header begins at `start`."""
    return _tensor(name, header.entries[name], read_bytes(file, header, name, start=start), device)


def write(file: BinaryIO, tensors: Mapping[str, tensor.Tensor], metadata: Mapping[str, str] | None = None) -> None:
    """Writes tensors to a file that is open. Raises as `save_file`."""
    for name, value in tensors.items():
        if not isinstance(name, str) or name == "__metadata__":
            raise TypeError(f"safetensors: {name!r} cannot be the name of a tensor")
        if not isinstance(value, tensor.Tensor):
            raise TypeError(f"safetensors: {name!r} is a {type(value).__name__}, not a Tensor")
    # The widest items first, so that each tensor lies at a multiple of its item size.
    order = sorted(tensors, key=lambda name: -tensors[name].dtype.itemsize)
    file.write(_header_bytes(tensors, order, metadata or {}))
    for name in order:
        file.write(tensors[name].tobytes())


def _header_size(first: bytes, file_size: int) -> int:
    """The bytes before the data, from the first 8 bytes of the file."""
    if len(first) < 8:
        raise SafetensorError(f"the file has {file_size} bytes; a header needs 8")
    length = int.from_bytes(first, "little")
    if length > MAX_HEADER:
        raise SafetensorError("it is no file of torch.save and no safetensors file: no length of a header is first")
    if length > file_size - 8:
        raise SafetensorError(f"the header has {length} bytes, but the file ends after {file_size - 8}")
    return 8 + length


def _entry(name: str, field: object) -> Entry:
    """Checks one entry of the header for itself."""
    if not isinstance(field, dict) or not {"dtype", "shape", "data_offsets"} <= field.keys():
        raise SafetensorError(f"{shown(name)} needs dtype, shape and data_offsets")
    dtype, shape, offsets = field["dtype"], field["shape"], field["data_offsets"]
    if not isinstance(dtype, str) or dtype not in ITEM_SIZES:
        raise SafetensorError(f"{shown(name)} has dtype {shown(dtype)}; known are {', '.join(ITEM_SIZES)}")
    if not is_shape(shape):
        raise SafetensorError(f"{shown(name)} has shape {shown(shape)}")
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(map(is_size, offsets)) or offsets[0] > offsets[1]:
        raise SafetensorError(f"{shown(name)} has data_offsets {shown(offsets)}")
    needed = math.prod(shape) * ITEM_SIZES[dtype]
    if needed != offsets[1] - offsets[0]:
        raise SafetensorError(
            f"{shown(name)} of dtype {dtype} and shape {shape} needs {needed} bytes, but has {offsets}"
        )
    return Entry(dtype, tuple(shape), offsets[0], offsets[1])


def _exactly(file: BinaryIO, n_bytes: int) -> bytes:
    data = file.read(n_bytes)
    if len(data) != n_bytes:
        raise SafetensorError(f"the file ended {n_bytes - len(data)} bytes too early")
    return data


def _tensor(name: str, entry: Entry, data: Bytes, device: DeviceLike) -> tensor.Tensor:
    if entry.dtype == "U16" and devices.open_device(device).target.wgsl:  # It has no such dtype.
        return create.frombytes(
            array.array("i", memoryview(data).cast("H")).tobytes(), dtypes.int32, entry.shape, device
        )
    if entry.dtype not in DTYPES:
        raise SafetensorError(f"{shown(name)} has dtype {entry.dtype}, for which there is no dtype here")
    if entry.dtype == "BOOL" and bytes(data).translate(None, b"\0\1"):
        raise SafetensorError(f"{shown(name)} has dtype BOOL and bytes other than 0 and 1")
    return create.frombytes(data, DTYPES[entry.dtype], entry.shape, device)


def _header_bytes(tensors: Mapping[str, tensor.Tensor], order: list[str], metadata: Mapping[str, str]) -> bytes:
    """The length and the header, padded with spaces so that the data begins at a multiple of 8."""
    fields: dict[str, Any] = {}
    if metadata:
        if not all(isinstance(text, str) for pair in metadata.items() for text in pair):
            raise TypeError("safetensors: metadata must map strings to strings")
        fields["__metadata__"] = dict(metadata)
    fields.update(dict.fromkeys(tensors))
    end = 0
    for name in order:
        value = tensors[name]
        begin, end = end, end + value.numel() * value.dtype.itemsize
        fields[name] = {"dtype": CODES[value.dtype.name], "shape": list(value.shape), "data_offsets": [begin, end]}
    text = json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    text += b" " * (-len(text) % 8)
    if len(text) > MAX_HEADER:
        raise SafetensorError(f"the header has {len(text)} bytes; at most {MAX_HEADER} are allowed")
    return len(text).to_bytes(8, "little") + text
