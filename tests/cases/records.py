"""Every record of an op, wherever it is, and a call of each: what tests of values and gradients draw for it.

Records are discovered, so an op that is added has its tests at once: the elementwise ones without a word here, any
other kind fails a test until its call stands here.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import pywebgpu as torch
from pywebgpu import composites, ops
from pywebgpu.composites import attention, linear_loss, normalize, sliding_products
from pywebgpu.ir.graph import Fused, Generator, Movement, Op, Pointwise, Reduction, Structural
from pywebgpu.ops import clamping, contraction, extremes, fourier, indexing, movement, packing, pointwise, reduction
from pywebgpu.tensor.apply import apply

KINDS = (Pointwise, Generator, Movement, Reduction, Structural, Fused)
PLACES = (ops, composites)


def modules() -> Iterator[Any]:
    """All modules in which records of ops are."""
    for package in PLACES:
        for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            yield importlib.import_module(found.name)


def _records() -> tuple[Op, ...]:
    found = {id(op): op for module in modules() for op in vars(module).values() if isinstance(op, KINDS)}
    return tuple(found.values())


ALL: tuple[Op, ...] = _records()


def of_kind(*kinds: type) -> list[Any]:
    return [op for op in ALL if isinstance(op, kinds)]


@dataclass(frozen=True)
class Leaf:
    """An input whose gradient is asked: its shape, and between which numbers its elements lie."""

    shape: tuple[int, ...] = (2, 3)
    low: float = -2.0
    high: float = 2.0

    def drawn(self, seed: int, device: str = "cpu", dtype: str = "float64") -> Any:
        values = np.random.default_rng(seed).uniform(self.low, self.high, self.shape)
        return torch.from_numpy(np.asarray(values).astype(dtype)).to(device).requires_grad_()


@dataclass(frozen=True)
class Call:
    """A function of tensors that calls one op, and what it is called with. batches: of samples, it maps over them."""

    function: Callable[..., Any]
    leaves: tuple[Leaf, ...]
    batches: bool = True


def _of(op: Any, *shapes: tuple[int, ...], low: float = -2.0, high: float = 2.0, **attrs: Any) -> Call:
    """A call of nodes with attributes."""
    leaves = tuple(Leaf(shape, low, high) for shape in shapes)
    return Call(lambda *given: apply(lambda *nodes: op(*nodes, **attrs), *given), leaves)


def _first(op: Any, *shapes: tuple[int, ...], **attrs: Any) -> Call:
    """The first value of a fused op."""
    return _of(lambda *nodes, **own: op(*nodes, **own)[0], *shapes, **attrs)


def _complex(op: Any, **attrs: Any) -> Call:
    """A call of an op of complex numbers, as a function of pairs of real ones."""

    def call(*pairs: Any) -> Any:
        out = apply(lambda *nodes: op(*nodes, **attrs), *[torch.view_as_complex(pair) for pair in pairs])
        return torch.view_as_real(out) if out.is_complex() else out

    return Call(call, (Leaf((2, 3, 2), 0.5),))


# Their gradient is not that of their value: what a write leaves behind, and steps whose gradient is 0 by definition.
HISTORY = frozenset({"graft", "overwrite"})
WITHOUT_A_SLOPE = frozenset({"floor_divide", "gcd", "trigamma"})  # as in PyTorch; of whole numbers; refused
FLAT = frozenset({"sign", "floor", "ceil", "trunc", "round", "trunc_divide"})  # of gradient 0
NO_SECOND = frozenset({"digamma"})  # PyTorch goes on to polygamma(2, x), which is refused here
OF_PASSES = frozenset({"part"})  # what passes alone make, where memory is laid out for it

_BOUNDS = (clamping.clamp, clamping.hardtanh, clamping.inside)
ROWS = np.array([2, 0, 2])
_CONDITION = np.array([[True, False, True], [False, True, True]])
_COMPLEX = {"real", "imag", "conj", "modulus", "view_as_real"}


def _rows() -> Any:
    return torch.from_numpy(ROWS)


def _scatter(mode: str) -> Call:
    def call(base: Any, source: Any) -> Any:
        rows = _rows().to(base.device)
        return apply(lambda b, i, s: indexing.scatter(b, i, s, mode=mode), base, rows, source)

    return Call(call, (Leaf((4, 2), 0.5), Leaf((3, 2), 0.5)))


def _attention() -> Call:
    options = {"scale": 0.5, "window": attention.ALL, "dropout": 0.0, "masked": False}
    return _first(attention.attention, (1, 2, 3, 4), (1, 2, 3, 4), (1, 2, 3, 4), **options)


def _chunked() -> Call:
    def call(x: Any, weight: Any) -> Any:
        classes = torch.tensor([[0], [3], [1]], device=x.device)
        share = torch.full((3, 1), 0.5, dtype=x.dtype, device=x.device)
        return apply(lambda *nodes: linear_loss._chunked(*nodes, rows=2)[0], x, weight, classes, share)

    return Call(call, (Leaf((3, 2)), Leaf((4, 2))), batches=False)


_BOUNDED = (Leaf((4, 5)), Leaf((4, 5), -0.5, 0.0), Leaf((4, 5), 0.0, 0.5))  # below, between and above
_ENDS = {"step": (1, 1), "dilation": (1, 1), "groups": 1}
CALLS: dict[str, list[Call]] = {
    **{op.name: [Call(lambda *given, op=op: apply(op, *given), _BOUNDED)] for op in _BOUNDS},
    # Movements
    "reshape": [_of(movement.reshape, (2, 3), shape=(3, 2))],
    "permute": [_of(movement.permute, (2, 3), order=(1, 0))],
    "expand": [_of(reduction.expand, (1, 3), shape=(2, 3))],
    "slice": [_of(movement.slice_, (2, 3), starts=(0, 1), sizes=(2, 1), steps=(1, 2))],
    "flip": [_of(movement.flip, (2, 3), axes=axes) for axes in ((1,), (0, 1))],
    "pad": [_of(movement.pad, (2, 3), shape=(4, 8), starts=(1, 0), steps=(2, 3), value=5.0)],
    "window": [_of(movement.window, (2, 3), axis=1, size=2, step=n, dilation=n) for n in (1, 2)],
    "unwindow": [_of(movement.unwindow, (2, 3), axis=0, length=5, step=2, dilation=1)],
    "barrier": [_of(movement.barrier, (2, 3), token=1)],
    "alias": [_of(movement.alias, (2, 3))],
    "piece": [_of(packing.piece, (128,), start=at, shape=shape) for at, shape in ((64, (2, 3)), (0, ()))],
    # Others
    "part": [_of(packing.part, (128,), start=64, shape=(2, 3))],
    "matmul": [_of(contraction.matmul, (2, 3, 4), (2, 4, 2))],
    "take": [Call(lambda x: apply(indexing.take, x, _rows().to(x.device)), (Leaf((3, 2)),))],
    "scatter": [_scatter(mode) for mode in ("add", "prod", "max", "min")],
    "cat": [_of(indexing.cat, (2, 1), (2, 3), axis=1)],
    "write_slice": [_of(indexing.write_slice, (3, 4), (2, 2), starts=(1, 0), steps=(1, 2))],
    "pack": [_of(packing.pack, (3, 4), (2,), starts=(0, 64), size=128, clean=clean) for clean in (False, True)],
    "scan": [_of(indexing.scan, (2, 4), low=0.5, mode=mode) for mode in ("add", "prod", "logaddexp")],
    "dft": [_complex(fourier.dft, inverse=inverse) for inverse in (False, True)],
    # Fused
    "largest": [_first(extremes.largest, (2, 3), axes=(1,))],
    "smallest": [_first(extremes.smallest, (2, 3), axes=(1,))],
    "standardized": [_first(normalize.standardized, (2, 3), axes=(1,), eps=1e-3)],
    "attention": [_attention()],
    "chunked_cross_entropy": [_chunked()],
    "sliding_product": [
        _first(sliding_products.sliding_product, (1, 2, 4, 4), (2, 2, 2, 3), before=(0, 1), after=(1, 0), **_ENDS)
    ],
    "spread_product": [_first(sliding_products.spread_product, (1, 2, 3, 3), (2, 2, 2, 2), lengths=(4, 4), **_ENDS)],
}  # fmt: skip


def calls(op: Any) -> list[Call]:
    """Calls of an op, through which a gradient flows to each input that has one."""
    if op.name in CALLS:
        return CALLS[op.name]
    if isinstance(op, Reduction):
        return [_of(op, (2, 3, 2), axes=axes) for axes in ((0,), (1,), (0, 2), (0, 1, 2))]
    if isinstance(op, Pointwise) or op.name in _COMPLEX | {"view_as_complex"}:
        return [_elementwise(op)]
    raise LookupError(f"{op.name}: write a call of it in tests/cases/records.py")


def _elementwise(op: Any) -> Call:
    if op is pointwise.where:
        leaves = (Leaf(), Leaf())
        return Call(lambda a, b: apply(op, torch.from_numpy(_CONDITION).to(a.device), a, b), leaves)
    if op is pointwise.cast:
        return Call(lambda a: apply(lambda n: op(n, dtype=a.dtype), a), (Leaf(),))
    if op.name == "view_as_complex":
        return Call(lambda a: torch.view_as_real(apply(op, a)), (Leaf((3, 2)),))
    if op.name == "complex":
        return Call(lambda a, b: torch.view_as_real(apply(op, a, b)), (Leaf(), Leaf()))
    if op.name in _COMPLEX:
        return _complex(op)
    low, high = op.domain
    return Call(lambda *given: apply(op, *given), (Leaf(low=low, high=high),) * len(op.vjp))


def is_differentiated(op: Any) -> bool:
    """Whether a gradient flows through an op that programs call."""
    rules = op.vjp if not isinstance(op, Generator) else None
    return op.name not in HISTORY and bool(any(rules) if isinstance(rules, tuple) else rules)
