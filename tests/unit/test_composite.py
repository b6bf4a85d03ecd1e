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
    "softmax of rows": (lambda x, w, b: F.linear(x, w, b).softmax(-1), 2),
    "log_softmax of rows": (lambda x, w, b: F.log_softmax(F.linear(x, w, b), 2), 2),
    "mean of rows": (lambda x, w, b: F.linear(x, w, b).mean(1), 2),
    "variance of rows": (lambda x, w, b: F.linear(x, w, b).var(-1), 2),
    "sum": (lambda x, w, b: F.linear(x, w, b).sum(), 2),
    "mse_loss": (lambda x, w, b: F.mse_loss(F.linear(x, w, b), b.expand(2, 3, 12)), 2),
    "smooth_l1_loss": (lambda x, w, b: F.smooth_l1_loss(F.linear(x, w, b), b.expand(2, 3, 12)), 2),
    "cross_entropy": (lambda x, w, b: F.cross_entropy(F.linear(x, w, b).view(6, 12), x.argmax(-1).view(6)), 2),
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
    out.backward(torch.ones_like(out))
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


@pytest.mark.parametrize(("name", "stays"), [("linear", True), ("softmax of rows", False)])
def test_what_ran_before_its_gradients_stays_whole_where_they_compute_none_of_it_again(name: str, stays: bool) -> None:
    function, _ = FUNCTIONS[name]
    out = function(*[leaf(*shape, grad=True) for shape in ((2, 3, 4), (12, 4), (12,))])
    settle()
    assert isinstance(out._node.op, Composite) is stays


@pytest.mark.parametrize("learns", [True, False])
def test_a_write_in_place_copies_what_it_overwrites_only_where_a_gradient_may_read_it(learns: bool) -> None:
    x, y = leaf(2, 4), leaf(2, 4, grad=learns)
    x *= y
    pending = [node.op.name for node in walk.toposort([x._node]) if node.buffer is None]
    assert ("copy" in pending) is learns


@pytest.mark.parametrize("function", ["softmax", "log_softmax", "cross_entropy", "twice the same"])
def test_a_write_to_what_the_gradient_does_not_read_changes_no_gradient(function: str) -> None:
    """Of these ops PyTorch keeps the result alone. They read the input where they are computed again."""
    given = {
        "softmax": lambda x: F.softmax(x, -1)[..., :2],
        "log_softmax": lambda x: F.log_softmax(x, 1)[..., 1:],
        "cross_entropy": lambda x: F.cross_entropy(x.view(6, 4), x.detach().argmax(-1).view(6), label_smoothing=0.1),
        "twice the same": lambda x: F.softmax(x, 0) * F.softmax(x * 2, -1),
    }[function]
    found = []
    for is_written in (False, True):
        x = values()[0].requires_grad_()
        wide = x * 1.5
        out = given(wide)
        if is_written:
            wide.mul_(3)
        found.append(torch.autograd.grad(out.sum(), x)[0].numpy())
    np.testing.assert_allclose(found[1], found[0], rtol=1e-12)
