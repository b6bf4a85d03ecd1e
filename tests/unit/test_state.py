"""Checkpoints: what goes in comes out, in its types; other programs read the tensors; damage is refused."""

import collections
import io
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch

from pywebgpu import devices, dtypes
from pywebgpu.io import safetensors as ours
from pywebgpu.io import state
from pywebgpu.tensor import create, tensor

pytestmark = pytest.mark.usefixtures("default_device")


def weight(*values: float) -> tensor.Tensor:
    return create.tensor([float(value) for value in values], device="cpu")


def round_trip(value: Any) -> Any:
    file = io.BytesIO()
    state.save_checkpoint(value, file)
    file.seek(0)
    return state.load(file, "cpu")


def same(a: Any, b: Any) -> bool:
    if isinstance(a, tensor.Tensor):
        return isinstance(b, tensor.Tensor) and a.dtype is b.dtype and a.tobytes() == b.tobytes()
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b) or (a != a and b != b)


VALUES: dict[str, Any] = {
    "numbers": [0, -1, 2**70, True, False, None, 0.1, 1e-300, 1.0, -0.0],
    "numbers that JSON lacks": [math.inf, -math.inf, math.nan],
    "text": ["", 'é\n"\\', "\U0001f600", "\0"],
    "bytes": [b"", bytes(range(256))],
    "containers": {"a": [], "b": (), "c": {}, "d": set(), "e": (1, (2, [3, {"x": (4,)}])), "f": frozenset({1})},
    "keys": {0: "a", "0": "b", 1.5: "c", None: "d", (1, "x"): "e"},
    "keys that look like kinds": {"tensor": "a", "dict": {"tuple": [1]}, "float": "inf"},
    "ordered": collections.OrderedDict([("b", 1), ("a", 2)]),
    "counter": collections.Counter({3: 2, 5: 1}),
    "dtypes and devices": {"dtype": dtypes.bfloat16, "device": devices.device("webgpu", 1)},
    "nothing": None,
    "an empty dict": {},
}


@pytest.mark.parametrize("name", VALUES)
def test_values_come_back_in_their_types(name: str) -> None:
    assert same(round_trip(VALUES[name]), VALUES[name])


NESTS: dict[str, Callable[[], Any]] = {
    "one tensor": lambda: weight(1, 2),
    "state dict": lambda: {"layer.weight": weight(1, 2), "layer.bias": weight(3)},
    "ordered state dict": lambda: collections.OrderedDict(b=weight(1), a=weight(2)),
    "checkpoint": lambda: {"model": {"w": weight(1, 2)}, "epoch": 3, "losses": [0.5, 0.25]},
    "names that meet": lambda: {"a": {"b": weight(1)}, "a.b": weight(2), 0: [weight(3)], "0": {0: weight(4)}},
    "a name of the format": lambda: {"__metadata__": weight(1)},
    "optimizer": lambda: {
        "state": {0: {"step": 3, "exp_avg": weight(1)}, 1: {"step": 3, "exp_avg": weight(2)}},
        "param_groups": [{"lr": 1e-3, "betas": (0.9, 0.999), "foreach": None, "params": [0, 1]}],
    },
}


@pytest.mark.parametrize("name", NESTS)
def test_nests_of_tensors_come_back(name: str) -> None:
    value = NESTS[name]()
    assert same(round_trip(value), value)


def test_a_file_appears_under_its_name(tmp_path: Path) -> None:
    value = NESTS["checkpoint"]()
    state.save_checkpoint(value, tmp_path / "model.pt")
    assert [file.name for file in tmp_path.iterdir()] == ["model.pt"]
    assert same(state.load(str(tmp_path / "model.pt"), map_location="cpu", weights_only=False), value)


def test_other_programs_read_the_tensors(tmp_path: Path) -> None:
    state.save_checkpoint(NESTS["state dict"](), tmp_path / "plain")
    state.save_checkpoint(NESTS["checkpoint"](), tmp_path / "nested")
    plain = safetensors.torch.load_file(tmp_path / "plain")
    assert {name: value.tolist() for name, value in plain.items()} == {"layer.weight": [1.0, 2.0], "layer.bias": [3.0]}
    assert safetensors.torch.load_file(tmp_path / "nested")["model.w"].tolist() == [1.0, 2.0]
    with safetensors.safe_open(tmp_path / "plain", "pt") as file:
        assert file.metadata() == {"format": "pt"}


