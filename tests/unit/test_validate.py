"""Broken exports and programs are refused, each by its rule, before anything is made. Node reads the same table."""

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest

import pywebgpu as torch
from pywebgpu import devices
from pywebgpu.compiler import serialization, wire
from pywebgpu.devices.null import NullDevice
from pywebgpu.errors import CompileError
from pywebgpu.exporter import player
from pywebgpu.io import safetensors
from pywebgpu.ir.graph import Spec
from pywebgpu.kernels.kernel import Limits
from pywebgpu.support.documents import Malformed

ROOT = Path(__file__).parents[2]
TABLE = json.loads((ROOT / "tests" / "cases" / "broken_exports.json").read_text(encoding="utf-8"))
NULL: Any = devices.open_device("null")
WEIGHTS = {name: torch.tensor(data, device="cpu").reshape(shape) for name, (_, shape, data) in TABLE["weights"].items()}


def changed(change: dict[str, Any]) -> bytes:
    """The program of the table with another value at a place."""
    data = copy.deepcopy(TABLE["program"])
    *path, last = change["at"]
    target = data
    for key in path:
        target = target[key]
    target[last] = change["value"]
    return json.dumps(data).encode()


def title(change: dict[str, Any]) -> str:
    return f"{'.'.join(map(str, change['at']))}={json.dumps(change['value'])[:40]}"


def test_the_whole_one_is_played() -> None:
    found = player.read(json.dumps(TABLE["program"]).encode(), WEIGHTS, NULL)
    assert found.params.names == ["a", "b"]


@pytest.mark.parametrize("change", TABLE["whole"], ids=title)
def test_what_keeps_to_the_rules_is_played(change: dict[str, Any]) -> None:
    player.read(changed(change), WEIGHTS, NULL)


@pytest.mark.parametrize("change", TABLE["broken"], ids=title)
def test_what_breaks_a_rule_is_refused_and_nothing_is_made(
    change: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def made(*arguments: Any) -> None:
        raise AssertionError("something was made")

    monkeypatch.setattr(NullDevice, "upload", made)
    monkeypatch.setattr(NullDevice, "load", made)
    with pytest.raises((Malformed, CompileError), match=re.escape(change["says"])):
        player.read(changed(change), WEIGHTS, NULL)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "3", "null", '"text"', "[" * 100_000, '{"version": NaN}', '{"a": 1, "a": 2}', "1" * 5000, "\xff"],
)
def test_what_is_no_document_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "program.json").write_bytes(text.encode("latin1"))
    safetensors.save_file(WEIGHTS, tmp_path / "weights.safetensors")
    with pytest.raises((player.PlayError, CompileError), match=r"program\.json: "):
        torch.load_program(tmp_path, "null")
    with pytest.raises(CompileError, match=r"program\.json is not a program: "):
        serialization.load(tmp_path / "program.json")


def test_damaged_weights_are_refused_by_the_same_error(tmp_path: Path) -> None:
    (tmp_path / "program.json").write_text(json.dumps(TABLE["program"]))
    (tmp_path / "weights.safetensors").write_bytes(b"")
    with pytest.raises(player.PlayError, match=r"weights\.safetensors: the file has 0 bytes"):
        torch.load_program(tmp_path, "null")


def test_weights_become_what_the_state_holds() -> None:
    halves = {name: weight.half() for name, weight in WEIGHTS.items()}
    spec, parts = Spec((4,), torch.float32), [["a", 0], ["b", 2]]
    assert player._bytes(spec, parts, halves) == player._bytes(spec, parts, WEIGHTS)


@pytest.mark.parametrize(
    ("limits", "says"),
    [
        (Limits(bindings=2), "training: it binds 3 buffers; this device allows 2"),
        (Limits(buffer_bytes=256), "it has a buffer of 512 bytes; this device allows 256"),
        (Limits(binding_bytes=128), "it binds 256 bytes at once; this device allows 128"),
    ],
)
def test_what_is_too_large_for_the_device_is_refused(limits: Limits, says: str) -> None:
    with pytest.raises(Malformed, match=says):
        player.read(json.dumps(TABLE["program"]).encode(), WEIGHTS, NullDevice(limits))


def sealed(tmp_path: Path) -> Path:
    serialization.save_sealed(
        serialization.from_data(TABLE["program"]["programs"]["training"]["program"]), tmp_path / "one.json"
    )
    return tmp_path / "one.json"


def test_a_sealed_program_is_read_back(tmp_path: Path) -> None:
    assert (
        wire.as_data(serialization.load_sealed(sealed(tmp_path))) == TABLE["program"]["programs"]["training"]["program"]
    )


def test_every_changed_byte_breaks_a_seal(tmp_path: Path) -> None:
    file = sealed(tmp_path)
    whole = file.read_bytes()
    for at in range(0, len(whole), 7):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
        with pytest.raises(CompileError):
            serialization.load_sealed(file)


def test_a_sealed_program_is_not_read_under_another_name(tmp_path: Path) -> None:
    file = sealed(tmp_path)
    file.rename(tmp_path / "two.json")
    with pytest.raises(CompileError, match="not what was written there"):
        serialization.load_sealed(tmp_path / "two.json")
