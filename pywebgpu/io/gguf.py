"""GGUF, version 3: files of one model, whose weights may be quantised, with what it is and its tokenizer as metadata.

A file is a header (magic, version, numbers of tensors and of metadata), the metadata, a record for each tensor, and the
tensors' bytes, each at a multiple of the alignment. Sizes are written innermost first.  Everything is checked against
the size of the file before it is read.
Source: github.com/ggml-org/ggml, docs/gguf.md.
"""

from __future__ import annotations

import math
import mmap
import os
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

from pywebgpu import dtypes, errors
from pywebgpu.io import block_formats
from pywebgpu.io.block_formats import BlockFormat
from pywebgpu.support import atomic
from pywebgpu.support.documents import EXACT, count, shown
from pywebgpu.tensor import create
from pywebgpu.tensor.tensor import Tensor

if TYPE_CHECKING:
    from pywebgpu.dtypes import DType
    from pywebgpu.tensor.factory_options import DeviceLike

MAGIC = b"GGUF"
VERSION = 3
ALIGNMENT = 32  # where the metadata does not say another
MAX_RANK = 4
MAX_NESTING = 4  # of arrays in arrays
# Number types of metadata by their number in files: their names, and their codes in struct and array.
SCALARS = {
    0: ("u8", "B"),
    1: ("i8", "b"),
    2: ("u16", "H"),
    3: ("i16", "h"),
    4: ("u32", "I"),
    5: ("i32", "i"),
    6: ("f32", "f"),
    7: ("bool", "?"),
    10: ("u64", "Q"),
    11: ("i64", "q"),
    12: ("f64", "d"),
}
STRING, ARRAY = 8, 9
SCALAR_CODES = {name: (number, code) for number, (name, code) in SCALARS.items()}
# Formats of tensors that are dtypes by their number in files.
PLAIN = {
    0: dtypes.float32,
    1: dtypes.float16,
    24: dtypes.int8,
    25: dtypes.int16,
    26: dtypes.int32,
    27: dtypes.int64,
    28: dtypes.float64,
    30: dtypes.bfloat16,
}
PLAIN_CODES = {dtype: number for number, dtype in PLAIN.items()}
BLOCK_FORMATS = {block_format.code: block_format for block_format in block_formats.FORMATS.values()}

Path = str | os.PathLike[str]


class GGUFError(errors.PywebgpuError, ValueError):
    """The file is not a GGUF file, is damaged, or holds what this library cannot."""


class Source(Protocol):
    """Bytes that can be read by ranges: bytes, a mapped file, or a file elsewhere of which ranges are fetched."""

    def __len__(self) -> int: ...

    def __getitem__(self, key: slice, /) -> bytes | memoryview: ...


@dataclass(frozen=True, slots=True)
class Entry:
    """One tensor of a file: its shape, what its bytes are, and where they lie."""

    shape: tuple[int, ...]
    format: DType | BlockFormat
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class Stored:
    """A tensor as a file has it: its shape, what its bytes are, and these, as `File.raw` gives them."""

    shape: tuple[int, ...]
    format: DType | BlockFormat
    data: Tensor


class File:
    """A GGUF file whose header was read and checked; tensors are read one at a time, when they are asked for.

    metadata: names to numbers, strings and lists.  kinds: names to the types that the file gave them ("u32", "[str]"),
    for writing them again.  entries: names to what is known of each tensor.

    Raises: GGUFError when the file is damaged; OSError when it cannot be read.
    """

    def __init__(self, source: Path | Source) -> None:
        self.source: Source
        self.name = ""
        if isinstance(source, str | os.PathLike):
            self.name = f"{os.fspath(source)}: "
            self.source = _mapped(source)
        else:
            self.source = source
        try:
            self.metadata, self.kinds, self.entries = _read_header(self.source)
        except GGUFError as error:
            raise GGUFError(f"{self.name}{error}") from None

    def bytes_of(self, name: str) -> bytes | memoryview:
        """A tensor's bytes in the file."""
        entry = self._entry(name)
        return self.source[entry.begin : entry.end]

    def raw(self, name: str, device: DeviceLike = None) -> Tensor:
        """A tensor as it is stored: rows of blocks as uint8 (..., bytes of a row) where it is quantised."""
        entry, data = self._entry(name), self.bytes_of(name)
        if isinstance(entry.format, BlockFormat):
            row = entry.shape[-1] // entry.format.elements * entry.format.size
            return create.frombytes(data, dtypes.uint8, (*entry.shape[:-1], row), device)
        return create.frombytes(data, entry.format, entry.shape, device)

    def stored(self, name: str, device: DeviceLike = None) -> Stored:
        """A tensor as it is stored, to be written again."""
        entry = self._entry(name)
        return Stored(entry.shape, entry.format, self.raw(name, device))

    def tensor(self, name: str, device: DeviceLike = None) -> Tensor:
        """A tensor; one that is quantised as the float32 numbers that its blocks stand for."""
        data = self.raw(name, device)
        block_format = self._entry(name).format
        return block_formats.dequantize(data, block_format) if isinstance(block_format, BlockFormat) else data

    def _entry(self, name: str) -> Entry:
        if name not in self.entries:
            raise KeyError(f"{self.name}there is no tensor {name!r}")
        return self.entries[name]