def test_a_tensor_met_twice_is_one_tensor() -> None:
    shared = weight(1, 2)
    found = round_trip({"a": shared, "b": [shared]})
    assert found["a"] is found["b"][0]


def test_a_tensor_that_wants_a_gradient_wants_it_again() -> None:
    found = round_trip([weight(1).requires_grad_(), weight(2)])
    assert [value.requires_grad for value in found] == [True, False]


def test_numpy_scalars_become_numbers() -> None:
    assert same(round_trip([np.float64(0.5), np.float32(0.5), np.int64(3), np.bool_(True)]), [0.5, 0.5, 3, True])


class Model:
    def state_dict(self) -> dict[str, Any]:
        return {}


WRONG: dict[str, tuple[Any, str]] = {
    "a model": ({"net": Model()}, r"\['net'\] is a Model, .* state_dict"),
    "a function": ([1, {"f": len}], r"\[1\]\['f'\] is a builtin"),
    "an array": ((np.ones(2),), r"\[0\] is a ndarray"),
    "a complex number": (1j, "the object is a complex"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_a_checkpoint_cannot_hold_is_named(name: str, tmp_path: Path) -> None:
    value, text = WRONG[name]
    with pytest.raises(TypeError, match=text):
        state.save_checkpoint(value, tmp_path / "a")
    assert not list(tmp_path.iterdir())


def test_a_nest_that_holds_itself_is_refused() -> None:
    nest: list[Any] = []
    nest.append({"again": nest})
    with pytest.raises(ValueError, match="holds itself"):
        state.save_checkpoint(nest, io.BytesIO())


def test_the_same_container_twice_is_fine() -> None:
    inner = [1]
    assert same(round_trip([inner, inner]), [[1], [1]])


DAMAGED: dict[str, Any] = {
    "no JSON": "{",
    "no object": "3",
    "another version": json.dumps({"version": 99, "value": 1}),
    "no value": json.dumps({"version": 1}),
    "a tensor that is not there": json.dumps({"version": 1, "value": {"tensor": "b"}}),
    "an unknown kind": json.dumps({"version": 1, "value": {"class": "os.system"}}),
    "an empty object": json.dumps({"version": 1, "value": {}}),
    "bytes that are none": json.dumps({"version": 1, "value": {"bytes": "?"}}),
    "an unknown device": json.dumps({"version": 1, "value": {"device": "abacus"}}),
    "an unknown dtype": json.dumps({"version": 1, "value": {"dtype": "float8"}}),
    "a tuple of nothing": json.dumps({"version": 1, "value": {"tuple": None}}),
    "a key that cannot be one": json.dumps({"version": 1, "value": {"dict": [[[1], 2]]}}),
    "a number beyond all floats": json.dumps({"version": 1, "value": {"float": 10**400}}),
    "a dict of no pairs": json.dumps({"version": 1, "value": {"dict": [3]}}),
    "a name that cannot be one": json.dumps({"version": 1, "value": {"tensor": []}}),
    "a number that is none": '{"version":1,"value":NaN}',
    "a number of many digits": '{"version":1,"value":' + "9" * 5000 + "}",
    "nests without end": '{"version":1,"value":' + "[" * 100_000 + "]" * 100_000 + "}",
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_metadata_is_refused(name: str) -> None:
    data = ours.save({"a": weight(1)}, {state.KEY: DAMAGED[name]})
    with pytest.raises(ours.SafetensorError):
        state.load(io.BytesIO(data), "cpu")


def test_the_path_stands_in_the_error(tmp_path: Path) -> None:
    (tmp_path / "broken.pt").write_bytes(b"not a checkpoint")
    with pytest.raises(ours.SafetensorError, match=r"broken\.pt"):
        state.load(tmp_path / "broken.pt")


def test_a_nest_is_a_hundred_deep_at_most() -> None:
    def nest(depth: int) -> Any:
        value: Any = []
        for _ in range(depth - 1):
            value = {"a": value} if depth % 2 else (value,)
        return value

    for depth in (99, 100):
        assert same(round_trip(nest(depth)), nest(depth))
    with pytest.raises(ValueError, match="more than 100 deep"):
        state.save_checkpoint(nest(101), io.BytesIO())
