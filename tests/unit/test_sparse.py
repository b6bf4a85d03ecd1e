"""Sparse tensors of coordinates give what PyTorch's give: products, sums, gradients; errors say what is not here."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import pywebgpu

pytestmark = pytest.mark.filterwarnings("ignore")  # PyTorch says that it checks no invariants.


def made(t: Any, values: Any = None) -> Any:
    values = t.tensor([1.0, 2.0, 3.0, 4.0]) if values is None else values
    return t.sparse_coo_tensor(t.tensor([[0, 1, 1, 2], [2, 0, 0, 1]]), values, (3, 3))


def dense(t: Any) -> Any:
    return t.arange(6.0).reshape(3, 2)


def gradients(t: Any) -> Any:
    v, d = t.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True), dense(t).requires_grad_()
    out = t.sparse.mm(made(t, v), d)
    (out**2).sum().backward()
    return out, v.grad, d.grad


CASES: dict[str, Callable[[Any], Any]] = {
    "products_and_gradients": gradients,
    "spmm": lambda t: t.spmm(made(t), dense(t)),
    "operator": lambda t: made(t) @ dense(t),
    "mm": lambda t: t.mm(made(t), dense(t)),
    "vector": lambda t: made(t) @ t.ones(3),
    "addmm": lambda t: t.sparse.addmm(dense(t), made(t), dense(t), beta=2, alpha=3),
    "coalesce": lambda t: (made(t).coalesce().indices(), made(t).coalesce().values()),
    "to_dense": lambda t: made(t).to_dense(),
    "transpose": lambda t: made(t).t().to_dense(),
    "sum": lambda t: (t.sparse.sum(made(t)), t.sparse.sum(made(t), dim=1).to_dense()),
    "softmax": lambda t: t.sparse.softmax(made(t), 1).to_dense(),
    "arithmetic": lambda t: ((made(t) * 2 + made(t)) / 4).to_dense(),
    "relu": lambda t: (-made(t)).relu().to_dense(),
    "to_sparse": lambda t: (lambda s: (s.indices(), s.values()))(t.tensor([[0.0, 1.0], [2.0, 0.0]]).to_sparse()),
    "hybrid": lambda t: made(t, t.arange(8.0).reshape(4, 2)).coalesce().values() if t is None else t.sparse_coo_tensor(
        t.tensor([[0, 1, 1], [2, 0, 0]]), t.arange(6.0).reshape(3, 2), (3, 3, 2)).to_dense(),
    "converted": lambda t: made(t).to(t.float16).float().detach().clone().to_dense(),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_sparse_results_match_torch(name: str, device: str, default_device: None) -> None:
    found, wanted = CASES[name](pywebgpu), CASES[name](torch)
    for own, other in zip(*(x if isinstance(x, tuple) else (x,) for x in (found, wanted)), strict=True):
        np.testing.assert_allclose(own.detach().cpu().numpy(), other.detach().numpy(), rtol=1e-5, atol=1e-6)


FACTS: dict[str, Callable[[Any, Any], Any]] = {
    "kind": lambda t, s: (s.is_sparse, isinstance(s, t.Tensor), t.is_tensor(s), str(s.layout), s.is_coalesced()),
    "sizes": lambda t, s: (tuple(s.shape), s.size(0), s.numel(), s.dim(), s._nnz(), s.sparse_dim(), s.dense_dim()),
    "inferred": lambda t, s: tuple(t.sparse_coo_tensor([[0, 1], [2, 4]], [1.0, 2.0]).shape),
    "empty": lambda t, s: t.sparse_coo_tensor((2, 3)).to_dense().tolist(),
}


@pytest.mark.parametrize("name", FACTS)
def test_facts_are_torchs(name: str) -> None:
    pywebgpu.set_default_device("cpu")
    assert FACTS[name](pywebgpu, made(pywebgpu)) == FACTS[name](torch, made(torch))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda t: made(t).indices(),
        lambda t: t.ones(2).coalesce(),
        lambda t: t.ones(2).values(),
        lambda t: t.sparse_coo_tensor([[0, 1]], [1.0]),
        lambda t: t.sparse.mm(made(t), t.ones(4, 2)),
    ],
)
def test_errors_are_torchs(wrong: Callable[[Any], Any]) -> None:
    pywebgpu.set_default_device("cpu")
    for library in (torch, pywebgpu):
        with pytest.raises(RuntimeError):
            wrong(library)
