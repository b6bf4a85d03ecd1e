"""What `grad_fn` shows against PyTorch's: names of common functions, and the graph that programs walk."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

import pywebgpu

pytestmark = pytest.mark.usefixtures("default_device")

FUNCTIONS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "+": lambda t, x, b: x + b, "-": lambda t, x, b: x - b, "*": lambda t, x, b: x * 2, "/": lambda t, x, b: x / b,
    "rsub": lambda t, x, b: 1 - x, "square": lambda t, x, b: x**2, "@": lambda t, x, b: x @ x,
    "bmm": lambda t, x, b: t.bmm(x[None], x[None]), "linear": lambda t, x, b: t.nn.functional.linear(x, x, b),
    "sum": lambda t, x, b: x.sum(), "sum of rows": lambda t, x, b: x.sum(1), "mean": lambda t, x, b: x.mean(),
    "mean of rows": lambda t, x, b: x.mean(1), "max": lambda t, x, b: x.max(),
    "max of rows": lambda t, x, b: x.max(1)[0],
    "exp": lambda t, x, b: x.exp(), "relu": lambda t, x, b: x.relu(), "gelu": lambda t, x, b: t.nn.functional.gelu(x),
    "softmax": lambda t, x, b: x.softmax(1), "log_softmax": lambda t, x, b: x.log_softmax(1),
    "cross_entropy": lambda t, x, b: t.nn.functional.cross_entropy(x, t.tensor([0, 1])),
    "mse_loss": lambda t, x, b: t.nn.functional.mse_loss(x, x * 2), "var": lambda t, x, b: x.var(),
    "t": lambda t, x, b: x.t(), "view": lambda t, x, b: x.view(4), "row": lambda t, x, b: x[0],
    "unsqueeze": lambda t, x, b: x.unsqueeze(0), "cat": lambda t, x, b: t.cat([x, x]),
    "clone": lambda t, x, b: x.clone(),
    "masked_fill": lambda t, x, b: x.masked_fill(x > 2, 0), "clamp": lambda t, x, b: x.clamp(0, 1),
    "layer_norm": lambda t, x, b: t.nn.functional.layer_norm(x, (2,), b, b),
    "bce": lambda t, x, b: t.nn.functional.binary_cross_entropy_with_logits(x, x.detach()),
    "smooth_l1": lambda t, x, b: t.nn.functional.smooth_l1_loss(x, x * 2), "mv": lambda t, x, b: t.mv(x, b),
    "dot": lambda t, x, b: b.dot(b), "stack": lambda t, x, b: t.stack([x, x]), "repeat": lambda t, x, b: x.repeat(2, 1),
    "split": lambda t, x, b: x.split(1)[0], "unbind": lambda t, x, b: x.unbind()[1], "std": lambda t, x, b: x.std(1),
    "norm": lambda t, x, b: x.norm(), "squeeze": lambda t, x, b: x[None].squeeze(), "view of a vector":
    lambda t, x, b: b.view(2, 1), "expand": lambda t, x, b: b.expand(3, 2), "rows by number":
    lambda t, x, b: x.index_select(0, t.tensor([1])), "places": lambda t, x, b: x[t.tensor([1, 0])],
    "embedding": lambda t, x, b: t.nn.functional.embedding(t.tensor([1]), x), "clamp below":
    lambda t, x, b: x.clamp(0), "batch": lambda t, x, b: t.nn.functional.linear(x[None], x, b),
    "batch_norm": lambda t, x, b: t.nn.functional.batch_norm(x, None, None, training=True),
      "tril": lambda t, x, b: x.tril(1),
    "triu": lambda t, x, b: t.triu(x), "solve": lambda t, x, b: t.linalg.solve(x, x), "det": lambda t, x, b:
    t.linalg.det(x), "svd": lambda t, x, b: t.linalg.svd(x)[1], "eigvalsh": lambda t, x, b: t.linalg.eigvalsh(x),
    "conv": lambda t, x, b: t.nn.functional.conv1d(x[None], x[:, :, None]),
}  # fmt: skip


def inputs(library: Any) -> tuple[Any, Any]:
    return library.tensor([[1.0, 2.0], [3.0, 5.0]], requires_grad=True), library.tensor([1.0, 2.0], requires_grad=True)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_have_torchs_names(name: str) -> None:
    made = FUNCTIONS[name](pywebgpu, *inputs(pywebgpu))
    wanted = FUNCTIONS[name](torch, *inputs(torch))
    assert type(made.grad_fn).__name__ == made.grad_fn.name() == wanted.grad_fn.name()
    assert f"grad_fn=<{wanted.grad_fn.name()}>" in repr(made)


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