def load_file(filename: Path, device: DeviceLike = None) -> dict[str, Tensor]:
    """All tensors of a file, dequantised, on `device` (the default device when None). Raises as `File`."""
    file = File(filename)
    return {name: file.tensor(name, device) for name in file.entries}


def save_file(
    tensors: Mapping[str, Tensor | Stored],
    filename: Path,
    metadata: Mapping[str, Any] | None = None,
    *,
    formats: Mapping[str, str] | None = None,
    kinds: Mapping[str, str] | None = None,
) -> None:
    """Writes tensors to a file, which appears whole or not at all.

    formats: names of tensors to the format they are quantised to ("q8_0", "q4_k", …); the others keep their dtype.
    kinds: types of metadata where Python's do not say them, such as those of a file that was read.

    Raises: TypeError and ValueError for names, values and dtypes which the format has not.
    """
    with atomic.replaced(filename, durable=True) as file:
        write(file, tensors, metadata, formats=formats, kinds=kinds)


def write(
    file: BinaryIO,
    tensors: Mapping[str, Tensor | Stored],
    metadata: Mapping[str, Any] | None = None,
    *,
    formats: Mapping[str, str] | None = None,
    kinds: Mapping[str, str] | None = None,
) -> None:
    """Writes a file that is open. Raises as `save_file`."""
    metadata, formats, kinds = metadata or {}, formats or {}, kinds or {}
    unknown = [name for name in formats if name not in tensors]
    if unknown:
        raise ValueError(f"GGUF: formats names {unknown[0]!r}, which is no tensor")
    alignment = metadata.get("general.alignment", ALIGNMENT)
    entries, end = {}, 0
    for name, value in tensors.items():
        entry = _entry_of(name, value, formats.get(name))
        size = entry.end
        entries[name] = Entry(entry.shape, entry.format, end, end + size)
        end = _aligned(end + size, alignment)
    header = _header_bytes(entries, metadata, kinds)
    file.write(header + bytes(-len(header) % alignment))
    for name, value in tensors.items():
        data = _data(value, entries[name].format).tobytes()
        file.write(data + bytes(-len(data) % alignment))


# Reading


