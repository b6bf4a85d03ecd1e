"""WGSL of one kernel of each kind, for a device with WebGPU's default limits. Review reads their diff as code."""

from collections.abc import Callable
from typing import Any

import pytest

import pywebgpu as torch
from pywebgpu.kernels.kernel import Kernel, Limits
from pywebgpu.nn import functional as F
from pywebgpu.ops import packing
from pywebgpu.tensor.apply import apply
from tests.unit.compiled import for_limits, leaf

Subject = Callable[[], Any]


def layer_norm() -> Any:
    return F.layer_norm(leaf(64, 128), (128,), leaf(128), leaf(128))


def linear_relu() -> Any:
    return F.linear(leaf(64, 128), leaf(32, 128), leaf(32)).relu()


def vectors() -> Any:
    x, row, column = leaf(512, 128), leaf(128), leaf(512, 1)
    return x * row + column


def scatter_add() -> Any:
    return leaf(10, 4).index_add(0, leaf(30, dtype=torch.int64), leaf(30, 4))


def scatter_in_place() -> Any:
    return leaf(4000, 64).index_add(0, leaf(100, dtype=torch.int64), leaf(100, 64))


def written_slice() -> Any:
    x = leaf(8, 8)
    x[2:4, ::2] = leaf(2, 4)
    return x


def half_precision() -> Any:
    return leaf(100, dtype=torch.float16) * leaf(100, dtype=torch.float16) + 1


def packed() -> Any:
    parts = leaf(5).exp(), leaf(70).sin()
    return apply(lambda a, b: packing.pack(a, b, starts=(0, 64), size=192, clean=True), *parts)


KERNELS: dict[str, Subject] = {
    "map/several_outputs": lambda: [(x := leaf(64, 128)).sin(), x.exp(), x * 2],
    "map/broadcast": lambda: (leaf(3, 1, 5) + leaf(4, 1)) * leaf(5),
    "map/vectors": vectors,
    "map/transposed": lambda: leaf(64, 128).t().relu(),
    "map/padded": lambda: F.pad(leaf(6, 7), (1, 2)) + 1,
    "map/half_precision": half_precision,
    "map/cat": lambda: torch.cat([leaf(3, 4), leaf(5, 4), leaf(2, 4)]),
    "map/written_slice": written_slice,
    "map/embedding": lambda: F.embedding(leaf(7, 5, dtype=torch.int64), leaf(100, 16)),
    "map/index_check": lambda: leaf(100)[leaf(7, dtype=torch.int64)],
    "map/dropout": lambda: F.dropout(leaf(64, 128), 0.25),
    "map/two_dimensional_grid": lambda: leaf(256 * 65_536 + 1) + 1,
    "rows/softmax": lambda: leaf(64, 128).softmax(-1),
    "rows/layer_norm": layer_norm,
    "rows/column_sum": lambda: leaf(300, 64).sum(0),
    "rows/argmax": lambda: leaf(64, 128).argmax(1),
    "product/linear_relu": linear_relu,
    "product/batched_transposed": lambda: leaf(4, 9, 5) @ leaf(4, 7, 5).transpose(1, 2),
    "single/scan": lambda: leaf(5, 300).cumsum(1),
    "single/scan_blocks": lambda: leaf(4, 8192).cumsum(1),
}


def launch(found: Kernel) -> str:
    writes = ", ".join(f"b{at}" for at, written in enumerate(found.writes) if written)
    return f"// {found.name}: grid {found.grid}, writes {writes}\n"


@pytest.mark.parametrize("name", KERNELS)
def test_kernel_is_the_stored_one(name: str, golden: Callable[[str, str], None]) -> None:
    wanted = KERNELS[name]()
    program = for_limits(Limits(), *(wanted if isinstance(wanted, list) else [wanted]))
    (found,) = program.kernels
    golden(f"kernels/{name}.wgsl", launch(found) + found.wgsl)


def attention_backward() -> Any:
    x, grad = leaf(1, 2, 20, 8, grad=True), leaf(1, 2, 20, 8)
    return torch.autograd.grad(F.scaled_dot_product_attention(x, x, x, is_causal=True), x, grad)[0]


PARTS: dict[str, Subject] = {
    "attention": lambda: F.scaled_dot_product_attention(*[leaf(1, 2, 20, 8)] * 3, is_causal=True),
    "attention_backward": attention_backward,
    "sort_block": lambda: leaf(3, 500).argsort(1),
    "sort_merge": lambda: leaf(3, 500).argsort(1),
    "scatter_add": scatter_add,
    "scatter_blocks_add": scatter_in_place,
    "scatter_carried_add": scatter_in_place,
    "pack_gaps": packed,
}


@pytest.mark.parametrize("name", PARTS)
def test_kernel_among_others_is_the_stored_one(name: str, golden: Callable[[str, str], None]) -> None:
    program = for_limits(Limits(), PARTS[name]())
    (found,) = [kernel for kernel in program.kernels if kernel.name == name]
    golden(f"kernels/single/{name}.wgsl", launch(found) + found.wgsl)


def test_kernels_do_not_depend_on_what_came_before() -> None:
    """Equal programs have equal text, or a cache of pipelines would not find them."""
    for subject in KERNELS.values():
        texts = []
        for _ in range(2):
            wanted = subject()
            texts.append(for_limits(Limits(), *(wanted if isinstance(wanted, list) else [wanted])).kernels)
        assert texts[0] == texts[1]
