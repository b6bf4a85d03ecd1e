"""No invocation goes round its loops more often than adapters stand: llvmpipe ends them after 65,535 rounds in all.

What it leaves then is a wrong number without a word, so each kind of kernel is compiled here for large values, on
devices that lay it out each in its own way.
"""

from collections.abc import Callable
from typing import Any

import pytest

import pywebgpu as torch
from pywebgpu.kernels import wgsl
from pywebgpu.kernels.kernel import Limits
from pywebgpu.kernels.target import SUBGROUPS, Features, Target
from pywebgpu.nn import functional
from tests.unit.compiled import NULL, leaf, programs
from tests.unit.loop_rounds import most_rounds

MOST = 65_535
MILLION = 1_000_003  # A prime: no even parts.
LARGE = {"binding_bytes": (2 << 30) - 4, "buffer_bytes": (2 << 30) - 4}
TARGETS = {
    "llvmpipe": Target(True, Limits(bindings=16, **LARGE), Features((SUBGROUPS,), (4, 128), (), "llvmpipe", "cpu")),
    "emulated": Target(True, Limits(emulated=True, **LARGE), Features((SUBGROUPS,), (4, 4), (), "swiftshader", "cpu")),
}


def numbers(*shape: int) -> Any:
    return leaf(*shape, dtype=torch.int64)


def scattered(count: int, rows: int, mode: str, dtype: Any = torch.float32) -> Any:
    return leaf(rows, dtype=dtype).scatter_reduce(0, numbers(count), leaf(count, dtype=dtype), mode)


def attended(queries: int, keys: int) -> Any:
    inputs = leaf(1, 1, queries, 64, grad=True), *[leaf(1, 1, keys, 64, grad=True) for _ in range(2)]
    out = functional.scaled_dot_product_attention(*inputs)
    return out, *torch.autograd.grad(out.sum(), inputs)


def embedded(count: int, width: int) -> Any:
    weights = leaf(1000, width, grad=True)
    return torch.autograd.grad(functional.embedding(numbers(count), weights).sum(), weights)


SUBJECTS: dict[str, Callable[[], Any]] = {
    "all of a sum": lambda: leaf(20 * MILLION).sum(),
    "sums along rows": lambda: leaf(64, MILLION).sum(1),
    "sums of few columns": lambda: leaf(MILLION, 3).sum(0),
    "sums between axes": lambda: leaf(4, 200_003, 16).sum(1),
    "sums of axes apart": lambda: leaf(16, 8, 301, 307).sum((0, 2, 3)),
    "sums of windows": lambda: leaf(MILLION).unfold(0, 70_001, 1000).sum(1),
    "whether any": lambda: (leaf(20 * MILLION) > 0).any(),
    "a variance": lambda: leaf(64, 200_003).var(1),
    "the place of the largest": lambda: leaf(30 * MILLION).argmax(),
    "the largest of rows": lambda: leaf(64, 200_003).max(1),
    "a softmax of rows": lambda: leaf(64, 200_003).softmax(-1),
    "a scan": lambda: leaf(300 * MILLION).cumsum(0),
    "a scan of sums of exponentials": lambda: leaf(20 * MILLION).logcumsumexp(0),
    "rows added by number": lambda: scattered(10 * MILLION, 4, "sum"),
    "halves chosen by number": lambda: scattered(MILLION, 4, "amax", torch.float16),
    "rows replaced by number": lambda: leaf(4, 3).index_put((numbers(MILLION),), leaf(MILLION, 3)),
    "gradients of wide rows": lambda: embedded(4 * MILLION, 64),
    "an order": lambda: numbers(MILLION).sort(),
    "a product along a long axis": lambda: leaf(64, MILLION) @ leaf(MILLION, 64),
    "a product along 32,768": lambda: leaf(64, 32_768) @ leaf(32_768, 64),
    "attention to many keys": lambda: attended(64, 262_144),
    "attention of many to many": lambda: attended(65_536, 65_536),
    "attention of many to many more": lambda: attended(4096, 262_144),
}


@pytest.mark.parametrize("name", SUBJECTS)
def test_no_invocation_goes_round_more_often_than_adapters_stand(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rounds: dict[str, int] = {}
    real = wgsl.kernel

    def counted(function: Any, *others: Any) -> Any:
        rounds[function.name] = max(most_rounds(function), rounds.get(function.name, 0))
        return real(function, *others)

    monkeypatch.setattr(wgsl, "kernel", counted)
    for target in TARGETS.values():
        monkeypatch.setattr(NULL, "target", target)
        assert programs(SUBJECTS[name])
    # More than the zeros that stand for data: what is refused is so only when it is read.
    assert len(rounds) > 1
    assert {kernel: count for kernel, count in rounds.items() if count > MOST} == {}