def _mapped(filename: Path) -> Source:
    with open(filename, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        if size == 0:  # Nothing can be mapped.
            return b""
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


class _Cursor:
    """Reads a header from its start. What a damaged length asks for is never read."""

    def __init__(self, source: Source) -> None:
        self.source, self.size, self.position = source, len(source), 0

    def take(self, n_bytes: int, what: str) -> bytes | memoryview:
        if n_bytes > self.size - self.position:
            raise GGUFError(f"the file ends at {self.size} within {what} at {self.position}")
        self.position += n_bytes
        return self.source[self.position - n_bytes : self.position]

    def number(self, code: str, what: str) -> Any:
        return struct.unpack("<" + code, self.take(struct.calcsize("<" + code), what))[0]

    def string(self, what: str) -> str:
        data = self.take(self.number("Q", what), what)
        try:
            return str(data, "utf-8")
        except UnicodeDecodeError as error:
            raise GGUFError(f"{what} at {self.position - len(data)} is no UTF-8: {error.reason}") from None

    def count(self, least: int, what: str) -> int:
        """A number of things of at least so many bytes each."""
        number: int = self.number("Q", what)
        if number * least > self.size - self.position:
            raise GGUFError(f"{what} is {number}, but only {self.size - self.position} bytes follow")
        return number

    def value(self, kind: int, what: str, depth: int = 0) -> tuple[Any, str]:
        """A value of a type, and the name of the type."""
        if kind in SCALARS:
            name, code = SCALARS[kind]
            if name == "bool":
                return self._flags(1, what)[0], name
            return self.number(code, what), name
        if kind == STRING:
            return self.string(what), "str"
        if kind != ARRAY or depth == MAX_NESTING:
            raise GGUFError(f"{what} at {self.position} has type {kind}, which is unknown or nested too deep")
        values, name = self._array(what, depth)
        return values, f"[{name}]"

    def _array(self, what: str, depth: int) -> tuple[list[Any], str]:
        kind = self.number("I", what)
        if kind not in SCALARS:
            n_values = self.count(8 if kind == STRING else 12, f"the length of {what}")
            pairs = [self.value(kind, what, depth + 1) for _ in range(n_values)]
            names = {name for _, name in pairs} or {"str"}
            if len(names) > 1:
                raise GGUFError(f"{what} holds arrays of several types")
            return [value for value, _ in pairs], names.pop()
        name, code = SCALARS[kind]
        width = struct.calcsize("<" + code)
        n_values = self.count(width, f"the length of {what}")
        if name == "bool":
            return self._flags(n_values, what), name
        return list(struct.unpack(f"<{n_values}{code}", self.take(n_values * width, what))), name

    def _flags(self, n_values: int, what: str) -> list[bool]:
        data = bytes(self.take(n_values, what))
        if data.translate(None, b"\0\1"):
            raise GGUFError(f"{what} before {self.position} is a bool and neither 0 nor 1")
        return [byte == 1 for byte in data]


def _read_header(source: Source) -> tuple[dict[str, Any], dict[str, str], dict[str, Entry]]:
    cursor = _Cursor(source)
    if bytes(cursor.take(4, "the magic")) != MAGIC:
        raise GGUFError("it is no GGUF file: it does not begin with 'GGUF'")
    version = cursor.number("I", "the version")
    if version != VERSION:
        raise GGUFError(f"it has version {version}; {VERSION} with the little end first can be read")
    n_tensors = cursor.count(24, "the number of tensors")
    n_values = cursor.count(13, "the number of metadata")
    metadata: dict[str, Any] = {}
    kinds: dict[str, str] = {}
    for _ in range(n_values):
        name = cursor.string("a name of metadata")
        if name in metadata:
            raise GGUFError(f"the metadata {shown(name)} stands twice")
        metadata[name], kinds[name] = cursor.value(cursor.number("I", shown(name)), shown(name))
    alignment = metadata.get("general.alignment", ALIGNMENT)
    if type(alignment) is not int or alignment <= 0 or alignment % 8:
        raise GGUFError(f"general.alignment is {shown(alignment)}, no multiple of 8")
    entries: dict[str, Entry] = {}
    for _ in range(n_tensors):
        name = cursor.string("the name of a tensor")
        if name in entries:
            raise GGUFError(f"the tensor {shown(name)} stands twice")
        entries[name] = _read_entry(cursor, name, alignment)
    return metadata, kinds, _placed(entries, _aligned(cursor.position, alignment), cursor.size)


def _read_entry(cursor: _Cursor, name: str, alignment: int) -> Entry:
    """A tensor's record, with offsets from the start of the data."""
    what = f"the record of {shown(name)}"
    rank = cursor.number("I", what)
    if rank > MAX_RANK:
        raise GGUFError(f"{shown(name)} has {rank} axes; at most {MAX_RANK} are allowed")
    shape = tuple(cursor.number("Q", what) for _ in range(rank))[::-1]
    code, begin = cursor.number("I", what), cursor.number("Q", what)
    element_format = PLAIN.get(code) or BLOCK_FORMATS.get(code)
    if element_format is None:
        raise GGUFError(f"{shown(name)} has format {code}, which is not known here")
    if count(shape) > EXACT or begin % alignment:
        raise GGUFError(f"{shown(name)} has shape {shape} at {begin}: too large, or no multiple of {alignment}")
    if isinstance(element_format, BlockFormat) and (not shape or shape[-1] % element_format.elements):
        raise GGUFError(
            f"{shown(name)} has rows of {shape[-1:]} elements: no whole blocks of {element_format.elements}"
        )
    return Entry(shape, element_format, begin, begin + _size_of(shape, element_format))


def _placed(entries: Mapping[str, Entry], start: int, size: int) -> dict[str, Entry]:
    """Records with offsets in the file, which has to have room for each, and no two overlap."""
    end = 0
    for name, entry in sorted(entries.items(), key=lambda item: (item[1].begin, item[1].end)):
        if entry.begin < end:
            raise GGUFError(f"the bytes of {shown(name)} begin at {entry.begin}, within another tensor's")
        if start + entry.end > size:
            raise GGUFError(f"the bytes of {shown(name)} end at {start + entry.end}, but the file at {size}")
        end = entry.end
    return {
        name: Entry(entry.shape, entry.format, start + entry.begin, start + entry.end)
        for name, entry in entries.items()
    }


def _size_of(shape: Sequence[int], element_format: DType | BlockFormat) -> int:
    n_elements = math.prod(shape)
    if isinstance(element_format, BlockFormat):
        return n_elements // element_format.elements * element_format.size
    return n_elements * element_format.itemsize


def _aligned(position: int, alignment: int) -> int:
    return -(-position // alignment) * alignment


# Writing


def _data(value: Tensor | Stored, stored_format: DType | BlockFormat) -> Tensor:
    """What is written of a tensor."""
    if isinstance(value, Stored):
        return value.data
    return block_formats.quantize(value, stored_format) if isinstance(stored_format, BlockFormat) else value.detach()


def _entry_of(name: str, value: Tensor | Stored, format_name: str | None) -> Entry:
    """The record of a tensor whose bytes begin at 0."""
    if not isinstance(name, str):
        raise TypeError(f"GGUF: {name!r} cannot be the name of a tensor")
    if isinstance(value, Stored):
        if format_name is not None:
            raise ValueError(f"GGUF: {name!r} is written as it is stored, and not as {format_name!r}")
        return Entry(value.shape, value.format, 0, _size_of(value.shape, value.format))
    if not isinstance(value, Tensor):
        raise TypeError(f"GGUF: {name!r} is a {type(value).__name__}, not a Tensor")
    if value.ndim > MAX_RANK:
        raise ValueError(f"GGUF: {name!r} has {value.ndim} axes; at most {MAX_RANK} are allowed")
    shape = tuple(value.shape)
    if format_name is None:
        if value.dtype not in PLAIN_CODES:
            raise ValueError(f"GGUF: {name!r} has dtype {value.dtype}, which the format has not")
        return Entry(shape, value.dtype, 0, _size_of(shape, value.dtype))
    if format_name not in block_formats.FORMATS:
        raise ValueError(f"GGUF: {name!r} has format {format_name!r}; known are {', '.join(block_formats.FORMATS)}")
    block_format = block_formats.FORMATS[format_name]
    if not shape or shape[-1] % block_format.elements:
        raise ValueError(f"GGUF: {name!r} of shape {shape} has no rows of whole {block_format.name} blocks")
    return Entry(shape, block_format, 0, _size_of(shape, block_format))


def _header_bytes(entries: Mapping[str, Entry], metadata: Mapping[str, Any], kinds: Mapping[str, str]) -> bytes:
    parts = [MAGIC, struct.pack("<IQQ", VERSION, len(entries), len(metadata))]
    for name, value in metadata.items():
        kind = kinds.get(name) or _kind_of(name, value)
        parts += [_string_bytes(name), struct.pack("<I", _kind_code(kind)), _value_bytes(name, value, kind)]
    for name, entry in entries.items():
        code = entry.format.code if isinstance(entry.format, BlockFormat) else PLAIN_CODES[entry.format]
        rank = len(entry.shape)
        parts += [_string_bytes(name), struct.pack(f"<I{rank}QIQ", rank, *entry.shape[::-1], code, entry.begin)]
    return b"".join(parts)


def _string_bytes(text: str) -> bytes:
    data = text.encode("utf-8")
    return struct.pack("<Q", len(data)) + data


def _kind_of(name: str, value: Any) -> str:
    """The type that a value of Python gets."""
    match value:
        case bool():
            return "bool"
        case int():
            return next(kind for kind, (low, high) in INTEGERS.items() if low <= value <= high)
        case float():
            return "f32"
        case str():
            return "str"
        case list() | tuple():
            kinds = {_kind_of(name, element) for element in value} or {"str"}
            if len(kinds) > 1 and kinds <= INTEGERS.keys():
                kinds = {_kind_of(name, min(value)) if min(value) < 0 else _kind_of(name, max(value))}
            if len(kinds) == 1:
                return f"[{kinds.pop()}]"
    raise TypeError(f"GGUF: metadata {name!r} is {shown(value)}: no number, string or list of one of these")


INTEGERS = {"u32": (0, 2**32 - 1), "i32": (-(2**31), 2**31 - 1), "i64": (-(2**63), 2**63 - 1), "u64": (0, 2**64 - 1)}


def _kind_code(kind: str) -> int:
    return ARRAY if kind.startswith("[") else STRING if kind == "str" else SCALAR_CODES[kind][0]


def _value_bytes(name: str, value: Any, kind: str) -> bytes:
    if kind == "str":
        return _string_bytes(value)
    if not kind.startswith("["):
        return _packed(name, [value], kind)
    inner = kind[1:-1]
    head = struct.pack("<IQ", _kind_code(inner), len(value))
    if inner in SCALAR_CODES:
        return head + _packed(name, value, inner)
    return head + b"".join(_value_bytes(name, element, inner) for element in value)


def _packed(name: str, values: Sequence[Any], kind: str) -> bytes:
    try:
        return struct.pack(f"<{len(values)}{SCALAR_CODES[kind][1]}", *values)
    except struct.error as error:
        raise ValueError(f"GGUF: metadata {name!r} does not fit its type {kind}: {error}") from None
