"""float8 dtypes on device cpu: bytes and rounding are PyTorch's."""

from typing import Any

import numpy as np
import pytest
import torch

import pywebgpu
from pywebgpu import dtypes
from pywebgpu.support import float8

NARROW = [*float8.KINDS]
BYTES = np.arange(256, dtype="uint8")


def _edges() -> np.ndarray:
    """Every float16 as float32, every upper half of a float32, what lies beside it, and random bits."""
    upper = np.arange(1 << 16, dtype="uint32") << 16
    drawn = np.random.default_rng(0).integers(0, 1 << 32, 1 << 16, "uint32")
    words = np.concatenate([upper, upper | 0x8000, upper | 1, drawn])
    halves = np.arange(1 << 16, dtype="uint16").view("float16")
    return np.concatenate([words.view("float32"), halves.astype("float32")])


@pytest.mark.parametrize("dtype", NARROW, ids=repr)
@pytest.mark.parametrize("source", ["float32", "float16", "bfloat16", "float64"])
def test_casts_round_as_pytorchs(dtype: dtypes.DType, source: str) -> None:
    x = _edges()
    results = [
        library.from_numpy(x.copy()).to(getattr(library, source)).to(getattr(library, dtype.name)).float().numpy()
        for library in (torch, pywebgpu)
    ]
    np.testing.assert_array_equal(*results)
    np.testing.assert_array_equal(*map(np.signbit, np.nan_to_num(results)))


@pytest.mark.parametrize("dtype", NARROW, ids=repr)
def test_bytes_mean_what_pytorchs_do(dtype: dtypes.DType) -> None:
    expected, ours = (
        library.from_numpy(BYTES.copy()).view(getattr(library, dtype.name)) for library in (torch, pywebgpu)
    )
    for wide in ("float32", "float16", "bfloat16", "float64"):
        np.testing.assert_array_equal(
            *(x.to(getattr(library, wide)).double().numpy() for library, x in ((torch, expected), (pywebgpu, ours)))
        )
    np.testing.assert_array_equal(expected.tolist(), ours.tolist())
    numbers = ~np.isnan(expected.float().numpy())
    assert (ours.view(pywebgpu.uint8).numpy() == BYTES)[numbers].all()


def _filled(library: Any, number: float, name: str) -> list[float]:
    """One number, several, and those written in place: True where they are refused."""
    dtype = getattr(library, name)
    results = [library.full((1,), number, dtype=dtype).item()]
    for fill in (lambda: library.full((2,), number, dtype=dtype), lambda: library.zeros(2, dtype=dtype).fill_(number)):
        try:
            results += fill().tolist()
        except RuntimeError as error:
            results.append(str(error).startswith(f"value cannot be converted to type c10::{name.capitalize()} without"))
    return results


@pytest.mark.parametrize("dtype", NARROW, ids=repr)
def test_numbers_of_python_round_as_arrays_do(dtype: dtypes.DType) -> None:
    numbers = [*map(float, _edges()[:: 1 << 6]), 1e300, -1e300]
    expected, ours = (library.tensor(numbers, dtype=getattr(library, dtype.name)) for library in (torch, pywebgpu))
    np.testing.assert_array_equal(expected.tolist(), ours.tolist())
    for number in (0, 1, -1, 300, 1e9, 1e39, float("inf"), float("nan")):
        np.testing.assert_array_equal(_filled(torch, number, dtype.name), _filled(pywebgpu, number, dtype.name))


@pytest.mark.parametrize("dtype", NARROW, ids=repr)
def test_values_move_and_do_not_compute(dtype: dtypes.DType) -> None:
    for library in (torch, pywebgpu):
        x = library.tensor([1.0, 2.0, 4.0, 8.0]).to(getattr(library, dtype.name))
        moved = library.cat([x[1:], x[:1]]).reshape(2, 2).t().contiguous()
        assert moved.float().tolist() == [[2, 8], [4, 1]]
        assert (x == x).all()
        assert library.where(x == x[0], x[3], x).float().tolist() == [8, 2, 4, 8]
        assert f"dtype=torch.{dtype.name}" in repr(x)
        assert (x.element_size(), x.nbytes) == (1, 4)
        with pytest.raises(NotImplementedError, match="not implemented for 'Float8"):
            x + x
        with pytest.raises(RuntimeError, match="Promotion for Float8 Types is not supported"):
            x + library.ones(4)
        with pytest.raises(TypeError, match="Got unsupported ScalarType Float8"):
            x.numpy()
