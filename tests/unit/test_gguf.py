"""GGUF against the gguf package: each reads what the other wrote; damage is refused."""

import random
from pathlib import Path

import gguf as package
import numpy as np
import pytest
from gguf import quants

from pywebgpu import dtypes
from pywebgpu.io import block_formats, gguf
from pywebgpu.io.block_formats import FORMATS, BlockFormat
from pywebgpu.tensor import create

METADATA = {
    "general.architecture": "llama",
    "small": 7,
    "negative": -7,
    "large": 2**40,
    "number": 0.5,
    "flag": True,
    "names": ["a", "ß", ""],
    "counts": [1, 2, 300000],
    "signed": [-1, 2],
    "shares": [0.25, 1.5],
    "flags": [True, False],
    "none": [],
}


@pytest.mark.parametrize("block_format", FORMATS.values(), ids=lambda block_format: block_format.name)
def test_blocks_of_any_bytes_are_the_packages_numbers(block_format: BlockFormat, device: str) -> None:
    data = np.random.default_rng(0).integers(0, 256, (5, 3 * block_format.size), dtype=np.uint8)
    with np.errstate(all="ignore"):
        expected = quants.dequantize(data, package.GGMLQuantizationType(block_format.code))
    values = block_formats.dequantize(create.tensor(data, device=device), block_format)
    assert np.array_equal(values.cpu().numpy(), expected, equal_nan=True)


@pytest.mark.parametrize("block_format", FORMATS.values(), ids=lambda block_format: block_format.name)
def test_numbers_are_rounded_within_the_format(block_format: BlockFormat, device: str) -> None:
    kind = package.GGMLQuantizationType(block_format.code)
    numbers = np.random.default_rng(1).standard_normal((6, 2 * block_format.elements)).astype(np.float32)
    numbers[0, : block_format.elements] = 0
    numbers[1] = np.abs(numbers[1])
    data = block_formats.quantize(create.tensor(numbers, device=device), block_format).cpu().numpy()
    error = np.abs(quants.dequantize(data, kind) - numbers)
    bits = int(block_format.name[1])
    assert error.max() < 9.0 / 2**bits
    assert error[0, : block_format.elements].max() == 0
    if not block_format.name.endswith("k"):  # The package writes no others.
        assert np.array_equal(data, quants.quantize(numbers, kind))


def _tensors() -> dict[str, np.ndarray]:
    draw = np.random.default_rng(2)
    return {
        "a.weight": draw.standard_normal((3, 64)).astype(np.float32),
        "half": draw.standard_normal((2, 3, 4)).astype(np.float16),
        "whole": np.arange(5, dtype=np.int32),
        "k.weight": draw.standard_normal((2, 256)).astype(np.float32),
    }


def test_the_package_reads_what_we_write(tmp_path: Path) -> None:
    arrays = _tensors()
    tensors = {name: create.tensor(array, device="cpu") for name, array in arrays.items()}
    gguf.save_file(tensors, tmp_path / "m.gguf", METADATA, formats={"a.weight": "q8_0", "k.weight": "q4_k"})
    reader = package.GGUFReader(tmp_path / "m.gguf")
    entries = {entry.name: entry for entry in reader.tensors}
    assert [entry.tensor_type.name for entry in entries.values()] == ["Q8_0", "F16", "I32", "Q4_K"]
    assert np.array_equal(entries["half"].data, arrays["half"])
    assert np.array_equal(
        entries["a.weight"].data, quants.quantize(arrays["a.weight"], quants.GGMLQuantizationType.Q8_0)
    )
    fields = {name: reader.fields[name].contents() for name in METADATA if name != "none"}
    assert fields == {name: value for name, value in METADATA.items() if name != "none"}


