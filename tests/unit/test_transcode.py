"""Elements as 32-bit words, by slices: the same bytes that NumPy makes."""

import operator

import numpy as np
import pytest

import pywebgpu as torch
from pywebgpu import dtypes
from pywebgpu.devices import transcode
from pywebgpu.dtypes import DType
from pywebgpu.errors import IntegerOverflowError

HELD = [dtype for dtype in dtypes.ALL if dtype.wgsl is not None]
WORD = {"f32": "float32", "i32": "int32", "u32": "uint32"}


def elements(dtype: DType) -> np.ndarray:
    """Ends of the range, zeros, small numbers of both signs; for floats also what is no number."""
    if dtype is dtypes.bfloat16:
        return np.arange(0, 1 << 16, 97, dtype="uint16")
    if dtype.is_floating_point:
        special_values = [0.0, -0.0, 1.5, -2.25, np.inf, -np.inf, np.nan, 6e-8, 65504.0]
        return np.array([*special_values, *np.linspace(-9, 9, 77)]).astype(dtype.name)
    low, high = max(dtype.low, -(2**31)), min(dtype.high, 2**31 - 1)
    ends = [low, low + 1, high - 1, high, 0, 1, 1 if low == 0 else -1]
    return np.array([*ends, *np.linspace(low, high, 77)]).astype(dtype.name)


def expected(array: np.ndarray, dtype: DType) -> np.ndarray:
    if dtype is dtypes.bfloat16:
        return (array.astype("uint32") << 16).view("float32")
    return array.astype(WORD[str(dtype.wgsl)])


@pytest.mark.parametrize("dtype", HELD, ids=lambda dtype: dtype.name)
def test_words_are_what_numpy_makes(dtype: DType) -> None:
    array = elements(dtype)
    found = transcode.to_words(memoryview(array.tobytes()), dtype)
    assert bytes(found) == expected(array, dtype).tobytes()


@pytest.mark.parametrize("dtype", HELD, ids=lambda dtype: dtype.name)
def test_elements_come_back(dtype: DType) -> None:
    array = elements(dtype)
    raw = bytearray(transcode.to_words(array.tobytes(), dtype))
    assert transcode.from_words(raw, dtype) == array.tobytes()


@pytest.mark.parametrize("dtype", HELD, ids=lambda dtype: dtype.name)
def test_nothing_is_nothing(dtype: DType) -> None:
    assert bytes(transcode.to_words(b"", dtype)) == b"" == transcode.from_words(b"", dtype)


@pytest.mark.parametrize("number", [2**31, -(2**31) - 1, 2**32, 2**40, -(2**63), 2**63 - 1])
def test_an_int64_that_does_not_fit_is_refused(number: int) -> None:
    data = np.array([0, number, 5], "int64").tobytes()
    with pytest.raises(IntegerOverflowError, match=f"{number} is out of range"):
        transcode.to_words(data, dtypes.int64)


def test_large_arrays_go_through_in_parts() -> None:
    array = np.linspace(-1, 1, (1 << 17) + 3).astype("float16")
    raw = transcode.to_words(array.tobytes(), dtypes.float16)
    assert raw == array.astype("float32").tobytes()
    assert transcode.from_words(raw, dtypes.float16) == array.tobytes()


@pytest.mark.parametrize("name", ["add", "sub", "mul", "floordiv", "mod", "lt", "truediv"])
def test_uint32_computes_as_in_numpy(name: str, device: str) -> None:
    """PyTorch has no arithmetic for it on the CPU."""
    function = getattr(operator, name)
    a, b = np.array([1, 2**31, 2**32 - 1, 7], "uint32"), np.array([5, 2**31 + 3, 9, 100], "uint32")
    found = function(*(torch.from_numpy(array).to(device) for array in (a, b))).numpy()
    with np.errstate(over="ignore"):
        wanted = function(a, b)
    assert found.dtype == ("float32" if name == "truediv" else wanted.dtype)
    np.testing.assert_allclose(found, wanted, rtol=1e-6 if name == "truediv" else 0)
