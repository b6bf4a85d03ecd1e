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
from pywebgpu.compiler.program import Dispatch, Program
from pywebgpu.dtypes import DType
from pywebgpu.kernels.kernel import Limits
from pywebgpu.ops import packing, special
from pywebgpu.runtime import executor, program_cache
from pywebgpu.support.formats import Format
from pywebgpu.tensor import flat_parameters
from tests.cases.case import Case
from tests.cases.formats import CASES, drawn
from tests.oracle import oracle
from tests.unit.compiled import for_limits, leaf

HALF = torch.float16
PACKED = [dtype for dtype in dtypes.ALL if dtype.format.per_word > 1 and dtype.compute is not None]  # of webgpu
FLOATS = [dtype for dtype in PACKED if dtype.is_floating_point]
BITS = {1: "uint8", 2: "uint16", 4: "uint32"}

packed = pytest.mark.parametrize("dtype", PACKED, ids=lambda dtype: dtype.name)
floats = pytest.mark.parametrize("dtype", FLOATS, ids=lambda dtype: dtype.name)


def same(found: Any, wanted: Any) -> None:
    assert list(found.shape) == list(wanted.shape)
    assert str(found.dtype) == str(wanted.dtype)
    assert found.tolist() == wanted.tolist()


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


@pytest.fixture
def gpu(device: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The device, compiled for as a GPU also where a CPU plays one: kernels share their work in another way."""
    opened: Any = devices.open_device(device)
    if not opened.target.wgsl:
        pytest.skip("device cpu has no kernels")
    limits = replace(opened.target.limits, emulated=False)
    monkeypatch.setattr(opened, "target", replace(opened.target, limits=limits))
    program_cache.clear()
    yield device
    program_cache.clear()


@pytest.mark.parametrize("case", [case for case in CASES if case.name.endswith("float16")], ids=lambda case: case.name)
@pytest.mark.one_in(4)
def test_kernels_of_a_gpu_give_what_torch_gives(case: Case, gpu: str) -> None:
    oracle.agree(case, gpu)


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
    parts = [drawn(torch, dtype.name, n, n).to(device) for n in sizes]
    parts = [part * 1 if at % 2 and dtype is not dtypes.bool_ else part for at, part in enumerate(parts)]
    flat = flat_parameters.gather(parts, clean=True)
    step = packing.alignment(dtype)
    wanted = [drawn(peer, dtype.name, n, n) for n in sizes]
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
    if not opened.target.wgsl and dtype in special.ROUNDED:
        pytest.skip("NumPy has no such dtype: device cpu holds float32 or complex64")
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


def stored(program: Program) -> list[tuple[str, str, int]]:
    """By each step: the values that it writes, with the format that they lie in, and their bytes."""
    found = []
    for step in program.steps:
        assert isinstance(step, Dispatch)
        for slot, writes in zip(step.slots, program.kernels[step.kernel].writes, strict=True):
            value = program.slots[slot]
            if writes:
                format_ = value.format or value.spec.dtype.format
                found.append((value.spec.dtype.name, format_.name, value.nbytes))
    return found


def _chain() -> Any:
    x, y, z = (leaf(*shape, dtype=HALF) for shape in ((4, 4), (4, 5), (5, 6)))
    return (x @ y) @ z


# What is computed -> the values that its steps write: dtype, format, bytes.
STORED: dict[str, tuple[Callable[[], Any], list[tuple[str, str, int]]]] = {
    "a product of even rows": (lambda: leaf(3, 4, dtype=HALF) @ leaf(4, 6, dtype=HALF), [("float16", "f16", 36)]),
    "a product of odd rows": (
        lambda: leaf(4, 4, dtype=HALF) @ leaf(4, 5, dtype=HALF),
        [("float16", "f32", 80), ("float16", "f16", 40)],
    ),
    "its use inside": (_chain, [("float16", "f32", 80), ("float16", "f16", 48)]),
    "rows": (lambda: leaf(3, 6, dtype=HALF).softmax(1), [("float16", "f16", 36)]),
    "odd rows": (lambda: leaf(3, 5, dtype=HALF).softmax(1), [("float32", "f32", 60), ("float16", "f16", 32)]),
    "one a row": (lambda: leaf(3, 6, dtype=HALF).sum(1), [("float16", "f16", 8)]),
    "a mask": (lambda: leaf(5) > 0, [("bool", "u8", 8)]),
    "scattered": (
        lambda: leaf(5, 1, dtype=HALF).index_add(0, leaf(2, dtype=torch.int64), leaf(2, 1, dtype=HALF)),
        [("int64", "i32", 8), ("float16", "f16", 12)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", STORED)
def test_what_a_kernel_cannot_pack_has_a_word_until_it_leaves(name: str) -> None:
    build, wanted = STORED[name]
    program = for_limits(Limits(), build())
    assert stored(program) == wanted
