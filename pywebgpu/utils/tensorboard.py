"""torch.utils.tensorboard: files of events that TensorBoard shows, written here byte by byte; no package is needed.

Source: TensorFlow's event.proto, summary.proto and record_writer.h: records with checksums, of protocol buffers.
"""

from __future__ import annotations

import os
import socket
import struct
import time
import zlib
from collections.abc import Callable, Mapping
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, Self

from pywebgpu.tensor.base import TensorBase

if TYPE_CHECKING:
    from pywebgpu.tensor.tensor import Tensor

_numbers = count()  # of the files of this process


def _crc_table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


_CRC = _crc_table()


def _checksum(data: bytes) -> bytes:
    """CRC-32C, turned and shifted as records have it."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _CRC[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


# Fields of protocol buffers


def _whole(number: int) -> bytes:
    """A number in groups of 7 bits."""
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def _int(field: int, value: int) -> bytes:
    return _whole(field << 3) + _whole(value)


def _double(field: int, value: float) -> bytes:
    return _whole(field << 3 | 1) + struct.pack("<d", value)


def _float(field: int, value: float) -> bytes:
    return _whole(field << 3 | 5) + struct.pack("<f", value)


def _bytes(field: int, value: bytes | str) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return _whole(field << 3 | 2) + _whole(len(data)) + data


def _doubles(field: int, values: list[float]) -> bytes:
    return _bytes(field, struct.pack(f"<{len(values)}d", *values))


def _single(value: object) -> float:
    """A number, of a tensor or an array of one element as well."""
    item: Callable[[], float] | None = getattr(value, "item", None)
    return float(value if item is None else item())  # type: ignore[arg-type]  # It says so where it is no number.


class SummaryWriter:
    """Writes scalars, histograms, texts and pictures into a file of events in `log_dir`. See torch.utils.tensorboard.

    Graphs, figures, sound, videos, embeddings and hyperparameters are not here: those methods raise
    NotImplementedError.
    """

    def __init__(
        self,
        log_dir: str | os.PathLike[str] | None = None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int = 10,
        flush_secs: float = 120,
        filename_suffix: str = "",
    ) -> None:
        host = socket.gethostname()
        if not log_dir:
            log_dir = os.path.join("runs", f"{datetime.now():%b%d_%H-%M-%S}_{host}{comment}")
        self.log_dir = str(log_dir)
        self._max_queue, self._flush_secs = max_queue, flush_secs
        self._waiting: list[bytes] = []
        self._written = time.time()
        self._others: dict[str, SummaryWriter] = {}
        folder = Path(self.log_dir)
        folder.mkdir(parents=True, exist_ok=True)
        name = f"events.out.tfevents.{int(self._written):010d}.{host}.{os.getpid()}.{next(_numbers)}{filename_suffix}"
        self._path = folder / name
        self._record(_bytes(3, "brain.Event:2"), None, None)
        if purge_step is not None:  # What an earlier run wrote from this step on is not shown.
            self._record(_bytes(7, _int(1, 1)), purge_step, None)
        self.flush()

    def get_logdir(self) -> str:
        """The folder of the file."""
        return self.log_dir

    def add_scalar(
        self,
        tag: str,
        scalar_value: object,
        global_step: int | None = None,
        walltime: float | None = None,
        new_style: bool = False,
        double_precision: bool = False,
    ) -> None:
        """A number of a curve. Waits for the device where it is a tensor."""
        self._value(tag, _float(2, _single(scalar_value)), global_step, walltime)

    def add_scalars(
        self,
        main_tag: str,
        tag_scalar_dict: Mapping[str, object],
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Several curves in one picture: each has a folder of its own."""
        for tag, value in tag_scalar_dict.items():
            folder = f"{self.log_dir}/{main_tag.replace('/', '_')}_{tag}"
            if folder not in self._others:
                self._others[folder] = SummaryWriter(folder)
            self._others[folder].add_scalar(main_tag, value, global_step, walltime)

    def add_histogram(
        self,
        tag: str,
        values: Tensor,
        global_step: int | None = None,
        bins: int | str = 64,
        walltime: float | None = None,
        max_bins: int | None = None,
    ) -> None:
        """How the elements of a tensor are distributed, in `bins` equal parts (a number; a rule's name means 64)."""
        numbers = values.detach().reshape(-1).tolist() if isinstance(values, TensorBase) else list(values)
        if not numbers:
            raise ValueError("The input has no element.")
        n_bins, low, high = bins if isinstance(bins, int) else 64, min(numbers), max(numbers)
        width = (high - low) / n_bins or 1.0
        counts = [0.0] * n_bins
        for value in numbers:
            counts[min(int((value - low) / width), n_bins - 1)] += 1
        limits = [low + width * (index + 1) for index in range(n_bins)]
        total, squares = sum(numbers), sum(value * value for value in numbers)
        fields = [low, high, len(numbers), total, squares]
        message = b"".join(_double(field, value) for field, value in enumerate(fields, 1))
        self._value(tag, _bytes(5, message + _doubles(6, limits) + _doubles(7, counts)), global_step, walltime)

    def add_text(
        self, tag: str, text_string: str, global_step: int | None = None, walltime: float | None = None
    ) -> None:
        """A text, which may be Markdown."""
        kind = _bytes(9, _bytes(1, _bytes(1, "text")))  # the plugin that shows it
        content = _int(1, 7) + _bytes(2, _bytes(2, _int(1, 1))) + _bytes(8, text_string)  # one string
        self._value(f"{tag}/text_summary", kind + _bytes(8, content), global_step, walltime)

    def add_image(
        self,
        tag: str,
        img_tensor: Tensor,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:
        """A picture of 1 or 3 channels: uint8, or floats from 0 to 1."""
        axes = dataformats.upper()
        picture = img_tensor.detach()
        if axes == "HW":
            picture, axes = picture.unsqueeze(0), "CHW"
        picture = picture.permute(*[axes.index(axis) for axis in "HWC"])
        height, width, channels = picture.shape
        if channels not in (1, 3):
            raise ValueError(f"add_image: a picture has 1 or 3 channels, not {channels}")
        if picture.is_floating_point():
            picture = (picture.float() * 255).clamp(0, 255)
        rows = picture.int().reshape(height, width * channels).tolist()
        data = _png(rows, width, channels)
        message = _int(1, height) + _int(2, width) + _int(3, channels) + _bytes(4, data)
        self._value(tag, _bytes(4, message), global_step, walltime)

    def flush(self) -> None:
        """Writes what waits to the file."""
        with self._path.open("ab") as file:
            file.write(b"".join(self._waiting))
        self._waiting.clear()
        self._written = time.time()
        for other in self._others.values():
            other.flush()

    def close(self) -> None:
        """As flush: the file is open only while it is written to."""
        self.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __getattr__(self, name: str) -> Callable[..., NoReturn]:
        if not name.startswith("add_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

        def refuse(*args: object, **options: object) -> NoReturn:
            raise NotImplementedError(
                f"SummaryWriter.{name} is not here: add_scalar, add_scalars, add_histogram, add_text and add_image are"
            )

        return refuse

    def _value(self, tag: str, field: bytes, step: int | None, walltime: float | None) -> None:
        self._record(_bytes(5, _bytes(1, _bytes(1, tag) + field)), step, walltime)
        if len(self._waiting) >= self._max_queue or time.time() - self._written > self._flush_secs:
            self.flush()

    def _record(self, what: bytes, step: int | None, walltime: float | None) -> None:
        timestamp = time.time() if walltime is None else walltime
        event = _double(1, timestamp) + (b"" if step is None else _int(2, int(step))) + what
        length = struct.pack("<Q", len(event))
        self._waiting.append(length + _checksum(length) + event + _checksum(event))


def _png(rows: list[list[int]], width: int, channels: int) -> bytes:
    """A picture of bytes, as PNG."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, len(rows), 8, 2 if channels == 3 else 0, 0, 0, 0)
    data = zlib.compress(b"".join(b"\0" + bytes(row) for row in rows))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")
