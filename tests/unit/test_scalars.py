"""Operands of shape () beside others: the same values and gradients as of a grown operand, and fewer nodes."""

from typing import Any

import numpy as np
import pytest

import pywebgpu as torch
from pywebgpu import devices
from pywebgpu.bench import gpt, workloads
from pywebgpu.ir import walk
from pywebgpu.ir.graph import HOST, Pointwise
from pywebgpu.ops import pointwise
from pywebgpu.runtime import executor
from pywebgpu.tensor.apply import apply
from tests.cases import records

WHOLE = ("bitwise_and", "bitwise_or", "bitwise_xor", "shift_left", "shift_right", "gcd")
# Complex numbers have tests of their own, and passes alone make the checked ones.
OTHERS = records.HISTORY | {"complex", "sum_checked", "long_sum_checked", "near_checked"}
SEVERAL = [
    pytest.param(op, which, id=f"{op.name}-{which}")
    for op in records.of_kind(Pointwise)
    if len(op.vjp) > 1 and op.name not in OTHERS
    for which in range(len(op.vjp))
]
MOST_NODES = {"forward": 430, "backward": 560}  # of a gpt step


def drawn(op: Pointwise, at: int, shape: tuple[int, ...]) -> np.ndarray:
    draw = np.random.default_rng(at)
    if op is pointwise.where and at == 0:
        return draw.integers(0, 2, shape).astype(bool)
    if op.name in WHOLE:
        return draw.integers(0, 8, shape).astype(np.int32)
    return draw.uniform(*op.domain, shape).astype(np.float32)


@pytest.mark.parametrize(("op", "which"), SEVERAL)
def test_a_scalar_operand_is_a_grown_one(op: Pointwise, which: int, device: str) -> None:
    shapes = [() if at == which else (3, 4) for at in range(len(op.vjp))]
    given = [torch.from_numpy(np.asarray(drawn(op, at, shape))).to(device) for at, shape in enumerate(shapes)]
    for x, rule in zip(given, op.vjp, strict=True):
        x.requires_grad_(rule is not None and x.is_floating_point())
    results = []
    for grown in (False, True):
        leaves = [x for x in given if x.requires_grad]
        out = apply(op, *[x.expand(3, 4) if grown else x for x in given])
        assert out.shape == (3, 4)
        found = [out.detach().numpy()]
        if out.requires_grad:
            found += [g.numpy() for g in torch.autograd.grad(out.square().sum(), leaves)]
        results.append(found)
    for own, other in zip(*results, strict=True):
        assert own.shape == other.shape
        np.testing.assert_allclose(own, other, rtol=1e-5)


def test_all_operands_may_be_scalars(device: str) -> None:
    a, b = (torch.tensor(value, device=device, requires_grad=True) for value in (2.0, 3.0))
    (a * b + 1).backward()
    assert (a.grad.shape, a.grad.item(), b.grad.item()) == ((), 3.0, 2.0)


def test_a_number_takes_one_node() -> None:
    x = torch.ones(3, 4, device="null") + 0
    node = (x * 2.5)._node
    assert node.op is pointwise.mul
    assert node.inputs[1].op is HOST
    assert node.inputs[1].spec.shape == ()


def test_a_shared_constant_is_nobody_s_value(device: str) -> None:
    flag = torch.tensor(True, device=device)  # A bool is a constant, and constants of shape () are shared.
    flag.logical_not_()
    other = torch.tensor(True, device=device)
    assert (flag.item(), other.item()) == (False, True)
    assert pointwise.scalar(True, torch.bool).buffer is None
    assert not pointwise.scalar(True, torch.bool).stale


@pytest.mark.parametrize("value", [0, 0.0, -0.0, False, 1, 1.0, True])
def test_equal_constants_of_other_kinds_stay_apart(value: Any) -> None:
    assert repr(pointwise.scalar(value, torch.float32).attrs["value"]) == repr(value)


def test_a_model_is_few_nodes() -> None:
    shape = gpt.Shape(block=8, batch=2)
    model = gpt.model(torch, shape).to("null")
    workloads._fill(torch, model)
    characters = torch.zeros(2, 8, dtype=torch.int64, device="null")
    executor.submit(devices.open_device("null"))
    loss = torch.nn.functional.cross_entropy(model(characters).flatten(0, 1), characters.flatten())
    forward = recorded([loss])
    loss.backward()
    assert forward <= MOST_NODES["forward"]
    assert recorded([loss, *(p.grad for p in model.parameters())]) - forward <= MOST_NODES["backward"]


def recorded(tensors: list[Any]) -> int:
    return sum(not node.is_source for node in walk.toposort([x._node for x in tensors]))
