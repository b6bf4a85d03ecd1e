"""The safetensors format against the safetensors package: each reads what the other wrote; damage is refused."""

import contextlib
import json
import math
import os
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import safetensors
import safetensors.torch
import torch

from pywebgpu import dtypes
from pywebgpu.io import safetensors as ours
from pywebgpu.tensor import create, tensor

SHAPES = [(), (1,), (5,), (2, 3), (0,), (3, 0, 2), (2, 1, 4)]


def bits(shape: tuple[int, ...], dtype: dtypes.DType) -> bytes:
    """Any bytes that are elements of the dtype; no NaN, so that values can be compared."""
    draw = random.Random(f"{shape}{dtype.name}")
    n = math.prod(shape)
    if dtype is dtypes.bool_:
        return bytes(draw.randrange(2) for _ in range(n))
    return b"".join(bytes([*draw.randbytes(dtype.itemsize - 1), draw.randrange(64)]) for _ in range(n))


def made() -> dict[str, tensor.Tensor]:
    return {
        f"{dtype.name}{list(shape)}": create.frombytes(bits(shape, dtype), dtype, shape, "cpu")
        for dtype in ours.DTYPES.values()
        for shape in SHAPES
    }


def twin(value: tensor.Tensor) -> torch.Tensor:
    data = bytearray(value.tobytes())
    dtype = getattr(torch, value.dtype.name)
    return torch.frombuffer(data, dtype=dtype).reshape(value.shape) if data else torch.empty(value.shape, dtype=dtype)


