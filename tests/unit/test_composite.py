"""Composite ops: a call that is recorded as one node is what it is made of. Subjects: functions that are decorated."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import pywebgpu as torch
from pywebgpu.composites import arithmetic, composite_op
from pywebgpu.ir import walk
from pywebgpu.ir.graph import Composite, Node, thread_state
from pywebgpu.nn import functional as F
from pywebgpu.ops import pointwise
from tests.unit.compiled import leaf, programs, settle


def _attention(x: Any, weight: Any, bias: Any) -> Any:
    parts = F.linear(x, weight, bias).split(4, dim=-1)
    return F.scaled_dot_product_attention(*parts, is_causal=True)


# name -> (function of x (2, 3, 4), weight (12, 4), bias (12,), composite nodes in a call)
FUNCTIONS: dict[str, tuple[Callable[..., Any], int]] = {
    "linear": (F.linear, 1),
    "linear without bias": (lambda x, w, b: F.linear(x, w), 1),
    "layer_norm": (lambda x, w, b: F.layer_norm(F.linear(x, w, b), (12,), b, b), 2),
    "rms_norm": (lambda x, w, b: F.rms_norm(F.linear(x, w, b), (12,), b), 2),
    "group_norm": (lambda x, w, b: F.group_norm(F.linear(x, w, b), 3), 2),
    "gelu": (lambda x, w, b: F.gelu(F.linear(x, w, b)), 2),
    "gelu by tanh": (lambda x, w, b: F.gelu(F.linear(x, w, b), approximate="tanh"), 2),
    "attention": (_attention, 2),
    "one value three times": (lambda x, w, b: F.scaled_dot_product_attention(x, x, x), 1),
}


def values() -> list[Any]:
    torch.manual_seed(3)
    return [torch.randn(*shape, dtype=torch.float64, device="cpu") for shape in ((2, 3, 4), (12, 4), (12,))]


def composites(*roots: Node) -> list[Node]:
    return [node for node in walk.toposort(roots) if isinstance(node.op, Composite)]


@contextmanager
def decomposing() -> Iterator[None]:
    """Calls are recorded as what they are made of."""
    thread_state.decomposing = True
    try:
        yield
    finally:
        thread_state.decomposing = False


def gradients(function: Callable[..., Any]) -> list[Any]:
    """The value, its gradients, and the gradients of their squares."""
    inputs = [x.requires_grad_() for x in values()]
    out = function(*inputs)
    first = torch.autograd.grad(out.square().sum(), inputs, create_graph=True, allow_unused=True)
    first = [x for x in first if x is not None]
    second = torch.autograd.grad(sum(x.square().sum() for x in first), inputs, allow_unused=True)
    return [x.detach().tolist() for x in (out, *first, *second) if x is not None]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_derivatives_are_those_of_what_it_is_made_of(name: str) -> None:
    function, _ = FUNCTIONS[name]
    with decomposing():
        expected = gradients(function)
    found = gradients(function)
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert np.allclose(one, other, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_call_is_one_node_and_a_gradient_is_one(name: str) -> None:
    function, count = FUNCTIONS[name]
    x, weight, bias = (leaf(*shape, grad=True) for shape in ((2, 3, 4), (12, 4), (12,)))
    out = function(x, weight, bias)
    assert len(composites(out._node)) == count
    out.sum().backward()
    found = [tensor.grad._node for tensor in (x, weight, bias) if tensor.grad is not None]
    made = [node for node in composites(*found) if node.op.name.endswith("_gradient")]
    assert 1 <= len(made) <= sum(len(node.inputs) for node in composites(out._node))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_program_is_as_long_as_that_of_what_it_is_made_of(name: str) -> None:
    """Also where the value is forced before its gradient is asked for: nothing is computed twice."""
    function, _ = FUNCTIONS[name]

    def step(*, forced: bool) -> Any:
        inputs = [leaf(*shape, grad=True) for shape in ((2, 3, 4), (12, 4), (12,))]
        loss = function(*inputs).square().sum()
        if forced:
            settle()
        loss.backward()
        return [loss, *(x.grad for x in inputs)]

    for forced in (False, True):
        with decomposing():
            expected = [len(program.steps) for program in programs(lambda forced=forced: step(forced=forced))]
        assert [len(program.steps) for program in programs(lambda forced=forced: step(forced=forced))] == expected


def test_equal_calls_are_one_op() -> None:
    x, weight, bias = (leaf(*shape) for shape in ((2, 3, 4), (12, 4), (12,)))
    one, other = F.linear(x, weight, bias), F.linear(x, weight, bias)
    assert one._node.op is other._node.op
    assert F.linear(x, weight)._node.op is not one._node.op
    assert F.layer_norm(x, (4,), eps=1e-5)._node.op is not F.layer_norm(x, (4,), eps=1e-6)._node.op


# name -> a call that depends on more than specs and constants
RECORDED_AS_THEY_ARE: dict[str, Callable[[Any], Any]] = {
    "a draw": lambda x: F.scaled_dot_product_attention(x, x, x, dropout_p=0.5),
    "a negative zero": lambda x: F.scaled_dot_product_attention(x, x, x, scale=-0.0),
    "NaN": lambda x: F.layer_norm(x, (4,), eps=float("nan")),
}


@pytest.mark.parametrize("name", RECORDED_AS_THEY_ARE)
def test_what_follows_from_more_than_specs_is_recorded_as_it_is(name: str) -> None:
    assert not composites(RECORDED_AS_THEY_ARE[name](leaf(2, 3, 4))._node)


@composite_op.composite
def scaled(x: Node, factor: float) -> Node:
    return pointwise.mul(x, arithmetic.like(x, factor))


def test_equal_arguments_of_other_types_are_other_ops() -> None:
    x = leaf(2, 4)._node
    assert len({scaled(x, factor).op for factor in (1, 1.0, True, 1.0, 1)}) == 3


def test_a_number_that_changes_from_replay_to_replay_stays_one() -> None:
    """eps becomes a part of the op only where nothing can change it."""
    x = torch.randn(3, 4, device="cpu")

    @torch.compile
    def step(x: Any, eps: float) -> Any:
        return F.layer_norm(x, (4,), eps=eps)

    for eps in (1e-5, 1e-2, 0.5, 2.0, 3.0):
        assert torch.allclose(step(x, eps), F.layer_norm(x, (4,), eps=eps))


def test_backward_after_a_write_to_what_the_gradient_reads_is_an_error() -> None:
    x, weight, _ = values()
    weight.requires_grad_()
    out = F.linear(x, weight)
    x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation: linear"):
        out.sum().backward()


def test_backward_twice_is_an_error_and_with_retain_graph_is_not() -> None:
    x, weight, bias = (value.requires_grad_() for value in values())
    loss = F.gelu(F.linear(x, weight, bias)).sum()
    loss.backward(retain_graph=True)
    first = weight.grad.tolist()
    loss.backward()
    assert np.allclose(weight.grad.tolist(), 2 * np.array(first))
    with pytest.raises(RuntimeError, match="second time"):
        loss.backward()
