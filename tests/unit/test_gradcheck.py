"""The gradient of every op that has one: against differences of its values, again, forward, over batches; and that a
gradient which is wrong fails here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import pytest

import pywebgpu as torch
from pywebgpu.autodiff import backward
from pywebgpu.autograd import forward_ad
from pywebgpu.composites import arithmetic
from pywebgpu.ir.graph import Node
from tests.cases import records
from tests.cases.records import Call

SLOPES = [op for op in records.ALL if records.is_differentiated(op)]


def leaves(call: Call) -> list[Any]:
    return [leaf.drawn(seed) for seed, leaf in enumerate(call.leaves)]


def every_op(without: frozenset[str] = frozenset()) -> list[Any]:
    without |= records.WITHOUT_A_SLOPE
    return [pytest.param(op, id=op.name) for op in SLOPES if op.name not in without]


@pytest.mark.parametrize("op", every_op())
def test_gradients_are_slopes(op: Any) -> None:
    for call in records.calls(op):
        assert torch.autograd.gradcheck(call.function, leaves(call))


@pytest.mark.parametrize("op", every_op())
def test_a_wrong_gradient_fails(op: Any) -> None:
    """Of each rule of a record: if nothing failed, nothing would hold it."""
    for which in range(len(op.vjp) if isinstance(op.vjp, tuple) else 1):
        if isinstance(op.vjp, tuple) and op.vjp[which] is None:
            continue
        failures = 0
        with wrong(op, which):
            for call in records.calls(op):
                failures += not torch.autograd.gradcheck(call.function, leaves(call), raise_exception=False)
        assert failures, f"{op.name}: gradient {which} may be anything"


@contextmanager
def wrong(op: Any, which: int) -> Iterator[None]:
    """A record with a gradient that is off."""
    right = op.vjp
    rules = list(right) if isinstance(right, tuple) else [right]
    rules[which] = _off(rules[which], _more if op.name in records.FLAT else _times)
    object.__setattr__(op, "vjp", tuple(rules) if isinstance(right, tuple) else rules[0])
    try:
        with mock.patch.object(backward, "_known", {}):  # the formulas of ops that were differentiated before
            yield
    finally:
        object.__setattr__(op, "vjp", right)


def _off(rule: Callable[..., Any], change: Callable[[Node], Node]) -> Callable[..., Any]:
    def off(*args: Any, **attrs: Any) -> Any:
        result = rule(*args, **attrs)
        if isinstance(result, Node):
            return change(result)
        return result and [None if part is None else change(part) for part in result]

    return off


def _times(gradient: Node) -> Node:
    return arithmetic.mul(gradient, 1.1)


def _more(gradient: Node) -> Node:
    return arithmetic.add(gradient, 0.1)


@pytest.mark.parametrize("op", every_op(records.NO_SECOND))
def test_second_gradients_are_slopes(op: Any) -> None:
    for call in records.calls(op):
        assert torch.autograd.gradgradcheck(call.function, leaves(call))


@pytest.mark.parametrize("op", every_op())
def test_forward_derivatives_are_slopes(op: Any) -> None:
    for call in records.calls(op):
        given = [leaf.detach() for leaf in leaves(call)]
        along = [leaf.drawn(seed + 10).detach() for seed, leaf in enumerate(call.leaves)]
        with forward_ad.dual_level():
            out = call.function(*map(forward_ad.make_dual, given, along))
            tangent = forward_ad.unpack_dual(out).tangent
        step = 1e-6
        after, before = (
            call.function(*[x + sign * step * v for x, v in zip(given, along, strict=True)]) for sign in (1, -1)
        )
        torch.testing.assert_close(tangent, (after - before) / (2 * step), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("op", every_op())
def test_batches_are_samples(op: Any) -> None:
    """Values and gradients over two samples at once."""
    for call in records.calls(op):
        if not call.batches:
            continue
        samples = [[leaf.drawn(seed + 20 * n).detach() for seed, leaf in enumerate(call.leaves)] for n in (0, 1)]
        batch = [torch.stack(pair).requires_grad_() for pair in zip(*samples, strict=True)]
        own = [[leaf.clone().requires_grad_() for leaf in sample] for sample in samples]
        out = torch.func.vmap(call.function)(*batch)
        expected = torch.stack([call.function(*sample) for sample in own])
        torch.testing.assert_close(out, expected)
        found = torch.autograd.grad(out.abs().square().sum(), batch)
        apart = [torch.autograd.grad(call.function(*sample).abs().square().sum(), sample) for sample in own]
        for gradient, parts in zip(found, zip(*apart, strict=True), strict=True):
            torch.testing.assert_close(gradient, torch.stack(parts))


@pytest.mark.one_in(webgpu=4)
@pytest.mark.parametrize("op", every_op(records.OF_PASSES))
def test_a_device_computes_values_and_gradients(op: Any, device: str) -> None:
    """In float32, against float64 on device cpu."""
    for call in records.calls(op):
        results = []
        for place, dtype in (("cpu", "float64"), (device, "float32")):
            given = [leaf.drawn(seed, place, dtype) for seed, leaf in enumerate(call.leaves)]
            out = call.function(*given)
            gradients = torch.autograd.grad(out.square().sum(), given)
            results.append([x.detach().cpu().double() for x in (out, *gradients)])
        for expected, value in zip(*results, strict=True):
            torch.testing.assert_close(value, expected, rtol=2e-4, atol=2e-5)


def test_ops_without_a_gradient_say_so() -> None:
    """No gradient flows, or the lowering alone makes them, after gradients were taken."""
    without = {op.name for op in records.ALL if not records.is_differentiated(op)} - records.HISTORY
    assert without.isdisjoint(records.CALLS)
