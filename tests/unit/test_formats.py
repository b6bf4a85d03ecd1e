"""Elements of which several share a word: every format, by what reads, moves and writes it, in sizes around a word."""

import gc
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch as peer

import pywebgpu as torch
from pywebgpu import devices, dtypes, memory
from pywebgpu.dtypes import DType
from pywebgpu.formats import Format
from pywebgpu.ops import packing
from pywebgpu.runtime import executor, program_cache
from pywebgpu.tensor import flat_parameters as packed_

PACKED = [dtype for dtype in dtypes.ALL if dtype.format.per_word > 1]
FLOATS = [dtype for dtype in PACKED if dtype.is_floating_point]
SIZES = range(18)
BITS = {1: "uint8", 2: "uint16", 4: "uint32"}

packed = pytest.mark.parametrize("dtype", PACKED, ids=lambda dtype: dtype.name)
floats = pytest.mark.parametrize("dtype", FLOATS, ids=lambda dtype: dtype.name)


def numbers(count: int, seed: int = 0) -> list[int]:
    return [(7 * at + 3 * seed) % 11 - 5 for at in range(count)]


def drawn(library: Any, dtype: DType, count: int, device: str, seed: int = 0) -> Any:
    """Small whole numbers, which every format holds."""
    found = library.tensor(numbers(count, seed), dtype=library.float32, device=device)
    return (found.abs() if dtype is dtypes.uint8 else found).to(getattr(library, dtype.name))


def _written(x: Any, at: slice, value: Any) -> Any:
    y = x.clone()
    y[at] = value
    return y


def _in_steps(x: Any) -> Any:
    """Written in place, through views, and once more after it was computed."""
    y = x.clone()
    y.tolist()
    y[1:4] = x[:3].flip(0)[: y[1:4].numel()]
    y[::2] = y.flip(0)[::2].clone()
    y.tolist()
    y.view(-1)[-3:].fill_(1)
    return y


