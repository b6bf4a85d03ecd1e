"""NumPy's float64 where there is none: converted on the host, and told once. Device null has WebGPU's dtypes."""

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch as theirs

import pywebgpu as torch
from pywebgpu.ir import graph
from pywebgpu.tensor import from_data

ARRAY = np.linspace(0, 1, 3)


@pytest.fixture(autouse=True)
def untold(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing was told yet, and new tensors are on device null."""
    monkeypatch.setattr(from_data, "_told", [])
    with torch.device("null"):
        yield


MADE: dict[str, Callable[[], torch.Tensor]] = {
    "tensor": lambda: torch.tensor(ARRAY),
    "from_numpy": lambda: torch.from_numpy(np.ones((3, 2))),
    "as_tensor": lambda: torch.as_tensor(ARRAY),
    "asarray": lambda: torch.asarray(ARRAY),
    "a number": lambda: torch.tensor(np.float64(0.5)),
    "in a list": lambda: torch.tensor([np.float64(0.5), 1]),
    "arrays in a list": lambda: torch.tensor([ARRAY, ARRAY]),
    "times": lambda: torch.ones(3) * ARRAY,
    "in place": lambda: torch.ones(3).__iadd__(ARRAY),
    "collated": lambda: torch.utils.data.default_collate([ARRAY, ARRAY]),
}


@pytest.mark.parametrize("name", MADE)
def test_doubles_become_floats_and_that_is_told_once(name: str) -> None:
    if name == "arrays in a list":
        with pytest.warns(UserWarning, match="list of numpy.ndarrays is extremely slow"):
            torch.tensor([ARRAY.astype("float32")])
    with pytest.warns(UserWarning, match="NumPy's float64 becomes float32 on device null") as told:
        assert MADE[name]().dtype is torch.float32
    assert len(told) == 1
    assert told[0].filename == __file__
    assert MADE[name]().dtype is torch.float32  # Warnings are errors.


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.int32, torch.bool])
def test_a_dtype_that_is_given_is_taken_in_silence(dtype: torch.dtype) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert torch.tensor(ARRAY, dtype=dtype).dtype is dtype
        assert torch.tensor([ARRAY, ARRAY], dtype=dtype).dtype is dtype


def test_doubles_that_are_asked_for_are_refused() -> None:
    with pytest.raises(TypeError, match="float64"):
        torch.tensor(ARRAY, dtype=torch.float64)


def test_the_host_rounds_as_numpy_does(monkeypatch: pytest.MonkeyPatch) -> None:
    array = np.array([1e300, 1 + 2.0**-30, -0.1])
    uploaded: list[bytes] = []
    device = torch.ones(1)._storage.device
    monkeypatch.setattr(device, "upload", lambda data, spec: uploaded.append(bytes(data)))
    torch.tensor(array, dtype=torch.float32)
    with np.errstate(over="ignore"):
        assert uploaded == [array.astype("float32").tobytes()]


def test_sizes_of_numpy_are_those_of_python_from_then_on() -> None:
    """A shape is one object for all who have it, and to kernels its sizes are Python's own."""
    x, two = torch.arange(1931.0), np.int64(2)
    found = [
        x.narrow(0, two, np.int64(1901)), x.unfold(0, two, two), x.expand(np.int64(977), -1), torch.zeros(two, 983)
    ]  # fmt: skip
    again = [x.narrow(0, 2, 1901) * 2, x.unfold(0, 2, 2) * 2, x.expand(977, -1) * 2, torch.ones(2, 983) * 2]
    for tensor in (*found, *again):
        assert {type(size) for size in tensor._node.spec.shape} == {int}
    assert {type(size) for size in graph.spec_of((np.int64(1907),), torch.float32).shape} == {int}


@pytest.mark.parametrize(
    "call",
    [
        lambda: ARRAY * torch.ones(3),
        lambda: torch.where(torch.ones(3) > 0, ARRAY, 0.0),
        lambda: torch.add(torch.ones(3), ARRAY),
        lambda: torch.ones(3).mul(ARRAY),
        lambda: torch.eq(torch.ones(3), ARRAY),
    ],
)
def test_functions_refuse_arrays_as_pytorchs_do(call: Callable[[], torch.Tensor]) -> None:
    with pytest.raises(TypeError):
        call()


NUMBERS = {
    "fill_": lambda t, value: t.ones(2).fill_(value),
    "full": lambda t, value: t.full((2,), value),
    "full_like": lambda t, value: t.full_like(t.ones(2), value),
    "new_full": lambda t, value: t.ones(2).new_full((2,), value),
    "arange": lambda t, value: t.arange(value),
}
VALUES = {
    "array": np.array([1.0, 2.0]), "array of other bytes": np.array([1.0, 2.0], ">f4"), "array of one": np.array([2.0]),
    "array without axes": np.array(2.0), "list": [1, 2], "text": "a", "nothing": None,
    "number of NumPy": np.float32(3.0), "whole number of NumPy": np.int64(3), "bool of NumPy": np.True_, "number": 2.5,
}  # fmt: skip


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
@pytest.mark.parametrize("function", NUMBERS.values(), ids=NUMBERS)
def test_what_counts_as_a_number(function: Any, value: Any) -> None:
    def outcome(library: Any) -> Any:
        try:
            return function(library, value).tolist()
        except TypeError:
            return TypeError

    with torch.device("cpu"):
        assert outcome(torch) == outcome(theirs)
