"""Chains of views and copies, then an op which must fold all of them into its loads."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.cases.case import Case, randn
from tests.fuzz import steps
from tests.oracle import oracle

LAST = {
    "nothing": lambda x: x,
    "contiguous": lambda x: x.contiguous(),
    "pointwise": lambda x: x.sin() * 2 + x,
    "sum": lambda x: x.sum(),
    "sum_last": lambda x: x.sum(-1) if x.ndim else x,
    "mean_first": lambda x: x.mean(0) if x.ndim else x,
    "softmax": lambda x: x.softmax(-1) if x.ndim else x,
    "cumsum": lambda x: x.cumsum(0) if x.ndim else x,
    "matmul": lambda x: x @ x.transpose(-1, -2) if x.ndim > 1 else x,
    "flat": lambda x: x.reshape(-1) * 3,
    "with_itself": lambda x: x + x.flip(0) if x.ndim else x,
    "index": lambda x: x[[0, -1]] if x.ndim and x.shape[0] else x,
}


@given(steps.shapes, st.lists(steps.step, max_size=8), st.sampled_from(sorted(LAST)))
@steps.PROFILE
def test_chain_of_views_matches_torch(device: str, shape: Any, chain: list[Any], last: str) -> None:
    def program(torch: Any, x: Any) -> Any:
        for step in chain:
            x = steps.apply(steps.MOVES, torch, x, step)
        return LAST[last](x)

    oracle.agree(Case("chain", program, (randn(*shape),), tolerance="model"), device)


@given(steps.solid_shapes, st.lists(steps.step, max_size=6), st.sampled_from(["int64", "bool", "float16", "uint8"]))
@steps.PROFILE
def test_chain_of_views_keeps_the_dtype(device: str, shape: Any, chain: list[Any], dtype: str) -> None:
    def program(torch: Any) -> Any:
        x = (torch.arange(steps.count(shape)) % 100).reshape(shape).to(getattr(torch, dtype))
        for step in chain:
            x = steps.apply(steps.MOVES, torch, x, step)
        return x, x.contiguous()

    oracle.agree(Case("dtypes", program, grad=False, tolerance="exact"), device)


@given(steps.solid_shapes, st.lists(steps.step, min_size=1, max_size=5))
@steps.PROFILE
def test_strides_and_contiguity_match_torch(device: str, shape: Any, chain: list[Any]) -> None:
    def program(torch: Any, x: Any) -> Any:
        seen = []
        for step in chain:
            x = steps.apply(steps.VIEWS, torch, x, step)
            seen.append((tuple(x.shape), x.is_contiguous()))
        return seen

    oracle.agree(Case("strides", program, (randn(*shape),), grad=False), device)
