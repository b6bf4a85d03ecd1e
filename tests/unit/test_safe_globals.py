"""torch.serialization: objects of files that a program named as safe, and nothing else; settings of files."""

import io
from dataclasses import dataclass

import pytest
import torch

import pywebgpu
from pywebgpu import serialization
from pywebgpu.io.pickled import TorchFileError

RAN = []


@dataclass
class Settings:
    count: int
    weight: object


class Other:
    pass


class Calling:
    def __reduce__(self) -> object:
        return RAN.append, (1,)


def written(obj: object, **options: int) -> io.BytesIO:
    file = io.BytesIO()
    torch.save(obj, file, **options)
    file.seek(0)
    return file


@pytest.fixture(autouse=True)
def _on_the_host() -> object:
    with pywebgpu.device("cpu"):
        yield
    serialization.clear_safe_globals()


@pytest.mark.parametrize("protocol", [2, 4])
def test_what_is_named_as_safe_is_made_and_nothing_else(protocol: int) -> None:
    one = Settings(3, torch.arange(3.0))
    file = written({"one": one, "w": torch.nn.Parameter(torch.ones(2))}, pickle_protocol=protocol)
    with pytest.raises(TorchFileError, match="Settings"):
        pywebgpu.load(file)
    file.seek(0)
    with serialization.safe_globals([Settings]):
        assert serialization.get_safe_globals() == [Settings]
        found = pywebgpu.load(file)
        with pytest.raises(TorchFileError, match="Other"):
            pywebgpu.load(written([one, Other()], pickle_protocol=protocol))
        with pytest.raises(TorchFileError, match=r"append|getattr"):
            pywebgpu.load(written([one, Calling()], pickle_protocol=protocol))
    assert RAN == []
    assert (found["one"].count, found["one"].weight.tolist()) == (3, [0.0, 1.0, 2.0])
    assert isinstance(found["w"], pywebgpu.nn.Parameter)
    assert serialization.get_safe_globals() == []
    file.seek(0)
    with pytest.raises(TorchFileError, match="add_safe_globals"):
        pywebgpu.load(file)


def test_a_file_of_tensors_is_read_as_before() -> None:
    serialization.add_safe_globals([Settings])
    assert pywebgpu.load(written({"w": torch.ones(2)}))["w"].tolist() == [1.0, 1.0]
    with pytest.raises(TorchFileError, match="Other"):
        pywebgpu.load(written(Other()))


def test_layers_may_be_named_by_what_they_are_here() -> None:
    whole = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())
    with serialization.safe_globals([pywebgpu.nn.Sequential, pywebgpu.nn.Linear]):
        with pytest.raises(TorchFileError, match="ReLU"):
            pywebgpu.load(written(whole))
        serialization.add_safe_globals([pywebgpu.nn.ReLU])
        read = pywebgpu.load(written(whole))
    assert read(pywebgpu.ones(2)).tolist() == pytest.approx(whole(torch.ones(2)).tolist())


@pytest.mark.parametrize("at", [0, 1, 2])
def test_what_a_file_needs_is_told_as_torch_tells_it(at: int) -> None:
    file = written([Settings(1, Other()), Other(), {"w": torch.ones(2), "t": (1, Settings)}][at])
    expected = sorted(torch.serialization.get_unsafe_globals_in_checkpoint(file))
    file.seek(0)
    assert sorted(serialization.get_unsafe_globals_in_checkpoint(file)) == expected
    with serialization.safe_globals([Settings]), torch.serialization.safe_globals([Settings]):
        file.seek(0)
        expected = sorted(torch.serialization.get_unsafe_globals_in_checkpoint(file))
        file.seek(0)
        assert sorted(serialization.get_unsafe_globals_in_checkpoint(file)) == expected


# name: what is asked of torch.serialization; the answer, or what is raised.
ASKED = {
    "not_a_checkpoint": lambda module: module.get_unsafe_globals_in_checkpoint(io.BytesIO(b"words")),
    "mmap": lambda module: module.get_default_mmap_options(),
    "mmap_set": lambda module: inside(module.set_default_mmap_options(1), module.get_default_mmap_options),
    "mmap_wrong": lambda module: module.set_default_mmap_options(9),
    "crc32": lambda module: (module.set_crc32_options(True), module.get_crc32_options()),
    "endianness": lambda module: (module.set_default_load_endianness(None), module.get_default_load_endianness()),
    "endianness_wrong": lambda module: module.set_default_load_endianness(3),
    "orders": lambda module: [(one.name, one.value) for one in module.LoadEndianness],
    "version": lambda module: module.check_module_version_greater_or_equal(torch, (1, 2)),
    "version_too_old": lambda module: module.check_module_version_greater_or_equal(torch, (99,)),
    "version_of_text": lambda module: module.check_module_version_greater_or_equal(torch, (2, "0")),
    "safe_wrong": lambda module: inside(
        module.safe_globals([(Other,)]), lambda: module.get_unsafe_globals_in_checkpoint(written(Other()))
    ),
    "safe_named": lambda module: inside(module.safe_globals([(Other, "a.B")]), lambda: Other in safe(module)),
    "location": lambda module: module.default_restore_location(torch.ones(1).untyped_storage(), "nowhere") is None,
}


def inside(context: object, ask: object) -> object:
    with context:
        return ask()


def safe(module: object) -> list[object]:
    return [one[0] if isinstance(one, tuple) else one for one in module.get_safe_globals()]


@pytest.mark.parametrize("name", ASKED)
def test_settings_are_torchs(name: str) -> None:
    assert answer(ASKED[name], serialization) == answer(ASKED[name], torch.serialization)


def answer(ask: object, module: object) -> object:
    try:
        return ask(module)
    except Exception as error:
        return type(error).__name__


def test_a_location_is_a_device_for_map_location() -> None:
    place = lambda storage, location: serialization.default_restore_location(storage, "cpu")  # noqa: E731
    assert pywebgpu.load(written({"w": torch.ones(2)}), map_location=place)["w"].device.type == "cpu"
