"""Elements read and written one by one, as loops of Python do: the values that NumPy has, and no Program for each."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pywebgpu as torch
from pywebgpu import devices


def counted(x: Any) -> None:
    for i in (0, 3, 3, -1):
        x[i] += 2


def mixed(x: Any) -> None:
    x[1] = 7
    x[2] -= 3
    x[1] *= 2
    x[-2] = 9
    x[-2] += x[1].item()


def by_views(x: Any) -> None:
    part = x[1:4]
    part[1] += 5
    part[1:2] += 5
    part[::2][1] -= 1
    part[0] += 1


def smoothed(x: Any) -> None:
    for i in range(1, 5):
        x[i] += x[i - 1].item()


def of_a_matrix(x: Any) -> None:
    rows = x[:4].reshape(2, 2)
    rows[1, 0] += 3
    rows[0][1] *= 2
    rows.T[1, 0] -= 1


# name -> a loop over the elements of a vector of five
LOOPS: dict[str, Callable[[Any], None]] = {
    "counted": counted,
    "mixed": mixed,
    "by views": by_views,
    "smoothed": smoothed,
    "of a matrix": of_a_matrix,
}
DTYPES = ["float32", "int32", "int64", "uint8", "float16"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", LOOPS)
def test_values_are_those_of_numpy(name: str, dtype: str, device: str) -> None:
    """Also while a value that waits reads the elements of before, and while another tensor has them."""
    array = np.array([4, 5, 6, 7, 8], dtype)
    x = torch.tensor(array, device=device)
    for turn in range(4):
        before, expected = x + 1, array + 1
        if turn == 2:
            expected_copy, copy = array.copy(), x.clone()
        with np.errstate(over="ignore"):
            LOOPS[name](array)
        LOOPS[name](x)
        if turn != 1:
            assert before.tolist() == expected.tolist()
    assert x.tolist() == array.tolist()
    assert copy.tolist() == expected_copy.tolist()


def test_numbers_are_rounded_as_in_arithmetic() -> None:
    x = torch.tensor([0.1, 0.7, 1.0, 1e30, 0.0], device="cpu")
    results = [(x + 0.3)[0], (x * 0.3)[1], (x / 3)[2], (x * 1e30)[3], (x / 0)[4]]
    expected = torch.stack(results).tolist()
    x[0] += 0.3
    x[1] *= 0.3
    x[2] /= 3
    x[3] *= 1e30
    x[4] /= 0
    assert repr(x.tolist()) == repr(expected)


@pytest.mark.parametrize("name", LOOPS)
def test_no_program_runs_for_an_element(name: str) -> None:
    x = torch.tensor([4.0, 5, 6, 7, 8], device="cpu")
    LOOPS[name](x)
    runs = devices.open_device("cpu").counters["submits"]
    for _ in range(3):
        LOOPS[name](x)
    assert devices.open_device("cpu").counters["submits"] == runs


def test_what_a_gradient_saved_is_told_of_the_write() -> None:
    x, w = torch.arange(3.0, device="cpu"), torch.ones(3, device="cpu", requires_grad=True)
    x.sum().item()
    version = x._version
    loss = (w * x).sum()
    loss.item()
    x[0] += 1
    assert x._version == version + 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()