# What is done to n elements. Views, and what copies them: no rule of arithmetic is in question here.
MOVES: dict[str, Callable[[Any, Any], Any]] = {
    "clone": lambda library, x: x.clone(),
    "flip": lambda library, x: x.flip(0),
    "tail": lambda library, x: x[1:].clone(),
    "every third": lambda library, x: x[2::3].clone(),
    "cat": lambda library, x: library.cat([x[3:], x, x[:2]]),
    "roll": lambda library, x: x.roll(1, 0),
    "columns": lambda library, x: x.repeat(3).view(3, -1).t().contiguous(),
    "broadcast": lambda library, x: x[:, None].expand(-1, 3).clone(),
    "padded": lambda library, x: library.nn.functional.pad(x, (1, 2)),
    "slice written": lambda library, x: _written(x, slice(1, 4), x[:3].flip(0)[: x[1:4].numel()]),
    "every second written": lambda library, x: _written(x, slice(None, None, 2), x[::2] == x[::2]),
    "written in place": lambda library, x: _in_steps(x),
    "rows": lambda library, x: x[library.arange(x.numel(), device=x.device) // 2],
    "where": lambda library, x: library.where(x > 0, x, x.flip(0)),
    "mask": lambda library, x: x > 1,
    "sorted": lambda library, x: x.sort(0)[0],
    "put": lambda library, x: x.clone().index_copy_(0, library.arange(x.numel() // 2, device=x.device), x[x.numel() - x.numel() // 2 :]),  # noqa: E501
    "largest": lambda library, x: x.repeat(3).view(3, -1).amax(1) if x.numel() else x,
    "any": lambda library, x: (x > 4).repeat(2).view(2, -1).any(1),
}  # fmt: skip


def same(found: Any, wanted: Any) -> None:
    assert list(found.shape) == list(wanted.shape)
    assert str(found.dtype) == str(wanted.dtype)
    assert found.tolist() == wanted.tolist()


@packed
@pytest.mark.parametrize("move", MOVES)
@pytest.mark.one_in(6)
def test_elements_are_moved_as_in_torch(move: str, dtype: DType, device: str) -> None:
    found = [MOVES[move](torch, drawn(torch, dtype, n, device)) for n in SIZES]
    for n, value in enumerate(found):
        same(value, MOVES[move](peer, drawn(peer, dtype, n, "cpu")))


@packed
def test_every_bit_pattern_comes_through_a_kernel(dtype: DType, device: str) -> None:
    """Subnormal numbers, both zeros, infinities; what is no number stays none."""
    bits = np.arange(2 if dtype is dtypes.bool_ else 1 << (8 * dtype.itemsize)).astype(BITS[dtype.itemsize])
    x = torch.frombuffer(bytearray(bits.tobytes()), dtype=dtype).to(device)
    wanted = peer.frombuffer(bytearray(bits.tobytes()), dtype=getattr(peer, dtype.name))
    moved, wide = (torch.cat([x[1:], x[:1]]), x.float() if dtype.is_floating_point else x.int())
    held = np.frombuffer(moved.cpu().tobytes(), BITS[dtype.itemsize])
    is_number = ~wanted.isnan().numpy()
    np.testing.assert_array_equal(held[np.roll(is_number, -1)], np.roll(bits, -1)[np.roll(is_number, -1)])
    np.testing.assert_array_equal(np.array(moved.float().tolist()), np.roll(wanted.float().numpy(), -1))
    np.testing.assert_array_equal(np.array(wide.tolist()), wanted.float().numpy())


@floats
def test_numbers_are_rounded_once_and_as_in_torch(dtype: DType, device: str) -> None:
    draw = np.random.default_rng(0)
    x = (draw.standard_normal(4001) * 2.0 ** draw.integers(-30, 30, 4001)).astype("float32")
    x[:8] = [65504, 65519.99, 65520, -65520, 1e-8, 2.98e-8, 2.99e-8, 6e-8]
    found, wanted = torch.tensor(x, device=device).to(dtype), peer.tensor(x).to(getattr(peer, dtype.name))
    np.testing.assert_array_equal(found.float().numpy(), wanted.float().numpy())


def _row_kernels(library: Any, x: Any) -> list[Any]:
    rows = x.repeat(3).view(3, -1) / 4
    return [
        rows.softmax(1),
        library.nn.functional.layer_norm(rows, rows.shape[1:]),
        rows.sum(1),
        rows.mean(0),
        (rows * rows).mean(1),
    ]


def _products(library: Any, x: Any) -> list[Any]:
    rows = x.repeat(3).view(3, -1) / 4
    down, across = rows @ rows.t(), rows.t() @ rows
    return [down, across, library.relu(across + across[0]), (rows[None] @ rows.t()[None]).sum(2), across * 2 - 1]


KERNELS = {"rows": _row_kernels, "products": _products}


@pytest.fixture(params=[True, False], ids=["cpu plays gpu", "gpu"])
def engine(request: pytest.FixtureRequest, device: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The device, compiled for as a CPU that plays a GPU, and as a GPU: their kernels share work in other ways."""
    opened: Any = devices.open_device(device)
    if not opened.target.wgsl and not request.param:
        pytest.skip("device cpu has no kernels")
    limits = replace(opened.target.limits, emulated=request.param)
    monkeypatch.setattr(type(opened) if device == "cpu" else opened, "target", replace(opened.target, limits=limits))
    program_cache.clear()
    yield device
    program_cache.clear()


@floats
@pytest.mark.parametrize("kind", KERNELS)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 17, 64, 65])
@pytest.mark.one_in(6)
def test_sums_are_those_of_float32(n: int, kind: str, dtype: DType, engine: str) -> None:
    """Against float64, with one rounding to the dtype: sums in the dtype itself would be further away."""
    found = KERNELS[kind](torch, drawn(torch, dtype, n, engine))
    wanted = KERNELS[kind](peer, drawn(peer, dtype, n, "cpu").double())
    bound = {dtypes.float16: 2e-3, dtypes.bfloat16: 1.6e-2}[dtype]
    for one, other in zip(found, wanted, strict=True):
        assert one.dtype is dtype
        other = other.numpy()
        np.testing.assert_allclose(
            one.double().cpu().numpy() if engine == "cpu" else one.float().numpy(),
            other,
            rtol=2 * bound,
            atol=2 * bound,
        )


def test_a_long_sum_does_not_stop_where_the_dtype_would(device: str) -> None:
    ones = torch.ones(4096, 4, device=device, dtype=torch.float16)
    assert (ones.sum(0) / 16).tolist() == [256.0] * 4
    assert (ones.t() @ ones).tolist() == [[4096.0] * 4] * 4
    eights = torch.full((8192,), 0.125, device=device, dtype=torch.bfloat16)
    assert eights.sum().item() == 1024.0


def test_one_kernel_writes_several_formats(device: str) -> None:
    """As many neighbours an invocation as the smallest format has in a word."""
    for n in (1, 3, 4, 7, 1025):
        x = torch.arange(n, device=device, dtype=torch.float32)
        opened = devices.open_device(device)
        executor.submit(opened)
        before = dict(opened.counters)
        found = [x + 1, (x * 2).half(), x > 2, (x * 3).to(torch.int16), x.to(torch.uint8), (x - 1).bfloat16()]
        executor.submit(opened)
        if opened.target.wgsl:
            assert opened.counters["dispatches"] - before["dispatches"] == 1
        at = peer.arange(n, dtype=peer.float32)
        wanted = [at + 1, (at * 2).half(), at > 2, (at * 3).to(peer.int16), at.to(peer.uint8), (at - 1).bfloat16()]
        for one, other in zip(found, wanted, strict=True):
            same(one, other)


@packed
def test_a_part_of_a_flat_tensor_lies_at_a_word(dtype: DType, device: str) -> None:
    """Computed where it belongs, copied, written to; what lies between parts is zero."""
    sizes = (1, 3, 64, 5, 127, 130, 2)
    parts = [drawn(torch, dtype, n, device, n) for n in sizes]
    parts = [part * 1 if at % 2 and dtype is not dtypes.bool_ else part for at, part in enumerate(parts)]
    flat = packed_.gather(parts, clean=True)
    step = packing.alignment(dtype)
    wanted = [drawn(peer, dtype, n, "cpu", n) for n in sizes]
    lying = [value for part in wanted for value in part.tolist() + [0] * (-len(part) % step)]
    assert flat.tolist() == lying
    for part, other in zip(parts, wanted, strict=True):
        part[-1:] = 1
        other[-1:] = 1
        same(part, other)


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=lambda dtype: dtype.name)
def test_a_value_takes_the_bytes_that_torch_says(dtype: DType, device: str) -> None:
    opened = devices.open_device(device)
    if opened.target.wgsl and dtype.compute is None:
        pytest.skip("webgpu has no float64")
    if not opened.target.wgsl and dtype is dtypes.bfloat16:
        pytest.skip("NumPy has no bfloat16: device cpu holds float32")
    size = dtype.format.itemsize if opened.target.wgsl else dtype.itemsize  # an int64 is an int32 there
    x = None
    for n in (1 << 20, 5):
        del x
        executor.submit(opened)
        gc.collect()
        before = memory.allocated(device)
        x = torch.ones(n, device=device).to(dtype)
        torch.webgpu.synchronize(device)
        gc.collect()
        assert memory.allocated(device) - before == (-(-n * size // 4) * 4 if opened.target.wgsl else n * size)
        assert (x.nbytes, x.element_size()) == (n * dtype.itemsize, dtype.itemsize)
        assert x.element_size() == getattr(peer, dtype.name).itemsize


def test_a_format_may_take_several_words() -> None:
    pair = Format("pair", 8, "vec2<f32>")
    assert (pair.per_word, pair.words(5), pair.nbytes(5), pair.room(0)) == (1, 5, 40, 4)


@packed
def test_whole_words_are_written_in_every_size(dtype: DType) -> None:
    assert [dtype.format.nbytes(n) for n in range(6)] == [-(-n * dtype.itemsize // 4) * 4 for n in range(6)]