def file_of(header: Any, data: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def entry(begin: int, end: int, shape: list[Any] | None = None, dtype: str = "U8") -> dict[str, Any]:
    return {"dtype": dtype, "shape": [end - begin] if shape is None else shape, "data_offsets": [begin, end]}


def test_the_package_reads_what_we_write(tmp_path: Path) -> None:
    tensors = made()
    ours.save_file(tensors, tmp_path / "a.safetensors", {"made by": "us", "ключ": "Wert"})
    found = safetensors.torch.load_file(tmp_path / "a.safetensors")
    assert found.keys() == tensors.keys()
    for name, value in tensors.items():
        assert found[name].dtype == getattr(torch, value.dtype.name)
        assert torch.equal(found[name], twin(value)), name
    with safetensors.safe_open(tmp_path / "a.safetensors", "pt") as file:
        assert file.metadata() == {"made by": "us", "ключ": "Wert"}


def test_we_read_what_the_package_writes(tmp_path: Path) -> None:
    tensors = made()
    safetensors.torch.save_file({name: twin(value) for name, value in tensors.items()}, tmp_path / "a", {"x": "y"})
    found = ours.load_file(tmp_path / "a", "cpu")
    assert found.keys() == tensors.keys()
    for name, value in tensors.items():
        assert found[name].dtype is value.dtype
        assert found[name].shape == value.shape
        assert found[name].tobytes() == value.tobytes()
    assert ours.parse((tmp_path / "a").read_bytes())[0].metadata == {"x": "y"}


def test_bytes_and_files_are_the_same(tmp_path: Path) -> None:
    tensors = made()
    ours.save_file(tensors, tmp_path / "a")
    assert ours.save(tensors) == (tmp_path / "a").read_bytes()
    found = ours.load(ours.save(tensors), "cpu")
    assert list(found) == list(tensors)
    assert all(found[name].tobytes() == value.tobytes() for name, value in tensors.items())


def test_every_tensor_lies_at_a_multiple_of_its_item_size() -> None:
    header, slices = ours.parse(ours.save(made()))
    assert header.size % 8 == 0
    for name, place in header.entries.items():
        assert place.begin % ours.ITEM_SIZES[place.dtype] == 0
        assert len(slices[name]) == place.end - place.begin


def test_parsing_copies_nothing() -> None:
    data = bytearray(file_of({"a": entry(0, 4)}, b"abcd"))
    slices = ours.parse(data)[1]
    data[-1:] = b"z"
    assert bytes(slices["a"]) == b"abcz"


def test_views_are_written_as_they_read(tmp_path: Path) -> None:
    base = create.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], device="cpu")
    ours.save_file({"t": base.permute(1, 0)}, tmp_path / "a")
    assert safetensors.torch.load_file(tmp_path / "a")["t"].tolist() == [[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]


def test_a_file_without_tensors() -> None:
    assert ours.load(ours.save({})) == {}
    assert ours.load(safetensors.torch.save({})) == {}


def test_unsigned_words_are_read_where_a_device_has_them(device: str) -> None:
    data = safetensors.torch.save({"a": torch.tensor([0, 1, 65535], dtype=torch.uint16)})
    found = ours.load(data, device)["a"]
    assert found.dtype is (dtypes.uint16 if device == "cpu" else dtypes.int32)
    assert found.tolist() == [0, 1, 65535]


DAMAGED = {
    "empty": b"",
    "shorter than a length": b"\x02\0\0",
    "header longer than the file": (100).to_bytes(8, "little") + b"{}",
    "header of exabytes": (2**63).to_bytes(8, "little") + b"{}",
    "header above the bound": (100_000_001).to_bytes(8, "little") + b"{}",
    "no JSON": file_of(b"{hello}"),
    "no object": file_of([1, 2]),
    "leading space": file_of(b' {"a":1}'),
    "no UTF-8": file_of(b'{"\xff\xfe": 1}'),
    "nested without end": file_of(b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
    "a number instead of an entry": file_of({"a": 3}),
    "no dtype": file_of({"a": {"shape": [1], "data_offsets": [0, 1]}}, b"x"),
    "no shape": file_of({"a": {"dtype": "U8", "data_offsets": [0, 1]}}, b"x"),
    "no place": file_of({"a": {"dtype": "U8", "shape": [1]}}, b"x"),
    "unknown dtype": file_of({"a": entry(0, 1, dtype="U7")}, b"x"),
    "dtype that is a list": file_of({"a": {**entry(0, 1), "dtype": ["U8"]}}, b"x"),
    "negative size": file_of({"a": entry(0, 1, [-1])}, b"x"),
    "size that is a float": file_of({"a": entry(0, 1, [1.0])}, b"x"),
    "size that is a bool": file_of({"a": entry(0, 1, [True])}, b"x"),
    "shape that is no list": file_of({"a": {**entry(0, 1), "shape": 1}}, b"x"),
    "size beyond 64 bits": file_of({"a": entry(0, 1, [2**64 + 1])}, b"x"),
    "sizes whose product wraps to 1": file_of({"a": entry(0, 1, [2**32, 2**32 + 1])}, b"x"),
    "one offset": file_of({"a": {**entry(0, 1), "data_offsets": [0]}}, b"x"),
    "offsets backwards": file_of({"a": {**entry(0, 1), "data_offsets": [1, 0]}}, b"x"),
    "negative offset": file_of({"a": {**entry(0, 1), "data_offsets": [-1, 0]}}, b"x"),
    "fewer bytes than the shape": file_of({"a": entry(0, 1, [2])}, b"x"),
    "more bytes than the shape": file_of({"a": entry(0, 2, [1])}, b"xy"),
    "beyond the end": file_of({"a": entry(0, 2)}, b"x"),
    "bytes left over": file_of({"a": entry(0, 1)}, b"xy"),
    "a gap at the start": file_of({"a": entry(1, 2)}, b"xy"),
    "a gap": file_of({"a": entry(0, 1), "b": entry(2, 3)}, b"xyz"),
    "an overlap": file_of({"a": entry(0, 2), "b": entry(1, 3)}, b"xyz"),
    "the same place twice": file_of({"a": entry(0, 2), "b": entry(0, 2)}, b"xy"),
    "a name twice": file_of(b'{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"a":{"dtype":"U8"}}'),
    "metadata of numbers": file_of({"__metadata__": {"step": 3}}),
    "metadata that is a list": file_of({"__metadata__": ["a"]}),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damage_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(DAMAGED[name])
    with pytest.raises(safetensors.SafetensorError):
        safetensors.torch.load(DAMAGED[name])
    with pytest.raises(ours.SafetensorError):
        ours.load(DAMAGED[name])
    with pytest.raises(ours.SafetensorError, match=re.escape(str(tmp_path))):
        ours.load_file(tmp_path / "a")


STRANGE = {  # The package reads some of these.
    "65 dimensions": file_of({"a": entry(0, 1, [1] * 65)}, b"x"),
    "10,000 sizes of 62 bits": file_of({"a": entry(0, 1, [2**62] * 10_000)}, b"x"),
    "sizes that cannot be counted beside a 0": file_of({"a": entry(0, 0, [0, 2**52, 2**52])}),
    "a size of 4 MB of digits": file_of(
        b'{"a":{"dtype":"U8","data_offsets":[0,1],"shape":[' + b"9" * 2**22 + b"]}}", b"x"
    ),
    "offsets of 62 bits": file_of({"a": entry(2**62, 2**62 + 1)}, b"x"),
    "NaN": file_of(b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"b":NaN}}', b"x"),
    "half of a letter": file_of(b'{"\\ud800":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}', b"x"),
    "a name of a megabyte": file_of({"a" * 2**20: entry(0, 2)}, b"x"),
}


@pytest.mark.parametrize("name", STRANGE)
def test_strange_headers_are_refused_in_few_words(name: str) -> None:
    with pytest.raises(ours.SafetensorError) as raised:
        ours.load(STRANGE[name], "cpu")
    assert len(str(raised.value)) < 1000


def test_a_bool_is_0_or_1() -> None:
    with pytest.raises(ours.SafetensorError, match="BOOL"):
        ours.load(file_of({"a": entry(0, 1, dtype="BOOL")}, b"\2"))


def test_every_truncation_is_refused() -> None:
    whole = ours.save({"a": create.tensor([1.0, 2.0], device="cpu"), "b": create.tensor([3], device="cpu")})
    for n in range(len(whole)):
        with pytest.raises(ours.SafetensorError):
            ours.parse(whole[:n])


@pytest.mark.parametrize("seed", range(40))
def test_random_damage_is_refused_or_parsed(seed: int) -> None:
    """A changed byte gives an error of ours or a file that is still right; nothing else is raised."""
    draw = random.Random(seed)
    data = bytearray(ours.save(made()))
    size = ours.parse(data)[0].size
    for _ in range(10):
        damaged = bytearray(data)
        for _ in range(draw.randint(1, 3)):
            damaged[draw.randrange(size)] = draw.randrange(256)
        with contextlib.suppress(ours.SafetensorError):
            ours.parse(damaged)


def test_what_is_no_tensor_is_refused(tmp_path: Path) -> None:
    value: Any = create.tensor([1.0], device="cpu")
    with pytest.raises(TypeError, match="'a' is a list"):
        ours.save({"a": [1.0]})  # type: ignore[dict-item]
    with pytest.raises(TypeError, match="3"):
        ours.save({3: value})  # type: ignore[dict-item]
    with pytest.raises(TypeError, match="metadata"):
        ours.save({"a": value}, {"step": 3})  # type: ignore[dict-item]
    with pytest.raises(TypeError, match="__metadata__"):
        ours.save({"__metadata__": value})


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "a"
    ours.save_file({"a": create.tensor([1.0], device="cpu")}, target)
    before = target.read_bytes()

    def fail(file: int) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        ours.save_file({"a": create.tensor([2.0], device="cpu")}, target)
    assert target.read_bytes() == before
    assert os.listdir(tmp_path) == ["a"]


def test_a_missing_file_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        ours.load_file(tmp_path / "nothing")
    with pytest.raises(FileNotFoundError):
        ours.save_file({}, tmp_path / "nowhere" / "a")


PACKAGE = """
import pywebgpu.as_torch
import torch
from safetensors.torch import load, load_file, save, save_file, save_model, load_model

torch.set_default_device("cpu")
tensors = {str(dtype): torch.arange(6).reshape(2, 3).to(dtype) for dtype in (
    torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int64, torch.uint8, torch.bool, torch.float8_e5m2
)}
tensors["empty"] = torch.zeros(0, 3)
tensors["view"] = torch.arange(12.0)[4:10].clone()
save_file(tensors, "file.safetensors", {"made": "here"})
for found in (load_file("file.safetensors"), load(save(tensors))):
    for name, tensor in tensors.items():
        assert found[name].dtype is tensor.dtype, name
        assert found[name].float().tolist() == tensor.float().tolist(), name
model, other = (torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2)) for _ in range(2))
model[1].tied, other[1].tied = model[0], other[0]
save_model(model, "model.safetensors")
assert load_model(other, "model.safetensors") == (set(), [])
assert other[0].weight.tolist() == model[0].weight.tolist()
"""


def test_the_package_saves_and_loads_this_librarys_tensors(tmp_path: Path) -> None:
    """It reads memory by its address, finds tied weights by their storages, and maps files as storages."""
    done = subprocess.run([sys.executable, "-c", PACKAGE], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
