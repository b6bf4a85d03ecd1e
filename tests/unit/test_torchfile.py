"""Files that PyTorch wrote: read with every dtype and every layout; code and damage are refused."""

import argparse
import collections
import contextlib
import copy
import fractions
import io
import math
import pickle
import random
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import pywebgpu
from pywebgpu import dtypes
from pywebgpu.io import safetensors, state, torchfile
from pywebgpu.tensor import tensor
from pywebgpu.tensor.size import Size

FORMATS = {"archive": True, "stream": False}


def written(value: Any, new: bool = True) -> io.BytesIO:
    file = io.BytesIO()
    torch.save(value, file, _use_new_zipfile_serialization=new)
    file.seek(0)
    return file


def assert_same(found: Any, expected: Any) -> None:
    if isinstance(expected, torch.Tensor):
        assert isinstance(found, tensor.Tensor)
        assert found.dtype.name == str(expected.dtype).removeprefix("torch.")
        assert found.requires_grad == expected.requires_grad
        assert tuple(found.shape) == tuple(expected.shape)
        assert found.detach().tolist() == expected.detach().tolist()
    elif isinstance(expected, dict):
        assert type(found) is (dict if isinstance(expected, collections.defaultdict) else type(expected))
        assert list(found) == list(expected)
        for key in expected:
            assert_same(found[key], expected[key])
    elif isinstance(expected, list | tuple):
        assert type(found) is (Size if isinstance(expected, torch.Size) else type(expected))
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)
    else:
        assert type(found) is type(expected)
        assert found == expected


def trained() -> torch.nn.Module:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Conv2d(2, 3, 3), torch.nn.BatchNorm2d(3), torch.nn.Flatten())
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.randn(2, 2, 5, 5)).sum().backward()
    optimizer.step()
    model.optimizer_state = optimizer.state_dict()
    return model


base = torch.arange(60.0).reshape(3, 4, 5)
VALUES: dict[str, Callable[[], Any]] = {
    "state dict": lambda: trained().state_dict(),
    "optimizer": lambda: trained().optimizer_state,
    "checkpoint": lambda: {"model": trained().state_dict(), "epoch": 3, "loss": 0.25, "name": "café", "best": None},
    "containers": lambda: [1, (2, [3.5, {"a": (True, None)}]), {4, 5}, b"\0\xffbytes", -(2**80), math.inf],
    "more containers": lambda: collections.OrderedDict(
        a=collections.Counter("abca"), b=collections.defaultdict(list, x=[1]), c=torch.Size([2, 3]), d=frozenset([1])
    ),
    "parameter": lambda: torch.nn.Parameter(torch.arange(3.0)),
    "wants a gradient": lambda: [torch.ones(2, requires_grad=True)],
    "scalars": lambda: [torch.tensor(2.5), torch.tensor(7), torch.tensor(True)],
    "empty": lambda: [torch.zeros(0), torch.zeros(2, 0, 3)],
    "transposed": lambda: base.permute(2, 0, 1),
    "slice": lambda: base[1:, 1],
    "steps": lambda: base[:, ::2, 1::3],
    "column": lambda: base[:, 2, 3],
    "expanded": lambda: torch.arange(3.0)[:, None].expand(2, 3, 4),
    "expanded scalar": lambda: torch.tensor(2.0).expand(3, 2),
    "channels last": lambda: torch.arange(48.0).reshape(2, 3, 2, 4).contiguous(memory_format=torch.channels_last),
    "diagonal": lambda: torch.arange(9.0).reshape(3, 3).diagonal(),
}


@pytest.mark.parametrize("new", FORMATS.values(), ids=FORMATS)
@pytest.mark.parametrize("name", VALUES)
def test_what_torch_writes_is_read(name: str, new: bool) -> None:
    expected = VALUES[name]()
    assert_same(torchfile.load(written(expected, new), "cpu"), expected)


