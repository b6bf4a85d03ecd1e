"""Device cpu without NumPy holds values; it computes with them once NumPy was installed."""

import pytest

import pywebgpu as torch
from pywebgpu import devices
from pywebgpu.devices import cpu_storage


def test_it_computes_once_numpy_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(devices._open, "cpu:0", cpu_storage.open_device())
    monkeypatch.setattr(cpu_storage, "find_spec", lambda name: None)
    x = torch.tensor([1.0, 2.0, 3.0], device="cpu")
    assert x.tolist() == [1, 2, 3]
    with pytest.raises(RuntimeError, match="install NumPy"):
        (x + 1).tolist()
    monkeypatch.undo()
    monkeypatch.setitem(devices._open, "cpu:0", x._storage.device)
    assert (x + 1).tolist() == [2, 3, 4]
    y = torch.tensor([[1, 2, 3]], device="cpu", dtype=torch.int64)
    assert ((x * y).sum(0) + x).tolist() == [2, 6, 12]
    assert x.tolist() == [1, 2, 3]
    with torch.no_grad():
        x.add_(1)
    assert x.tolist() == [2, 3, 4]
