"""Device cpu without NumPy holds values; it computes with them once NumPy was installed, also with that of Pyodide."""

from collections.abc import Callable
from operator import methodcaller
from typing import Any

import numpy as np
import pytest

import pywebgpu as torch
from pywebgpu import devices
from pywebgpu.devices import cpu_functions, cpu_storage
from pywebgpu.errors import DeviceError
from pywebgpu.linalg import factorization


def no_gpu(open_device: Callable[..., Any]) -> Callable[..., Any]:
    """The function, on a machine that has no GPU."""

    def opened(name: Any = None) -> Any:
        if str(name).startswith("webgpu"):
            raise DeviceError("no adapter")
        return open_device(name)

    return opened


def test_it_computes_once_numpy_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(devices._open, "cpu:0", cpu_storage.open_device())
    monkeypatch.setattr(cpu_storage, "find_spec", lambda name: None)
    monkeypatch.setattr(devices, "open_device", no_gpu(devices.open_device))
    x = torch.tensor([1.0, 2.0, 3.0], device="cpu")
    assert x.tolist() == [1, 2, 3]
    with pytest.raises(RuntimeError, match="install NumPy"):
        (x + 1).tolist()
    assert "tensor([1., 2., 3.])" in x._repr_html_()
    monkeypatch.undo()
    monkeypatch.setitem(devices._open, "cpu:0", x._storage.device)
    assert (x + 1).tolist() == [2, 3, 4]
    y = torch.tensor([[1, 2, 3]], device="cpu", dtype=torch.int64)
    assert ((x * y).sum(0) + x).tolist() == [2, 6, 12]
    assert x.tolist() == [1, 2, 3]
    with torch.no_grad():
        x.add_(1)
    assert x.tolist() == [2, 3, 4]


@pytest.mark.parametrize("name", ["argmax", "argmin", "argsort"])
@pytest.mark.parametrize("axis", [0, 1])
def test_positions_have_64_bits_also_where_numpy_counts_in_32(
    name: str, axis: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = getattr(np, name)

    def narrow(*args: Any, **options: Any) -> Any:
        return whole(*args, **options).astype("int32")

    def position(called: str, *args: Any) -> Any:
        return (lambda a: narrow(a, *args)) if called == name else methodcaller(called, *args)

    monkeypatch.setattr(np, name, narrow)
    monkeypatch.setattr(cpu_functions, "methodcaller", position)
    x = torch.tensor([[3.0, 1.0, 2.5], [1.0, 4.0, 0.0], [2.0, 0.0, 7.0]], device="cpu")
    found = getattr(torch, name)(x, axis)
    assert found.tolist() == whole(x.numpy(), axis).tolist()
    assert (found + 2**40).tolist() == (whole(x.numpy(), axis) + 2**40).tolist()


def test_a_matrix_without_factors_is_told_of_also_where_numpy_only_gives_nan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(factorization, "_IN_PYODIDE", True)
    monkeypatch.setattr(np.linalg, "cholesky", lambda a: np.full(a.shape, np.nan))
    for given in (-torch.eye(2, device="cpu"), torch.full((2, 2), torch.nan, device="cpu")):
        with pytest.raises(torch.linalg.LinAlgError, match="not positive-definite"):
            torch.linalg.cholesky(given)
    monkeypatch.setattr(np.linalg, "inv", lambda a: np.full(a.shape, np.nan))
    with pytest.raises(torch.linalg.LinAlgError, match="singular"):
        torch.linalg.inv(torch.zeros(2, 2, device="cpu"))
    assert torch.linalg.inv(torch.full((2, 2), torch.nan, device="cpu")).isnan().all()
