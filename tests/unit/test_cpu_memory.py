"""Memory of device cpu that is used again: only what nobody has any more. Subject: arrays as large as what is kept."""

from typing import Any

import numpy as np
import pytest

import pywebgpu as torch
from pywebgpu import devices
from pywebgpu.devices import cpu_memory

SHAPE = (64, 512)


def given(array: Any) -> cpu_memory.Memory:
    """A memory after a list that held the array gave it."""
    memory, values = cpu_memory.Memory(np.empty), [array]
    del array
    memory.give(values, 0)
    assert values == [None]
    return memory


def is_taken_again(memory: cpu_memory.Memory) -> bool:
    return bool(memory._kept.get(("float32", SHAPE)))


def test_what_nobody_has_is_used_again() -> None:
    memory, values = cpu_memory.Memory(np.empty), [np.ones(SHAPE, "float32")]
    address = values[0].ctypes.data
    memory.give(values, 0)
    assert memory.take("float32", SHAPE).ctypes.data == address
    assert not is_taken_again(memory)


# name -> what makes an array, and what still holds it
HELD: dict[str, Any] = {
    "by a name": lambda array: array,
    "by a view": lambda array: array[1:],
    "by a reshape": lambda array: array.reshape(-1),
    "by another kind": lambda array: array.view("int32"),
}


@pytest.mark.parametrize("name", HELD)
def test_what_is_held_is_not(name: str) -> None:
    memory, values = cpu_memory.Memory(np.empty), [np.ones(SHAPE, "float32")]
    held = HELD[name](values[0])
    memory.give(values, 0)
    assert not is_taken_again(memory)
    assert held.size


@pytest.mark.parametrize("array", [np.ones(4, "float32"), np.ones((512, 64), "float32").T, np.float32(1)])
def test_what_is_small_or_no_array_of_its_own_is_not(array: Any) -> None:
    assert not given(array)._kept


def test_more_than_the_most_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_memory, "MOST", 3 * 4 * 64 * 512)
    memory = cpu_memory.Memory(np.empty)
    for _ in range(10):
        values: list[Any] = [np.ones(SHAPE, "float32")]
        memory.give(values, 0)
        assert memory._nbytes <= cpu_memory.MOST


def test_results_keep_their_values_while_others_are_computed() -> None:
    """Large values, views of them and what they are made of, over programs that use one memory."""
    device: Any = devices.open_device("cpu")
    device._memory.clear()
    x = torch.arange(64 * 512, dtype=torch.float32, device="cpu").reshape(64, 512)
    kept = []
    for turn in range(6):
        y = (x * turn).T.reshape(64, 512) + 1
        z = torch.where(y > 100, y, -y)
        kept.append((y, z[::2], (z @ z.T).relu()))
        kept[-1][2].sum().item()
    base = np.arange(64 * 512, dtype="float32").reshape(64, 512)
    for turn, (y, z, product) in enumerate(kept):
        expected = (base * np.float32(turn)).T.reshape(64, 512) + 1
        chosen = np.where(expected > 100, expected, -expected)
        assert np.array_equal(y.numpy(), expected)
        assert np.array_equal(z.numpy(), chosen[::2])
        assert np.allclose(product.numpy(), np.maximum(chosen @ chosen.T, 0), rtol=1e-5)
