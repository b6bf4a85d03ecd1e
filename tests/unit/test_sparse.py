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


LAYOUTS = {"sparse_coo": None, "sparse_csr": None, "sparse_csc": None, "sparse_bsr": (2, 1), "sparse_bsc": (1, 2)}


def rounded(values: Any) -> Any:
    return np.asarray(values.tolist(), np.float64).round(5).tolist()


def parts(s: Any) -> list[Any]:
    """All that a sparse tensor is made of, as lists."""
    if "coo" in str(s.layout):
        s = s.coalesce()
        return [str(s.layout), tuple(s.shape), s.indices().tolist(), rounded(s.values())]
    by_rows = str(s.layout).endswith(("csr", "bsr"))
    both = (s.crow_indices(), s.col_indices()) if by_rows else (s.ccol_indices(), s.row_indices())
    return [str(s.layout), tuple(s.shape), *(part.tolist() for part in both), rounded(s.values())]


def matrix(t: Any, *batch: int) -> Any:
    x = t.tensor([[0.0, 1, 0, 2], [0, 0, 0, 0], [3, 0, 0, 4], [0, 5, 6, 0]])
    return x.expand(*batch, 4, 4).clone()


def in_layout(t: Any, name: str, *batch: int) -> Any:
    return matrix(t, *batch).to_sparse(layout=getattr(t, name), blocksize=LAYOUTS[name])


IN_LAYOUTS: dict[str, Callable[[Any, str], Any]] = {
    "made": lambda t, name: in_layout(t, name),
    "transposed": lambda t, name: in_layout(t, name).transpose(0, 1),
    "function": lambda t, name: t.sin(in_layout(t, name)),
    "in_place": lambda t, name: in_layout(t, name).neg_(),
    # PyTorch writes into coordinates and rows alone.
    "out": lambda t, name: t.abs(-in_layout(t, "sparse_csr"), out=in_layout(t, "sparse_csr")),
    "cast": lambda t, name: in_layout(t, name).to(t.int32),
    "scaled": lambda t, name: in_layout(t, name) * 2,
    "like": lambda t, name: t.zeros_like(in_layout(t, name)),
    "masked": lambda t, name: t.ones(4, 4).sparse_mask(in_layout(t, name)),
    "as_coordinates": lambda t, name: in_layout(t, name).to_sparse(),
    "batch": lambda t, name: in_layout(t, name, 2, 1),
    "selected": lambda t, name: in_layout(t, name, 2).select(0, 1),
}  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", IN_LAYOUTS)
def test_layouts_hold_what_torchs_hold(name: str, layout: str) -> None:
    pywebgpu.set_default_device("cpu")
    assert parts(IN_LAYOUTS[name](pywebgpu, layout)) == parts(IN_LAYOUTS[name](torch, layout))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_dense_tensors_of_layouts_are_those_they_were_made_of(layout: str) -> None:
    pywebgpu.set_default_device("cpu")
    sparse = in_layout(pywebgpu, layout, 3)
    assert sparse.to_dense().tolist() == matrix(torch, 3).tolist()
    assert (sparse.shape, sparse.dense_dim(), sparse.layout) == ((3, 4, 4), 0, getattr(pywebgpu, layout))


WRONG_PARTS = {
    "first": ([1, 2, 4], [0, 1, 0, 2]),
    "last": ([0, 2, 5], [0, 1, 0, 2]),
    "outside": ([0, 2, 4], [0, 1, 0, 3]),
    "twice": ([0, 2, 4], [1, 1, 0, 2]),
    "lengths": ([0, 2, 4], [0, 1, 0]),
    "rows": ([0, 2, 3, 4], [0, 1, 0, 2]),
}


@pytest.mark.parametrize("name", WRONG_PARTS)
def test_compressed_parts_that_fit_nowhere_are_refused_as_by_torch(name: str) -> None:
    pywebgpu.set_default_device("cpu")
    texts = []
    for t in (torch, pywebgpu):
        with pytest.raises(RuntimeError) as caught:
            t.sparse_compressed_tensor(*WRONG_PARTS[name], t.arange(4.0), (2, 3), layout=t.sparse_csr,
                                       check_invariants=True)  # fmt: skip
        texts.append(str(caught.value))
    assert texts[0] == texts[1]
