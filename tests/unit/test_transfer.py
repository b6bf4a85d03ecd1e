"""Tensors go from device to device, their gradients come back. Two cpu devices stand for any two."""

import pytest

import pywebgpu as torch
from tests import devices

HERE, THERE = "cpu:0", "cpu:1"


@pytest.fixture(autouse=True)
def _two_devices() -> None:
    devices.open_another(THERE)


def test_values_and_dtype_arrive() -> None:
    x = torch.arange(6, device=HERE).reshape(2, 3).t()
    moved = x.to(THERE, torch.float32)
    assert moved.tolist() == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]
    assert moved.dtype is torch.float32
    assert moved._storage.device is not x._storage.device


def test_same_device_copies_only_when_asked() -> None:
    x = torch.ones(2, device=HERE)
    assert x.to(HERE) is x
    assert x.to(HERE, copy=True) is not x


def test_gradient_comes_back() -> None:
    x = torch.tensor([1.0, 2.0, 3.0], device=HERE, requires_grad=True)
    y = (x * 2).to(THERE)
    (y * y).sum().backward()
    assert x.grad.tolist() == [8.0, 16.0, 24.0]
    assert x.grad._storage.device is x._storage.device


def test_a_part_of_the_work_may_run_on_another_device(device: str) -> None:
    x = torch.tensor([1.0, 2.0, 3.0], device=device, requires_grad=True)
    y = (x * 2).to(THERE)
    z = (y * y).to(device)
    (z + x).sum().backward()
    assert z.tolist() == [4.0, 16.0, 36.0]
    assert x.grad.tolist() == [9.0, 17.0, 25.0]


def test_gradient_of_a_view_comes_back() -> None:
    x = torch.ones(2, 3, device=HERE, requires_grad=True)
    (x * 3)[:, 1].to(THERE).sum().backward()
    assert x.grad.tolist() == [[0.0, 3.0, 0.0]] * 2


def test_second_gradient_crosses_twice() -> None:
    x = torch.tensor([1.0, 2.0], device=HERE, requires_grad=True)
    (first,) = torch.autograd.grad((x**2).to(THERE).pow(2).sum(), x, create_graph=True)
    first.sum().backward()
    assert first.tolist() == [4.0, 32.0]
    assert x.grad.tolist() == [12.0, 48.0]


def test_value_read_before_backward() -> None:
    x = torch.tensor([1.0, 2.0], device=HERE, requires_grad=True)
    loss = x.exp().to(THERE).log().sum()
    assert loss.item() == pytest.approx(3.0)
    loss.backward()
    assert x.grad.tolist() == pytest.approx([1.0, 1.0])


def test_mixed_devices_are_refused() -> None:
    with pytest.raises(RuntimeError, match="same device"):
        torch.ones(2, device=HERE) + torch.ones(2, device=THERE)


def test_one_number_of_cpu_may_join() -> None:
    assert (torch.ones(2, device=THERE) + torch.tensor(2.0, device=HERE)).tolist() == [3.0, 3.0]


def test_copy_and_modules_move() -> None:
    x = torch.zeros(2, device=HERE)
    x.copy_(torch.ones(2, device=THERE))
    assert x.tolist() == [1.0, 1.0]
    layer = torch.nn.Linear(2, 1, device=HERE)
    layer(torch.ones(1, 2, device=HERE)).sum().backward()
    layer.to(THERE)
    assert layer.weight.grad._storage.device is layer.weight._storage.device
