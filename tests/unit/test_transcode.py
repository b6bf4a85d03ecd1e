"""Elements as the bytes of a buffer: torch's own, in whole words, and int64 as int32."""

import operator

import numpy as np
import pytest

import pywebgpu as torch
from pywebgpu import dtypes
from pywebgpu.devices import transcode
from pywebgpu.dtypes import DType
from pywebgpu.errors import IntegerOverflowError

HELD = [dtype for dtype in dtypes.ALL if dtype.compute is not None]


def elements(dtype: DType) -> np.ndarray:
    """Ends of the range, zeros, small numbers of both signs; for floats also what is no number."""
    if dtype is dtypes.bfloat16:
        return np.arange(0, 1 << 16, 97, dtype="uint16")
    if dtype is dtypes.complex32:
        return np.arange(0, 1 << 32, 40_503_001, dtype="uint32")
    if dtype.is_floating_point:
        special_values = [0.0, -0.0, 1.5, -2.25, np.inf, -np.inf, np.nan, 6e-8, 65504.0]
        return np.array([*special_values, *np.linspace(-9, 9, 77)]).astype(dtype.name)
    low, high = max(dtype.low, -(2**31)), min(dtype.high, 2**31 - 1)
    ends = [low, low + 1, high - 1, high, 0, 1, 1 if low == 0 else -1]
    return np.array([*ends, *np.linspace(low, high, 77)]).astype(dtype.name)


@pytest.mark.parametrize("count", range(18))
@pytest.mark.parametrize("dtype", HELD, ids=lambda dtype: dtype.name)
def test_a_buffer_holds_the_elements_and_zeros_up_to_a_word(dtype: DType, count: int) -> None:
    array = elements(dtype)[:count]
    wanted = (array.astype("int32") if dtype is dtypes.int64 else array).tobytes()
    found = bytes(transcode.stored(memoryview(array.tobytes()), dtype))
    assert (found[: len(wanted)], found[len(wanted) :]) == (wanted, bytes(-len(wanted) % 4))
    assert len(found) == dtype.format.nbytes(count)
    assert transcode.elements(found, dtype, count) == array.tobytes()


def test_a_bool_is_0_or_1_whatever_its_byte_was() -> None:
    assert transcode.stored(bytes([0, 1, 2, 255]), dtypes.bool_) == bytes([0, 1, 1, 1])


@pytest.mark.parametrize("number", [2**31, -(2**31) - 1, 2**32, 2**40, -(2**63), 2**63 - 1])
def test_an_int64_that_does_not_fit_is_refused(number: int) -> None:
    data = np.array([0, number, 5], "int64").tobytes()
    with pytest.raises(IntegerOverflowError, match=f"{number} is out of range"):
        transcode.stored(data, dtypes.int64)


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
