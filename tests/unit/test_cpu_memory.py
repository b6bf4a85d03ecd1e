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


def test_shapes_that_do_not_come_again_are_let_go() -> None:
    memory = cpu_memory.Memory(np.empty)
    for n in range(100):
        memory.note_run()
        values: list[Any] = [np.ones((n + 1, 1 << 14), "float32"), np.ones(SHAPE, "float32")]
        memory.give(values, 0)
        memory.give(values, 1)
        memory.take("float32", SHAPE)
        assert len(memory._kept) <= 2 * cpu_memory.RECENT + 1
    for _ in range(2 * cpu_memory.RECENT):
        memory.note_run()
    assert memory._nbytes == sum(len(kept) for kept in memory._kept.values()) == 0


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


# A part written in place: an array of 64 Ki bytes or more is not copied for it.


def address(x: torch.Tensor) -> int:
    """Where the value of a tensor lies."""
    x.sum().item()
    buffer = x._storage.node.buffer
    assert buffer is not None
    return int(buffer.handle.ctypes.data)


# name -> writes a small part of a tensor of SHAPE
PARTS: dict[str, Any] = {
    "an element": lambda x: x.__setitem__((3, 4), 5.0),
    "a row": lambda x: x.__setitem__(3, torch.arange(512.0, device="cpu")),
    "a row of its own": lambda x: x.__setitem__(3, x[4] * 2),
    "rows that overlap": lambda x: x.__setitem__(slice(1, 4), x[2:5] + 0),
    "a column": lambda x: x[:, 7].mul_(3),
    "several": lambda x: [x[i].add_(i) for i in range(5)],
    "one after the other": lambda x: [x.__setitem__(i + 1, x[i] + x[i + 1]) for i in range(5)],
}


@pytest.mark.parametrize("name", PARTS)
def test_a_small_part_is_written_in_place(name: str) -> None:
    array = np.arange(64 * 512, dtype="float32").reshape(64, 512)
    x, expected = torch.tensor(array, device="cpu"), torch.tensor(array, device="cpu")
    before = address(x)
    for _ in range(3):
        PARTS[name](x)
        assert address(x) == before
    for _ in range(3):
        kept = expected.clone()  # Both are held: nothing is written in place.
        PARTS[name](expected)
        assert kept.sum().item() is not None
    assert np.array_equal(x.numpy(), expected.numpy())
    assert not np.array_equal(x.numpy(), array)


@pytest.mark.parametrize("name", PARTS)
def test_what_else_shows_the_value_keeps_it(name: str) -> None:
    x = torch.arange(64 * 512.0, device="cpu").reshape(64, 512) * 1
    x.sum().item()
    copy, view, double = x.clone(), x[2:4].clone(), x * 2
    PARTS[name](x)
    array = np.arange(64 * 512, dtype="float32").reshape(64, 512)
    x.sum().item()
    assert np.array_equal(copy.numpy(), array)
    assert np.array_equal(view.numpy(), array[2:4])
    assert np.array_equal(double.numpy(), array * 2)


def test_a_program_that_fails_leaves_its_inputs() -> None:
    """The write comes first, and what fails after it is computed with it."""
    x = torch.zeros(64, 512, device="cpu") + 1
    x.sum().item()
    rows = torch.tensor([3]) + 61
    rows.sum().item()
    x[0] += 1
    missing = x[rows]
    with pytest.raises(IndexError):
        missing.sum().item()
    assert x[0].sum().item() == 1024
    x[0] += 1
    assert x[0].sum().item() == 1536
    assert x.sum().item() == 64 * 512 + 1024