@pytest.mark.filterwarnings("ignore:ComplexHalf support:UserWarning")
@pytest.mark.parametrize("new", FORMATS.values(), ids=FORMATS)
@pytest.mark.parametrize("dtype", dtypes.ALL, ids=lambda dtype: dtype.name)
def test_every_dtype_is_read(dtype: dtypes.DType, new: bool) -> None:
    if dtype in (dtypes.uint32, dtypes.uint64) and not new:
        pytest.skip("torch writes unsigned words into archives only")
    expected = torch.tensor([0, 1, 1, 0]).to(getattr(torch, dtype.name))
    assert_same(torchfile.load(written({"a": expected, "d": expected.dtype}), "cpu")["a"], expected)
    assert torchfile.load(written(expected.dtype, new)) is dtype


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_every_pickle_protocol_is_read(protocol: int) -> None:
    file = io.BytesIO()
    expected = {"a": torch.arange(4.0), "b": [1, "x" * 300, b"y", (1, 2, 3, 4)]}
    torch.save(expected, file, pickle_protocol=protocol)
    file.seek(0)
    assert_same(torchfile.load(file, "cpu"), expected)


def test_tied_tensors_stay_tied() -> None:
    weight = torch.ones(2)
    found = torchfile.load(written({"a": weight, "b": weight}), "cpu")
    found["a"].zero_()
    assert found["b"].tolist() == [0.0, 0.0]


def test_ranges_of_storages_are_read_as_such() -> None:
    """As files from before 2017 have them, of t.storage()[:1] and t.storage()[1:]."""
    head = b"".join(pickle.dumps(part, 2) for part in (torchfile.LEGACY_MAGIC, 1001, {"little_endian": True}))
    text = b"X\x01\x00\x00\x00"
    one = b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\n" + text + b"aX\x03\x00\x00\x00cpuK\x02" + text
    one += b"%bK%cK\x01\x87tQ"
    tree = b"\x80\x02" + one % (b"b", b"\0") + one % (b"c", b"\1") + b"\x86."
    data = (2).to_bytes(8, "little") + np.array([3, 4], "float32").tobytes()
    first, second = torchfile.load(io.BytesIO(head + tree + pickle.dumps(["a"], 2) + data), "cpu")
    assert [*first, *second] == [3, 4]
    assert first.data_ptr() + 4 == second.data_ptr()
    with pytest.raises(torchfile.TorchFileError, match="a part of a storage"):
        torchfile.load(io.BytesIO(head + tree.replace(b"cK\1K\1", b"cK\1K\2") + pickle.dumps(["a"], 2) + data), "cpu")


@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.parametrize("kind", ["Tensor", "Parameter"])
@pytest.mark.parametrize(("writer", "reader"), [(pywebgpu, torch), (torch, pywebgpu), (pywebgpu, pywebgpu)])
def test_what_a_program_keeps_at_a_tensor_stays_there(writer: Any, reader: Any, kind: str, weights_only: bool) -> None:
    value = writer.ones(2, device="cpu")
    value = writer.nn.Parameter(value) if kind == "Parameter" else value
    value.labels, value.part = ["a", {"b": 1.5}], writer.zeros(3, device="cpu")
    file = io.BytesIO()
    writer.save([value, value], file)
    file.seek(0)
    first, second = reader.load(file, map_location="cpu", weights_only=weights_only)
    for read in (first, second):
        assert read.labels == value.labels
        assert read.part.tolist() == [0, 0, 0]
        assert type(read).__name__ == kind


class WithSlot(tensor.Tensor):
    __slots__ = ("part",)


def test_slots_of_a_program_s_class_are_copied_and_saved() -> None:
    value = pywebgpu.ones(2, device="cpu").as_subclass(WithSlot)
    value.part, value.name = pywebgpu.zeros(3, device="cpu"), ["a"]
    file = io.BytesIO()
    pywebgpu.save(value, file)
    file.seek(0)
    deep = copy.deepcopy(value)
    for other in (pywebgpu.load(file, weights_only=False), copy.copy(value), deep):
        assert type(other) is WithSlot
        assert (other.part.tolist(), other.name, other.tolist()) == ([0, 0, 0], ["a"], [1, 1])
    assert deep.name is not value.name


