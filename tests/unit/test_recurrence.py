"""A recurrent layer as one op computes what its steps compute, and so do its gradients. Subjects: kinds of cells."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import pywebgpu as torch
from pywebgpu.composites import recurrence, recurrent
from pywebgpu.ir.graph import Fused, Node
from pywebgpu.tensor.apply import apply

T, N, H = 4, 3, 5


def inputs(kind: str, *, is_packed: bool) -> list[Any]:
    """Of an op of `recurrence.LAYERS`."""
    draw, rows = np.random.default_rng(0), recurrent.COUNT[kind] * H
    shapes = [(T, N, rows), (rows, H), (rows,), *[(N, H)] * recurrence.STATES[kind]]
    with torch.device("cpu"):
        given = [torch.tensor(draw.standard_normal(shape).tolist(), dtype=torch.float64) for shape in shapes]
        present = torch.tensor([[[time <= row + 1] for row in range(N)] for time in range(T)])
    return [*given, present] if is_packed else given


def called(op: Fused, given: list[Any], **attrs: Any) -> list[Any]:
    def values(*nodes: Node) -> tuple[Node, ...]:
        return op(*nodes, **attrs)

    found: list[Any] = list(apply(values, *given))
    return found


def close(ours: list[Any], wanted: list[Any]) -> None:
    assert len(ours) == len(wanted)
    for one, other in zip(ours, wanted, strict=True):
        np.testing.assert_allclose(one.detach().numpy(), other.detach().numpy(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("is_packed", [False, True])
@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("kind", recurrence.LAYERS)
def test_one_op_computes_what_its_steps_compute(kind: str, backwards: bool, is_packed: bool) -> None:
    given, op = inputs(kind, is_packed=is_packed), recurrence.LAYERS[kind]
    outs = called(op, given, backwards=backwards)
    close(outs, called(replace(op, host=None), given, backwards=backwards))
    saved = outs if len(outs) == 3 else [outs[0]] * 3
    coming, cells = (torch.sin(outs[0] * n + n) for n in (1, 2))
    read = [coming, cells if kind == "LSTM" else cells * 0, *saved, given[1], *given[3:]]
    gradient = recurrence.GRADIENTS[kind]
    close(called(gradient, read, backwards=backwards), called(replace(gradient, host=None), read, backwards=backwards))


@pytest.mark.parametrize("is_packed", [False, True])
@pytest.mark.parametrize("kind", recurrence.LAYERS)
def test_gradients_are_those_of_the_steps(kind: str, is_packed: bool) -> None:
    """Also where they are to have gradients themselves: then the steps are recorded."""
    found = []
    for op in (recurrence.LAYERS[kind], replace(recurrence.LAYERS[kind], host=None, vjp=None)):
        given = inputs(kind, is_packed=is_packed)
        wanted = [x.requires_grad_() for x in given if x.is_floating_point()]
        out, *others = called(op, given, backwards=False)
        loss = (out * out).sum() + (others[1].sin().sum() if kind == "LSTM" else 0)
        first = torch.autograd.grad(loss, wanted, retain_graph=True)
        again = torch.autograd.grad(loss, wanted, create_graph=True)
        second = torch.autograd.grad(sum((x * x).sum() for x in again), wanted)
        found.append([*first, *again, *second])
    close(*found)
