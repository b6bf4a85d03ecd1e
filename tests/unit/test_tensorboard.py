"""Files of events: records with checksums, whose fields are those that TensorBoard reads."""

import struct
import zlib
from pathlib import Path
from typing import Any

import pytest

import pywebgpu as torch
from pywebgpu.utils import tensorboard

pytestmark = pytest.mark.usefixtures("default_device")


def records(folder: Path) -> list[dict[int, Any]]:
    """The events of the only file of a folder; their checksums are right."""
    (file,) = folder.glob("events.out.tfevents.*")
    data, found = file.read_bytes(), []
    while data:
        (size,) = struct.unpack("<Q", data[:8])
        event = data[12 : 12 + size]
        assert data[8:12] == tensorboard._checksum(data[:8])
        assert data[12 + size : 16 + size] == tensorboard._checksum(event)
        found.append(fields(event))
        data = data[16 + size :]
    return found


def fields(data: bytes) -> dict[int, Any]:
    """The fields of a message by their numbers."""
    found: dict[int, Any] = {}
    at = 0

    def whole() -> int:
        nonlocal at
        value, shift = 0, 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        key = whole()
        if key & 7 == 0:
            found[key >> 3] = whole()
            continue
        size = {1: 8, 5: 4}.get(key & 7) or whole()
        part = data[at : at + size]
        at += size
        found[key >> 3] = part if key & 7 == 2 else struct.unpack("<d" if size == 8 else "<f", part)[0]
    return found


def written(folder: Path, step: int) -> dict[int, Any]:
    """The fields of the one value of an event."""
    event = records(folder)[step]
    return fields(fields(event[5])[1]) | {"step": event.get(2)}  # type: ignore[dict-item]


def test_checksums_are_those_of_the_standard() -> None:
    crc = struct.unpack("<I", tensorboard._checksum(b"123456789"))[0]
    turned = (crc - 0xA282EAD8) & 0xFFFFFFFF
    assert (turned << 15 | turned >> 17) & 0xFFFFFFFF == 0xE3069283


def test_numbers_texts_and_distributions_are_written(tmp_path: Path) -> None:
    with tensorboard.SummaryWriter(tmp_path) as writer:
        writer.add_scalar("loss", torch.tensor(0.25), 300)
        writer.add_text("note", "hé", 1)
        writer.add_histogram("weights", torch.arange(10.0), -1, bins=4)
    assert records(tmp_path)[0][3] == b"brain.Event:2"
    assert written(tmp_path, 1) == {1: b"loss", 2: 0.25, "step": 300}
    text = written(tmp_path, 2)
    assert (text[1], fields(text[8])[8].decode()) == (b"note/text_summary", "hé")
    told = fields(written(tmp_path, 3)[5])
    assert [told[field] for field in range(1, 6)] == [0.0, 9.0, 10.0, 45.0, 285.0]
    assert struct.unpack("<4d", told[6]) == (2.25, 4.5, 6.75, 9.0)
    assert struct.unpack("<4d", told[7]) == (3.0, 2.0, 2.0, 3.0)
    assert written(tmp_path, 3)["step"] == 2**64 - 1  # type: ignore[index]


def rows(png: bytes) -> list[int]:
    """The bytes of a picture's rows; a 0 before each says that they are as they stand."""
    assert png.startswith(b"\x89PNG")
    return list(zlib.decompressobj().decompress(png[png.index(b"IDAT") + 4 :]))


def test_pictures_are_png(tmp_path: Path) -> None:
    with tensorboard.SummaryWriter(tmp_path) as writer:
        writer.add_image("floats", torch.tensor([[[0.0, 1.0, 2.0]], [[0.5, 0.5, 0.5]], [[0.0, 0.0, 0.0]]]))
        writer.add_image("bytes", torch.tensor([[7, 255]], dtype=torch.uint8), dataformats="HW")
    picture = fields(written(tmp_path, 1)[4])
    assert (picture[1], picture[2], picture[3]) == (1, 3, 3)
    assert rows(picture[4]) == [0, 0, 127, 0, 255, 127, 0, 255, 127, 0]
    assert rows(fields(written(tmp_path, 2)[4])[4]) == [0, 7, 255]


def test_curves_of_one_picture_have_folders_of_their_own(tmp_path: Path) -> None:
    with tensorboard.SummaryWriter(tmp_path) as writer:
        writer.add_scalars("both", {"a": 1, "b": 2.5}, 3)
    assert [written(tmp_path / f"both_{name}", 1)[2] for name in "ab"] == [1.0, 2.5]


def test_what_is_not_written_says_so(tmp_path: Path) -> None:
    writer = tensorboard.SummaryWriter(tmp_path)
    with pytest.raises(NotImplementedError, match="add_graph is not here"):
        writer.add_graph(None)
    with pytest.raises(AttributeError):
        _ = writer.no_such_name