@pytest.mark.parametrize(("writer", "reader"), [(pywebgpu, torch), (torch, pywebgpu), (pywebgpu, pywebgpu)])
def test_archives_without_check_sums_are_read(writer: Any, reader: Any) -> None:
    file = io.BytesIO()
    writer.serialization.set_crc32_options(False)
    try:
        writer.save({"a": writer.ones(3, device="cpu")}, file)
    finally:
        writer.serialization.set_crc32_options(True)
    assert {member.CRC for member in zipfile.ZipFile(file).infolist()} == {0}
    file.seek(0)
    assert reader.load(file)["a"].tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("name", "argument", "answer"),
    [
        ("TORCH_FORCE_WEIGHTS_ONLY_LOAD", False, torchfile.TorchFileError),
        ("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", True, torchfile.TorchFileError),
        ("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", None, UserWarning),
    ],
)
def test_the_environment_says_what_is_safe(
    name: str, argument: bool | None, answer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "1")
    file = io.BytesIO()
    pywebgpu.save(fractions.Fraction(1, 2), file)
    file.seek(0)
    expects = pytest.warns(answer, match="forcing") if argument is None else pytest.raises(answer, match="Weights only")
    with expects:
        assert pywebgpu.load(file, weights_only=argument) == 0.5


def test_load_tells_the_formats_apart(tmp_path: Path) -> None:
    expected = {"w": torch.tensor([1.0, 2.0])}
    for name, new in FORMATS.items():
        torch.save(expected, tmp_path / name, _use_new_zipfile_serialization=new)
        assert_same(state.load(tmp_path / name, map_location="cpu"), expected)
        with open(tmp_path / name, "rb") as file:
            assert_same(state.load(file, lambda storage, location: storage), expected)
    state.save(state.load(tmp_path / "archive", "cpu"), tmp_path / "ours")
    assert_same(state.load(tmp_path / "ours", {"cpu": "cpu"}), expected)


class Strange:
    pass


CODE: dict[str, Callable[[], Any]] = {
    "an object of a program": lambda: {"a": Strange()},
    "a model": lambda: torch.nn.Linear(1, 1),
    "a namespace": lambda: {"args": argparse.Namespace(lr=0.1)},
    "a path": lambda: Path("x"),
    "a fraction": lambda: fractions.Fraction(1, 2),
    "a function": lambda: math.sin,
    "a class": lambda: collections.OrderedDict,
    "a tensor of 4-bit floats": lambda: torch.zeros(2, dtype=torch.uint8).view(torch.float4_e2m1fn_x2),
}


@pytest.mark.parametrize("new", FORMATS.values(), ids=FORMATS)
@pytest.mark.parametrize("name", CODE)
def test_all_else_is_refused(name: str, new: bool) -> None:
    with pytest.raises(torchfile.TorchFileError):
        torchfile.load(written(CODE[name](), new))


LAYOUTS = {"sparse_coo": None, "sparse_csr": None, "sparse_csc": None, "sparse_bsr": (1, 2), "sparse_bsc": (2, 1)}


@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.filterwarnings("ignore:Sparse")
def test_sparse_tensors_go_both_ways(layout: str, weights_only: bool) -> None:
    dense = [[0.0, 1.0], [2.0, 0.0], [0.0, 0.0], [0.0, 3.0]]
    for writer, reader in ((torch, pywebgpu), (pywebgpu, torch)):
        x = writer.tensor(dense, device="cpu").to_sparse(layout=getattr(writer, layout), blocksize=LAYOUTS[layout])
        file = io.BytesIO()
        writer.save([x], file)
        file.seek(0)
        (again,) = reader.load(file, "cpu", weights_only=weights_only)
        assert (str(again.layout), again.to_dense().tolist()) == (str(x.layout), dense)


@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.filterwarnings("ignore:TypedStorage")
def test_storages_are_the_memory_of_the_tensors_beside_them(weights_only: bool) -> None:
    for writer in (torch, pywebgpu):
        x, file = writer.arange(4.0, device="cpu"), io.BytesIO()
        writer.save([x[1:3], x.storage(), 1j], file)
        file.seek(0)
        part, storage, number = pywebgpu.load(file, "cpu", weights_only=weights_only)
        part.fill_(7)
        assert (storage.tolist(), number) == ([0.0, 7.0, 7.0, 3.0], 1j)


def test_archives_of_machines_with_the_big_end_first_are_read() -> None:
    plain = written({"w": torch.tensor([1.0, -2.5]), "c": torch.tensor([1 + 2j]), "n": torch.tensor([3, 4])}, True)
    file = io.BytesIO()
    with zipfile.ZipFile(plain) as found, zipfile.ZipFile(file, "w") as out:
        for name in found.namelist():
            data = found.read(name)
            if "/data/" in name:
                data = np.frombuffer(data, "<u4" if len(data) == 8 else "<u8").byteswap().tobytes()
            out.writestr(name, b"big" if name.endswith("byteorder") else data)
    file.seek(0)
    values = torchfile.load(file, "cpu")
    assert [values[name].tolist() for name in "wcn"] == [[1.0, -2.5], [1 + 2j], [3, 4]]


