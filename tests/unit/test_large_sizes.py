"""Values at sizes where another kernel is chosen: long sums, many rows, many updates, many keys, against PyTorch."""

from typing import Any

import numpy as np
import pytest
import torch as peer

import pywebgpu as torch
from pywebgpu import devices
from pywebgpu.devices.base import Buffer
from pywebgpu.errors import CompileError
from pywebgpu.ir import graph
from pywebgpu.kernels import ir, wgsl
from pywebgpu.nn import functional

KEYS = (1, 31, 512, 513, 2048, 8192)


def numbers(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


# What no device holds, or counts: PyTorch raises RuntimeError as well, where it makes the tensor.
HUGE = {
    "zeros": lambda: torch.zeros(1 << 20, 1 << 20).sum(),
    "an element of zeros": lambda: torch.zeros(1 << 20, 1 << 20)[0, 0],
    "full": lambda: torch.full((1 << 40, 1 << 40), 2.0),
    "bools": lambda: torch.ones(1 << 42, dtype=torch.bool).any(),
    "empty": lambda: torch.empty(1 << 42),
    "eye": lambda: torch.eye(1 << 21),
    "a range": lambda: torch.arange(1 << 42, dtype=torch.float32).sum(),
    "steps": lambda: torch.linspace(0, 1, 1 << 42),
    "random numbers": lambda: torch.rand(1 << 42),
    "like a view": lambda: torch.ones_like(torch.ones(1).expand(1 << 42)),
    "by the class": lambda: torch.Tensor(1 << 20, 1 << 20),
    "of another": lambda: torch.ones(1).new_zeros(1 << 42),
    "a broadcast": lambda: (torch.rand(1 << 21, 1) + torch.rand(1, 1 << 21)).tolist(),
    "its sum": lambda: (torch.rand(1 << 21, 1) + torch.rand(1, 1 << 21)).sum().item(),
    "a product": lambda: (torch.rand(1 << 21, 1) @ torch.rand(1, 1 << 21)).tolist(),
    "adaptive maxima": lambda: torch.nn.AdaptiveMaxPool1d(0x3FFFFFFF)(torch.empty(2, 2, 2)),
    "adaptive means": lambda: functional.adaptive_avg_pool2d(torch.empty(2, 2, 2), (2, 0x3FFFFFFF)),
    "copies": lambda: torch.rand(4).repeat(1 << 40).tolist(),
}
# Views of any size cost nothing.
LARGE = {
    "an element": (lambda: torch.tensor([3.0]).expand(1 << 20, 1 << 20)[5, 7], 3.0),
    "a slice": (lambda: torch.arange(4.0).expand(1 << 40, 4)[1 << 39, 1:3].sum(), 3.0),
    "how many": (lambda: torch.ones(1).expand(1 << 20, 1 << 20).numel(), 1 << 40),
}


@pytest.mark.parametrize("name", HUGE)
@pytest.mark.usefixtures("default_device")
def test_what_no_device_holds_is_refused(name: str, device: str) -> None:
    with pytest.raises(RuntimeError, match=r"smaller tensors|Storage size calculation overflowed"):
        HUGE[name]()


@pytest.mark.parametrize("name", LARGE)
@pytest.mark.usefixtures("default_device")
def test_a_view_may_be_larger_than_any_memory(name: str, device: str) -> None:
    call, expected = LARGE[name]
    found = call()
    assert (found.item() if isinstance(found, torch.Tensor) else found) == expected


def test_a_kernel_that_cannot_count_so_far_is_refused() -> None:
    with pytest.raises(CompileError, match=r"counts elements up to 4294967296, "):
        wgsl.literal(ir.Const(ir.U32, 1 << 32))


def test_a_sum_of_a_million_is_right(device: str) -> None:
    values = numbers(1_000_000)
    found = torch.from_numpy(values).to(device).sum().item()
    assert found == pytest.approx(values.sum(dtype=np.float64), abs=0.05)


def test_a_transform_of_4096_is_numpys(device: str) -> None:
    values = numbers(2, 4096)
    found = torch.fft.fft(torch.from_numpy(values).to(device)).cpu().numpy()
    np.testing.assert_allclose(found, np.fft.fft(values), atol=2e-3)


@pytest.mark.parametrize("n", [1024, 1000])
def test_transforms_are_products_on_the_device(n: int) -> None:
    x = torch.zeros(4, n, device="null")
    torch.webgpu.synchronize("null")
    kinds = [kernel.op for kernel in torch.explain(torch.fft.fft(x)).kernels]
    assert kinds.count("matmul") == 2


def test_gradients_of_a_norm_of_many_rows_are_pytorchs_and_the_same_each_time(device: str) -> None:
    x, g, weight = numbers(65_536, 8), numbers(65_536, 8, seed=1), numbers(8, seed=2)
    theirs = peer.from_numpy(weight).requires_grad_(), peer.zeros(8, requires_grad=True)
    peer.nn.functional.layer_norm(peer.from_numpy(x), (8,), *theirs).backward(peer.from_numpy(g))
    given, upstream = torch.from_numpy(x).to(device), torch.from_numpy(g).to(device)
    runs = []
    for _ in range(20):
        ours = torch.from_numpy(weight).to(device).requires_grad_(), torch.zeros(8, device=device, requires_grad=True)
        functional.layer_norm(given, (8,), *ours).backward(upstream)
        runs.append([one.grad.cpu().numpy() for one in ours])
    for mine, other, first in zip(runs[-1], theirs, runs[0], strict=True):
        np.testing.assert_allclose(mine, other.grad.numpy(), rtol=1e-4, atol=0.02)
        assert all(first.tobytes() in [one.tobytes() for one in run] for run in runs)


def test_a_hundred_thousand_updates_are_added(device: str) -> None:
    at, values = np.random.default_rng(0).integers(0, 50, 100_000), numbers(100_000, 2)
    wanted = np.zeros((50, 2))
    np.add.at(wanted, at, values.astype(np.float64))
    index, updates = torch.from_numpy(at).to(device), torch.from_numpy(values).to(device)
    found = torch.zeros(50, 2, device=device).index_add_(0, index, updates)
    np.testing.assert_allclose(found.cpu().numpy(), wanted, atol=5e-3)


@pytest.mark.parametrize("keys", KEYS)
def test_attention_of_any_length_is_pytorchs(keys: int, device: str) -> None:
    shapes = (1, 2, 3, 8), (1, 2, keys, 8), (1, 2, keys, 8)
    values = [numbers(*shape, seed=seed) for seed, shape in enumerate(shapes)]
    wanted = peer.nn.functional.scaled_dot_product_attention(*map(peer.from_numpy, values))
    found = functional.scaled_dot_product_attention(*(torch.from_numpy(value).to(device) for value in values))
    np.testing.assert_allclose(found.cpu().numpy(), wanted.numpy(), rtol=1e-4, atol=1e-5)


def test_positions_beyond_32_bits_are_read_and_written() -> None:
    """Of a value that the system gives no memory for but where it is written to."""
    size = 2**31 + 10
    array = np.zeros(size, "int8")
    array[size - 2] = 3
    device: Any = devices.open_device("cpu")
    x = torch.Tensor._new(graph.data(graph.Spec((size,), torch.int8), Buffer(device, array, size)), device)
    assert x[size - 2].item() == 3
    assert x[2**31 + 5 :].tolist() == [0, 0, 0, 3, 0]
    assert x.narrow(0, size - 3, 2).tolist() == [0, 3]
    assert x.take(torch.tensor([size - 2, 0], device="cpu")).tolist() == [3, 0]
    assert x.reshape(2, -1)[1, -2].item() == 3
    x[size - 1] = 7
    x[2**31 + 1] += 2
    assert x[2**31 :].tolist() == [0, 2, 0, 0, 0, 0, 0, 0, 3, 7]
    assert x.storage_offset() == 0
    assert x[2**31 + 3 :].storage_offset() == 2**31 + 3