def test_we_read_what_the_package_writes(tmp_path: Path) -> None:
    arrays = _tensors()
    writer = package.GGUFWriter(tmp_path / "m.gguf", "llama")
    writer.add_uint64("large", 2**40)
    writer.add_float64("exact", 0.1)
    writer.add_array("names", ["a", "b"])
    writer.add_tensor("half", arrays["half"])
    quantised = quants.quantize(arrays["a.weight"], quants.GGMLQuantizationType.Q5_1)
    writer.add_tensor("a.weight", quantised, raw_dtype=quants.GGMLQuantizationType.Q5_1)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    file = gguf.File(tmp_path / "m.gguf")
    assert file.metadata == {"general.architecture": "llama", "large": 2**40, "exact": 0.1, "names": ["a", "b"]}
    assert file.kinds["large"] == "u64"
    assert file.tensor("half", "cpu").dtype is dtypes.float16
    assert np.array_equal(file.tensor("half", "cpu").numpy(), arrays["half"])
    expected = quants.dequantize(quantised, quants.GGMLQuantizationType.Q5_1)
    assert np.array_equal(gguf.load_file(tmp_path / "m.gguf", "cpu")["a.weight"].numpy(), expected)


def test_a_file_written_again_is_the_same(tmp_path: Path) -> None:
    tensors = {name: create.tensor(array, device="cpu") for name, array in _tensors().items()}
    gguf.save_file(tensors, tmp_path / "a", METADATA)
    file = gguf.File(tmp_path / "a")
    assert file.metadata == METADATA
    gguf.save_file(gguf.load_file(tmp_path / "a", "cpu"), tmp_path / "b", file.metadata, kinds=file.kinds)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_damage_is_refused_or_changes_numbers_alone(tmp_path: Path) -> None:
    tensors = {name: create.tensor(array, device="cpu") for name, array in _tensors().items()}
    gguf.save_file(tensors, tmp_path / "m", METADATA, formats={"a.weight": "q4_0"})
    data = (tmp_path / "m").read_bytes()
    header = data.index(b"k.weight") + 60
    draw = random.Random(0)
    refused = longest = 0
    for count in range(10_000):
        changed = bytearray(data[: draw.randrange(len(data))] if count % 4 == 0 else data)
        for _ in range(draw.randrange(3) if count % 4 == 0 else draw.randrange(1, 4)):
            if changed:
                changed[draw.randrange(min(header, len(changed)))] = draw.choice((0, 1, 255, draw.randrange(256)))
        try:
            file = gguf.File(bytes(changed))
        except gguf.GGUFError as error:
            longest = max(longest, len(str(error)))
            refused += 1
        else:
            assert all(entry.end <= len(changed) for entry in file.entries.values())
    assert refused > 5_000
    assert longest < 300


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "ends at 0 within the magic"),
        (b"PK\3\4" + bytes(40), "no GGUF file"),
        (b"GGUF" + b"\2\0\0\0" + bytes(16), "has version 2"),
        (b"GGUF" + b"\0\0\0\3" + bytes(16), "has version 50331648"),
        (b"GGUF" + b"\3\0\0\0" + b"\xff" * 8 + bytes(8), "the number of tensors is"),
        (b"GGUF" + b"\3\0\0\0" + bytes(8) + b"\1" + bytes(7) + b"\xff" * 8 + bytes(9), "ends at 41 within a name"),
    ],
)
def test_what_is_wrong_is_said(data: bytes, text: str) -> None:
    with pytest.raises(gguf.GGUFError, match=text):
        gguf.File(data)


@pytest.mark.parametrize(
    ("tensors", "options", "text"),
    [
        ({"a": create.zeros(3, 33)}, {"formats": {"a": "q8_0"}}, "no rows of whole q8_0 blocks"),
        ({"a": create.zeros(3, 32)}, {"formats": {"a": "q9_9"}}, "known are q4_0"),
        ({"a": create.zeros(3)}, {"formats": {"b": "q8_0"}}, "which is no tensor"),
        ({"a": create.zeros(1, 1, 1, 1, 1)}, {}, "has 5 axes"),
        ({"a": create.zeros(3, dtype=dtypes.bool_)}, {}, "dtype torch.bool"),
        ({}, {"metadata": {"a": 300}, "kinds": {"a": "u8"}}, "does not fit its type u8"),
    ],
)
def test_what_cannot_be_written_is_refused(tmp_path: Path, tensors: dict, options: dict, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        gguf.save_file(tensors, tmp_path / "m", **options)
    assert not list(tmp_path.iterdir())
