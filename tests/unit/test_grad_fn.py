"""What `grad_fn` shows against PyTorch's: names of common functions, and the graph that programs walk."""

from typing import Any

import pytest
import torch

import pywebgpu
from tests.cases.grad_fn import FUNCTIONS

pytestmark = pytest.mark.usefixtures("default_device")


def inputs(library: Any) -> tuple[Any, Any]:
    return library.tensor([[1.0, 2.0], [3.0, 5.0]], requires_grad=True), library.tensor([1.0, 2.0], requires_grad=True)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_have_torchs_names(name: str) -> None:
    made = FUNCTIONS[name](pywebgpu, *inputs(pywebgpu))
    wanted = FUNCTIONS[name](torch, *inputs(torch))
    assert made.grad_fn.name() == wanted.grad_fn.name()
    assert type(made.grad_fn).__name__ == type(wanted.grad_fn).__name__


@pytest.mark.parametrize("name", ["linear", "setitem", "softmax", "v@v"])
def test_text_of_a_tensor_has_the_name(name: str) -> None:
    wanted = FUNCTIONS[name](torch, *inputs(torch))
    assert f"grad_fn=<{type(wanted.grad_fn).__name__}>" in repr(FUNCTIONS[name](pywebgpu, *inputs(pywebgpu)))


def walked(library: Any, *, read: bool) -> tuple[set[str], list[tuple[int, ...]]]:
    """Names and leaves of a small model's graph, as programs that draw it find them."""
    model = library.nn.Sequential(library.nn.Linear(2, 3), library.nn.Tanh(), library.nn.Linear(3, 2))
    loss = library.nn.functional.mse_loss(model(library.ones(4, 2)), library.zeros(4, 2))
    if read:
        loss.item()
    seen, waiting, leaves = set(), [loss.grad_fn], []
    names = set()
    while waiting:
        one = waiting.pop()
        if one is None or one in seen:
            continue
        seen.add(one)
        names.add(type(one).__name__)
        if hasattr(one, "variable"):
            leaves.append(tuple(one.variable.shape))
        waiting += [function for function, _ in one.next_functions]
    return names, sorted(leaves)


@pytest.mark.parametrize("read", [False, True])
def test_a_graph_leads_to_all_parameters(read: bool) -> None:
    found, wanted = walked(pywebgpu, read=read), walked(torch, read=read)
    assert found[1] == wanted[1]
    assert {"MseLossBackward0", "AddmmBackward0", "TanhBackward0", "AccumulateGrad"} <= found[0] & wanted[0]


def test_leaves_have_no_function() -> None:
    x, _ = inputs(pywebgpu)
    assert x.grad_fn is None
    assert (x * 2).detach().grad_fn is None
    y = x * 2
    assert y.grad_fn == y.grad_fn
    assert y.grad_fn.next_functions[0][0].variable is x


@pytest.mark.parametrize("reads", [False, True])
def test_a_hook_may_read_values_while_gradients_are_computed(reads: bool) -> None:
    """Also where the layers have not run yet: what runs for the hook stays what the gradients go through."""
    found = []
    for library in (pywebgpu, torch):
        one, two = library.nn.Linear(2, 2), library.nn.Linear(2, 2)
        with library.no_grad():
            for n, parameter in enumerate([*one.parameters(), *two.parameters()]):
                parameter.fill_(0.5 + n)
        x = library.ones(1, 2, requires_grad=True)
        hidden = library.nn.functional.gelu(one(x))
        out = two(hidden)
        side = one(x * 2)
        for value in (out, side, hidden):
            value.register_hook((lambda gradient: print(gradient.sum().item())) if reads else (lambda gradient: None))
        (out.square().sum() + side.sum()).backward()
        found.append([one.weight.grad.tolist(), one.bias.grad.tolist(), two.weight.grad.tolist(), x.grad.tolist()])
    for mine, theirs in zip(*found, strict=True):
        assert torch.tensor(mine).allclose(torch.tensor(theirs), rtol=1e-4)