def archive(pickled: bytes, compression: int = zipfile.ZIP_STORED, **files: bytes) -> io.BytesIO:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as out:
        out.writestr("a/data.pkl", pickled)
        for name, content in files.items():
            out.writestr(f"a/{name}", content)
    file.seek(0)
    return file


REBUILD = b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n"
STORAGE = b"(X\x07\0\0\0storagectorch\nFloatStorage\nX\x01\0\0\x000X\x03\0\0\0cpuK\x02tQ"
# Each of these holds the one before it twice: 2 ** 40 tuples for whoever does not see that they are the same.
SHARED = b"(t" + b"q\0h\0\x86" * 40
HUGE = b"\x8a\x08" + (2**52).to_bytes(8, "little")  # a number
TRAPS = {
    "os.system": b"cos\nsystem\n(Vecho trap\ntR.",
    "eval": b"c__builtin__\neval\n(V1/0\ntR.",
    "getattr": b"cbuiltins\ngetattr\n(cbuiltins\nint\nVreal\ntR.",
    "by name on the stack": b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x04echo\x85R.",
    "an instance": b"(ios\nsystem\n.",
    "a new object": b"\x80\x02ccollections\nOrderedDict\n)\x81.",
    "an extension": b"\x80\x02\x82\x01.",
    "state for a name": b"\x80\x02ctorch\nfloat32\n}X\x04\0\0\0nameX\x01\0\0\0xsb.",
    "slots for a name": b"\x80\x02ctorch\nfloat32\nN}X\x05\0\0\0valueNs\x86b.",
    "a call of a dtype": b"\x80\x02ctorch\nfloat32\n)R.",
    "a memo slot that nothing filled": b"\x80\x02h\x07.",
    "a key that is a nest of shared parts": b"\x80\x02}" + SHARED + b"Ns.",
    "an item of a set that is a nest of shared parts": b"\x80\x04\x8f(" + SHARED + b"\x90.",
    "a size that is a nest of shared parts": REBUILD + b"(" + STORAGE + b"K\0" + SHARED + b"K\x01\x85\x89NtR.",
    "a storage that is a nest of shared parts": SHARED + b"Q.",
    "a device that is a nest of shared parts": b"\x80\x02ctorch\ndevice\n" + SHARED + b"\x85R.",
    "a call that calls itself": b"\x80\x02ctorch._tensor\n_rebuild_from_type_v2\nq\0(h\0N]q\1N(h\0Nh\1Nt0tR.",
    "a key of a million digits": b"\x80\x02}\x8b\0\0\x0f\0" + b"\1" * 0xF0000 + b"Ns.",
    "a list that holds itself": b"\x80\x02]q\0h\0a.",
    "a nest from the outside in": b"\x80\x02]q\0" + b"h\0]q\0a" * 1000 + b".",
    "tuples without end": b"\x80\x02)" + b"\x85" * 100_000 + b".",
    "a list that is a dict": b"\x80\x02]K\1K\2s.",
    "a tensor of 65 dimensions": REBUILD + b"(" + STORAGE + b"K\0(" + b"K\1" * 65 + b"t(" + b"K\1" * 65 + b"t\x89NtR.",
    "more elements than can be counted": REBUILD + b"(" + STORAGE + b"K\0(" + HUGE * 2 + b"t(K\0K\0t\x89NtR.",
    "whole numbers with a gradient": b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n("
    + STORAGE.replace(b"FloatS", b"IntS")
    + b"K\0K\x02\x85K\x01\x85\x88NtR.",
    "a storage of a negative size": STORAGE.replace(b"K\x02tQ", b"J\xff\xff\xff\xfftQ") + b".",
    "one storage of two sizes": b"\x80\x02" + STORAGE + STORAGE.replace(b"K\x02tQ", b"K\x01tQ") + b"\x86.",
    "a tensor of nothing": REBUILD + b"(NK\0K\x02\x85K\x01\x85\x89NtR.",
    "a tensor beyond its storage": REBUILD + b"(" + STORAGE + b"K\x01K\x02\x85K\x01\x85\x89NtR.",
    "a tensor of negative size": REBUILD + b"(" + STORAGE + b"K\0J\xff\xff\xff\xff\x85K\x01\x85\x89NtR.",
    "a tensor with a text as size": REBUILD + b"(" + STORAGE + b"K\0X\x01\0\0\0a\x85K\x01\x85\x89NtR.",
    "a tensor that repeats itself": REBUILD + b"(" + STORAGE + b"K\0K\x02K\x02\x86K\x01K\0\x86\x89NtR.",
    "nests without end": b"(" * 100_000 + b"l" * 100_000 + b".",
    "no end": b"\x80\x02]",
    "empty": b"",
    "an unknown opcode": b"\xff.",
}


@pytest.mark.parametrize("name", TRAPS)
def test_traps_are_refused(name: str) -> None:
    if name == "a tensor that repeats itself":  # An expanded tensor is one, and is fine.
        assert torchfile.load(archive(TRAPS[name], **{"data/0": b"\0" * 8}), "cpu").tolist() == [[0.0, 0.0]] * 2
        return
    with pytest.raises(torchfile.TorchFileError):
        torchfile.load(archive(TRAPS[name], **{"data/0": b"\0" * 8}), "cpu")


def test_nothing_of_a_trap_ran(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(torchfile.TorchFileError, match=r"os\.system"):
        torchfile.load(archive(TRAPS["os.system"]))
    assert "trap" not in capfd.readouterr().out


TENSOR = REBUILD + b"(" + STORAGE + b"K\0K\x02\x85K\x01\x85\x89NtR."
ARCHIVES: dict[str, Callable[[], io.BytesIO]] = {
    "no storage": lambda: archive(TENSOR),
    "a storage of another size": lambda: archive(TENSOR, **{"data/0": b"\0" * 4}),
    "a packed storage": lambda: archive(TENSOR, zipfile.ZIP_DEFLATED, **{"data/0": b"\0" * 8}),
    "a program": lambda: archive(TENSOR, **{"data/0": b"\0" * 8, "constants.pkl": b""}),
    "no pickle": lambda: io.BytesIO(b"PK\5\6" + b"\0" * 18),
    "half an archive": lambda: io.BytesIO(archive(TENSOR, **{"data/0": b"\0" * 8}).getvalue()[:60]),
    "a pickle of its own": lambda: io.BytesIO(pickle.dumps([1, 2])),
    "text": lambda: io.BytesIO(b"Please log in to download"),
    "half a stream": lambda: io.BytesIO(written({"a": torch.ones(9)}, new=False).getvalue()[:-5]),
}


@pytest.mark.parametrize("name", ARCHIVES)
def test_damaged_files_are_refused(name: str) -> None:
    with pytest.raises((torchfile.TorchFileError, safetensors.SafetensorError)):
        state.load(ARCHIVES[name](), "cpu")


@pytest.mark.parametrize("kind", [b"l", b"t"], ids=["lists", "tuples"])
def test_what_is_shared_is_built_once(kind: bytes) -> None:
    """22 containers, each of which holds the one before it twice."""
    pickled = b"\x80\x02(" + kind + b"".join(b"q\0(h\0h\0" + kind for _ in range(22)) + b"."
    found = torchfile.load(archive(pickled))
    for _ in range(22):
        assert found[0] is found[1]
        found = found[0]
    assert len(found) == 0


def test_containers_are_a_hundred_deep_at_most() -> None:
    def nest(depth: int) -> io.BytesIO:
        return archive(b"\x80\x02" + b"]" * depth + b"a" * (depth - 1) + b".")

    found = torchfile.load(nest(100))
    for _ in range(99):
        (found,) = found
    with pytest.raises(torchfile.TorchFileError, match="more than 100 deep"):
        torchfile.load(nest(101))


def test_a_memo_slot_far_out_takes_no_memory() -> None:
    assert torchfile.load(archive(b"\x80\x02]r\xff\xff\xff\x7f.")) == []


def test_attributes_of_a_state_dict_are_left_out() -> None:
    value = trained().state_dict()
    assert hasattr(value, "_metadata")
    assert not hasattr(torchfile.load(written(value), "cpu"), "_metadata")


def test_views_of_one_storage_share_its_memory() -> None:
    """Fifty views of nearly the whole storage would be fifty times the file."""
    base = torch.arange(1000.0)
    views = torchfile.load(written([base[at:] for at in range(50)]), "cpu")
    assert len({view._storage for view in views}) == 1
    assert [int(view[0]) for view in views] == list(range(50))


@pytest.mark.parametrize("value", [-1, 0, 2**31, 2**62, 2**64 - 1], ids=str)
@pytest.mark.parametrize("place", ["a count of a stream", "a size in the directory", "both sizes in the directory"])
def test_wrong_sizes_are_refused_without_room_for_them(place: str, value: int, tmp_path: Path) -> None:
    data = bytearray(written({"a": torch.ones(9)}, new=place != "a count of a stream").getvalue())
    if place == "a count of a stream":
        data[-44:-36] = (value % 2**64).to_bytes(8, "little")
    else:
        at = data.rindex(b"archive/data/0") - 46  # Its entry in the central directory.
        for field in (20, 24)[place == "a size in the directory" :]:
            data[at + field : at + field + 4] = (value % 2**32).to_bytes(4, "little")
    (tmp_path / "a").write_bytes(data)
    with pytest.raises(torchfile.TorchFileError):
        state.load(tmp_path / "a", "cpu")


@pytest.mark.parametrize("opcode", [b"T", b"X", b"B", b"\x8b", b"\x8d", b"\x8e"])
def test_lengths_beyond_the_file_are_refused(opcode: bytes, tmp_path: Path) -> None:
    width = 4 if opcode in (b"T", b"X", b"B", b"\x8b") else 8
    (tmp_path / "a").write_bytes(b"\x80\x02" + opcode + (2 ** (8 * width - 2)).to_bytes(width, "little"))
    with pytest.raises(torchfile.TorchFileError, match="ends before"):
        state.load(tmp_path / "a", "cpu")


def test_a_wrong_checksum_is_refused() -> None:
    data = bytearray(archive(TENSOR, **{"data/0": b"12345678"}).getvalue())
    data[data.index(b"12345678")] ^= 1
    with pytest.raises(torchfile.TorchFileError, match="CRC"):
        torchfile.load(io.BytesIO(data), "cpu")


def test_a_whole_archive_is_read() -> None:
    assert torchfile.load(archive(TENSOR, **{"data/0": b"\0\0\x80?" * 2}), "cpu").tolist() == [1.0, 1.0]


@pytest.mark.parametrize("new", FORMATS.values(), ids=FORMATS)
@pytest.mark.parametrize("seed", range(20))
def test_random_damage_raises_nothing_else(seed: int, new: bool) -> None:
    draw = random.Random(seed)
    data = bytearray(written({"a": torch.arange(3.0), "b": [1, "two"]}, new).getvalue())
    for _ in range(20):
        damaged = bytearray(data)
        for _ in range(draw.randint(1, 4)):
            damaged[draw.randrange(len(data))] = draw.randrange(256)
        with contextlib.suppress(torchfile.TorchFileError, safetensors.SafetensorError):
            state.load(io.BytesIO(damaged), "cpu")


@pytest.mark.parametrize("encoding", ["utf-8", "latin1", "bytes"])
@pytest.mark.filterwarnings("ignore:pickle_load_args")
def test_strings_of_python_2_are_decoded_as_asked(encoding: str) -> None:
    text = "żąó".encode()
    head = (torchfile.LEGACY_MAGIC, torchfile.LEGACY_PROTOCOL, {"little_endian": True})
    tree = b"\x80\x02U" + bytes([len(text)]) + text + b"."  # SHORT_BINSTRING
    file = b"".join([*(pickle.dumps(part, 2) for part in head), tree, pickle.dumps([], 2)])
    theirs = torch.load(io.BytesIO(file), encoding=encoding)
    assert pywebgpu.load(io.BytesIO(file), encoding=encoding) == theirs


def test_storages_that_a_program_keeps_outlive_the_file(tmp_path: Path) -> None:
    path = tmp_path / "kept.pt"
    pywebgpu.save({"storage": pywebgpu.arange(3.0).storage(), "bytes": bytearray(b"ab")}, path)
    loaded = pywebgpu.load(path, weights_only=False)
    assert loaded["storage"].tolist() == [0, 1, 2]
    assert loaded["bytes"] == bytearray(b"ab")
